"""Files of runs: JSONL, CSV and Parquet into columns whose values are still as they were written, and back."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from crossperf.records import Run
from crossperf.runs import jsonl
from crossperf.runs.checking import NumberedRow, split_rows, values_by_column
from crossperf.runs.rules import TEXTS, Problem, unusable

#: Column that holds the row's number in its file, for messages.
ROW = "__row__"
FORMATS = ("jsonl", "csv", "parquet", "jsonl.gz", "csv.gz")
_OTHER_NAMES = {"ndjson": "jsonl", "pq": "parquet", "ndjson.gz": "jsonl.gz"}


def read_columns(path: Path) -> tuple[pl.DataFrame, list[Problem]]:
    """Return the columns of a file, and what could not be read of its rows."""
    if not path.is_file():
        missing = "a folder" if path.is_dir() else "no such file"
        raise unusable(path, [Problem(missing, "a runs table", "Check the path.")])
    kind = format_of(path)
    try:
        if path.stat().st_size == 0:
            return pl.DataFrame(), []
        if kind == "parquet":
            return pl.read_parquet(path, glob=False), []
        if kind.startswith("csv"):
            frame = pl.read_csv(path, infer_schema=False, glob=False)
            doubled = [name.partition("_duplicated_")[0] for name in frame.columns if "_duplicated_" in name]
            refuse_doubles(path, doubled)
            return frame, []
        rows, problems = split_rows(jsonl.rows(path))
        return columns_of_rows(rows), problems
    except (PolarsError, OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
        advice = "It may be cut short or of another format: copy or write it again."
        damaged = Problem(f"a file that does not read as {kind} ({reason})", f"a whole {kind} file", advice)
        raise unusable(path, [damaged]) from error


def format_of(path: Path) -> str:
    """Return the format that a file's name ends in.

    >>> format_of(Path("runs.v2.csv.gz")), format_of(Path("runs.PQ"))
    ('csv.gz', 'parquet')
    """
    ending = "".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:]).lower().lstrip(".")
    kind = _OTHER_NAMES.get(ending, ending)
    if kind not in FORMATS:
        expected = ".jsonl, .csv, .parquet, .jsonl.gz or .csv.gz"
        other = Problem(f"a name that ends in {path.suffix or 'nothing'!r}", expected, "Rename or convert it.")
        raise unusable(path, [other])
    return kind


def refuse_doubles(path: object, doubled: Iterable[str]) -> None:
    """Raise where a table has columns of the same name."""
    if names := ", ".join(map(repr, doubled)):
        problem = Problem(f"the column {names} more than once", "each column once", "Rename or remove one.")
        raise unusable(path, [problem])


def columns_of_rows(rows: Sequence[NumberedRow]) -> pl.DataFrame:
    """Return numbered rows as columns, with the numbers under `ROW`."""
    if not rows:
        return pl.DataFrame()
    numbers = pl.Series(ROW, [number for number, _ in rows], dtype=pl.Int64)
    return pl.DataFrame([*(series(name, values) for name, values in values_by_column(rows).items()), numbers])


def series(name: str, values: Sequence[float | str | None]) -> pl.Series:
    """Return the values of a column, all floats or all texts, as a series."""
    first = next((value for value in values if value is not None), None)
    return pl.Series(name, values, dtype=pl.String if name in TEXTS or isinstance(first, str) else pl.Float64)


def write_columns(frame: pl.DataFrame, runs: Callable[[], list[Run]], path: Path, kind: str) -> None:
    """Write a table to a file of a format; `runs` gives its records where the format is made of them."""
    if kind == "parquet":
        frame.write_parquet(path)
    elif kind == "csv":
        frame.write_csv(path)
    elif kind == "csv.gz":
        frame.write_csv(path, compression="gzip", check_extension=False)
    elif kind == "jsonl":
        jsonl.append(path, runs())
    else:
        with gzip.open(path, "wt", encoding="utf-8") as lines:
            lines.writelines(map(jsonl.line, runs()))
