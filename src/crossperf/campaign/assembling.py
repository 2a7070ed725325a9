"""Joins times and counts into runs: one for each repeat of each input on each platform, all per pass."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from crossperf.campaign.log import Copies, CountedInput, TimedInput, counted, machines, timed
from crossperf.campaign.spec import Mode, Spec, Work
from crossperf.importers.measurement import Measurement, to_run
from crossperf.platforms import MachineFacts
from crossperf.records import COLUMNS, OK, Run

#: What the measured program counts itself goes by this name among the tools.
_OWN = "testbed"


def assemble(spec: Spec, folder: Path) -> list[Run]:
    """Return the runs of all that was timed so far, with the counters that are there; failed inputs are failed runs."""
    facts_of = machines(folder)
    calmest: dict[tuple[str, Work], TimedInput] = {}
    for attempt in timed(folder):
        key = (attempt.platform, attempt.work)
        if key not in calmest or attempt.spread < calmest[key].spread:
            calmest[key] = attempt
    counts = _Counts(spec, folder)
    runs: list[Run] = []
    for mode in spec.modes.values():
        for work in spec.works:
            if (mode.name, work) in calmest:
                facts = facts_of.get(mode.name, MachineFacts())
                runs += _runs(mode, calmest[mode.name, work], counts, facts)
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


def _runs(mode: Mode, attempt: TimedInput, counts: _Counts, facts: MachineFacts) -> list[Run]:
    columns = {
        "app": attempt.workload,
        "input": attempt.input,
        "platform": mode.name,
        "platform_class": mode.platform_class,
        "threads": mode.threads,
        "host": attempt.host,
        "started": attempt.started,
    }
    if not attempt.seconds:
        return [to_run([Measurement(_OWN)], **columns, status=attempt.error or "failed")]
    copies = [each.program for each in counts.of(mode, attempt.work) if each.program is not None]
    measurements = [
        *counts.measured(mode, attempt.work),
        _own_counters(mode, attempt, copies[0] if copies else None, facts),
    ]
    noise = {"passes": attempt.passes, "spread": round(attempt.spread, 6), "checksum": attempt.checksum}
    return [
        to_run(measurements, **columns, repeat=repeat, runtime_s=seconds, **noise)
        for repeat, seconds in enumerate(attempt.seconds)
    ]


def _own_counters(mode: Mode, attempt: TimedInput, copies: Copies | None, facts: MachineFacts) -> Measurement:
    """Return what the program and the kernel count of a pass themselves."""
    counters: dict[str, float | None] = {
        "page_faults": attempt.page_faults,
        "io_bytes_read": attempt.bytes_read,
        "io_bytes_written": attempt.bytes_written,
        "io_files_opened": attempt.files_opened,
        "page_levels": facts.page_levels,
        "threads": float(mode.threads),
    }
    if mode.platform_class == "gpu":
        # The programs of a GPU use one stream.
        counters |= {"bytes_host_to_gpu": attempt.bytes_to_device, "bytes_gpu_to_host": attempt.bytes_to_host}
        if copies is not None:
            # 0 where nothing is copied, as the formula from CUPTI's events has it.
            counters["bandwidth_host_to_gpu"] = copies.bytes_to_device / (copies.seconds_to_device or 1.0)
            counters["bandwidth_gpu_to_host"] = copies.bytes_to_host / (copies.seconds_to_host or 1.0)
    return Measurement(_OWN, counters=counters)
