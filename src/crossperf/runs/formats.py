"""Files of runs: JSONL, CSV and Parquet into columns whose values are still as they were written, and back."""

from __future__ import annotations

import csv
import gzip
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import polars as pl
from polars.exceptions import PanicException

from crossperf.errors import CrossperfError
from crossperf.records import COLUMNS, FORMAT, RUNS_FORMAT, Run
from crossperf.runs import jsonl
from crossperf.runs.checking import NumberedRow, split_rows, values_by_column
from crossperf.runs.rules import MOST_SHOWN, TEXTS, Problem, is_counter, unusable

#: Column that holds the row's number in its file, for messages.
ROW = "__row__"
FORMATS = ("jsonl", "csv", "parquet", "jsonl.gz", "csv.gz")
#: Bytes at the end of a CSV in which its last line is looked for.
_TAIL = 1 << 20
_LINES_AT_ONCE = 10_000
#: Bounds of the first line of a CSV.
_LONGEST_HEADER, _MOST_COLUMNS = 4 << 20, 50_000
_OTHER_NAMES = {"ndjson": "jsonl", "pq": "parquet", "ndjson.gz": "jsonl.gz"}


def read_columns(path: Path) -> tuple[pl.DataFrame, list[Problem]]:
    """Return the columns of a file, and what could not be read of its rows."""
    if not path.is_file():
        missing = "a folder" if path.is_dir() else "no such file"
        raise unusable(path, [Problem(missing, "a runs table", "Check the path.")])
    kind = format_of(path)
    try:
        return _read(path, kind)
    except CrossperfError:
        raise
    except (Exception, PanicException) as error:  # whatever polars and its Rust raise on a damaged file
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        advice = "It may be cut short or of another format: copy or write it again."
        damaged = Problem(f"a file that does not read as {kind} ({reason})", f"a whole {kind} file", advice)
        raise unusable(path, [damaged]) from error


def _read(path: Path, kind: str) -> tuple[pl.DataFrame, list[Problem]]:
    if path.stat().st_size == 0:
        return pl.DataFrame(), []
    if kind == "parquet":
        with _hushed():
            frame = pl.read_parquet(path, glob=False)
        return known_columns(path, frame), []
    if kind.startswith("csv"):
        _refuse_long_header(path, kind)
        frame = pl.read_csv(path, infer_schema=False, glob=False)
        doubled = [name.partition("_duplicated_")[0] for name in frame.columns if "_duplicated_" in name]
        refuse_doubles(path, doubled)
        return known_columns(path, frame), _torn(path, frame) if kind == "csv" else []
    return _of_lines(path)


def _refuse_long_header(path: Path, kind: str) -> None:
    """Raise where the first line of a CSV is none of a table: polars takes minutes over a million columns."""
    with (gzip.open if kind.endswith(".gz") else open)(path, "rb") as file:
        header = file.readline(_LONGEST_HEADER + 1)
    if len(header) > _LONGEST_HEADER or header.count(b",") >= _MOST_COLUMNS:
        much = f"more than {_MOST_COLUMNS:,} columns or {_LONGEST_HEADER:,} bytes in the first line"
        advice = "It is another kind of file, or was damaged: copy or write it again."
        raise unusable(path, [Problem(much, "the names of the columns", advice, row=1)])


def _of_lines(path: Path) -> tuple[pl.DataFrame, list[Problem]]:
    """Return the columns of JSONL, made of some thousand lines at a time: as columns they take far less memory."""
    parts: list[pl.DataFrame] = []
    problems: list[Problem] = []
    lines = jsonl.rows(path)
    while len(problems) < MOST_SHOWN and (some := list(islice(lines, _LINES_AT_ONCE))):
        rows, unread = split_rows(some)
        parts.append(columns_of_rows(rows, path))
        problems += unread
    return _joined([part for part in parts if part.height]), problems


def _joined(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return parts of a table as one; a column that is of texts in one of them is of texts in all."""
    texts = {name for part in parts for name, kind in part.schema.items() if kind == pl.String}
    alike = [part.with_columns(pl.col(name).cast(pl.String) for name in texts & {*part.columns}) for part in parts]
    return pl.concat(alike, how="diagonal") if alike else pl.DataFrame()


@contextmanager
def _hushed() -> Iterator[None]:
    """Keep what is written to standard error until all went well: Rust tells of a panic there before polars raises."""
    kept = os.dup(2)
    with tempfile.TemporaryFile() as talk:
        os.dup2(talk.fileno(), 2)
        try:
            yield
            talk.seek(0)
            os.write(kept, talk.read())
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def known_columns(path: object, frame: pl.DataFrame) -> pl.DataFrame:
    """Return columns of types that every format can hold, the number of the format checked and taken away.

    Dates, durations and categories become texts, lists and records the JSON of them; bytes raise, and so does a column
    under the name that row numbers have here.
    """
    refuse_row_numbers(path, frame.columns)
    if RUNS_FORMAT in frame.columns:
        written = frame[RUNS_FORMAT].cast(pl.String).unique().drop_nulls().to_list()
        if newer := [text for text in written if text != str(FORMAT)]:
            raise unusable(path, [jsonl.newer_format(newer[0])])
        frame = frame.drop(RUNS_FORMAT)
    return frame.with_columns(_plain_column(path, frame[name]) for name, kind in frame.schema.items() if _odd(kind))


def _odd(kind: pl.DataType) -> bool:
    return not (kind.is_numeric() or kind in (pl.String, pl.Boolean, pl.Null))


def _plain_column(path: object, column: pl.Series) -> pl.Series:
    name, kind = column.name, column.dtype
    if kind.is_nested() and (name in COLUMNS or is_counter(name)):
        return column  # a problem of its own, with those of other columns
    problem = Problem(f"values of type {kind}", "numbers or texts", "Write them as one of these.", column=name)
    if isinstance(kind, pl.Binary | pl.Object):
        raise unusable(path, [problem])
    try:
        if not kind.is_nested() and kind != pl.Duration:
            return column.cast(pl.String)
        written = (lambda value: json.dumps(value, default=str)) if kind.is_nested() else str
        texts = [None if value is None else written(value) for value in column.to_list()]
        return pl.Series(name, texts, dtype=pl.String)
    except (Exception, PanicException) as error:  # a type that polars itself cannot show
        raise unusable(path, [problem]) from error


def _torn(path: Path, frame: pl.DataFrame) -> list[Problem]:
    """Return what is wrong with the end of a CSV: a last row that was cut off has too few cells, or no end."""
    with path.open("rb") as file:
        file.seek(-min(path.stat().st_size, _TAIL), os.SEEK_END)
        tail = file.read()
    if tail.endswith(b"\n") or not frame.height:
        return []
    last = tail.rpartition(b"\n")[2].decode("utf-8", "replace")
    advice = "It may be cut short: copy or write the file again, or end the last line."
    cells = next(csv.reader([last]), [])
    if '"' not in last and len(last) < _TAIL and len(cells) < frame.width:
        few = f"{len(cells)} cells in a last line without an end"
        return [Problem(few, f"{frame.width} as in the header", advice, row=frame.height)]
    return [Problem("a last line without an end", "a line break behind it", advice, frame.height, severity="warning")]


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


def refuse_row_numbers(path: object, names: Iterable[str]) -> None:
    """Raise where a table has a column under the name of its row numbers."""
    if ROW in names:
        problem = Problem(f"the column {ROW!r}", "another name: row numbers have this one", "Rename it.", column=ROW)
        raise unusable(path, [problem])


def columns_of_rows(rows: Sequence[NumberedRow], path: object = "runs") -> pl.DataFrame:
    """Return numbered rows as columns, with the numbers under `ROW`; `path` stands in messages."""
    if not rows:
        return pl.DataFrame()
    refuse_row_numbers(path, next((row for _, row in rows if ROW in row), ()))
    numbers = pl.Series(ROW, [number for number, _ in rows], dtype=pl.Int64)
    return pl.DataFrame([*(series(name, values) for name, values in values_by_column(rows).items()), numbers])


def series(name: str, values: Sequence[float | str | None]) -> pl.Series:
    """Return the values of a column, all floats or all texts, as a series."""
    first = next((value for value in values if value is not None), None)
    return pl.Series(name, values, dtype=pl.String if name in TEXTS or isinstance(first, str) else pl.Float64)


def write_columns(frame: pl.DataFrame, runs: Callable[[], list[Run]], path: Path, kind: str) -> None:
    """Write a table to a file of a format; `runs` gives its records where the format is made of them."""
    numbered = frame.with_columns(pl.lit(FORMAT, pl.Int64).alias(RUNS_FORMAT))
    if kind == "parquet":
        numbered.write_parquet(path)
    elif kind == "csv":
        numbered.write_csv(path)
    elif kind == "csv.gz":
        numbered.write_csv(path, compression="gzip", check_extension=False)
    elif kind == "jsonl":
        jsonl.append(path, runs())
    else:
        with gzip.open(path, "wt", encoding="utf-8") as lines:
            lines.writelines(map(jsonl.line, runs()))
