"""Joins times and counts into runs: one for each repeat of each input on each platform, all per pass."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crossperf.campaign.log import COUNTS, TIMES, lines, work_of
from crossperf.campaign.spec import CountSet, Mode, Spec, Work
from crossperf.campaign.timing import spread
from crossperf.importers.measurement import Measurement, to_run
from crossperf.records import Run


def assemble(spec: Spec, folder: Path) -> list[Run]:
    """Return the runs of all that was timed so far, with the counters that are there; failed inputs are failed runs."""
    facts_of: dict[str, Mapping[str, Any]] = {}
    best: dict[tuple[str, Work], dict[str, Any]] = {}
    for line in lines(folder / TIMES):
        name = line.get("platform")
        if "facts" in line:
            facts_of[str(name)] = line["facts"]
        elif "workload" in line and name in spec.modes:
            key = (str(name), work_of(line))
            if key not in best or _calmer(line, best[key]):
                best[key] = line
    counted = {(line.get("counts"), work_of(line)): line for line in lines(folder / COUNTS) if "events" in line}
    runs: list[Run] = []
    for mode in spec.modes.values():
        for work in spec.works:
            timed = best.get((mode.name, work))
            if timed is not None:
                counts = counted.get((mode.counts, work))
                how = spec.counts.get(mode.counts or "")
                runs += _runs(mode, work, timed, counts, how, facts_of.get(mode.name, {}))
    return runs


def _calmer(line: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    if "seconds" not in line or "seconds" not in other:
        return "seconds" in line
    return spread(line["seconds"]) < spread(other["seconds"])


def _runs(
    mode: Mode,
    work: Work,
    timed: Mapping[str, Any],
    counts: Mapping[str, Any] | None,
    how: CountSet | None,
    facts: Mapping[str, Any],
) -> list[Run]:
    columns = {
        "app": work.workload,
        "input": work.input,
        "platform": mode.name,
        "platform_class": mode.platform_class,
        "threads": mode.threads,
        "host": timed.get("host"),
        "started": timed.get("started"),
    }
    if "seconds" not in timed:
        return [to_run([Measurement("testbed")], **columns, status=str(timed.get("error", "failed")))]
    told = _told(mode, timed, counts, facts)
    measurements = [told] if counts is None or how is None else [_counted(counts, how), told]
    noise = {"passes": timed["passes"], "spread": round(spread(timed["seconds"]), 6), "checksum": timed["checksum"]}
    return [
        to_run(measurements, **columns, repeat=repeat, runtime_s=seconds, **noise)
        for repeat, seconds in enumerate(timed["seconds"])
    ]


def _counted(counts: Mapping[str, Any], how: CountSet) -> Measurement:
    notes = ["one pass, counted apart from the times", *counts.get("notes", []), *([how.note] if how.note else [])]
    return Measurement(how.tool, counts["events"], version=counts.get("version"), notes=tuple(notes))


def _told(
    mode: Mode, timed: Mapping[str, Any], counts: Mapping[str, Any] | None, facts: Mapping[str, Any]
) -> Measurement:
    """Return what the program and the kernel tell of a pass."""
    counters: dict[str, float | None] = {
        "page_faults": timed["page_faults"],
        "io_bytes_read": timed["bytes_read"],
        "io_bytes_written": timed["bytes_written"],
        "io_files_opened": timed["files_opened"],
        "page_levels": facts.get("page_levels"),
        "threads": float(mode.threads),
    }
    if mode.platform_class == "gpu":
        # The programs of a GPU use one stream.
        counters |= {"bytes_host_to_gpu": timed["bytes_to_device"], "bytes_gpu_to_host": timed["bytes_to_host"]}
        copies = (counts or {}).get("told", {})
        for way, place in (("bandwidth_host_to_gpu", "to_device"), ("bandwidth_gpu_to_host", "to_host")):
            # 0 where nothing is copied, as the formula from CUPTI's events has it.
            counters[way] = copies[f"bytes_{place}"] / (copies[f"seconds_{place}"] or 1.0) if copies else None
    return Measurement("testbed", counters=counters)
