"""Rows of text tables, CSV or JSONL, with the number under which a person finds each again."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossperf.documents import lines_of
from crossperf.importers.files import unusable
from crossperf.importers.measurement import Measurement
from crossperf.runs import jsonl
from crossperf.runs.rules import Problem

JSON_LINES = (".jsonl", ".ndjson")
#: The number of a row with its columns, or with what keeps it from being read.
NumberedRow = tuple[int, dict[str, Any] | Problem]


@dataclass(frozen=True)
class Rejected:
    """A file, or one row of it, that was not imported, and why.

    Rows count from 1 and leave out a CSV header; in JSONL a row is a line.
    """

    path: str
    reason: str
    row: int | None = None

    def __str__(self) -> str:
        return f"{self.path}, row {self.row:,}: {self.reason}" if self.row is not None else self.reason


@dataclass(frozen=True)
class ProfileReading:
    """What a file of profiles holds: the measurements, and the rows that could not be used."""

    measurements: list[Measurement]
    rejected: list[Rejected]


class UnusableRowError(Exception):
    """A row cannot be used; the text says which cells are wrong and why."""


def read(path: Path, measurement_of: Callable[[int, dict[str, Any]], Measurement]) -> ProfileReading:
    """Return one measurement for each sound row, and the other rows with their reasons.

    `measurement_of` makes it of a row's number and columns, or raises `UnusableRowError`.
    """
    reading = ProfileReading([], [])
    for number, row in rows(path):
        try:
            if isinstance(row, Problem):
                raise UnusableRowError(f"found {row.actual}, expected {row.expected}. {row.advice}")  # noqa: TRY301
            reading.measurements.append(measurement_of(number, row))
        except UnusableRowError as error:
            reading.rejected.append(Rejected(str(path), str(error), number))
    if not reading.measurements and not reading.rejected:
        raise unusable(path, "found no row, expected one for each run.")
    return reading


def rows(path: Path) -> Iterator[NumberedRow]:
    """Yield each row's number with its columns, or with the problem that keeps it from being read."""
    if not path.is_file():  # a pipe would be waited for
        raise unusable(path, "found no regular file, expected a table as CSV or JSONL. Check the path.")
    try:
        yield from jsonl.objects(path) if path.suffix in JSON_LINES else _csv(path)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        problem = f"cannot be read ({reason}), expected a table as CSV or JSONL in UTF-8. Check the file."
        raise unusable(path, problem) from error


def header(path: Path) -> list[str]:
    """Return the names in the first row of a CSV file, or nothing for what is no text; never raises."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return next(csv.reader([file.readline(1 << 20)]), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        return []


def _csv(path: Path) -> Iterator[NumberedRow]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(lines_of(file), delimiter="\t" if path.suffix == ".tsv" else ",")
        names = next(lines, None)
        if not names:
            raise unusable(path, "found an empty file, expected a row of column names first.")
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise unusable(path, f"found the column {min(twice)!r} twice, expected each once. Rename one of them.")
        for number, line in enumerate(filter(None, lines), start=1):
            if len(line) == len(names):
                yield number, dict(zip(names, line, strict=True))
            else:
                expected = f"{len(names)} as in the header"
                yield number, Problem(f"{len(line)} cells", expected, "Correct the row.", number)
