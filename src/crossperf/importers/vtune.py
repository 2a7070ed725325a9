"""Reads reports that Intel VTune wrote as CSV: ``vtune -report hotspots``, ``hw-events`` or ``summary``.

Counts of a report by function, module or core are added up over its rows. A summary holds the whole program
already, and alone tells the elapsed time.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from crossperf.importers.files import SPELLINGS, start_of, text_of, unusable
from crossperf.importers.hardware import perf_name
from crossperf.importers.measurement import Measurement, added_up
from crossperf.runs.rules import as_number

_EVENT = re.compile(r"(?:Hardware Event Count:)?(?P<name>.+?)(?::(?P<part>Self|Total))?(?: \((?P<unit>K|M|G)\))?")
_SUMMARY = ("hierarchy level", "metric name", "metric value")
_UNITS = {"K": 1e3, "M": 1e6, "G": 1e9, None: 1.0}
_SEPARATORS = ("\t", ",", ";", "^")
_MAKE = "Make it with: vtune -report hw-events -format csv -csv-delimiter comma -result-dir FOLDER -report-output FILE"


def reads(path: Path) -> bool:
    """Tell whether a file is a report of VTune as CSV."""
    return _header_at(start_of(path).decode("utf-8-sig", "replace").splitlines()) is not None


def read(path: Path) -> list[Measurement]:
    """Return the whole of what a report holds: one execution."""
    lines = text_of(path, "a report of VTune as CSV", errors="replace").removeprefix("\ufeff").splitlines()
    place = _header_at(lines)
    if place is None:
        raise unusable(path, f"found no row of VTune's column names, expected a report as CSV. {_MAKE}")
    start, separator = place
    try:
        header, *rows = [row for row in csv.reader(lines[start:], delimiter=separator) if row]
    except csv.Error as error:
        raise unusable(path, f"found no proper CSV ({error}), expected a report of VTune. {_MAKE}") from error
    measurement = _of_summary(rows) if _is_summary(header) else _of_rows(path, header, rows)
    if not measurement.events and measurement.runtime_s is None:
        raise unusable(path, f"found neither counts of events nor the elapsed time, expected one of them. {_MAKE}")
    return [measurement]


def _is_summary(header: Sequence[str]) -> bool:
    return tuple(name.strip().lower() for name in header[:3]) == _SUMMARY


def _header_at(lines: Sequence[str]) -> tuple[int, str] | None:
    """Return the line of column names, and what separates these; vtune may have talked before it."""
    for number, line in enumerate(lines[:50]):
        for separator in _SEPARATORS:
            try:
                cells = next(csv.reader([line[: 1 << 16]], delimiter=separator), [])
            except csv.Error:
                continue
            if len(cells) > 1 and (_is_summary(cells) or _is_header(cells)):
                return number, separator
    return None


def _is_header(cells: Sequence[str]) -> bool:
    groups = cells[0].strip().lower() in SPELLINGS["vtune"]["groups"]
    return groups and any(cell.startswith(("Hardware Event Count:", "CPU Time")) or _count_of(cell) for cell in cells)


def _count_of(column: str) -> tuple[str, float] | None:
    """Return the event that a column counts, and the unit of its numbers; ``None`` for a share, a time or a text.

    >>> _count_of("Hardware Event Count:INST_RETIRED.ANY (K)"), _count_of("CPI Rate"), _count_of("Clockticks:Total")
    (('instructions', 1000.0), None, None)
    """
    match = _EVENT.fullmatch(column.strip())
    if match is None or match["part"] == "Total":
        return None
    if column.startswith("Hardware Event Count:"):
        return perf_name(match["name"]), _UNITS[match["unit"]]
    event = SPELLINGS["vtune"]["counts"].get(match["name"].lower())
    return (event, _UNITS[match["unit"]]) if event else None


def _of_rows(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Measurement:
    for number, row in enumerate(rows, start=1):
        if len(row) < len(header):
            problem = f"row {number}: found {len(row)} cells, expected {len(header)}"
            raise unusable(path, f"{problem}. The report was cut short; make it again.")
    columns = [(at, counted) for at, name in enumerate(header) if (counted := _count_of(name))]
    # A row that is indented tells a part of the one above it, unless each tells itself alone.
    alone = any(name.endswith(":Self") for name in header)
    outer = [row for row in rows if alone or not row[0].startswith(" ")]
    if not outer:
        raise unusable(path, f"found no row of counts, expected at least one. {_MAKE}")
    events: dict[str, float | None] = {}
    for at, (event, unit) in columns:
        total = added_up(_number(row[at]) for row in outer if row[at].strip())
        events[event] = None if total is None else total * unit
    notes = ["counts are estimates from samples", "no runtime: 'vtune -report summary -format csv' tells it"]
    seconds = [
        _number(row[at]) for at, name in enumerate(header) if name in ("CPU Time", "CPU Time:Self") for row in outer
    ]
    modules = {row[header.index("Module")] for row in outer} if "Module" in header else set()
    facts = {"cpu_time_s": added_up(seconds), "grouped_by": header[0].strip(), "modules": len(modules) or None}
    return Measurement("vtune", events, notes=tuple(notes), facts=facts)


def _of_summary(rows: Sequence[Sequence[str]]) -> Measurement:
    texts = {row[1].strip().lower(): row[2].strip() for row in reversed(rows) if len(row) > 2}
    events: dict[str, float | None] = {}
    for name, text in texts.items():
        counted = _count_of(name)
        if counted and (value := _number(text)) is not None:
            events[counted[0]] = value * counted[1]
    runtime_s = _number(texts.get("elapsed time", ""))
    notes = ["counts are estimates from samples"] if events else []
    notes += [] if runtime_s else ["no runtime: the summary has no row 'Elapsed Time'"]
    threads = _number(texts.get("total thread count", ""))
    facts, counters = _facts(texts), {"threads": threads}
    return Measurement("vtune", events, None, (), runtime_s or None, tuple(notes), facts, counters)


def _facts(texts: Mapping[str, str]) -> dict[str, Any]:
    names = SPELLINGS["vtune"]["facts"]
    facts: dict[str, Any] = {ours: texts[theirs] for theirs, ours in names.items() if texts.get(theirs)}
    program, _, arguments = facts.pop("command", "").strip().partition(" ")
    name = PureWindowsPath(program.strip('"')).name if "\\" in program else PurePosixPath(program.strip('"')).name
    return facts | {"app": name or None, "input": arguments.strip() or None}


def _number(text: str) -> float | None:
    """Return a number of a report: with separators of thousands, or with its unit behind it.

    >>> _number("1,234,567"), _number("12.5s"), _number("")
    (1234567.0, 12.5, None)
    """
    value = as_number(re.sub(r"(?<=\d),(?=\d{3})", "", text.strip()).removesuffix("s"))
    return value if value is not None and math.isfinite(value) else None
