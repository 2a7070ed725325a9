"""Joins times and counts into runs: one for each repeat of each visit of an input on a platform.

Runs are those of one pass, or of whole programs with some passes, composed of what the parts took.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from crossperf.campaign.composing import Composer
from crossperf.campaign.log import Copies, CountedInput, TimedInput, counted, machines, starts, timed
from crossperf.campaign.spec import Mode, Spec, Work
from crossperf.importers.measurement import Measurement, to_run
from crossperf.platforms import MachineFacts
from crossperf.records import Run

#: What the measured program counts itself goes by this name among the tools.
_OWN = "testbed"
#: What the operating system counts for a command, as ``crossperf profile`` has it.
_SYSTEM = "os"
#: Counted with one thread, these say nothing of several.
_OF_ONE_THREAD = {"qemu.busiest_thread", "qemu.threads"}


def assemble(spec: Spec, folder: Path, passes: Mapping[Work, int] | None = None) -> list[Run]:
    """Return the runs of all that was timed so far, with the counters that are there; failed visits are failed runs.

    Parameters
    ----------
    passes
        How many passes each program makes. The runs are then those of whole programs, named by their passes too;
        without, those of a pass.
    """
    facts_of = machines(folder)
    visits: dict[tuple[str, Work], list[TimedInput]] = {}
    composer = Composer(passes or {}, starts(folder))
    for visit in timed(folder) if passes is None else composer.visits(timed(folder)):
        visits.setdefault((visit.platform, visit.work), []).append(visit)
    of_inputs = [known for known in counted(folder) if known.error is None]
    counts = _Counts(spec, of_inputs if passes is None else composer.counts(of_inputs))
    works = spec.works if passes is None else [composer.named(work) for work in spec.works if work in passes]
    runs: list[Run] = []
    for mode in spec.modes.values():
        facts = facts_of.get(mode.name, MachineFacts())
        for work in works:
            own = visits.get((mode.name, work), [])
            cell = _Cell(mode, work, counts, facts, _profiled(own))
            of_cell = (run for visit in own for run in cell.runs(visit))
            runs += [replace(run, repeat=number) for number, run in enumerate(of_cell)]
    return runs


def _profiled(visits: Sequence[TimedInput]) -> list[Measurement]:
    """Return what tools counted of a program in the visit in which it was counted last."""
    measured = [visit.measurements for visit in visits if visit.measurements]
    apart = "counted in one visit; other visits were timed alone"
    return [replace(own, notes=(*own.notes, apart)) for own in measured[-1]] if measured else []


class _Counts:
    """What was counted in a folder, as measurements."""

    def __init__(self, spec: Spec, of_inputs: Iterable[CountedInput]) -> None:
        self.spec = spec
        self._of = {(counts.counts, counts.work): counts for counts in of_inputs}

    def of(self, mode: Mode, work: Work) -> list[CountedInput]:
        return [self._of[name, work] for name in mode.counts if (name, work) in self._of]

    def measured(self, mode: Mode, work: Work) -> list[Measurement]:
        """Return the measurements of an input, one for each way in which its platform is counted."""
        measurements = []
        for counts in self.of(mode, work):
            how = self.spec.counts[counts.counts]
            notes = ("counted apart from the times", *counts.notes, *filter(None, [how.note]))
            measurements.append(Measurement(how.tool, counts.events, counts.version, notes=notes))
        return measurements


def _of_threads(counted: list[Measurement], threads: int) -> list[Measurement]:
    """Return what was counted with one thread, without what that tells nothing of for more."""
    if threads == 1:
        return counted
    return [replace(each, events={k: v for k, v in each.events.items() if k not in _OF_ONE_THREAD}) for each in counted]


class _Cell:
    """An input on a platform: what was counted for it once, joined to what was timed in each of its visits."""

    def __init__(
        self, mode: Mode, work: Work, counts: _Counts, facts: MachineFacts, profiled: Sequence[Measurement] = ()
    ) -> None:
        self._mode, self._facts = mode, facts
        self._columns: dict[str, Any] = {"app": work.workload, "input": work.input, "platform": mode.name}
        self._columns |= {"platform_class": mode.platform_class}
        self._profiled, self._counted = profiled, counts.measured(mode, work)
        copies = [each.program for each in counts.of(mode, work) if each.program is not None]
        self._copies = copies[0] if copies else None
        self._joined: dict[tuple[tuple[str, float | None], ...], Run] = {}

    def runs(self, visit: TimedInput) -> Iterator[Run]:
        """Yield a run for each repeat of a visit; a visit that failed is one failed run."""
        threads = visit.threads or self._mode.threads
        moment: dict[str, Any] = {"host": visit.host, "started": visit.started, "measured_in": visit.round}
        moment["threads"] = threads
        moment |= {"ranks": visit.ranks} if visit.ranks is not None else {}
        if not visit.seconds:
            tool = _OWN if self._mode.program else _SYSTEM
            yield to_run([Measurement(tool)], **self._columns, **moment, status=visit.error or "failed")
            return
        more = {"passes": visit.passes, "spread": round(visit.spread, 6), "checksum": visit.checksum}
        more = {name: value for name, value in more.items() if value is not None}
        for seconds, measurement in zip(visit.seconds, self._of_repeats(visit), strict=True):
            run = self._join(measurement, threads)
            yield replace(run, runtime_s=seconds, **moment, metadata={**run.metadata, **more})

    def _of_repeats(self, visit: TimedInput) -> list[Measurement]:
        """Return what the system counted for each repeat of a command, or the program over all of its own."""
        if visit.system:
            return [Measurement(_SYSTEM, events, visit.version) for events in visit.system]
        return [_own_counters(self._mode, visit, self._copies, self._facts)] * len(visit.seconds)

    def _join(self, measurement: Measurement, threads: int) -> Run:
        """Return a run of all that was counted; it is worked out once for visits that differ in their times alone."""
        key = (*measurement.counters.items(), *measurement.events.items())
        if key not in self._joined:
            counted = [*self._profiled, *_of_threads(self._counted, threads)]
            self._joined[key] = to_run([*counted, measurement], **self._columns)
        return self._joined[key]


def _own_counters(mode: Mode, visit: TimedInput, copies: Copies | None, facts: MachineFacts) -> Measurement:
    """Return what the program and the kernel count of a pass themselves."""
    counters: dict[str, float | None] = {
        "page_faults": visit.page_faults,
        "io_bytes_read": visit.bytes_read,
        "io_bytes_written": visit.bytes_written,
        "io_files_opened": visit.files_opened,
        "page_levels": facts.page_levels,
        "threads": float(visit.threads or mode.threads),
    }
    if mode.platform_class == "gpu":
        # The programs of a GPU use one stream.
        counters |= {"bytes_host_to_gpu": visit.bytes_to_device, "bytes_gpu_to_host": visit.bytes_to_host}
        if copies is not None:
            # 0 where nothing is copied, as the formula from CUPTI's events has it.
            counters["bandwidth_host_to_gpu"] = copies.bytes_to_device / (copies.seconds_to_device or 1.0)
            counters["bandwidth_gpu_to_host"] = copies.bytes_to_host / (copies.seconds_to_host or 1.0)
    return Measurement(_OWN, counters=counters)
