"""The time of each workload in each place, true or predicted, relative to the reference platform."""

# W workloads, M modes: ways to run on a cluster, such as tioga-cpu and tioga-gpu, which share its nodes

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crossperf.arrays import Floats
from crossperf.errors import CrossperfError, some_of

#: What a cell of a file can hold: seconds over seconds on the reference, or the other way round.
CELLS = ("relative-time", "speedup")


#: Nothing that was ever measured takes less or more of the time on the reference than this.
SMALLEST, LARGEST = 1e-12, 1e12


class ScheduleTableError(CrossperfError):
    """A table of times or machines cannot be used; ``path`` names it."""


@dataclass(frozen=True, repr=False)
class RelativeTimes:
    """Time of each workload in each mode over its time on the reference; NaN where it cannot run.

    A workload is (app, input). `group_w` names what belongs together when times are averaged over an application.
    The interval from `low_wm` to `high_wm` covers the truth in 80 % of the cases; both equal the time where none is
    known. `nodes_wm` is how many nodes a job takes in a mode for each that it asks for, and may be a part of one (an
    eighth where one GPU node does the work of eight); ``None`` for as many as it asks for everywhere.

    >>> RelativeTimes.of([("lu", "n=64")], ["cpu", "gpu"], np.array([[1.0, 0.25]]))
    RelativeTimes(times: 1 workloads in the modes cpu, gpu)
    """

    workloads: tuple[tuple[str, str], ...]
    modes: tuple[str, ...]
    relative_wm: Floats
    low_wm: Floats
    high_wm: Floats
    group_w: tuple[str, ...]
    name: str = "times"
    notes: tuple[str, ...] = ()
    nodes_wm: Floats | None = None

    def __post_init__(self) -> None:
        cannot_wm = np.isnan(self.relative_wm)
        tables = [("time", self.relative_wm), ("low end", self.low_wm), ("high end", self.high_wm)]
        tables += [] if self.nodes_wm is None else [("number of nodes", self.nodes_wm)]
        for what, cells_wm in tables:
            odd_wm = ~((cells_wm >= SMALLEST) & (cells_wm <= LARGEST)) & ~(cannot_wm & np.isnan(cells_wm))
            for w, m in np.argwhere(odd_wm)[:1]:
                place = f"{' '.join(self.workloads[w])!r} in {self.modes[m]!r}"
                expected = f"a number from {SMALLEST:g} to {LARGEST:g}"
                raise ScheduleTableError(
                    f"{self.name}: found a relative {what} of {cells_wm[w, m]:g} for {place}, expected {expected}. "
                    "Fix or remove it."
                )

    def __repr__(self) -> str:
        return f"RelativeTimes({self.name}: {len(self.workloads):,} workloads in the modes {some_of(self.modes, 12)})"

    def to_frame(self) -> Any:
        """Return a data frame with a row for each workload: app, input, and the relative time in each mode."""
        from crossperf.runs.frames import to_frame

        names = zip(("app", "input"), zip(*self.workloads, strict=True), strict=True)
        return to_frame(dict(names) | dict(zip(self.modes, self.relative_wm.T.tolist(), strict=True)))

    @classmethod
    def of(
        cls,
        workloads: Sequence[tuple[str, str]],
        modes: Sequence[str],
        relative_wm: Floats,
        low_wm: Floats | None = None,
        high_wm: Floats | None = None,
        nodes_wm: Floats | None = None,
        *,
        group_w: Sequence[str] | None = None,
        name: str = "times",
        notes: Sequence[str] = (),
    ) -> RelativeTimes:
        """Return a table; without intervals they have no width, without groups an application is one."""
        low_wm = relative_wm if low_wm is None else low_wm
        high_wm = relative_wm if high_wm is None else high_wm
        groups = tuple(group_w) if group_w is not None else tuple(app for app, _ in workloads)
        tables = (relative_wm, low_wm, high_wm)
        return cls(tuple(workloads), tuple(modes), *tables, groups, name, tuple(notes), nodes_wm)

    def part(self, workloads: Sequence[tuple[str, str]], modes: Sequence[str]) -> RelativeTimes:
        """Return the rows of these workloads and the columns of these modes; a mode that is not there is NaN."""
        row = {workload: w for w, workload in enumerate(self.workloads)}
        rows, columns = [row[workload] for workload in workloads], {mode: m for m, mode in enumerate(self.modes)}
        chosen = np.ix_(rows, [columns.get(mode, -1) for mode in modes])
        nothing_w = np.full(len(self.workloads), np.nan)  # the last column, which -1 chooses
        tables = (self.relative_wm, self.low_wm, self.high_wm)
        cells = [np.column_stack([cells_wm, nothing_w])[chosen] for cells_wm in tables]
        if self.nodes_wm is not None:
            cells.append(np.column_stack([self.nodes_wm, np.ones_like(nothing_w)])[chosen])
        groups = [self.group_w[w] for w in rows]
        return self.of(workloads, modes, *cells, group_w=groups, name=self.name, notes=self.notes)

    def to_json(self) -> dict[str, Any]:
        """Return the table as JSON's own types, which `read_times` reads; a cell that cannot run is left out."""
        rows = []
        for w, (app, input_) in enumerate(self.workloads):
            row: dict[str, Any] = {"app": app, "input": input_, "group": self.group_w[w]}
            tables = {"times": self.relative_wm, "low": self.low_wm, "high": self.high_wm, "nodes": self.nodes_wm}
            for key, cells_wm in tables.items():
                if cells_wm is None:
                    continue
                cells = zip(self.modes, cells_wm[w].tolist(), strict=True)
                row[key] = {mode: cell for mode, cell in cells if not math.isnan(cell)}
            rows.append(row)
        return {"format": 1, "cells": CELLS[0], "modes": list(self.modes), "workloads": rows}


def aligned(truth: RelativeTimes, *others: RelativeTimes) -> tuple[RelativeTimes, ...]:
    """Return the tables for the workloads that all of them have and the modes of the first, with a note of the rest."""
    shared = set(truth.workloads).intersection(*(other.workloads for other in others))
    if not shared:
        names = some_of((other.name for other in others), 4)
        raise ScheduleTableError(
            f"{names}: found no workload of {truth.name}, expected the same apps and inputs, such as "
            f"{' '.join(truth.workloads[0])!r}."
        )
    kept = [workload for workload in truth.workloads if workload in shared]
    missing = len(truth.workloads) - len(kept)
    notes = (f"{missing:,} workloads of {truth.name} have no prediction and are not drawn.",) if missing else ()
    first = replace(truth.part(kept, truth.modes), notes=truth.notes + notes)
    return first, *(other.part(kept, truth.modes) for other in others)
