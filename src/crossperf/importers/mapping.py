"""Reads any CSV or JSONL table by a mapping file, TOML or JSON, that says what its columns are.

.. code-block:: toml

    tool = "papi"                  # who counted; "table" if left out
    missing = [-1, "n/a"]          # values that mean "not measured", beside empty cells

    [columns]                      # column of a run = column of the table
    app = "benchmark"
    input = ["size", "ranks"]      # several are joined with a blank
    platform = "node"
    runtime_s = { column = "time_ms", factor = 0.001 }

    [constants]                    # the same for every row
    platform_class = "cpu"

    [events]                       # event of the tool = column; the catalog's formulas apply to these
    PAPI_TOT_INS = "instr"

    [counters]                     # counter of crossperf = column, taken as it is
    page_faults = "faults"

The left side is always crossperf's name, the right side the table's. Columns that no line names are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crossperf.catalog import COUNTERS
from crossperf.documents import parse, parse_toml, read_bytes
from crossperf.errors import did_you_mean, some_of
from crossperf.importers import tabular
from crossperf.importers.files import unusable
from crossperf.importers.measurement import Measurement
from crossperf.importers.tabular import JSON_LINES, ProfileReading, UnusableRowError
from crossperf.plain import shown
from crossperf.records import COLUMNS
from crossperf.runs.rules import TEXTS, WHOLE_NUMBERS, as_number, check_value, failed, is_missing, typed

_SECTIONS = ("columns", "constants", "events", "counters")
#: A mapping names columns: it is short.
_MOST_BYTES = 1 << 18
_MOST_SHOWN = 20
_KEYS = ("tool", "missing", *_SECTIONS)


@dataclass(frozen=True)
class Source:
    """Where a value stands in the table, and what it is multiplied by; several columns are joined as text."""

    columns: tuple[str, ...]
    factor: float = 1.0


@dataclass(frozen=True)
class TableMap:
    """What the columns of a table are."""

    columns: Mapping[str, Source] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    events: Mapping[str, Source] = field(default_factory=dict)
    counters: Mapping[str, Source] = field(default_factory=dict)
    missing: tuple[Any, ...] = ()
    tool: str = "table"

    def wanted(self) -> list[str]:
        """Return every column of the table that is needed, each once."""
        sources = [*self.columns.values(), *self.events.values(), *self.counters.values()]
        return list(dict.fromkeys(name for source in sources for name in source.columns))

    def is_missing(self, value: Any) -> bool:
        """Tell whether a cell holds nothing, or what the table writes for nothing.

        >>> TableMap(missing=(-1, "n/a")).is_missing("-1.0")
        True
        """
        if is_missing(value) or str(value).strip() in map(str, self.missing):
            return True
        number = as_number(value)
        return number is not None and any(number == as_number(other) for other in self.missing)


def load(path: Path) -> TableMap:
    """Return a mapping file's content; everything that is wrong with it is in one error."""
    facts = _parse(path)
    problems = [
        f"found the unknown key {shown(name)}{did_you_mean(name, _KEYS)}, expected {', '.join(_KEYS)}"
        for name in facts
        if name not in _KEYS
    ]
    wrong = {name: facts[name] for name in _SECTIONS if not isinstance(facts.get(name, {}), dict)}
    problems += [f"found {shown(section)} under {name}, expected a table of names" for name, section in wrong.items()]
    sections: dict[str, dict[str, Any]] = {name: {} if name in wrong else facts.get(name, {}) for name in _SECTIONS}
    for name in (*sections["columns"], *sections["constants"]):
        if name not in COLUMNS:
            hint = did_you_mean(name, COLUMNS)
            problems.append(f"found {shown(name)} among the columns of a run{hint}, expected {', '.join(COLUMNS)}")
    both = sorted(set(sections["columns"]) & set(sections["constants"]))
    problems += [f"found {shown(name)} as a column and as a constant, expected one of them" for name in both]
    problems += filter(None, (_constant_problem(name, value) for name, value in sections["constants"].items()))
    sources: dict[str, dict[str, Source]] = {"columns": {}, "events": {}, "counters": {}}
    for kind, of_kind in sources.items():
        for name, value in sections[kind].items():
            source = _source(value)
            if source is None or (len(source.columns) > 1 and not (kind == "columns" and name in TEXTS)):
                several = ", a list of them" if kind == "columns" and name in TEXTS else ""
                problems.append(
                    f"found {shown(value)} for {kind}.{name}, expected the name of a column{several} "
                    'or {column = "NAME", factor = NUMBER}'
                )
            else:
                of_kind[name] = source
    missing, tool = facts.get("missing", []), facts.get("tool", "table")
    if not isinstance(missing, list) or not all(isinstance(value, str | int | float) for value in missing):
        problems.append(f"found {shown(missing)} for missing, expected a list of numbers and texts")
    if not isinstance(tool, str):
        problems.append(f"found {shown(tool)} for tool, expected its name")
    if not problems and not sources["events"] and not sources["counters"]:
        problems.append("found neither [events] nor [counters], expected at least one of them")
    if problems:
        raise unusable(path, f"{'; '.join(problems[:_MOST_SHOWN])}. Correct the mapping file.")
    constants = {name: typed(name, value) for name, value in sections["constants"].items()}
    return TableMap(**sources, constants=constants, missing=tuple(missing), tool=tool)


def _constant_problem(name: str, value: Any) -> str | None:
    """Return what is wrong with the value that every run gets for a column."""
    scalar = isinstance(value, str | int | float)
    problem = check_value(name, value, need_runtime=False) if scalar else None
    if scalar and problem is None:
        return None
    return (
        f"found {shown(value)} for constants.{name}, expected {problem.expected if problem else 'a number or a text'}"
    )


def _parse(path: Path) -> dict[str, Any]:
    kind = "JSON" if path.suffix == ".json" else "TOML"
    try:
        facts = (parse if kind == "JSON" else parse_toml)(read_bytes(path, _MOST_BYTES))
    except OSError as error:
        raise unusable(path, f"cannot be read ({error.strerror}), expected a mapping file. Check the file.") from error
    except ValueError as error:
        problem = f"found text that is not {kind} ({error}), expected a mapping file. Correct it."
        raise unusable(path, problem) from error
    if not isinstance(facts, dict):
        raise unusable(path, f"found {shown(facts)}, expected an object of sections. Correct the mapping file.")
    return facts


def _source(value: Any) -> Source | None:
    if isinstance(value, str):
        return Source((value,))
    if isinstance(value, list) and value and all(isinstance(name, str) for name in value):
        return Source(tuple(value))
    if isinstance(value, dict) and set(value) <= {"column", "factor"} and isinstance(value.get("column"), str):
        factor = value.get("factor", 1.0)
        number = None if isinstance(factor, str) else as_number(factor)
        return Source((value["column"],), number) if number and math.isfinite(number) else None
    return None


def reads(path: Path) -> bool:
    """Tell by its ending whether a file is a table of text."""
    return path.suffix in (".csv", ".tsv", *JSON_LINES) and path.is_file()


def read(path: Path, mapping: TableMap) -> ProfileReading:
    """Return one measurement for each sound row, and the other rows with their reasons."""
    # In JSONL an absent key is an empty cell.
    wanted = [] if path.suffix in JSON_LINES else mapping.wanted()

    def measurement_of(number: int, row: Mapping[str, Any]) -> Measurement:
        absent = [f"{name!r}{did_you_mean(name, row)}" for name in wanted if name not in row]
        if absent:
            advice = f"The table has {some_of(row, 12)}; correct the mapping."
            raise unusable(path, f"found no column {some_of(absent)}, expected all that the mapping names. {advice}")
        return _measurement(mapping, row, number)

    return tabular.read(path, measurement_of)


def _measurement(table_map: TableMap, row: Mapping[str, Any], number: int) -> Measurement:
    facts, runtime_s, problems = _columns(table_map, row)
    events, wrong = _numbers(table_map, table_map.events, row)
    counters, also_wrong = _numbers(table_map, table_map.counters, row)
    problems += wrong + also_wrong
    if problems:
        raise UnusableRowError(" ".join(problems))
    notes = []
    for name in [name for name, value in counters.items() if value is not None and value < 0 and name in COUNTERS]:
        notes.append(f"{name} was {counters[name]:g}, which no count can be; it is kept as not measured")
        counters[name] = None
    facts["imported_row"] = number
    return Measurement(table_map.tool, events, counters=counters, runtime_s=runtime_s, notes=tuple(notes), facts=facts)


def _columns(table_map: TableMap, row: Mapping[str, Any]) -> tuple[dict[str, Any], float | None, list[str]]:
    facts: dict[str, Any] = dict(table_map.constants)
    problems = []
    for name, source in table_map.columns.items():
        cells = [row.get(column) for column in source.columns]
        if all(map(table_map.is_missing, cells)):
            continue
        if name in TEXTS:
            facts[name] = " ".join(_text(cell) for cell in cells if not table_map.is_missing(cell))
            continue
        value = as_number(cells[0])
        problem = check_value(name, cells[0] if value is None else value * source.factor)
        if problem is not None:
            problems.append(f"column {source.columns[0]!r}: found {cells[0]!r}, expected {problem.expected}.")
        elif value is not None:
            facts[name] = int(value * source.factor) if name in WHOLE_NUMBERS else value * source.factor
    runtime_s = facts.pop("runtime_s", None)
    if runtime_s is None and not problems and "runtime_s" in table_map.columns and not failed(facts.get("status")):
        column = table_map.columns["runtime_s"].columns[0]
        problems.append(f"column {column!r}: found nothing, expected the runtime. Give failed runs a status column.")
    return facts, runtime_s, problems


def _text(cell: Any) -> str:
    return f"{cell:g}" if isinstance(cell, float) and cell.is_integer() else str(cell).strip()


def _numbers(
    table_map: TableMap, sources: Mapping[str, Source], row: Mapping[str, Any]
) -> tuple[dict[str, float | None], list[str]]:
    values: dict[str, float | None] = {}
    problems = []
    for name, source in sources.items():
        cell = row.get(source.columns[0])
        if table_map.is_missing(cell):
            values[name] = None
            continue
        number = as_number(cell)
        if number is None or number - number != 0:  # text, infinite, or no number at all
            advice = "Correct it, or list the value under 'missing' in the mapping."
            problems.append(f"column {source.columns[0]!r}: found {cell!r}, expected a number. {advice}")
        else:
            values[name] = number * source.factor
    return values, problems
