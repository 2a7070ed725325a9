"""The log of a campaign: lines of JSON that are added as they come and read again when it goes on."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from crossperf import plain
from crossperf.campaign.spec import Work
from crossperf.errors import CollectError
from crossperf.platforms import MachineFacts
from crossperf.runs import jsonl

TIMES = "times.jsonl"
COUNTS = "counts.jsonl"


@dataclass(frozen=True)
class TimedInput:
    """One visit of an input on a platform: the seconds of each repeat, or the error that kept it from ending.

    Faults, bytes and files are those of one pass, as the program and the kernel count them. Of a command, `system` are
    the kernel's counts for each repeat.
    """

    platform: str
    workload: str
    input: str
    round: str
    host: str | None = None
    started: str | None = None
    error: str | None = None
    seconds: tuple[float, ...] = ()
    passes: int | None = None
    checksum: Any = None
    page_faults: float | None = None
    bytes_read: float | None = None
    bytes_written: float | None = None
    files_opened: float | None = None
    bytes_to_device: float | None = None
    bytes_to_host: float | None = None
    system: tuple[Mapping[str, float | None], ...] = ()
    version: str | None = None

    @property
    def work(self) -> Work:
        """The input that was timed."""
        return Work(self.workload, self.input)

    @property
    def spread(self) -> float:
        """The coefficient of variation of the repeats; infinite for a visit that failed."""
        return spread(self.seconds) if self.seconds else float("inf")


@dataclass(frozen=True)
class Copies:
    """What a program of a GPU copied in one pass, and how long that took."""

    bytes_to_device: float = 0.0
    bytes_to_host: float = 0.0
    seconds_to_device: float = 0.0
    seconds_to_host: float = 0.0


@dataclass(frozen=True)
class CountedInput:
    """The events of one pass of an input, or the error that kept it from being counted."""

    counts: str
    workload: str
    input: str
    error: str | None = None
    events: Mapping[str, float | None] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    version: str | None = None
    program: Copies | None = None

    @property
    def work(self) -> Work:
        """The input that was counted."""
        return Work(self.workload, self.input)


def spread(seconds: tuple[float, ...] | list[float]) -> float:
    """Return the coefficient of variation of repeats: their standard deviation over their mean.

    >>> spread([1.0, 1.0, 1.0])
    0.0
    """
    return statistics.stdev(seconds) / statistics.fmean(seconds) if len(seconds) > 1 else 0.0


def add(path: Path, facts: Mapping[str, Any]) -> None:
    """Add one line, whole: a kill leaves at most one torn line, which the readers pass over."""
    data = (json.dumps(facts) + "\n").encode()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a log; none where it is absent."""
    if path.exists():
        yield from (row for _, row in jsonl.objects(path) if isinstance(row, dict))


@dataclass(frozen=True)
class Round:
    """A round: each of its platforms visits each of its inputs once. Names sort in the order of their starts."""

    name: str
    platforms: tuple[str, ...]


def timed(folder: Path) -> list[TimedInput]:
    """Return every visit so far, in the order of the rounds; logs that were joined may share some."""
    path = folder / TIMES
    of_inputs = (line for line in lines(path) if "workload" in line)
    visits = [_record(TimedInput, {"round": _attempt(line), **line}, path) for line in of_inputs]
    once = {(visit.platform, visit.round, visit.work, visit.host, visit.started): visit for visit in visits}
    return sorted(once.values(), key=lambda visit: visit.round)


def rounds(folder: Path) -> list[Round]:
    """Return the rounds that were begun so far, in order."""
    path = folder / TIMES
    begun = [_record(Round, {**line, "name": line.get("round")}, path) for line in lines(path) if "platforms" in line]
    first = _attempt({})
    before = dict.fromkeys(visit.platform for visit in timed(folder) if visit.round == first)
    begun += [Round(first, tuple(before))] if before else []
    return sorted({known.name: known for known in begun}.values(), key=lambda known: known.name)


def _attempt(line: Mapping[str, Any]) -> str:
    """Return the name of the round for a line of earlier versions, which timed noisy inputs again; sorts first."""
    return f"0-attempt-{line.get('attempt', 1)}"


def counted(folder: Path) -> list[CountedInput]:
    """Return every input that was counted so far."""
    path = folder / COUNTS
    return [_record(CountedInput, line | {"program": _copies(line)}, path) for line in lines(path)]


def _copies(line: Mapping[str, Any]) -> Any:
    # What the program printed, under whatever key: logs of version 0.1 have another.
    return next((part for part in line.values() if isinstance(part, dict) and "bytes_to_device" in part), None)


Record = TypeVar("Record", TimedInput, CountedInput, Round)


def _record(kind: type[Record], line: Mapping[str, Any], path: Path) -> Record:
    try:
        return plain.from_json(kind, line)
    except (TypeError, ValueError, KeyError) as error:
        expected = f"what a campaign writes about an input ({error})"
        raise CollectError(f"{path}: found {json.dumps(line)[:80]}, expected {expected}. Remove the line.") from error


def machines(folder: Path) -> dict[str, MachineFacts]:
    """Return the facts of the machine of each platform, as it was when its inputs were timed last."""
    of_platforms = [line for line in lines(folder / TIMES) if "facts" in line]
    return {line["platform"]: MachineFacts.from_json(line["facts"]) for line in of_platforms}


def in_words(seconds: float) -> str:
    """Return a duration as a person reads it.

    >>> in_words(75.2), in_words(8.0)
    ('1 min 15 s', '8 s')
    """
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"
