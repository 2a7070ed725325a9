"""What a sound runs table looks like: its columns, what each may hold, and the words for what it may not.

The rules are written once, for single values. `columns` only screens a column for candidates and then asks
here, `checking` asks for every value of a few runs: every format is judged, and described, the same way.
"""

from __future__ import annotations

import functools
import json
import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from crossperf import catalog
from crossperf.errors import RunsTableError, did_you_mean
from crossperf.plain import shown, to_json
from crossperf.records import COLUMNS, OK

COUNTER_PREFIX = "counter."
REQUIRED = ("app", "input", "platform", "runtime_s")
WHOLE_NUMBERS = ("repeat", "ranks", "threads")
#: Beyond this a float no longer tells one whole number from the next.
_GREATEST_WHOLE = 2.0**53
#: No clock shows less, and no run takes longer: a model of such times could be trained, and not be read again.
SHORTEST_S, LONGEST_S = 1e-18, 1e18
TEXTS = tuple(name for name in COLUMNS if name not in (*WHOLE_NUMBERS, "runtime_s"))

#: What other programs write into a text file for "not measured".
MISSING_WORDS = ("", "na", "nan", "null", "none")

Severity = Literal["error", "warning"]
#: A column with more bad values than this is described by its first ones and a count.
MOST_SHOWN = 1_000
_AGAIN = "Measure this run again, or give it a status other than 'ok'."


@dataclass(frozen=True)
class Problem:
    """One thing to fix: where it is, what was found, what was expected, what to do.

    Rows count from 1 and leave out a CSV header; in JSONL a row is a line. `file` is named where a table has several.
    """

    actual: str = field(metadata={"json": "found"})
    expected: str
    advice: str
    row: int | None = None
    column: str | None = None
    value: Any = None
    severity: Severity = "error"
    file: str | None = None

    def __str__(self) -> str:
        row = f"row {self.row:,}" if self.row is not None else ""
        column = f"column {self.column!r}" if self.column is not None else ""
        where = ", ".join(filter(None, (self.file, row, column)))
        return f"{where}{': ' if where else ''}found {self.actual}, expected {self.expected}. {self.advice}"

    def to_json(self) -> dict[str, Any]:
        """Return the facts as JSON's own types; a value JSON cannot hold is written as text."""
        value = self.value
        simple = value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
        return {**to_json(replace(self, value=value if simple else str(value))), "message": str(self)}


#: The problem of a table without rows.
NO_RUNS = Problem("no runs", "at least one row", "Collect some runs first.")
#: The problem of a table without counters, from which nothing can be predicted.
NO_COUNTERS = Problem(
    "no counter",
    "at least one column 'counter.NAME'",
    "Counters in other columns are renamed 'counter.NAME'; in JSONL they go under \"counters\".",
)


def is_counter(column: str) -> bool:
    """Tell whether a column holds a counter."""
    return column.startswith(COUNTER_PREFIX) and len(column) > len(COUNTER_PREFIX)


def as_number(value: Any) -> float | None:
    """Return a value as a float where it is a number or reads as one, otherwise ``None``.

    >>> as_number("1e3"), as_number(True), as_number("fast")
    (1000.0, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, float | int | str | numbers.Real):
        return None
    # Python alone reads 1_000 and digits of other scripts; no other program that opens the table does.
    if isinstance(value, str) and ("_" in value or not value.strip().isascii()):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def whole(value: Any) -> int | None:
    """Return a value as a whole number of 64 bits, otherwise ``None``."""
    number = as_number(value)
    return None if number is None or not math.isfinite(number) or abs(number) >= 2.0**63 else int(number)


def text(value: Any) -> str:
    """Return a value as the text that a column of texts holds: JSON where it is of JSON's types."""
    return json.dumps(value) if isinstance(value, bool | int | float | list | dict) else str(value)


def typed(name: str, value: Any) -> Any:
    """Return the value of a column as its type: a number, a whole number or a text; ``None`` where it is none.

    >>> typed("runtime_s", "2.5"), typed("input", 30), typed("repeat", "x")
    (2.5, '30', None)
    """
    if is_counter(name) or name == "runtime_s":
        number = as_number(value)
        return None if number is None or math.isnan(number) else number
    if name in WHOLE_NUMBERS:
        return whole(value)
    if name == "status" and is_missing(value):
        return OK
    if name == "runnable" and is_missing(value):
        return None
    return text(value) if name in TEXTS and value is not None and not isinstance(value, str) else value


def is_missing(value: Any) -> bool:
    """Tell whether a cell holds nothing: null, empty text, or a word that spreadsheets write for it."""
    if isinstance(value, str):
        return value.strip().lower() in MISSING_WORDS
    return value is None or (isinstance(value, float) and math.isnan(value))


@functools.lru_cache(maxsize=4096)
def bounds(column: str) -> tuple[float, float]:
    """Return the least and the greatest number that a numeric column may hold without remark.

    >>> bounds("counter.int_ratio"), bounds("counter.anything_else")
    ((0.0, 1.0), (-inf, inf))
    """
    if column == "runtime_s":
        return SHORTEST_S, LONGEST_S
    if column in WHOLE_NUMBERS:
        return 0.0, _GREATEST_WHOLE
    known = catalog.COUNTERS.get(column.removeprefix(COUNTER_PREFIX))
    if known is None:
        return -math.inf, math.inf
    return 0.0, math.inf if known.at_most is None else known.at_most


def check_value(column: str, value: Any, row: int | None = None, *, need_runtime: bool = True) -> Problem | None:
    """Return what is wrong with one value of one column of a run that did not fail, or ``None``.

    >>> print(check_value("runtime_s", -1.0, row=3))  # doctest: +NORMALIZE_WHITESPACE
    row 3, column 'runtime_s': found -1.0, expected seconds above 0.
    Measure this run again, or give it a status other than 'ok'.
    >>> check_value("counter.instructions", 0)
    """
    if (complaint := _complaint(column, value, need_runtime)) is None:
        return None
    expected, advice, severity = complaint
    return Problem("nothing" if is_missing(value) else shown(value), expected, advice, row, column, value, severity)


def _complaint(column: str, value: Any, need_runtime: bool) -> tuple[str, str, Severity] | None:
    """Return what was expected of a value, what to do and how bad it is, or ``None`` for a sound one."""
    if column in ("app", "platform"):
        named = not is_missing(value)
        return None if named else (f"the name of the {column}", "Name it, or remove the row.", "error")
    if column in TEXTS or not (column in COLUMNS or is_counter(column)):
        return None
    if is_missing(value) and not (column == "runtime_s" and need_runtime):
        return None
    number = as_number(value)
    least, greatest = bounds(column)
    finite = number is not None and math.isfinite(number)
    if column == "runtime_s":
        if number is not None and finite and least <= number <= greatest:
            return None
        beyond = number is not None and finite and number > 0
        return (f"seconds from {least:g} to {greatest:g}" if beyond else "seconds above 0", _AGAIN, "error")
    if column in WHOLE_NUMBERS:
        counts = number is not None and finite and number.is_integer() and least <= number <= greatest
        return None if counts else ("a whole number of 0 or more", "Correct it, or leave it empty.", "error")
    if number is None:
        return "a number, or nothing where it was not measured", "Correct it, or leave it empty.", "error"
    if not finite:
        return "a finite number", "Leave it empty if it overflowed or was divided by zero.", "error"
    if number < least:
        return "a number of 0 or more", "Leave it empty: multiplexed events can turn negative.", "error"
    if number > greatest:
        return f"a ratio of at most {greatest:g}", "Check how it was computed; it is used as it is.", "warning"
    return None


#: What crossperf itself writes beside the columns.
_PROVENANCE = ("measured_by", "missing", "tools", "events")


def check_columns(columns: Sequence[str]) -> list[Problem]:
    """Return what is wrong with the names of a table's columns."""
    known = {*COLUMNS, *_PROVENANCE}
    strangers = [name for name in columns if name not in known and not is_counter(name)]
    missing = [name for name in REQUIRED if name not in columns]
    problems = []
    for name in missing:
        advice = f"Add it, or rename the column that holds it{did_you_mean(name, strangers)}."
        problems.append(Problem(f"no column {name!r}", f"the columns {', '.join(REQUIRED)}", advice, column=name))
    for name in strangers[:MOST_SHOWN]:
        hint = _nearest_known(name)
        if hint and not any(f"'{required}'" in hint for required in missing):
            expected = "a known column or one that starts with 'counter.'"
            advice = "Rename it, or leave it: it is kept and not used."
            unknown = f"the unknown name {name!r}{hint}"
            problems.append(Problem(unknown, expected, advice, column=name, severity="warning"))
    if not any(map(is_counter, columns)):
        problems.append(NO_COUNTERS)
    return problems


@functools.lru_cache(maxsize=4096)
def _nearest_known(name: str) -> str:
    head, dot, tail = name.partition(".")
    if dot and tail and did_you_mean(head, ["counter"]):
        return f" (did you mean '{COUNTER_PREFIX}{tail}'?)"
    return did_you_mean(name, COLUMNS)


def failed(status: Any) -> bool:
    """Tell whether a status says that the run failed; an empty one says that it did not."""
    return not is_missing(status) and str(status) != OK


def unusable(path: object, errors: Sequence[Problem]) -> RunsTableError:
    """Return the error of a table that cannot be used; its sentence has the first problem, ``problems`` has all."""
    more = f" ({len(errors) - 1:,} more: 'crossperf runs check' lists them all)" if len(errors) > 1 else ""
    return RunsTableError(f"{path}: {errors[0]}{more}", path=str(path), problems=list(errors))
