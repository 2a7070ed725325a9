"""The run that the threads of an HPCToolkit database make: totals, runtime, ranks and threads."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from crossperf.catalog import canonical
from crossperf.importers.files import SPELLINGS
from crossperf.importers.measurement import SECONDS, Measurement

_SAMPLED = "counts are estimates from samples, summed over ranks and threads"


@dataclass(frozen=True)
class Thread:
    """One thread's metrics over its whole life, under HPCToolkit's names; ``None`` where no rank was recorded."""

    values: Mapping[str, float]
    rank: int | None = None
    thread: int | None = None
    host: str | None = None
    gpu: bool = False


def summed(threads: Iterable[Thread]) -> tuple[dict[str, float], dict[str, float]]:
    """Return each metric's sum over threads, and its greatest value in one."""
    sums: dict[str, float] = defaultdict(float)
    longest: dict[str, float] = {}
    for thread in threads:
        for name, value in thread.values.items():
            sums[name] += value
            longest[name] = max(value, longest.get(name, value))
    return dict(sums), longest


def seconds(name: str) -> tuple[str, float] | None:
    """Return which clock a metric is, and its unit in seconds; ``None`` for one that is no time.

    >>> seconds("CPUTIME (usec)"), seconds("PAPI_TOT_CYC")
    (('CPUTIME', 1e-06), None)
    """
    match = re.fullmatch(r"(.+?) \((\w+)\)", name)
    return (match[1].upper(), SECONDS[match[2]]) if match and match[2] in SECONDS else None


def to_measurement(
    app: str | None,
    version: str,
    metrics: Iterable[str],
    sums: Mapping[str, float],
    longest: Mapping[str, float],
    threads: Sequence[Thread],
    notes: Sequence[str],
    trace_s: float | None = None,
) -> Measurement:
    """Return the measurement of a database; what a reader must know of the numbers is in its notes.

    `metrics` are all that were measured, also one that stayed 0; `longest` are the greatest values in any thread.
    """
    counters: dict[str, float | None] = {}
    events: dict[str, float | None] = {}
    for name in metrics:
        counter = SPELLINGS["hpctoolkit"].get(name.lower())
        (events if counter is None else counters)[counter or canonical(name)] = sums.get(name, 0.0)
    runtime_s, why = _runtime(longest, trace_s)
    ranks, threads_in_rank = _shape(threads)
    if threads:
        counters["threads"] = float(sum(not thread.gpu for thread in threads)) or None
    hosts = sorted({thread.host for thread in threads if thread.host})
    facts = {"app": app, "ranks": ranks, "threads": threads_in_rank, "host_ids": hosts or None}
    notes = (_SAMPLED, why, *notes)
    return Measurement("hpctoolkit", events, version, (), runtime_s, notes, facts, counters)


def _runtime(longest: Mapping[str, float], trace_s: float | None) -> tuple[float | None, str]:
    clocks = {clock[0]: value * clock[1] for name, value in longest.items() if (clock := seconds(name)) and value > 0}
    for name in ("REALTIME", "WALLCLOCK"):
        if name in clocks:
            return clocks[name], f"runtime is the longest {name} of any thread"
    if trace_s:
        return trace_s, "runtime is the span of the trace, for want of the metric REALTIME"
    if "CPUTIME" in clocks:
        why = "runtime is the longest CPUTIME of any thread, for want of REALTIME: time spent waiting is not in it"
        return clocks["CPUTIME"], why
    return None, "no runtime: the database holds no time of a single thread (measure REALTIME with hpcrun -e REALTIME)"


def _shape(threads: Sequence[Thread]) -> tuple[int | None, int | None]:
    """Return the number of ranks and of threads in the largest rank."""
    on_cpu = [thread for thread in threads if not thread.gpu]
    if not on_cpu or any(thread.rank is None for thread in on_cpu):
        return None, len(on_cpu) or None
    by_rank = Counter(thread.rank for thread in on_cpu)
    return len(by_rank), max(by_rank.values())
