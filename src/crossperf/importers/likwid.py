"""Reads what ``likwid-perfctr`` wrote: CSV (``-O``, ``-o FILE.csv``) and the tables that it prints.

Events are added up over hardware threads and over the units of the processor that count apart. A program with
LIKWID's markers gives one measurement for each region, any other program one for the whole.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crossperf.errors import some_of
from crossperf.importers.files import start_of, text_of, unusable
from crossperf.importers.hardware import perf_name
from crossperf.importers.measurement import Measurement, added_up
from crossperf.runs.rules import as_number

_THREAD = re.compile(r"(?:Core|HWThread) \d+")
_GROUP = re.compile(
    r"(?:Region (?P<region>.+), ?)?Group (?P<number>\d+)(?: (?P<table>Raw|Metric)(?: STAT)?,|: ?)(?P<name>[^,]*)"
)
_RUNTIMES = ("RDTSC Runtime [s]", "Runtime (RDTSC) [s]")
_SHARED = "Perf_event uses multiplexing"
_HEAD = re.compile(r"-+\nCPU name:\t.*\nCPU type:\t.*\nCPU clock:\t.*\n-+\n")
_CPU = re.compile(r"CPU (name|type):[,\s]+(.*?),*")


@dataclass
class _GroupCounts:
    """One group of events in one region: counts by event and hardware thread, and the seconds of each thread."""

    name: str
    threads: int = 0
    counts: dict[str, list[float | None]] = field(default_factory=lambda: defaultdict(list))
    runtimes: list[str] = field(default_factory=list)

    @property
    def runtime_s(self) -> float | None:
        """The longest time of any thread, from the row that has most digits of it."""
        known = [(len(text.partition("e")[0].lstrip("0.")), value) for text in self.runtimes if (value := _count(text))]
        most = max((digits for digits, _ in known), default=0)
        return max((value for digits, value in known if digits >= most - 1), default=None)


def reads(path: Path) -> bool:
    """Tell whether a file holds tables of likwid-perfctr."""
    head = start_of(path).decode("utf-8", "replace")
    # A program that prints much pushes the tables far from the start, where likwid-perfctr tells of the processor.
    return _HEAD.match(head) is not None or any(cells[:2] == ["Event", "Counter"] for cells in _rows(head))


def read(path: Path) -> list[Measurement]:
    """Return one measurement for each marked region, or one for the whole program."""
    text = text_of(path, "tables of likwid-perfctr", errors="replace")
    regions = _regions(text)
    if not regions:
        advice = "Make it with: likwid-perfctr -O -o FILE.csv -C CORES -g GROUP COMMAND"
        raise unusable(path, f"found no table of events, expected the output of likwid-perfctr. {advice}")
    about = {match[1]: match[2] for line in text.splitlines() if (match := _CPU.fullmatch(line.rstrip()))}
    facts = {"cpu_model": about.get("name"), "cpu_type": about.get("type")}
    notes = ["perf_event scaled counts of events that shared a register"] if _SHARED in text else []
    return [_measurement(region, groups, facts, notes) for region, groups in regions]


def _rows(text: str) -> Iterator[list[str]]:
    """Yield the cells of each line: of CSV, or between the bars of a printed table."""
    for line in text.splitlines():
        if line.startswith("|"):
            yield [cell.strip() for cell in line.strip().strip("|").split("|")]
        elif "," in line and not line.startswith('"'):
            yield line.rstrip().split(",")
        else:
            yield [line.strip()]


def _regions(text: str) -> list[tuple[str | None, list[_GroupCounts]]]:
    """Return the groups of each region of each execution, in the file's order; ``None`` is the whole program."""
    groups: dict[tuple[int, str | None, str], _GroupCounts] = {}
    group: _GroupCounts | None = None
    execution, places = 0, list[int]()
    for cells in _rows(text):
        if heading := _GROUP.match(",".join(cells).removeprefix("TABLE,")):
            place = heading["region"], heading["number"]
            # A log may hold the output of several executions: a group that starts again is of the next one.
            again = (execution, *place) in groups and heading["table"] != "Metric" and " STAT," not in heading[0]
            execution += again
            group, places = groups.setdefault((execution, *place), _GroupCounts(heading["name"].strip())), []
        elif cells[0] in ("Event", "Metric", "Region Info"):
            places = [at for at, cell in enumerate(cells) if _THREAD.fullmatch(cell.strip())]
        elif group is not None and places and len(cells) > places[-1]:
            _add(group, cells, places)
    regions: dict[tuple[int, str | None], list[_GroupCounts]] = defaultdict(list)
    for (execution, region, _), counts in groups.items():
        if counts.counts:
            regions[execution, region].append(counts)
    return [(region, of_region) for (_, region), of_region in regions.items()]


def _add(group: _GroupCounts, cells: Sequence[str], places: Sequence[int]) -> None:
    """Add a row of a table: an event has a counter's name before its counts, a metric has none."""
    values = [cells[at] for at in places]
    group.threads = max(group.threads, len(places))
    if cells[0] in _RUNTIMES:
        group.runtimes += values
    elif places[0] == 2:
        # An event that several units count stands once for each; a unit that a socket shares tells one thread alone.
        group.counts[cells[0]] += [_count(value) for value in values if value.strip() != "-"]


def _count(text: str) -> float | None:
    value = as_number(text)
    return value if value is not None and math.isfinite(value) else None


def _measurement(
    region: str | None, groups: Sequence[_GroupCounts], facts: Mapping[str, Any], notes: Sequence[str]
) -> Measurement:
    """Return the counts of one region; each group of several saw a share of the time, and is scaled to all of it."""
    seconds = [group.runtime_s for group in groups]
    runtime_s = added_up(seconds)
    events: dict[str, float | None] = {}
    for name in dict.fromkeys(name for group in groups for name in group.counts):
        having = [at for at, group in enumerate(groups) if name in group.counts]
        count = added_up(count for at in having for count in groups[at].counts[name])
        events[perf_name(name)] = _scaled(count, runtime_s, [seconds[at] for at in having], len(having) < len(groups))
    notes = list(notes)
    if len(groups) > 1:
        notes.append(f"{len(groups)} groups took turns: counts are scaled from each one's share of the time")
    unknown = [name for name, value in events.items() if value is None]
    if unknown:
        notes.append(f"LIKWID could not count {some_of(unknown)}")
    if runtime_s is None:
        notes.append("no runtime: the file has no row 'Runtime (RDTSC) [s]'")
    threads = max(group.threads for group in groups)
    about: dict[str, Any] = {"threads": threads, "likwid_groups": [group.name for group in groups]}
    about |= {"app": region, "region": region} if region else {}
    return Measurement("likwid", events, runtime_s=runtime_s, notes=tuple(notes), facts={**facts, **about})


def _scaled(
    count: float | None, runtime_s: float | None, seconds: Iterable[float | None], partly: bool
) -> float | None:
    if count is None or not partly:
        return count
    counted_s = added_up(seconds)
    return count * runtime_s / counted_s if runtime_s and counted_s else None
