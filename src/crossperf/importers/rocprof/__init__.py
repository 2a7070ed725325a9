"""Reads what AMD's profilers wrote: CSV of rocprof, rocprofv2 and rocprofv3, and folders of rocprof-compute (Omniperf).

Tried on the 135 folders that ROCm/omniperf tests with, measured on MI100, MI200 and MI300.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from crossperf.importers import tabular
from crossperf.importers.files import unusable
from crossperf.importers.measurement import Measurement
from crossperf.importers.rocprof import workload
from crossperf.importers.rocprof.launches import (
    NO_KERNEL,
    ROCPROF,
    RocprofLaunch,
    adds_up,
    is_header,
    kernel_time,
    launches_of,
    total,
)

__all__ = ["ROCPROF", "adds_up", "read", "reads", "total"]

#: One folder for each execution: rocprofv3 names it so after its options, or after a line of its text input.
_PASS = re.compile(r"(pass|pmc)_\d+")


def reads(path: Path) -> bool:
    """Return whether this is CSV with counters by rocprof, or a folder that rocprofv3 or rocprof-compute wrote."""
    if path.is_dir():
        return workload.reads(path) or any(path.rglob("*counter_collection.csv"))
    return is_header(tabular.header(path))


def read(path: Path) -> list[Measurement]:
    """Return the sums over all launches of a file, or of a folder's files: one execution of a program.

    rocprofv3 executes a program once for each group of counters and writes a folder ``pass_N`` or ``pmc_N`` each
    time, with one file for each process; sizes and times of launches are taken from the first of them.
    """
    if workload.reads(path):
        return [workload.read(path)]
    files = sorted(path.rglob("*counter_collection.csv")) if path.is_dir() else [path]
    if not files:
        advice = "Record with: rocprofv3 --pmc SQ_WAVES --output-format csv -d FOLDER -- COMMAND"
        raise unusable(path, f"no file *counter_collection.csv in it, expected what rocprofv3 writes. {advice}")
    passes: dict[str, list[RocprofLaunch]] = defaultdict(list)
    for file in files:
        inside = file.relative_to(path).parts if path.is_dir() else ()
        passes[next((part for part in inside[::-1] if _PASS.fullmatch(part)), "")] += launches_of(file)
    sums = total(list(passes.values()))
    if NO_KERNEL in sums.notes:
        raise unusable(path, "found no kernel launch, expected at least one. Profile a program that uses the GPU.")
    runtime_s, note = kernel_time(next(filter(None, passes.values())))
    return [replace(sums, runtime_s=runtime_s, notes=(*sums.notes, note))]
