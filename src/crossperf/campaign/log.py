"""The log of a campaign: lines of JSON that are added as they come and read again when it goes on."""

from __future__ import annotations

import json
import lzma
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TypeVar

from crossperf import plain
from crossperf.campaign.spec import Work
from crossperf.documents import lines_of, opened
from crossperf.errors import CollectError
from crossperf.files import add_lines, whole
from crossperf.importers.measurement import Measurement
from crossperf.platforms import MachineFacts
from crossperf.runs import jsonl

#: The number of the format of its lines; those of version 0.1 have none.
FORMAT = 1
TIMES = "times.jsonl"
COUNTS = "counts.jsonl"


@dataclass(frozen=True)
class ProgramPart:
    """A part of a program: its seconds, and what the program and the kernel counted in it."""

    seconds: float = 0.0
    page_faults: float | None = 0.0
    bytes_read: float | None = 0.0
    bytes_written: float | None = 0.0
    files_opened: float | None = 0.0
    bytes_to_device: float | None = 0.0
    bytes_to_host: float | None = 0.0


@dataclass(frozen=True)
class TimedInput:
    """One visit of an input on a platform: the seconds of each repeat, or the error that kept it from ending.

    `threads` are those that it used, where that is not what the platform has. Faults, bytes and files are those of one
    pass, as the program and the kernel count them. Of a command, `system` are the kernel's counts for each repeat. A
    program that tells of its parts has set-up, a first pass and a rest besides. `measurements` are what tools counted
    of a command that was profiled, `not_counted` why others did not.
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
    threads: int | None = None
    set_up: ProgramPart | None = None
    first: ProgramPart | None = None
    rest: ProgramPart | None = None
    ranks: int | None = None
    measurements: tuple[Measurement, ...] = ()
    not_counted: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not all(0.0 <= second < math.inf for second in self.seconds):
            raise ValueError("seconds that no clock shows")

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
    """The events of one pass of an input, or the error that kept it from being counted.

    `once` are those of a whole process with one pass, where the program tells of its parts.
    """

    counts: str
    workload: str
    input: str
    error: str | None = None
    events: Mapping[str, float | None] = field(default_factory=dict)
    once: Mapping[str, float | None] = field(default_factory=dict)
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
    mean = statistics.fmean(seconds) if len(seconds) > 1 else 0.0
    return statistics.stdev(seconds) / mean if mean else 0.0


def add(path: Path, facts: Mapping[str, Any]) -> None:
    """Add one line, whole: a kill leaves at most one torn line, which the readers pass over."""
    # Not waited for on the disk: the next input is being timed already.
    add_lines(path, json.dumps({"format": FORMAT, **facts}) + "\n", CollectError, synced=False)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a log, those of its archive first; none where both are absent."""
    for row in _rows(path):
        if row.get("format", FORMAT) != FORMAT:
            problem = f"found a line of format {plain.shown(row['format'])}, expected {FORMAT}"
            raise CollectError(f"{path}: {problem}. Upgrade crossperf.", path=str(path))
        yield row


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    archive = archive_of(path)
    if archive.exists():
        try:
            with opened(archive) as raw, TextIOWrapper(lzma.LZMAFile(raw), encoding="utf-8") as file:
                yield from (row for row in map(json.loads, lines_of(file)) if isinstance(row, dict))
        except (lzma.LZMAError, EOFError, ValueError, OSError) as error:
            problem = f"does not read as a log that was put away ({error})"
            raise CollectError(f"{archive}: {problem}. Copy it again.", path=str(archive)) from error
    if path.exists():
        yield from (row for _, row in jsonl.objects(path) if isinstance(row, dict))


def archive_of(path: Path) -> Path:
    """Return the compressed file that holds what was in a log when it was put away."""
    return path.with_name(f"{path.name}.xz")


def put_away(logs: Sequence[Path], into: Path) -> None:
    """Compress what several logs hold, with their archives, into the archive of one."""
    unique = dict.fromkeys(json.dumps(line, separators=(",", ":")) for path in logs for line in lines(path))
    if unique:
        data = lzma.compress("".join(f"{line}\n" for line in unique).encode(), preset=9 | lzma.PRESET_EXTREME)
        with whole(archive_of(into)) as part:
            part.write_bytes(data)


@dataclass(frozen=True)
class Round:
    """A round: each of its platforms visits each of its inputs once. Names sort in the order of their starts."""

    name: str
    platforms: tuple[str, ...]


@dataclass(frozen=True)
class TimedStart:
    """What a platform's program takes to start and end, at one end of a round: each repeat, and the kernel's counts."""

    platform: str
    round: str
    seconds: tuple[float, ...]
    system: tuple[Mapping[str, float | None], ...] = ()


def starts(folder: Path) -> list[TimedStart]:
    """Return every start that was timed so far."""
    path = folder / TIMES
    return [_record(TimedStart, line, path) for line in lines(path) if "start" in line]


def timed(folder: Path) -> list[TimedInput]:
    """Return every visit so far, in the order of the rounds; logs that were joined may share some."""
    path = folder / TIMES
    of_inputs = (line for line in lines(path) if "workload" in line)
    visits = [_record(TimedInput, {"round": _attempt(line), **line}, path) for line in of_inputs]
    once = {(visit.platform, visit.round, visit.work, visit.host, visit.started): visit for visit in visits}
    return sorted(_without_earlier_failures(list(once.values())), key=lambda visit: visit.round)


def _without_earlier_failures(visits: Sequence[TimedInput]) -> list[TimedInput]:
    """Return visits without the failures of inputs that were tried again in the same round."""
    last = {(own.platform, own.round, own.work): own for own in visits if not own.seconds}
    for own in visits:
        if own.seconds:
            last.pop((own.platform, own.round, own.work), None)
    kept = set(map(id, last.values()))
    return [own for own in visits if own.seconds or id(own) in kept]


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


Record = TypeVar("Record", TimedInput, CountedInput, Round, TimedStart)


def _record(kind: type[Record], line: Mapping[str, Any], path: Path) -> Record:
    try:
        return plain.from_json(kind, line)
    except (TypeError, ValueError, KeyError) as error:
        expected = f"what a campaign writes about an input ({error})"
        raise CollectError(f"{path}: found {json.dumps(line)[:80]}, expected {expected}. Remove the line.") from error


def machines(folder: Path) -> dict[str, MachineFacts]:
    """Return the facts of the machine of each platform, as it was when its inputs were timed last."""
    of_platforms = [line for line in lines(folder / TIMES) if "facts" in line]
    try:
        return {str(line["platform"]): MachineFacts.from_json(line["facts"]) for line in of_platforms}
    except (KeyError, ValueError) as error:
        expected = f"what a campaign writes about a machine ({error})"
        raise CollectError(f"{folder / TIMES}: found other facts, expected {expected}. Remove the line.") from error


def in_words(seconds: float) -> str:
    """Return a duration as a person reads it.

    >>> in_words(75.2), in_words(8.0)
    ('1 min 15 s', '8 s')
    """
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"
