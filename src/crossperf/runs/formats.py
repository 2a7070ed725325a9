"""Files of runs: JSONL, CSV and Parquet into columns whose values are still as they were written, and back."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PanicException

from crossperf.errors import CrossperfError, shortened
from crossperf.records import COLUMNS, FORMAT, RUNS_FORMAT, Run
from crossperf.runs import jsonl
from crossperf.runs.checking import NumberedRow, split_rows, values_by_column
from crossperf.runs.places import TableFile, is_address
from crossperf.runs.rules import MOST_SHOWN, TEXTS, Problem, is_counter, unusable

#: Column that holds the row's number in its file, for messages.
ROW = "__row__"
#: Bytes at the end of a CSV in which its last line is looked for.
_TAIL = 1 << 20
_LINES_AT_ONCE = 10_000
_PIECES_AT_ONCE = 20
#: What says in the environment who asks a store of Amazon's kind.
_WHO = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
#: Text of more bytes than this becomes Parquet in a temporary folder instead of columns in memory.
HELD_BYTES = 128_000_000
#: Bounds of the first line of a CSV.
_LONGEST_HEADER, _MOST_COLUMNS = 4 << 20, 50_000


def columns_of_part(part: TableFile, folder: Callable[[], Path]) -> tuple[pl.LazyFrame, list[Problem]]:
    """Return the columns of one file, read when they are asked for, and what could not be read of its rows.

    Parameters
    ----------
    folder
        Makes a folder for what a long text becomes.
    """
    with reading(part.address, part.kind):
        if part.kind == "parquet":
            return known_columns(part.address, _parquet(part)), []
        if not part.is_remote and part.path.stat().st_size == 0:
            return pl.LazyFrame(), []
        if part.kind.startswith("csv"):
            return _csv(part, folder)
        return _of_lines(part, folder)


@contextmanager
def reading(path: object, kind: str) -> Iterator[None]:
    """Raise whatever a damaged file makes polars raise as one sentence that names the file; hush what Rust prints."""
    try:
        with _hushed():
            yield
    except CrossperfError:
        raise
    except (Exception, PanicException) as error:  # whatever polars and its Rust raise
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        if is_address(str(path)) and (problem := _of_store(reason)):
            raise unusable(path, [problem]) from error
        advice = "It may be cut short or of another format: copy or write it again."
        damaged = Problem(f"a file that does not read as {kind} ({reason})", f"a whole {kind} file", advice)
        raise unusable(path, [damaged]) from error


def _of_store(reason: str) -> Problem | None:
    """Return the problem of an object store that tells why it does not give a file; ``None`` where it gave one."""
    expected = "a runs table"
    status = (re.findall(r"status(?: code:?)? (\d{3})", reason) or [""])[0]
    if status == "404" or "not found" in reason or "paths were empty" in reason:
        return Problem("no such file in the store", expected, "Check the address.")
    if status in ("401", "403"):
        advice = "Set the credentials of the store in the environment, such as AWS_ACCESS_KEY_ID."
        return Problem("a store that does not let us read", expected, advice)
    if "object-store" in reason or "error sending request" in reason or "credential" in reason.lower():
        advice = "Check the address, and the credentials and the endpoint in the environment."
        return Problem(f"no answer of the store ({shortened(reason, 200)})", expected, advice)
    return None


def remote(address: str) -> dict[str, Any]:
    """Return how Polars asks a store: with the credentials of the environment, no program's and no file's of the user.

    Where the environment says nothing of who asks, an S3 store is asked without a signature, as public ones may be.
    """
    unsigned = address.startswith("s3") and not any(map(os.environ.get, _WHO))
    settings: dict[str, Any] = {"credential_provider": None} if is_address(address) else {}
    return settings | ({"storage_options": {"aws_skip_signature": "true"}} if unsigned else {})


def _parquet(part: TableFile) -> pl.LazyFrame:
    if not part.is_remote and part.path.stat().st_size == 0:
        return pl.LazyFrame()
    return pl.scan_parquet(part.address, glob=False, hive_partitioning=False, **remote(part.address))


def _csv(part: TableFile, folder: Callable[[], Path]) -> tuple[pl.LazyFrame, list[Problem]]:
    """Return the columns of a CSV, all of texts: in memory, or of Parquet where they are long."""
    settings: dict[str, Any] = {"infer_schema": False, "glob": False}
    if part.is_remote:
        lazy = pl.scan_csv(part.address, **settings, **remote(part.address))
    else:
        _refuse_long_header(part.path, part.kind)
        lazy = pl.scan_csv(part.path, **settings)
    names = lazy.collect_schema().names()
    refuse_doubles(part.address, [name.partition("_duplicated_")[0] for name in names if "_duplicated_" in name])
    if part.is_remote or part.path.stat().st_size > HELD_BYTES:
        lazy.sink_parquet(folder() / "0.parquet", compression="lz4")
        lazy = pl.scan_parquet(folder() / "*.parquet")
    else:
        lazy = pl.read_csv(part.path, **settings).lazy()
    lazy = known_columns(part.address, lazy)
    if part.is_remote or part.kind != "csv":
        return lazy, []
    return lazy, _torn(part.path, len(names), lazy.select(pl.len()).collect().item())


def _refuse_long_header(path: Path, kind: str) -> None:
    """Raise where the first line of a CSV is none of a table: polars takes minutes over a million columns."""
    with (gzip.open if kind.endswith(".gz") else open)(path, "rb") as file:
        header = file.readline(_LONGEST_HEADER + 1)
    if len(header) > _LONGEST_HEADER or header.count(b",") >= _MOST_COLUMNS:
        much = f"more than {_MOST_COLUMNS:,} columns or {_LONGEST_HEADER:,} bytes in the first line"
        advice = "It is another kind of file, or was damaged: copy or write it again."
        raise unusable(path, [Problem(much, "the names of the columns", advice, row=1)])


def _of_lines(part: TableFile, folder: Callable[[], Path]) -> tuple[pl.LazyFrame, list[Problem]]:
    """Return the columns of JSONL, made of some thousand lines at a time: as columns they take far less memory."""
    pieces: list[pl.LazyFrame] = []
    problems: list[Problem] = []
    held: list[pl.DataFrame] = []
    is_long = part.is_remote or part.path.stat().st_size > HELD_BYTES
    lines = _remote_rows(part.address) if part.is_remote else jsonl.rows(part.path)
    while len(problems) < MOST_SHOWN and (some := list(islice(lines, _LINES_AT_ONCE))):
        rows, unread = split_rows(some)
        held.append(columns_of_rows(rows, part.address))
        problems += unread
        if is_long and len(held) == _PIECES_AT_ONCE:
            pieces.append(_put_down(joined(held), folder() / f"{len(pieces)}.parquet"))
            held = []
    return joined_lazily([*pieces, joined(held).lazy()]), problems


def _put_down(frame: pl.DataFrame, path: Path) -> pl.LazyFrame:
    frame.write_parquet(path, compression="lz4")
    return pl.scan_parquet(path)


def _remote_rows(address: str) -> Iterator[tuple[int, dict[str, Any] | Problem]]:
    """Yield the lines of JSONL in an object store, each with its number."""
    number = 0
    for batch in pl.scan_lines(address, glob=False, **remote(address)).collect_batches(maintain_order=True):
        for text in batch.to_series():
            number += 1
            if text.strip():
                yield number, jsonl.columns_of(jsonl.object_of(text.encode(), number), number)


def joined(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return parts of a table as one; a column that is of texts in one of them is of texts in all."""
    parts = [part for part in parts if part.height]
    texts = {name for part in parts for name, kind in part.schema.items() if kind == pl.String}
    alike = [part.with_columns(pl.col(name).cast(pl.String) for name in texts & {*part.columns}) for part in parts]
    return pl.concat(alike, how="diagonal") if alike else pl.DataFrame()


def joined_lazily(parts: Sequence[pl.LazyFrame]) -> pl.LazyFrame:
    """Return parts of a table as one, read when asked for; a column is of the type that holds the values of all."""
    parts = [part for part in parts if part.collect_schema()]
    if len(parts) < 2:
        return parts[0] if parts else pl.LazyFrame()
    return pl.concat(parts, how="diagonal_relaxed")


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


def known_columns(path: object, frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return the columns of a table, the number of its format checked and taken away.

    A column under the name that row numbers have here raises, and so do bytes.
    """
    refuse_row_numbers(path, frame.collect_schema().names())
    if RUNS_FORMAT in frame.collect_schema():
        written = frame.select(pl.col(RUNS_FORMAT).cast(pl.String).unique().drop_nulls()).collect().to_series()
        if newer := [text for text in written if text != str(FORMAT)]:
            raise unusable(path, [jsonl.newer_format(newer[0])])
    return without_format(frame)


def without_format(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return columns without the number of their format."""
    return frame.drop(RUNS_FORMAT, strict=False)


def _odd(kind: pl.DataType) -> bool:
    return not (kind.is_numeric() or kind in (pl.String, pl.Boolean, pl.Null))


def plain_column(path: object, column: pl.Series) -> pl.Series:
    """Return a column of a type that every format can hold.

    Dates, durations and categories become texts, lists and records the JSON of them; bytes raise.
    """
    name, kind = column.name, column.dtype
    if not _odd(kind):
        return column
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


def _torn(path: Path, width: int, height: int) -> list[Problem]:
    """Return what is wrong with the end of a CSV: a last row that was cut off has too few cells, or no end."""
    with path.open("rb") as file:
        file.seek(-min(path.stat().st_size, _TAIL), os.SEEK_END)
        tail = file.read()
    if tail.endswith(b"\n") or not height:
        return []
    last = tail.rpartition(b"\n")[2].decode("utf-8", "replace")
    advice = "It may be cut short: copy or write the file again, or end the last line."
    cells = next(csv.reader([last]), [])
    if '"' not in last and len(last) < _TAIL and len(cells) < width:
        few = f"{len(cells)} cells in a last line without an end"
        return [Problem(few, f"{width} as in the header", advice, row=height)]
    return [Problem("a last line without an end", "a line break behind it", advice, height, severity="warning")]


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


def runs_of(frame: pl.DataFrame) -> list[Run]:
    """Return typed columns as records."""
    return [
        Run.from_json(jsonl.nest({name: row[name] for name in row if row[name] is not None or is_counter(name)}))
        for row in frame.iter_rows(named=True)
    ]


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
