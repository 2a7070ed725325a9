"""A map from a trace's executables, users and queues to workloads of the truth, and to priorities."""

# J jobs

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crossperf.errors import some_of
from crossperf.schedule.jobs import LABELS, Jobs
from crossperf.schedule.readers import csv_rows
from crossperf.schedule.times import ScheduleTableError


class MapRow(NamedTuple):
    """What jobs a row of a map is for (an empty name for any), and what it says of them."""

    executable: str
    user: str
    queue: str
    app: str
    input: str
    priority: float | None


def read_map(path: str | os.PathLike[str]) -> tuple[MapRow, ...]:
    """Return the rows of a CSV that tells which jobs of a trace are which workloads of the truth.

    Its columns are ``executable``, ``user`` and ``queue``, at least one of them, and ``app``, ``input`` and
    ``priority``. An empty cell of the former stands for any, of the latter for none.
    """
    path = Path(path)
    if not path.is_file():
        raise ScheduleTableError(f"{path}: no such file, expected a CSV that maps jobs to workloads.", path=str(path))
    header, rows = csv_rows(path)
    if not set(LABELS) & set(header) or not {"app", "priority"} & set(header):
        expected = f"at least one of {', '.join(LABELS)}, and 'app' (with 'input') or 'priority'"
        raise ScheduleTableError(f"{path}: found the columns {some_of(header)}, expected {expected}.", path=str(path))
    return tuple(_row(path, number, cells) for number, cells in enumerate(rows, start=2))


def _row(path: Path, number: int, words: dict[str, str]) -> MapRow:
    try:
        priority = float(words.get("priority") or math.nan)
    except ValueError:
        priority = math.inf
    if math.isinf(priority):
        what = f"found a priority of {words.get('priority')!r}, expected a number or nothing"
        raise ScheduleTableError(f"{path}, row {number:,}: {what}.", path=str(path), row=number)
    executable, user, queue, app, input_ = (words.get(name, "") for name in (*LABELS, "app", "input"))
    return MapRow(executable, user, queue, app, input_, None if math.isnan(priority) else priority)


def mapped(jobs: Jobs, rows: Sequence[MapRow], name: str = "the map") -> Jobs:
    """Return jobs that know their workloads and priorities, by the first row that is for each and says it.

    >>> from crossperf.schedule.jobs import Jobs
    >>> one = np.ones(2)
    >>> jobs = Jobs(one, one.astype(int), one, one, np.array([1, 2]), np.array([7, 8]))
    >>> mapped(jobs, [MapRow("7", "", "", "lu", "", 2.0)]).kind.tolist()
    [0, -1]
    """
    number_lj = [getattr(jobs, what) for what in LABELS]
    known_lj = np.stack([np.full(len(jobs), -1) if numbers is None else numbers for numbers in number_lj])
    groups, group_j = np.unique(known_lj, axis=1, return_inverse=True)
    kinds = tuple(dict.fromkeys((row.app, row.input) for row in rows if row.app))
    kind_g, priority_g = np.full(groups.shape[1], -1), np.zeros(groups.shape[1])
    for g, numbers in enumerate(groups.T.tolist()):
        names = [jobs.label_of(what, number) for what, number in zip(LABELS, numbers, strict=True)]
        fits = [row for row in rows if all(want in ("", own) for want, own in zip(row[:3], names, strict=True))]
        named = next((row for row in fits if row.app), None)
        kind_g[g] = -1 if named is None else kinds.index((named.app, named.input))
        priority_g[g] = next((row.priority for row in fits if row.priority is not None), 0.0)
    group_j = group_j.reshape(-1)
    kind_j = kind_g[group_j]
    unknown = int((kind_j < 0).sum())
    notes = jobs.notes
    if kinds and unknown:
        notes += (f"{name}: no row says what {unknown:,} of {len(jobs):,} jobs are; their workloads are drawn.",)
    priority = priority_g[group_j] if any(row.priority is not None for row in rows) else jobs.priority
    own = (kind_j, kinds) if kinds else (jobs.kind, jobs.kinds)
    return replace(jobs, priority=priority, notes=notes, kind=own[0], kinds=own[1])
