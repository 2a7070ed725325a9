"""Runs tables as columns: one typed frame from JSONL, CSV or Parquet, judged by `rules`."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from crossperf.errors import RunsTableError
from crossperf.files import whole
from crossperf.records import COLUMNS, OK, Run
from crossperf.runs import jsonl
from crossperf.runs.rules import (
    MISSING_WORDS,
    TEXTS,
    WHOLE_NUMBERS,
    Problem,
    as_number,
    bounds,
    check_columns,
    check_value,
    is_counter,
)

#: What a runs table can come as: a path, a table, records, or a data frame that speaks Arrow.
Source = Any

#: Column that holds the row's number in its file, for messages.
ROW = "__row__"
#: What can change an answer, and so what a fingerprint covers (with the counters).
_ANSWERING = ("app", "input", "platform", "platform_class", "repeat", "status", "runtime_s")
#: A column with more bad values than this is described by its first ones and a count.
_SHOWN_PER_COLUMN = 1_000


@dataclass(frozen=True)
class RunsTable:
    """A sound runs table: typed columns, failed runs included, with the warnings it came with.

    `frame` has every known column that the file has, the counters as floats under ``counter.NAME`` in
    order of their names, and whatever else the file holds.
    """

    frame: pl.DataFrame
    path: str
    warnings: tuple[Problem, ...] = field(default=(), repr=False)

    @property
    def counters(self) -> list[str]:
        """The counter columns, by name."""
        return sorted(name for name in self.frame.columns if is_counter(name))

    @property
    def succeeded(self) -> pl.DataFrame:
        """The runs that did not fail."""
        return self.frame.filter(pl.col("status") == OK)

    @property
    def n_failed(self) -> int:
        """How many runs failed."""
        return self.frame.height - self.succeeded.height

    @property
    def fingerprint(self) -> str:
        """A digest of everything that can change an answer; the same for each format of the same runs."""
        digest = hashlib.sha256()
        for name in [*(c for c in _ANSWERING if c in self.frame.columns), *self.counters]:
            column = self.frame[name]
            if column.null_count() == len(column):
                continue  # JSONL leaves such a column out; its absence says the same
            digest.update(name.encode() + b"\x00")
            if column.dtype == pl.String:
                texts = column.fill_null("\x00").to_list()
                digest.update("\x1f".join(texts).encode())
            else:
                digest.update(column.cast(pl.Float64).fill_null(np.nan).to_numpy().tobytes())
        return digest.hexdigest()[:16]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the table in the format that the path's ending names; the file appears whole or not at all."""
        with whole(path) as part:
            _WRITERS[_format_of(Path(path))](self, part)

    def runs(self) -> list[Run]:
        """Return the table as records."""
        return [Run.from_json(jsonl.nest(_present(row))) for row in self.frame.iter_rows(named=True)]


def _present(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None or is_counter(name)}


def _write_jsonl(table: RunsTable, path: Path) -> None:
    jsonl.append(path, table.runs())


def _write_jsonl_gz(table: RunsTable, path: Path) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        lines.writelines(map(jsonl.line, table.runs()))


_WRITERS: dict[str, Any] = {
    "parquet": lambda table, path: table.frame.write_parquet(path),
    "csv": lambda table, path: table.frame.write_csv(path),
    "csv.gz": lambda table, path: table.frame.write_csv(path, compression="gzip", check_extension=False),
    "jsonl": _write_jsonl,
    "jsonl.gz": _write_jsonl_gz,
}


def read(source: str | os.PathLike[str], *, need_runtime: bool = True) -> RunsTable:
    """Return a runs table from a file; a table that cannot be used raises with all its problems.

    Parameters
    ----------
    source
        A path that ends in .jsonl, .csv, .parquet, or .jsonl.gz / .csv.gz.
    need_runtime
        Whether a run without a runtime is a problem. It is for learning, and is not for predicting.
    """
    raw, unread = _raw(Path(source))
    return _sound(raw, str(source), need_runtime, unread)


def open_table(source: Source, *, need_runtime: bool = True) -> RunsTable:
    """Return a runs table from whatever it comes as."""
    if isinstance(source, RunsTable):
        return source
    if isinstance(source, str | os.PathLike):
        return read(source, need_runtime=need_runtime)
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__dataframe__"):
        return from_frame(source, need_runtime=need_runtime)
    return from_runs(source, need_runtime=need_runtime)


def from_runs(runs: Iterable[Run], *, name: str = "runs", need_runtime: bool = True) -> RunsTable:
    """Return a runs table from records; problems raise as they do for a file."""
    rows = list(enumerate(map(jsonl.flat, runs), start=1))
    return _sound(_frame_of_rows(rows), name, need_runtime)


def from_frame(frame: Any, *, name: str = "frame", need_runtime: bool = True) -> RunsTable:
    """Return a runs table from a data frame of any library that speaks Arrow."""
    return _sound(pl.DataFrame(frame), name, need_runtime)


def check(source: str | os.PathLike[str], *, need_runtime: bool = True) -> list[Problem]:
    """Return every problem of a file, errors first; an empty list is a sound table."""
    try:
        raw, unread = _raw(Path(source))
    except RunsTableError as error:
        return list(error.facts["problems"])
    return unread + _typed(raw, need_runtime)[1]


def _sound(raw: pl.DataFrame, path: str, need_runtime: bool, unread: Sequence[Problem] = ()) -> RunsTable:
    frame, problems = _typed(raw, need_runtime)
    errors = [*unread] + [problem for problem in problems if problem.severity == "error"]
    if errors:
        raise _unusable(path, errors)
    return RunsTable(frame, path, tuple(problem for problem in problems if problem.severity == "warning"))


def _unusable(path: str | os.PathLike[str], errors: Sequence[Problem]) -> RunsTableError:
    more = f" ({len(errors) - 1:,} more: 'crossperf runs check' lists them all)" if len(errors) > 1 else ""
    return RunsTableError(f"{path}: {errors[0]}{more}", path=str(path), problems=list(errors))


# Reading: each format into columns whose values are still as they were written.


def _raw(path: Path) -> tuple[pl.DataFrame, list[Problem]]:
    """Return the columns of a file, and what could not be read of its rows."""
    if not path.is_file():
        found = "a folder" if path.is_dir() else "no such file"
        raise _unusable(path, [Problem(found, "a runs table", "Check the path.")])
    kind = _format_of(path)
    try:
        if path.stat().st_size == 0:
            return pl.DataFrame(), []
        if kind == "parquet":
            return pl.read_parquet(path, glob=False), []
        if kind.startswith("csv"):
            return _read_csv(path), []
        return _read_jsonl(path)
    except (PolarsError, OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
        advice = "It may be cut short or of another format: copy or write it again."
        raise _unusable(
            path, [Problem(f"a file that does not read as {kind} ({reason})", f"a whole {kind} file", advice)]
        ) from error


def _format_of(path: Path) -> str:
    kind = "".join(path.suffixes[-2:]).lower().lstrip(".") if path.suffix == ".gz" else path.suffix.lower().lstrip(".")
    kind = {"ndjson": "jsonl", "pq": "parquet", "ndjson.gz": "jsonl.gz"}.get(kind, kind)
    kind = ".".join(kind.split(".")[-2:])
    if kind not in ("jsonl", "jsonl.gz", "csv", "csv.gz", "parquet"):
        expected = ".jsonl, .csv, .parquet, .jsonl.gz or .csv.gz"
        raise _unusable(
            path,
            [Problem(f"a name that ends in {path.suffix or 'nothing'!r}", expected, "Rename or convert it.")],
        )
    return kind


def _read_csv(path: Path) -> pl.DataFrame:
    frame = pl.read_csv(path, infer_schema=False, glob=False)
    twice = [name for name in frame.columns if "_duplicated_" in name]
    if twice:
        names = ", ".join(repr(name.partition("_duplicated_")[0]) for name in twice)
        raise _unusable(
            path, [Problem(f"the column {names} more than once", "each column once", "Rename or remove one.")]
        )
    return frame


def _read_jsonl(path: Path) -> tuple[pl.DataFrame, list[Problem]]:
    rows: list[tuple[int, dict[str, Any]]] = []
    problems: list[Problem] = []
    for number, row in jsonl.rows(path):
        if isinstance(row, Problem):
            problems.append(row)
        else:
            rows.append((number, row))
    return _frame_of_rows(rows), problems


def _frame_of_rows(rows: Sequence[tuple[int, dict[str, Any]]]) -> pl.DataFrame:
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    columns = [_series(name, [row.get(name) for _, row in rows]) for name in names]
    numbers = pl.Series(ROW, [number for number, _ in rows], dtype=pl.Int64)
    return pl.DataFrame([*columns, numbers]) if rows else pl.DataFrame()


def _series(name: str, values: list[Any]) -> pl.Series:
    """Return a column of floats where every value is a number, otherwise of texts."""
    if name not in TEXTS and all(value is None or _is_number(value) for value in values):
        floats = [None if value is None else float(value) for value in values]
        return pl.Series(name, floats, dtype=pl.Float64)
    texts = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    return pl.Series(name, texts, dtype=pl.String)


def _is_number(value: Any) -> bool:
    return not isinstance(value, str) and as_number(value) is not None


# Judging: type every column, and ask the rules about each value that does not fit.


def _typed(raw: pl.DataFrame, need_runtime: bool) -> tuple[pl.DataFrame, list[Problem]]:
    if ROW not in raw.columns:
        raw = raw.with_row_index(ROW, offset=1)
    if raw.height == 0:
        return raw, [Problem("no runs", "at least one row", "Collect some runs first.")]
    problems = check_columns([name for name in raw.columns if name != ROW])
    nested = _nested_columns(raw)
    if nested:
        return raw, [*problems, *nested]
    raw = raw.with_columns(_status(raw))
    ok = (raw["status"] == OK).alias("ok")
    typed: dict[str, pl.Series] = {}
    for name in [*COLUMNS, *sorted(filter(is_counter, raw.columns))]:
        if name in raw.columns:
            typed[name] = _typed_column(raw[name])
            problems += _column_problems(raw, name, typed[name], ok, need_runtime)
    if "runtime_s" not in typed and not (need_runtime and ok.any()):
        problems = [problem for problem in problems if problem.column != "runtime_s"]
        typed["runtime_s"] = pl.Series("runtime_s", [None] * raw.height, dtype=pl.Float64)
    strangers = [name for name in raw.columns if name not in typed]
    frame = pl.DataFrame(typed).with_columns(raw[name] for name in strangers)
    problems += _row_problems(frame)
    return frame.drop(ROW), sorted(problems, key=lambda problem: problem.severity)


def _nested_columns(raw: pl.DataFrame) -> list[Problem]:
    """Return a problem for each known column that holds lists or records, as Parquet may."""
    return [
        Problem(f"values of type {kind}", "one value a row", "Write one column for each value.", column=name)
        for name, kind in raw.schema.items()
        if kind.is_nested() and (name in COLUMNS or is_counter(name))
    ]


def _status(raw: pl.DataFrame) -> pl.Expr:
    if "status" not in raw.columns:
        return pl.lit(OK).alias("status")
    text = pl.col("status").cast(pl.String)
    return pl.when(_says_nothing(text)).then(pl.lit(OK)).otherwise(text).alias("status")


def _says_nothing(text: pl.Expr) -> pl.Expr:
    return text.is_null() | text.str.strip_chars().str.to_lowercase().is_in(MISSING_WORDS)


def _typed_column(column: pl.Series) -> pl.Series:
    name = column.name
    if name in TEXTS:
        return column.cast(pl.String).fill_null("") if name == "input" else column.cast(pl.String)
    numbers = _numbers(column).fill_nan(None)
    return numbers.cast(pl.Int64, strict=False) if name in WHOLE_NUMBERS else numbers


def _numbers(column: pl.Series) -> pl.Series:
    """Return a column as floats, null where a value is none; dates and truth values are no numbers."""
    if not column.dtype.is_numeric():
        text = column.cast(pl.String)
        column = text.str.strip_chars()
    return column.cast(pl.Float64, strict=False)


def _column_problems(
    raw: pl.DataFrame, name: str, typed: pl.Series, ok: pl.Series, need_runtime: bool
) -> list[Problem]:
    """Ask the rules about every value that typing lost or that stands out."""
    if name in ("app", "platform"):
        doubtful = raw.select(_says_nothing(pl.col(name).cast(pl.String))).to_series()
    elif name in TEXTS:
        return []
    else:
        least, greatest = bounds(name)
        numbers = _numbers(raw[name])
        unfit = ~numbers.is_finite() | (numbers < least) | (numbers > greatest) | (numbers != typed)
        doubtful = ok & (unfit.fill_null(False) | (numbers.is_null() & _may_not_be_missing(raw[name], need_runtime)))
    problems: list[Problem] = []
    for row, value in raw.filter(doubtful).select(ROW, name).iter_rows():
        problem = check_value(name, value, row, need_runtime=need_runtime)
        if problem is not None:
            problems.append(problem)
        if len(problems) > _SHOWN_PER_COLUMN:
            expected = f"at most {_SHOWN_PER_COLUMN:,} problems in one column"
            return [*problems[:-1], Problem("further bad values", expected, "Mend these first.", column=name)]
    return problems


def _may_not_be_missing(column: pl.Series, need_runtime: bool) -> pl.Series:
    """Tell where a value that is no number needs a look: a text was there, or a runtime should be."""
    required = column.name == "runtime_s" and need_runtime
    return pl.Series([True]).new_from_index(0, len(column)) if required else column.is_not_null()


def _row_problems(frame: pl.DataFrame) -> list[Problem]:
    """Return what is wrong between rows."""
    problems: list[Problem] = []
    if "run_id" in frame.columns:
        for row, run_id in _repeated(frame.filter(pl.col("run_id").is_not_null()), ["run_id"]):
            advice = "Remove the copy, or give the run an id of its own."
            problems.append(Problem(f"{run_id!r} a second time", "each run_id once", advice, row, "run_id", run_id))
    cell = ["app", "input", "platform", "repeat"]
    if set(cell) <= set(frame.columns):
        numbered = frame.filter(pl.col("repeat").is_not_null() & (pl.col("status") == OK))
        for row, *values in _repeated(numbered, cell):
            found = f"repeat {values[3]} of ({values[0]}, {values[1]}) on {values[2]} a second time"
            advice = "Both are used; remove one if it is a copy."
            problems.append(Problem(found, "each repeat once", advice, row, "repeat", values[3], "warning"))
    if {"platform", "platform_class"} <= set(frame.columns):
        classes = (
            frame.drop_nulls("platform_class")
            .group_by("platform")
            .agg(pl.col("platform_class").unique().sort(), pl.col(ROW).min())
        )
        for platform, names, row in classes.filter(pl.col("platform_class").list.len() > 1).sort(ROW).iter_rows():
            found = f"platform {platform!r} as {' and '.join(names)}"
            problems.append(Problem(found, "one class for each platform", "Correct it.", row, "platform_class"))
    return problems


def _repeated(frame: pl.DataFrame, names: list[str]) -> list[tuple[Any, ...]]:
    copies = frame.filter(~pl.struct(names).is_first_distinct())
    return copies.select(ROW, *names).head(_SHOWN_PER_COLUMN).rows()
