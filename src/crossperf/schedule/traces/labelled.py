"""Jobs from lines of any trace that names its users, programs and queues: the way into `Jobs` for every such reader."""

# J jobs

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from crossperf.arrays import Integers
from crossperf.schedule.jobs import LONGEST_S, Jobs, TraceError, nodes_of
from crossperf.schedule.traces import text


class TraceJob(NamedTuple):
    """What a trace tells of one job: times in seconds, `units` of whatever is counted there (mostly GPUs).

    A `requested_s` of 0 stands for no limit, an empty name for an unknown one.
    """

    submit_s: float
    run_s: float
    units: float
    requested_s: float = 0.0
    user: str = ""
    executable: str = ""
    queue: str = ""
    priority: float | None = None
    memory_gb: float = math.nan


class TraceReading:
    """Gathers the lines of a trace, and counts what is left out by reason."""

    def __init__(self, name: str, unit: str = "GPU") -> None:
        self.name, self.unit = name, unit
        self._lines: list[TraceJob] = []
        #: What the trace tells and is not used.
        self.ignored: list[str] = []
        self.left_out: Counter[str] = Counter()

    def add(self, line: TraceJob) -> None:
        """Keep a job that ran on something, and count any other."""
        if line.units <= 0:
            self.left_out[f"without a {self.unit}"] += 1
        elif not line.run_s >= 0:
            self.left_out["with a run time below 0" if line.run_s < 0 else "without a run time"] += 1
        elif line.run_s > LONGEST_S or not math.isfinite(line.submit_s):
            self.left_out["with times that no job has"] += 1
        else:
            self._lines.append(line)

    def jobs(self, per_node: int = 1, *, share: bool = False) -> Jobs:
        """Return the jobs in order of arrival, the first one at 0 s, `per_node` units to a node."""
        if not self._lines:
            raise TraceError(f"{self.name}: found no job that ran, expected at least one. Check the trace.")
        lines = sorted(self._lines, key=lambda line: line.submit_s)
        columns = list(zip(*lines, strict=True))
        submit_s, run_s, units, requested_s = (np.array(column, np.float64) for column in columns[:4])
        (user, users), (executable, programs), (queue, queues) = (_numbered(column) for column in columns[4:7])
        priority = np.array([0.0 if value is None else value for value in columns[7]])
        memory_gb = np.array(columns[8], np.float64)
        seconds = np.maximum(run_s, 1.0)
        nodes = nodes_of(self.name, units if share else units / per_node)
        unlimited = int((requested_s <= 0).sum())
        notes = [f"{self.name}: a node of it is {self._counted(per_node, share)}."]
        if parts := int((units % 1 > 0).sum()):
            notes.append(f"{self.name}: {parts:,} jobs ask for a part of a {self.unit} and count with a whole one.")
        if zeros := int((run_s < 1).sum()):
            notes.append(f"{self.name}: {zeros:,} jobs ran for less than 1 s and count as 1 s.")
        if unlimited:
            notes.append(text.clairvoyant(self.name, unlimited, len(lines)))
        return Jobs(
            submit_s - submit_s.min(),
            nodes,
            seconds,
            np.where(requested_s > 0, requested_s, seconds),
            user,
            executable,
            self.name,
            dict(self.left_out),
            tuple(notes),
            queue=queue,
            labels={"user": users, "executable": programs, "queue": queues},
            priority=priority if any(value is not None for value in columns[7]) else None,
            memory_gb=memory_gb if np.isfinite(memory_gb).any() else None,
        )

    def _counted(self, per_node: int, share: bool) -> str:
        if share or per_node == 1:
            return f"a {self.unit}" + (f", {per_node} for each node of a machine" if share and per_node > 1 else "")
        return f"{per_node} {self.unit}s, and jobs with fewer take one"


def _numbered(names: Sequence[str]) -> tuple[Integers, tuple[str, ...]]:
    """Return a number for each name, -1 for an empty one, and the names by number."""
    known = sorted(set(names) - {""})
    place = {name: i for i, name in enumerate(known)}
    return np.array([place.get(name, -1) for name in names], np.int64), tuple(known)
