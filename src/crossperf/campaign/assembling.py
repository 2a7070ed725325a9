"""Joins times and counts into runs: one for each repeat of each visit of an input on a platform, all per pass."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from crossperf.campaign.log import Copies, CountedInput, TimedInput, counted, machines, timed
from crossperf.campaign.spec import Mode, Spec, Work
from crossperf.importers.measurement import Measurement, to_run
from crossperf.platforms import MachineFacts
from crossperf.records import COLUMNS, OK, Run

#: What the measured program counts itself goes by this name among the tools.
_OWN = "testbed"
#: What the operating system counts for a command, as ``crossperf profile`` has it.
_SYSTEM = "os"


def assemble(spec: Spec, folder: Path) -> list[Run]:
    """Return the runs of all that was timed so far, with the counters that are there; failed visits are failed runs."""
    facts_of = machines(folder)
    visits: dict[tuple[str, Work], list[TimedInput]] = {}
    for visit in timed(folder):
        visits.setdefault((visit.platform, visit.work), []).append(visit)
    counts = _Counts(spec, folder)
    runs: list[Run] = []
    for mode in spec.modes.values():
        facts = facts_of.get(mode.name, MachineFacts())
        for work in spec.works:
            of_cell = (run for visit in visits.get((mode.name, work), ()) for run in _runs(mode, visit, counts, facts))
            runs += [replace(run, repeat=number) for number, run in enumerate(of_cell)]
    return runs


def recount(spec: Spec, folder: Path, runs: Iterable[Run]) -> list[Run]:
    """Return runs as they were timed, with counters taken anew from the counts of a folder.

    What a tool counted before stands where the folder has none of its counts, and the catalog's formulas of today are
    applied to it; times and what the program counted itself stay.
    """
    counts = _Counts(spec, folder)
    return [_recounted(run, counts) for run in runs]


def _recounted(run: Run, counts: _Counts) -> Run:
    if run.status != OK:
        return run
    provenance = {name: _object(run.metadata.get(name) or {}) for name in ("measured_by", "events", "tools")}
    measured_by, events = provenance["measured_by"], provenance["events"]
    tools = {facts["tool"]: facts for facts in provenance["tools"]}
    mode = counts.spec.mode(run.platform)
    fresh = counts.measured(mode, Work(run.app, run.input))
    kept = [
        Measurement(tool, of_tool, tools[tool].get("version"), notes=tuple(tools[tool].get("notes", ())))
        for tool, of_tool in events.items()
        if tool not in {measurement.tool for measurement in fresh}
    ]
    own = {name: value for name, value in run.counters.items() if measured_by.get(name) == _OWN}
    columns = {name: getattr(run, name) for name in COLUMNS if name != "source_tool"}
    columns |= {name: value for name, value in run.metadata.items() if name not in (*provenance, "missing")}
    return to_run([*fresh, *kept, Measurement(_OWN, counters=own)], **columns)


def _object(value: Any) -> Any:
    """Return what a cell of a table holds as JSON."""
    return json.loads(value) if isinstance(value, str) else value


class _Counts:
    """What was counted in a folder, as measurements."""

    def __init__(self, spec: Spec, folder: Path) -> None:
        self.spec = spec
        self._of = {(counts.counts, counts.work): counts for counts in counted(folder) if counts.error is None}

    def of(self, mode: Mode, work: Work) -> list[CountedInput]:
        return [self._of[name, work] for name in mode.counts if (name, work) in self._of]

    def measured(self, mode: Mode, work: Work) -> list[Measurement]:
        """Return the measurements of an input, one for each way in which its platform is counted."""
        measurements = []
        for counts in self.of(mode, work):
            how = self.spec.counts[counts.counts]
            notes = ("one pass, counted apart from the times", *counts.notes, *filter(None, [how.note]))
            measurements.append(Measurement(how.tool, counts.events, counts.version, notes=notes))
        return measurements


def _runs(mode: Mode, visit: TimedInput, counts: _Counts, facts: MachineFacts) -> Iterator[Run]:
    """Yield the runs of a visit; what was counted is the same for all of its repeats, but for a command's system."""
    columns = {
        "app": visit.workload,
        "input": visit.input,
        "platform": mode.name,
        "platform_class": mode.platform_class,
        "threads": mode.threads,
        "host": visit.host,
        "started": visit.started,
        "measured_in": visit.round,
    }
    if not visit.seconds:
        tool = _SYSTEM if mode.command else _OWN
        yield to_run([Measurement(tool)], **columns, status=visit.error or "failed")
        return
    columns |= {"passes": visit.passes, "spread": round(visit.spread, 6), "checksum": visit.checksum}
    measured = counts.measured(mode, visit.work)
    if visit.system:
        for seconds, events in zip(visit.seconds, visit.system, strict=True):
            system = Measurement(_SYSTEM, events, visit.version)
            yield to_run([*measured, system], **columns, runtime_s=seconds)
        return
    copies = [each.program for each in counts.of(mode, visit.work) if each.program is not None]
    measured.append(_own_counters(mode, visit, copies[0] if copies else None, facts))
    run = to_run(measured, **columns)
    yield from (replace(run, runtime_s=seconds) for seconds in visit.seconds)


def _own_counters(mode: Mode, visit: TimedInput, copies: Copies | None, facts: MachineFacts) -> Measurement:
    """Return what the program and the kernel count of a pass themselves."""
    counters: dict[str, float | None] = {
        "page_faults": visit.page_faults,
        "io_bytes_read": visit.bytes_read,
        "io_bytes_written": visit.bytes_written,
        "io_files_opened": visit.files_opened,
        "page_levels": facts.page_levels,
        "threads": float(mode.threads),
    }
    if mode.platform_class == "gpu":
        # The programs of a GPU use one stream.
        counters |= {"bytes_host_to_gpu": visit.bytes_to_device, "bytes_gpu_to_host": visit.bytes_to_host}
        if copies is not None:
            # 0 where nothing is copied, as the formula from CUPTI's events has it.
            counters["bandwidth_host_to_gpu"] = copies.bytes_to_device / (copies.seconds_to_device or 1.0)
            counters["bandwidth_gpu_to_host"] = copies.bytes_to_host / (copies.seconds_to_host or 1.0)
    return Measurement(_OWN, counters=counters)
