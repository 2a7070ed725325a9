"""Joins times and counts into runs: one for each repeat of each input on each platform, all per pass."""

from __future__ import annotations

from pathlib import Path

from crossperf.campaign.log import Copies, CountedInput, TimedInput, counted, machines, timed
from crossperf.campaign.spec import CountSet, Mode, Spec, Work
from crossperf.importers.measurement import Measurement, to_run
from crossperf.platforms import MachineFacts
from crossperf.records import Run


def assemble(spec: Spec, folder: Path) -> list[Run]:
    """Return the runs of all that was timed so far, with the counters that are there; failed inputs are failed runs."""
    facts_of = machines(folder)
    calmest: dict[tuple[str, Work], TimedInput] = {}
    for attempt in timed(folder):
        key = (attempt.platform, attempt.work)
        if key not in calmest or attempt.spread < calmest[key].spread:
            calmest[key] = attempt
    counts_of = {(counts.counts, counts.work): counts for counts in counted(folder) if counts.error is None}
    runs: list[Run] = []
    for mode in spec.modes.values():
        for work in spec.works:
            if (mode.name, work) in calmest:
                counts = counts_of.get((mode.counts or "", work))
                how = spec.counts.get(mode.counts or "")
                facts = facts_of.get(mode.name, MachineFacts())
                runs += _runs(mode, calmest[mode.name, work], counts, how, facts)
    return runs


def _runs(
    mode: Mode, attempt: TimedInput, counts: CountedInput | None, how: CountSet | None, facts: MachineFacts
) -> list[Run]:
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
        return [to_run([Measurement("testbed")], **columns, status=attempt.error or "failed")]
    own = _own_counters(mode, attempt, counts.program if counts else None, facts)
    measurements = [own]
    if counts is not None and how is not None:
        notes = ("one pass, counted apart from the times", *counts.notes, *filter(None, [how.note]))
        measurements = [Measurement(how.tool, counts.events, counts.version, notes=notes), own]
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
    return Measurement("testbed", counters=counters)
