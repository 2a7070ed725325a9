"""Gavel's job types: a trace of training jobs by their steps, and how many steps a second each type makes where.

Throughputs are JSON by GPU type and ``('ResNet-18 (batch size 16)', 1)``: a job type and its number of GPUs. Beside
others on the same GPU they are pairs, which are not used; ``null`` has the throughput alone.
"""

# W workloads, M modes

from __future__ import annotations

import ast
import math
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from crossperf.documents import MEGABYTE, parse, read_bytes
from crossperf.errors import SettingsError, did_you_mean, some_of
from crossperf.schedule.jobs import Jobs, TraceError
from crossperf.schedule.times import RelativeTimes
from crossperf.schedule.traces import text
from crossperf.schedule.traces.labelled import TraceJob, TraceReading

#: The columns of the traces of simulations, and of those of the physical cluster.
_STEPS = ("num_steps_arg", "needs_data_dir", "total_steps")
_SHORT = ("job_type", "command", *_STEPS, "arrival_time", "scale_factor")
_LONG = (
    "job_type",
    "command",
    "working_directory",
    *_STEPS,
    "scale_factor",
    "priority_weight",
    "SLO",
    "arrival_time",
)
#: The reference platform where none is named and it is there: the fastest of the study.
_REFERENCE = "v100"
_MOST_BYTES = 1024 * MEGABYTE

Workload = tuple[str, str]


def are_throughputs(facts: Any) -> bool:
    """Tell whether JSON holds throughputs of Gavel.

    >>> are_throughputs({"k80": {"('A3C', 1)": {"null": 2.5}}})
    True
    """
    if not isinstance(facts, dict) or not facts or "modes" in facts:
        return False
    tables = facts.values()
    return all(
        isinstance(t, dict) and t and all(isinstance(v, dict) and "null" in v for v in t.values()) for t in tables
    )


def times(facts: Mapping[str, Any], name: str, reference: str | None = None) -> RelativeTimes:
    """Return throughputs as a table of relative times: job types by number of GPUs, the reference platform's being 1.

    A throughput of 0 says that a job does not fit there. Types that the reference cannot run are left out.

    >>> facts = {"k80": {"('A3C', 1)": {"null": 2.0}}, "v100": {"('A3C', 1)": {"null": 8.0}}}
    >>> times(facts, "t.json").relative_wm
    array([[4., 1.]])
    """
    steps = _steps_per_second(facts, name)
    reference = _reference_of(facts, name, reference)
    modes = list(facts)
    workloads = sorted({workload for by_type in steps.values() for workload in by_type})
    steps_wm = np.array([[steps[mode].get(workload, 0.0) for mode in modes] for workload in workloads])
    runs_w = steps_wm[:, modes.index(reference)] > 0
    steps_wm = np.where(steps_wm > 0, steps_wm, np.nan)
    relative_wm = steps_wm[:, [modes.index(reference)]] / steps_wm
    note = f"{(~runs_w).sum():,} job types of {name} cannot run on {reference} and are not drawn."
    kept = [workload for workload, runs in zip(workloads, runs_w, strict=True) if runs]
    return RelativeTimes.of(kept, modes, relative_wm[runs_w], name=name, notes=[] if runs_w.all() else [note])


def _steps_per_second(facts: Mapping[str, Any], name: str) -> dict[str, dict[Workload, float]]:
    """Return the steps a second by platform and workload: the job type and its GPUs, as ``x1``."""
    steps: dict[str, dict[Workload, float]] = {}
    for mode, by_type in facts.items():
        steps[mode] = {}
        for key, cells in by_type.items():
            try:
                job_type, gpus = ast.literal_eval(key) if key.startswith("(") else (key, 1)
                value = float(cells["null"])
            except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
                value, job_type, gpus = math.nan, key, 0
            if not 0 <= value < math.inf or not gpus:
                expected = "('TYPE', GPUS) with a number of steps a second under 'null'"
                raise TraceError(f"{name}: found {key[:80]!r} of {mode!r}, expected {expected}.")
            steps[mode][str(job_type), f"x{gpus}"] = value
    return steps


def _reference_of(facts: Mapping[str, Any], name: str, reference: str | None) -> str:
    if reference is None:
        return _REFERENCE if _REFERENCE in facts else next(iter(facts))
    if reference not in facts:
        hint = did_you_mean(reference, facts)
        expected = f"a platform of {name}: {some_of(facts)}"
        raise SettingsError(f"reference: found {reference!r}{hint}, expected {expected}.", argument="reference")
    return reference


def read(
    path: Path, throughputs: str | os.PathLike[str] | None, reference: str | None = None
) -> tuple[TraceReading, list[Workload]]:
    """Return the jobs of a ``.trace``, and the workload of each that was kept, in order of the file.

    A job tells its steps; its run time is that on the reference platform, by its throughput there.
    """
    if throughputs is None or Path(throughputs).suffix != ".json":
        raise SettingsError(
            f"{path}: a trace of Gavel counts in steps, expected --truth with its throughputs (JSON).",
            argument="throughputs",
        )
    try:
        facts = parse(read_bytes(throughputs, _MOST_BYTES))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise TraceError(f"{throughputs}: cannot be read ({why}), expected throughputs of Gavel (JSON).") from error
    if not are_throughputs(facts):
        raise SettingsError(
            f"{throughputs}: found no throughputs of Gavel, which {path} needs.", argument="throughputs"
        )
    steps = _steps_per_second(facts, Path(throughputs).name)[_reference_of(facts, str(throughputs), reference)]
    reading, kinds = TraceReading(path.name), []
    for number, line in text.lines(path):
        words = line.rstrip("\n").split("\t")
        if len(words) not in (len(_SHORT), len(_LONG)):
            what = f"found {len(words)} columns, expected {len(_SHORT)} or {len(_LONG)} with tabs in between"
            raise TraceError(f"{path}, line {number:,}: {what}. Fix or remove the line.", path=str(path), line=number)
        cells = dict(zip(_SHORT if len(words) == len(_SHORT) else _LONG, words, strict=True))
        names = ("total_steps", "arrival_time", "scale_factor")
        total, arrival_s, gpus = (text.number(path, number, name, cells[name], math.nan) for name in names)
        workload = (cells["job_type"], f"x{gpus:.0f}")
        if not steps.get(workload):
            reading.left_out["of job types without a throughput on the reference platform"] += 1
            continue
        weight = text.number(path, number, "priority_weight", cells.get("priority_weight", ""), math.nan)
        run_s = total / steps[workload]
        if gpus > 0 and run_s >= 0:
            kinds.append(workload)
        priority = None if math.isnan(weight) else weight
        reading.add(TraceJob(arrival_s, run_s, gpus, executable=" ".join(workload), priority=priority))
    return reading, kinds


def with_kinds(jobs: Jobs, kinds: list[Workload]) -> Jobs:
    """Return jobs that are of the workloads that their executables name."""
    by_name = {" ".join(workload): workload for workload in kinds}
    names = jobs.labels["executable"]
    return replace(jobs, kind=jobs.executable, kinds=tuple(by_name[name] for name in names))
