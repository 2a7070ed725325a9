"""The run that the threads of an HPCToolkit database make: totals, runtime, ranks and threads."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crossperf.catalog import canonical
from crossperf.importers.measurement import Measurement

_SECONDS = {"sec": 1.0, "s": 1.0, "msec": 1e-3, "ms": 1e-3, "usec": 1e-6, "us": 1e-6, "nsec": 1e-9, "ns": 1e-9}
_COUNTERS = {
    "io bytes read": "io_bytes_read",
    "io bytes written": "io_bytes_written",
    # Explicit copies, as "(B)" or "(b)" by release.
    "gxcopy:h2d (b)": "bytes_host_to_gpu",
    "gxcopy:d2h (b)": "bytes_gpu_to_host",
}
_SAMPLED = "counts are estimates from samples, summed over ranks and threads"


@dataclass(frozen=True)
class Thread:
    """One thread's metrics over its whole life, under HPCToolkit's names; ``None`` where no rank was recorded."""

    values: Mapping[str, float]
    rank: int | None = None
    thread: int | None = None
    host: str | None = None
    gpu: bool = False


@dataclass(frozen=True)
class Totals:
    """What a database says of one execution.

    Parameters
    ----------
    metrics
        Every metric that was measured, also one that stayed 0.
    sums
        Sums over all threads; taken from `threads` where those are known.
    longest
        The greatest value of a metric in any thread, for the metrics that are times.
    """

    app: str | None
    version: str
    metrics: Sequence[str]
    sums: Mapping[str, float]
    longest: Mapping[str, float]
    threads: Sequence[Thread] = ()
    trace_s: float | None = None
    notes: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


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
    return (match[1].upper(), _SECONDS[match[2]]) if match and match[2] in _SECONDS else None


def to_measurement(totals: Totals) -> Measurement:
    """Return the measurement of a database; what a reader must know of the numbers is in its notes."""
    counters: dict[str, float | None] = {}
    events: dict[str, float | None] = {}
    for name in totals.metrics:
        value = totals.sums.get(name, 0.0)
        counter = _COUNTERS.get(name.lower())
        if counter is not None:
            counters[counter] = value
        else:
            events[canonical(name)] = value
    runtime_s, why = _runtime(totals)
    ranks, threads = _shape(totals.threads)
    if totals.threads:
        counters["threads"] = float(sum(not thread.gpu for thread in totals.threads)) or None
    hosts = sorted({thread.host for thread in totals.threads if thread.host})
    facts = {"app": totals.app, "ranks": ranks, "threads": threads, "host_ids": hosts or None}
    return Measurement(
        tool="hpctoolkit",
        events=events,
        counters=counters,
        version=totals.version,
        runtime_s=runtime_s,
        notes=(_SAMPLED, why, *totals.notes),
        facts=facts | dict(totals.facts),
    )


def _runtime(totals: Totals) -> tuple[float | None, str]:
    clocks = {}
    for name, value in totals.longest.items():
        clock = seconds(name)
        if clock is not None and value > 0:
            clocks[clock[0]] = value * clock[1]
    for name in ("REALTIME", "WALLCLOCK"):
        if name in clocks:
            return clocks[name], f"runtime is the longest {name} of any thread"
    if totals.trace_s:
        return totals.trace_s, "runtime is the span of the trace, for want of the metric REALTIME"
    if "CPUTIME" in clocks:
        return clocks["CPUTIME"], (
            "runtime is the longest CPUTIME of any thread, for want of REALTIME: time spent waiting is not in it"
        )
    return None, "no runtime: the database holds no time of a single thread (measure REALTIME with hpcrun -e REALTIME)"


def _shape(threads: Sequence[Thread]) -> tuple[int | None, int | None]:
    """Return the number of ranks and of threads in the largest rank."""
    on_cpu = [thread for thread in threads if not thread.gpu]
    if not on_cpu or any(thread.rank is None for thread in on_cpu):
        return None, len(on_cpu) or None
    by_rank: dict[int | None, int] = defaultdict(int)
    for thread in on_cpu:
        by_rank[thread.rank] += 1
    return len(by_rank), max(by_rank.values())
