"""Composes whole programs of their parts: the start, set-up, a first pass, more passes, the rest."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from crossperf.campaign.log import CountedInput, ProgramPart, TimedInput, TimedStart
from crossperf.campaign.spec import Work
from crossperf.importers.measurement import added_up

#: What a pass has as many of as the whole program.
_NOT_ADDED = {"streams_with_kernels"}
#: Memory that is touched again and again is touched once.
_MOST = {"qemu.footprint_bytes"}
_COUNTED = ("page_faults", "bytes_read", "bytes_written", "bytes_to_device", "bytes_to_host")
_NOTE = "composed of a process with one pass and of one more pass"


class Composer:
    """Turns visits and counts of parts into those of whole programs.

    Parameters
    ----------
    passes
        How many passes the program makes with each input.
    starts
        What programs take that only start and end.
    """

    def __init__(self, passes: Mapping[Work, int], starts: Iterable[TimedStart]) -> None:
        self._passes = passes
        of_rounds: dict[tuple[str, str], list[TimedStart]] = defaultdict(list)
        for start in starts:
            of_rounds[start.platform, start.round].append(start)
        self._starts = {place: _part(of_round) for place, of_round in of_rounds.items()}

    def named(self, work: Work) -> Work:
        """Return the whole program: the input with its passes."""
        passes = f"passes={self._passes[work]}"
        return Work(work.workload, f"{work.input} {passes}".strip(), {**work.parameters, "passes": passes})

    def visits(self, visits: Iterable[TimedInput]) -> Iterator[TimedInput]:
        """Yield visits of whole programs; inputs without passes and rounds without a start are left out."""
        for visit in visits:
            start = self._starts.get((visit.platform, visit.round))
            if visit.work in self._passes and start is not None:
                yield self._visit(visit, start)

    def counts(self, counts: Iterable[CountedInput]) -> Iterator[CountedInput]:
        """Yield the counts of whole programs."""
        for known in counts:
            if known.work in self._passes:
                events = _composed(known.once or known.events, known.events, self._passes[known.work] - 1)
                whole = self.named(known.work)
                yield replace(known, input=whole.input, events=events, once={}, notes=(*known.notes, _NOTE))

    def _visit(self, visit: TimedInput, start: ProgramPart) -> TimedInput:
        """Return the visit of a whole program from one of its parts.

        A GPU's program counts no files; those of a CPU's are among what is counted apart.
        """
        whole = replace(visit, input=self.named(visit.work).input, set_up=None, first=None, rest=None, passes=None)
        once = [part for part in (start, visit.set_up, visit.first, visit.rest) if part is not None]
        if visit.error or len(once) < 4:
            return replace(whole, seconds=(), error=visit.error or "its parts were not timed")
        more = self._passes[visit.work] - 1
        base = sum(part.seconds for part in once)
        numbers: dict[str, Any] = {
            name: added_up([*(getattr(part, name) for part in once), _times(getattr(visit, name), more)])
            for name in _COUNTED
        }
        return replace(whole, seconds=tuple(base + more * each for each in visit.seconds), **numbers, files_opened=None)


def _part(starts: Sequence[TimedStart]) -> ProgramPart:
    """Return the start of a round: medians over all of its repeats."""
    system = [events for start in starts for events in start.system]

    def median(*names: str) -> float | None:
        values = [added_up([events.get(f"os.{name}") for name in names]) for events in system]
        known = [value for value in values if value is not None]
        return statistics.median(known) if known else None

    seconds = statistics.median(value for start in starts for value in start.seconds)
    faults = median("minor_faults", "major_faults")
    return ProgramPart(seconds, faults, median("rchar"), median("wchar"))


def _composed(
    once: Mapping[str, float | None], of_pass: Mapping[str, float | None], more: int
) -> dict[str, float | None]:
    """Return the events of a process with one pass and some more of them.

    >>> _composed({"loads": 5.0, "qemu.footprint_bytes": 8.0}, {"loads": 2.0, "qemu.footprint_bytes": 4.0}, 10)
    {'loads': 25.0, 'qemu.footprint_bytes': 8.0}
    """
    events: dict[str, float | None] = {}
    for name, value in once.items():
        if name in _MOST:
            events[name] = max((known for known in (value, of_pass.get(name)) if known is not None), default=None)
        elif name in of_pass and name not in _NOT_ADDED:
            events[name] = added_up([value, _times(of_pass[name], more)])
        else:
            events[name] = value
    return events


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
