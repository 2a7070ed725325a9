"""Reads what PAPI's high-level API wrote: ``papi_hl_output/rank_N.json``, one file for each process.

PAPI 7 keeps each execution of a region with the region around it; PAPI 6.0 keeps one entry per region name,
without its place.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossperf.catalog import canonical
from crossperf.documents import parse
from crossperf.errors import some_of
from crossperf.importers.files import SPELLINGS, start_of, text_of, unusable
from crossperf.importers.measurement import Measurement
from crossperf.plain import shown, whole
from crossperf.runs.rules import as_number

#: The major version of PAPI up to which the layout of the files was looked at.
_NEWEST = 7
_OUTERMOST = "-1"
#: What a region holds besides events; its cycles are those of the time-stamp counter, not the processor's own.
_TIMES = ("cycles", "real_time_nsec")
_LABELS = ("name", "parent_region_id", "region_count")


def reads(path: Path) -> bool:
    """Return whether this is a file of PAPI's high-level API, a folder of them, or a folder of such folders."""
    try:
        heads = [start_of(files[0], 2000).lstrip() for files in _folders(path)]
    except OSError:
        return False
    return bool(heads) and all(
        head.startswith(b"{") and (b'"papi_version"' in head or b'"cpu in mhz"' in head) for head in heads
    )


def read(path: Path) -> list[Measurement]:
    """Return one measurement per folder ``papi_hl_output``: all ranks, threads and regions of one execution."""
    try:
        folders = _folders(path)
    except OSError as error:
        raise unusable(path, f"cannot be read ({error.strerror}). Check the path.") from error
    if not folders:
        advice = "Give the folder papi_hl_output of a run."
        raise unusable(path, f"no file rank_*.json in it, expected what PAPI's high-level API writes. {advice}")
    return [_measurement([_read_rank(file) for file in files]) for files in folders]


def _folders(path: Path) -> list[list[Path]]:
    """Return the files of each execution found at a path."""
    if path.is_file():
        return [[path]]
    if not path.is_dir():
        raise FileNotFoundError(2, "no such file or folder")
    files = sorted(file for file in path.glob("rank_*") if file.is_file())
    if files:
        return [files]
    folders = sorted(path.glob("papi_hl_output*"))
    inside = [sorted(file for file in folder.glob("rank_*") if file.is_file()) for folder in folders]
    return [files for files in inside if files]


@dataclass(frozen=True)
class _Region:
    """One region of one thread: how often it was executed, and what was counted in it."""

    thread: str
    name: str
    count: int
    outermost: bool
    values: Mapping[str, float]


@dataclass(frozen=True)
class _Rank:
    """One file: one process; of PAPI 6.0, which names no version, it does not tell which regions lie inside others."""

    file: Path
    version: str | None
    head: Mapping[str, Any]
    instant: frozenset[str]
    regions: Sequence[_Region]


def _read_rank(file: Path) -> _Rank:
    document = _json(file)
    try:
        threads = document["threads"]
        regions = list(_flat_regions(threads) if isinstance(threads, list) else _nested_regions(threads))
        definitions = document.get("event_definitions", {})
        instant = frozenset(canonical(name) for name, facts in definitions.items() if facts.get("type") == "instant")
        version = None if isinstance(threads, list) else str(document["papi_version"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"this layout (PAPI version {document.get('papi_version', 'unknown')})"
        expected = f"is not the one that PAPI 6.0 or 7 writes ({type(error).__name__}: {error})"
        raise unusable(file, f"{problem} {expected}. Name its PAPI version in a report to crossperf.") from error
    if not regions:
        raise unusable(file, "holds no regions. Put PAPI_hl_region_begin and PAPI_hl_region_end into the program.")
    return _Rank(file, version, document, instant, regions)


def _json(file: Path) -> dict[str, Any]:
    text = text_of(file, "what PAPI's high-level API writes")
    advice = "PAPI writes it when the program ends: run the program to its end again."
    try:
        document = _parsed(text)
    except ValueError as error:
        raise unusable(file, f"is not whole JSON ({error}). {advice}") from error
    if not isinstance(document, dict):
        why = f"found a {type(document).__name__}, expected an object"
        raise unusable(file, f"is not whole JSON ({why}). {advice}")
    return document


def _parsed(text: str) -> Any:
    try:
        return parse(text.encode(), lenient=True)
    except ValueError:
        # PAPI leaves a comma behind where the last of its threads marked no region.
        return parse(re.sub(r",(\s*[}\]])", r"\1", text).encode(), lenient=True)


def _nested_regions(threads: Mapping[str, Any]) -> Iterator[_Region]:
    """Yield the regions of PAPI 7: one entry per execution, with the region around it."""
    for thread, facts in threads.items():
        for region in facts["regions"].values():
            outermost = str(region["parent_region_id"]) == _OUTERMOST
            yield _Region(thread, str(region["name"]), 1, outermost, _values(region))


def _flat_regions(threads: Sequence[Any]) -> Iterator[_Region]:
    """Yield the regions of PAPI 6.0: one entry per name."""
    for thread in threads:
        for entry in thread["regions"]:
            for name, region in entry.items():
                yield _Region(str(thread["id"]), name, int(region["region_count"]), True, _values(region))


def _values(region: Mapping[str, Any]) -> dict[str, float]:
    """Return a region's numbers; one that was read in between is an object with the whole and the readings."""
    values = {}
    for name, value in region.items():
        if name in _LABELS:
            continue
        if isinstance(value, Mapping):
            value = value["region_value"] if "region_value" in value else value["total"]
        number = as_number(value)
        if number is None or not math.isfinite(number):
            raise ValueError(f"{name} is {shown(value)}")
        values[name if name in _TIMES else canonical(name)] = number
    return values


def _measurement(ranks: Sequence[_Rank]) -> Measurement:
    outer = [(rank, region) for rank in ranks for region in rank.regions if region.outermost]
    names = dict.fromkeys(name for _, region in outer for name in region.values if name not in _TIMES)
    instant = frozenset[str]().union(*(rank.instant for rank in ranks))
    events: dict[str, float | None] = {}
    notes: list[str] = []
    for name in names:
        lacking = sorted({rank.file.name for rank, region in outer if name not in region.values})
        if name in instant:
            notes.append(f"{name} is a reading at the end of a region, not a count; it was left out")
        elif lacking:
            events[name] = None
            notes.append(f"{name} was not counted in {some_of(lacking)}")
        else:
            events[name] = sum(region.values[name] for _, region in outer)
    executed: Counter[str] = Counter()
    for region in (region for rank in ranks for region in rank.regions):
        executed[region.name] += region.count
    head = ranks[0].head
    facts: dict[str, Any] = {name: _number(head[key]) for key, name in SPELLINGS["papi"].items() if key in head}
    facts |= {
        "ranks": len(ranks),
        "threads": max(len({region.thread for region in rank.regions}) for rank in ranks),
        "region_count": sum(executed.values()),
        "regions": dict(executed),
        "reference_cycles": _longest(ranks, "cycles"),
    }
    nanoseconds = _longest(ranks, "real_time_nsec")
    runtime_s = None if nanoseconds is None else nanoseconds / 1e9
    notes += _doubts(ranks)
    return Measurement("papi", events, ranks[0].version, runtime_s=runtime_s, notes=tuple(notes), facts=facts)


def _doubts(ranks: Sequence[_Rank]) -> list[str]:
    """Return what the layout of these files leaves open."""
    doubts = []
    versions = sorted({rank.version or "6.0" for rank in ranks})
    if len(versions) > 1:
        doubts.append(f"the ranks were written by different versions of PAPI: {', '.join(versions)}")
    newer = [text for text in versions if (whole(text.split(".")[0]) or math.inf) > _NEWEST]
    if newer:
        doubts.append(f"written by PAPI {newer[0]}, newer than the versions this reader was tried with")
    if any(rank.version is None for rank in ranks):
        doubts.append("PAPI 6.0 keeps no seconds, so that the run has no runtime")
        threads = {(rank.file, region.thread) for rank in ranks for region in rank.regions}
        names = {(rank.file, region.thread, region.name) for rank in ranks for region in rank.regions}
        if len(names) > len(threads):
            advice = "mark one region around the whole program"
            twice = "all were added up, and where they do, events are counted twice"
            doubts.append(f"PAPI 6.0 does not tell whether regions lie inside others; {twice}: {advice}")
    return doubts


def _longest(ranks: Sequence[_Rank], name: str) -> float | None:
    """Return the most that a thread spent in its outermost regions; the one that waits for the others, as a rule."""
    spent: dict[tuple[Path, str], float] = defaultdict(float)
    for rank in ranks:
        for region in rank.regions:
            if region.outermost and name in region.values:
                spent[rank.file, region.thread] += region.values[name]
    return max(spent.values(), default=None)


def _number(text: Any) -> Any:
    number = as_number(text)
    return text if number is None else number
