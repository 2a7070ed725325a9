"""Reads a workload of rocprof-compute, once called Omniperf: a folder with the tables of all its executions.

``pmc_perf.csv`` holds the counters of each kernel launch, joined over the executions that it took to count them all;
where that is absent, ``pmc_perf_N.csv`` holds those of one execution each. ``timestamps.csv`` is an execution without
counters, and ``sysinfo.csv`` tells of the command and the machine. The tables ``SQ_*.csv`` are left out: they hold
one counter (``SQ_ACCUM_PREV_HIRES``) that means another thing in each.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from crossperf.errors import ProfileFileError
from crossperf.importers import tabular
from crossperf.importers.files import named_after, unusable
from crossperf.importers.measurement import Measurement
from crossperf.importers.rocprof.launches import NO_KERNEL, RocprofLaunch, kernel_time, launches_of, total

_SYSTEM, _TIMES, _JOINED = "sysinfo.csv", "timestamps.csv", "pmc_perf.csv"
#: Columns of sysinfo.csv, those of the first releases behind, and what a run keeps them by.
_FACTS = {
    "host": ("hostname", "host_name"),
    "started": ("timestamp", "date"),
    "platform": ("gpu_model", "gpu_soc", "name"),
    "gpu": ("gpu_model", "gpu_soc", "name"),
    "gpu_arch": ("gpu_arch", "arch"),
    "cpu_model": ("cpu_model", "host_cpu"),
    "rocm_version": ("rocm_version", "rocm_ver"),
}


def reads(folder: Path) -> bool:
    """Return whether this is the folder of one workload."""
    return (folder / _SYSTEM).is_file() and any(folder.glob("pmc_perf*.csv"))


def read(folder: Path) -> Measurement:
    """Return the one execution that a folder tells of."""
    joined = folder / _JOINED
    files = [joined] if joined.is_file() else sorted(folder.glob("pmc_perf_*.csv"))
    passes = [launches_of(file, counters=False) for file in files]
    counted = next(filter(None, passes), [])
    timed = _timed(folder, counted)
    sums = total(passes, sizes=timed)
    if NO_KERNEL in sums.notes:
        raise unusable(folder, "found no kernel launch, expected at least one. Profile a program that uses the GPU.")
    runtime_s, note = kernel_time(timed)
    if runtime_s is None:
        runtime_s, note = kernel_time(counted)
    facts = dict(sums.facts) | _facts(folder)
    return replace(sums, runtime_s=runtime_s, notes=(*sums.notes, note), facts=facts)


def _timed(folder: Path, counted: list[RocprofLaunch]) -> list[RocprofLaunch]:
    """Return the launches with the times and queues of the execution without counters, where it fits the others."""
    with contextlib.suppress(ProfileFileError):
        timed = launches_of(folder / _TIMES, counters=False)
        if [launch.kernel for launch in timed] == [launch.kernel for launch in counted]:
            return timed
    return counted


def _facts(folder: Path) -> dict[str, Any]:
    row = next((row for _, row in tabular.rows(folder / _SYSTEM) if isinstance(row, dict)), {})
    facts = {name: next((row[way] for way in ways if row.get(way)), None) for name, ways in _FACTS.items()}
    return facts | named_after(str(row.get("command") or ""))
