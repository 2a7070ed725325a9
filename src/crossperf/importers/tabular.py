"""Rows of text tables, CSV or JSONL, with the number under which a person finds each again."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossperf.errors import ProfileFileError

JSON_LINES = (".jsonl", ".ndjson")


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


def rows(path: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Yield each row's number with its columns, or with the words for what keeps it from being read."""
    try:
        yield from _json_lines(path) if path.suffix in JSON_LINES else _csv(path)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ProfileFileError(
            f"{path}: cannot be read ({reason}), expected a table as CSV or JSONL in UTF-8. Check the file.",
            path=str(path),
        ) from error


def header(path: Path) -> list[str]:
    """Return the names in the first row of a CSV file, or nothing for what is no text; never raises."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return next(csv.reader([file.readline(1 << 20)]), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        return []


def _csv(path: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",")
        names = next(lines, None)
        if not names:
            raise ProfileFileError(
                f"{path}: found an empty file, expected a row of column names first.", path=str(path)
            )
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ProfileFileError(
                f"{path}: found the column {twice[0]!r} twice, expected each once. Rename one of them.", path=str(path)
            )
        filled = (line for line in lines if line)
        for number, line in enumerate(filled, start=1):
            if len(line) == len(names):
                yield number, dict(zip(names, line, strict=True))
            else:
                yield number, f"found {len(line)} cells, expected {len(names)} as in the header. Mend the row."


def _json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                facts = json.loads(line)
            except (ValueError, RecursionError):
                facts = None
            if isinstance(facts, dict):
                yield number, facts
            else:
                yield number, "found text that is not one JSON object, expected one a line. Mend or remove the line."
