"""A table's columns typed and checked at any size: screened by polars, judged value by value by `rules`."""

from __future__ import annotations

from typing import Any

import polars as pl

from crossperf.records import COLUMNS, OK
from crossperf.runs import rules
from crossperf.runs.formats import ROW
from crossperf.runs.rules import MISSING_WORDS, TEXTS, WHOLE_NUMBERS, Problem, bounds, is_counter


def typed(raw: pl.DataFrame, need_runtime: bool) -> tuple[pl.DataFrame, list[Problem]]:
    """Return columns as their types, and every problem of their values, errors first."""
    if ROW not in raw.columns:
        raw = raw.with_row_index(ROW, offset=1)
    if raw.height == 0:
        return raw, [rules.no_runs()]
    problems = rules.check_columns([name for name in raw.columns if name != ROW])
    nested = _nested_columns(raw)
    if nested:
        return raw, [*problems, *nested]
    raw = raw.with_columns(_status(raw))
    ok = (raw["status"] == OK).alias("ok")
    columns: dict[str, pl.Series] = {}
    for name in [*COLUMNS, *sorted(filter(is_counter, raw.columns))]:
        if name in raw.columns:
            columns[name] = _typed_column(raw[name])
            problems += _column_problems(raw, name, columns[name], ok, need_runtime)
    if "runtime_s" not in columns and not (need_runtime and ok.any()):
        problems = [problem for problem in problems if problem.column != "runtime_s"]
        columns["runtime_s"] = pl.Series("runtime_s", [None] * raw.height, dtype=pl.Float64)
    strangers = [name for name in raw.columns if name not in columns]
    frame = pl.DataFrame(columns).with_columns(raw[name] for name in strangers)
    problems += _same_ids(frame) + _same_repeats(frame) + _several_classes(frame)
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
        problem = rules.check_value(name, value, row, need_runtime=need_runtime)
        if problem is not None:
            problems.append(problem)
        if len(problems) > rules.MOST_SHOWN:
            return [*problems[:-1], rules.further(name)]
    return problems


def _may_not_be_missing(column: pl.Series, need_runtime: bool) -> pl.Series:
    """Tell where a value that is no number needs a look: a text was there, or a runtime should be."""
    required = column.name == "runtime_s" and need_runtime
    return pl.Series([True]).new_from_index(0, len(column)) if required else column.is_not_null()


def _same_ids(frame: pl.DataFrame) -> list[Problem]:
    if "run_id" not in frame.columns:
        return []
    copies = _copies(frame.filter(pl.col("run_id").is_not_null()), ["run_id"])
    return [rules.same_id(*copy) for copy in copies]


def _same_repeats(frame: pl.DataFrame) -> list[Problem]:
    cell = ["app", "input", "platform", "repeat"]
    if not set(cell) <= set(frame.columns):
        return []
    numbered = frame.filter(pl.col("repeat").is_not_null() & (pl.col("status") == OK))
    return [rules.same_repeat(*copy) for copy in _copies(numbered, cell)]


def _copies(frame: pl.DataFrame, names: list[str]) -> list[tuple[Any, ...]]:
    """Return the first rows that have the values of an earlier one."""
    copies = frame.filter(~pl.struct(names).is_first_distinct())
    return copies.select(ROW, *names).head(rules.MOST_SHOWN).rows()


def _several_classes(frame: pl.DataFrame) -> list[Problem]:
    if not {"platform", "platform_class"} <= set(frame.columns):
        return []
    classes = (
        frame.drop_nulls("platform_class")
        .group_by("platform")
        .agg(pl.col(ROW).min(), pl.col("platform_class").unique().sort())
        .filter(pl.col("platform_class").list.len() > 1)
        .sort(ROW)
    )
    return [rules.several_classes(*facts) for facts in classes.select(ROW, "platform", "platform_class").iter_rows()]
