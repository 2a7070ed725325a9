"""Reads profiles of TAU: a folder of ``profile.NODE.CONTEXT.THREAD`` files, or one such folder for each metric.

A file holds each function of one thread with its calls and its exclusive and inclusive values. What a thread spent
is the sum of the exclusive values of its functions; counts are added up over threads.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from xml.parsers import expat

from crossperf.catalog import canonical
from crossperf.importers.files import SPELLINGS, start_of, text_of, unusable, utc_time
from crossperf.importers.measurement import Measurement
from crossperf.plain import whole
from crossperf.runs.rules import as_number

_FILE = re.compile(r"profile\.(\d+)\.(\d+)\.(\d+)")
_HEADING = re.compile(r"(\d+) templated_functions(?:_MULTI_(.+))?\s*")
_ROW = re.compile(
    r'"(?P<name>.*)" (?P<calls>\S+) \S+ (?P<exclusive>\S+) (?P<inclusive>\S+) \S+ GROUP="(?P<group>[^"]*)"\s*'
)
_EVENT = re.compile(r'"(?P<name>.*)" (?P<number>\S+) \S+ \S+ (?P<mean>\S+) \S+\s*')
#: Metrics that are times, in microseconds: those of a clock before those of a processor.
_CLOCKS = ("TIME", "P_WALL_CLOCK_TIME", "GET_TIME_OF_DAY", "LINUX_TIMERS", "CLOCK_GETTIME")
_CPU_CLOCKS = ("CPU_TIME", "P_VIRTUAL_TIME", "USER_TIME")
#: Rows that repeat what stands elsewhere: call paths, functions by argument, samples inside of timers.
_REPEATED = ("TAU_CALLPATH", "TAU_PARAM", "TAU_SAMPLE", "TAU_UNWIND")
_AGAIN = "Copy the profile again, or run the program to its end."


@dataclass(frozen=True)
class _TauThread:
    """One file: what one thread spent of one metric, and the sums of its user events."""

    place: tuple[int, ...]
    metric: str
    spent: float
    sums: dict[str, float]
    metadata: dict[str, str]


def reads(path: Path) -> bool:
    """Tell whether this is a profile of TAU: one file of it, its folder, or a folder of ``MULTI__`` folders."""
    try:
        files = _files(path)
    except OSError:
        return False
    return bool(files) and _HEADING.match(start_of(files[0], 200).decode("utf-8", "replace")) is not None


def read(path: Path) -> list[Measurement]:
    """Return the one execution that a profile holds: all its threads and metrics."""
    try:
        files = _files(path)
    except OSError as error:
        raise unusable(
            path, f"cannot be read ({error.strerror}), expected a profile of TAU. Check the path."
        ) from error
    if not files:
        advice = "Name the folder in which TAU left them; 'tau_convert' and 'pprof' output is not read."
        raise unusable(path, f"found no file profile.N.C.T, expected what TAU writes. {advice}")
    return [_measurement([_read_thread(file) for file in files])]


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if _FILE.fullmatch(path.name) else []
    inside = [path, *sorted(folder for folder in path.glob("MULTI__*") if folder.is_dir())]
    return [file for folder in inside for file in sorted(folder.glob("profile.*")) if _FILE.fullmatch(file.name)]


def _read_thread(file: Path) -> _TauThread:
    lines = text_of(file, "a profile of TAU", errors="replace").splitlines()
    heading = _HEADING.fullmatch(lines[0]) if lines else None
    functions = whole(heading[1]) if heading else None
    if heading is None or functions is None or len(lines) < functions + 2:
        expected = "a line 'N templated_functions_MULTI_METRIC', a line of metadata and N functions"
        raise unusable(file, f"found a file that breaks off or is of another kind, expected {expected}. {_AGAIN}")
    end = functions + 2
    spent = sum(_exclusive(file, number, line) for number, line in enumerate(lines[2:end], start=3))
    match = _FILE.fullmatch(file.name)
    place = tuple(map(int, match.groups())) if match else (0, 0, 0)
    return _TauThread(place, heading[2] or "TIME", spent, _sums(lines[end:]), _metadata(lines[1]))


def _exclusive(file: Path, number: int, line: str) -> float:
    """Return the exclusive value of a row, 0 for one that repeats others."""
    row = _ROW.fullmatch(line)
    value = as_number(row["exclusive"]) if row else None
    if row is None or value is None or value - value != 0:
        expected = 'a function as "NAME" CALLS SUBROUTINES EXCLUSIVE INCLUSIVE 0 GROUP="..."'
        raise unusable(file, f"line {number}: found {line[:60]!r}, expected {expected}. {_AGAIN}", line=number)
    repeated = " => " in row["name"] or any(mark in row["group"] for mark in _REPEATED)
    return 0.0 if repeated else value


def _sums(lines: Iterable[str]) -> dict[str, float]:
    """Return number times mean of each user event that is a counter; those by file or place are parts of others."""
    sums: dict[str, float] = {}
    for line in lines:
        if (row := _EVENT.fullmatch(line)) and (counter := SPELLINGS["tau"].get(row["name"].strip().lower())):
            number, mean = as_number(row["number"]), as_number(row["mean"])
            if number is not None and mean is not None:
                sums[counter] = sums.get(counter, 0.0) + number * mean
    return sums


def _metadata(line: str) -> dict[str, str]:
    """Return the attributes in the second line, which is XML after a heading; damage there costs them alone.

    It is read from its root element on, so that it can declare no entities.
    """
    _, begins, xml = line.partition("<metadata>")
    attributes: dict[str, str] = {}
    texts: dict[str, str] = defaultdict(str)
    tags: list[str] = []

    def start(tag: str, _: dict[str, str]) -> None:
        tags.append(tag)
        if tag == "attribute":
            texts.clear()

    def end(tag: str) -> None:
        tags.pop()
        if tag == "attribute":
            attributes.setdefault(texts["name"], texts["value"])

    def text(data: str) -> None:
        texts[tags[-1]] += data

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
    try:
        parser.Parse(begins + xml if begins else "<metadata/>", True)
    except expat.ExpatError:
        return attributes
    return attributes


def _measurement(threads: Sequence[_TauThread]) -> Measurement:
    by_metric: dict[str, list[_TauThread]] = defaultdict(list)
    for thread in threads:
        by_metric[thread.metric].append(thread)
    places = {thread.place for thread in threads}
    counted = {metric: of_metric for metric, of_metric in by_metric.items() if metric not in (*_CLOCKS, *_CPU_CLOCKS)}
    lacking = [metric for metric, of in counted.items() if {thread.place for thread in of} != places]
    events: dict[str, float | None] = {
        canonical(metric): None if metric in lacking else sum(thread.spent for thread in of_metric)
        for metric, of_metric in counted.items()
    }
    notes = [f"{metric} is not known for all threads" for metric in lacking]
    metadata = {name: text for thread in reversed(threads) for name, text in thread.metadata.items()}
    runtime_s, why = _runtime({metric: max(thread.spent for thread in of) for metric, of in by_metric.items()})
    counters: dict[str, float | None] = {**_user_events(threads), "threads": float(len(places))}
    facts = _facts(metadata, places)
    return Measurement("tau", events, metadata.get("TAU Version"), (), runtime_s, (why, *notes), facts, counters)


def _user_events(threads: Sequence[_TauThread]) -> dict[str, float]:
    """Return the user events added up over threads; each metric's file of a thread repeats them."""
    sums: Counter[str] = Counter()
    for thread in {thread.place: thread for thread in threads}.values():
        sums.update(thread.sums)
    return dict(sums)


def _runtime(longest: dict[str, float]) -> tuple[float | None, str]:
    for metric in (*_CLOCKS, *_CPU_CLOCKS):
        if longest.get(metric, 0.0) > 0:
            waiting = "" if metric in _CLOCKS else ", for want of TIME: time spent waiting is not in it"
            return longest[metric] * 1e-6, f"runtime is the longest {metric} of any thread{waiting}"
    return None, "no runtime: the profile has no metric TIME (set TAU_METRICS=TIME:PAPI_TOT_INS)"


def _facts(metadata: dict[str, str], places: Iterable[tuple[int, ...]]) -> dict[str, Any]:
    in_rank = Counter(place[0] for place in places)
    _, *arguments = metadata.get("Command Line", "").split() or [""]
    started = as_number(metadata.get("Starting Timestamp", ""))
    return {
        "app": PurePosixPath(metadata.get("Executable", "")).name or None,
        "input": " ".join(arguments) or None,
        "ranks": len(in_rank),
        "threads": max(in_rank.values()),
        "host": metadata.get("Hostname"),
        "started": utc_time(started * 1e-6) if started else None,
        "cpu_model": metadata.get("CPU Type"),
    }
