"""Jobs that arrive over time, drawn or from a trace."""

# J jobs

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from crossperf.arrays import Floats, Integers
from crossperf.errors import CrossperfError

#: No job runs for 30,000 years, nor for less than a nanosecond: a limit must be doubled a hundred times at most.
LONGEST_S, SHORTEST_S = 1e12, 1e-9
#: No job has a thousand million nodes.
MOST_NODES = 10**9
#: Beyond this a float is no exact whole number.
_LARGEST_NAME = 2**53
#: What distinguishes the jobs of a trace.
LABELS = ("executable", "user", "queue")


class TraceError(CrossperfError):
    """A trace of jobs cannot be used; ``path`` and ``line`` name the place."""


def nodes_of(trace: str, count_j: Floats) -> Integers:
    """Return numbers of nodes as whole ones, at least 1; more than any machine has raises `TraceError`."""
    return _whole(trace, "nodes", np.maximum(1.0, np.ceil(count_j)), MOST_NODES)


def names_of(trace: str, what: str, number_j: Floats) -> Integers:
    """Return the numbers that stand for names as whole ones; one that is too long raises `TraceError`.

    >>> names_of("t.swf", "user", np.array([3.0, -1.0]))
    array([ 3, -1])
    """
    return _whole(trace, f"for {what}", number_j, _LARGEST_NAME)


def _whole(trace: str, what: str, value_j: Floats, most: int) -> Integers:
    for j in np.flatnonzero(~(np.abs(value_j) <= most))[:1]:
        odd = f"{value_j[j]:g} {what} of job {j + 1:,}"
        raise TraceError(f"{trace}: found {odd}, expected at most {most:,}. Fix or remove its line.")
    return value_j.astype(np.int64)


@dataclass(frozen=True)
class Jobs:
    """Jobs in order of arrival; times in seconds, run and requested time as they would be on the reference platform.

    `user`, `executable` and `queue` are numbers, -1 where unknown; `labels` has their names where a trace names them.
    `left_out` counts by reason what a trace held besides, `ignored` names what it tells and nobody asked for. What a
    trace does not tell is ``None``: a `priority` (more is more urgent), the `memory_gb` that a job needs on each node
    (NaN where unknown), the job that it `follows` (-1 for none) `think_s` seconds after its end (NaN: at its own time,
    but no earlier), and its `kind`, a number of `kinds`: the application and input that it is (an empty input for any).
    """

    submit_s: Floats
    nodes: Integers
    run_s: Floats
    requested_s: Floats
    user: Integers
    executable: Integers
    name: str = "jobs"
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    queue: Integers | None = None
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    priority: Floats | None = None
    memory_gb: Floats | None = None
    follows: Integers | None = None
    think_s: Floats | None = None
    kind: Integers | None = None
    kinds: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for what, seconds in (("run time", self.run_s), ("requested time", self.requested_s)):
            for j in np.flatnonzero(~((seconds >= SHORTEST_S) & (seconds <= LONGEST_S)))[:1]:
                odd = f"a {what} of {seconds[j]:g} s for job {j + 1:,}"
                raise TraceError(f"{self.name}: found {odd}, expected {SHORTEST_S:g} to {LONGEST_S:g}.")
        if self.follows is not None and (self.follows >= np.arange(len(self))).any():
            raise TraceError(f"{self.name}: found a job that follows one which arrives later, expected an earlier one.")

    def __len__(self) -> int:
        return len(self.submit_s)

    def label_of(self, what: str, number: int) -> str:
        """Return the name of a user, an executable or a queue; its number where a trace has no names."""
        names = self.labels.get(what)
        return str(number) if names is None else names[number] if number >= 0 else ""
