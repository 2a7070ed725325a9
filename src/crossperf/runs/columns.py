"""A table's columns typed and checked at any size: screened by polars, judged value by value by `rules`."""

from __future__ import annotations

import polars as pl

from crossperf.records import COLUMNS, OK
from crossperf.runs import checking, rules
from crossperf.runs.formats import ROW
from crossperf.runs.rules import MISSING_WORDS, TEXTS, WHOLE_NUMBERS, Problem, bounds, is_counter

#: What tells one repeat from another.
_REPEAT = ("app", "input", "platform", "repeat")


def typed(raw: pl.DataFrame, need_runtime: bool) -> tuple[pl.DataFrame, list[Problem]]:
    """Return columns as their types, and every problem of their values, errors first."""
    if ROW not in raw.columns:
        raw = raw.with_row_index(ROW, offset=1)
    if raw.height == 0:
        return raw, [rules.NO_RUNS]
    problems = rules.check_columns([name for name in raw.columns if name != ROW])
    kinds = {name: kind for name, kind in raw.schema.items() if name in COLUMNS or is_counter(name)}
    advice = "Write one column for each value."  # Parquet may hold lists and records
    nested = {name: f"values of type {kind}" for name, kind in kinds.items() if kind.is_nested()}
    if nested:
        return raw, problems + [Problem(nested[name], "one value a row", advice, column=name) for name in nested]
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
    return frame.drop(ROW), sorted(problems + _problems_across(frame), key=lambda problem: problem.severity)


def _status(raw: pl.DataFrame) -> pl.Expr:
    if "status" not in raw.columns:
        return pl.lit(OK).alias("status")
    text = pl.col("status").cast(pl.String)
    return pl.when(_says_nothing(text)).then(pl.lit(OK)).otherwise(text).alias("status")


def _says_nothing(text: pl.Expr) -> pl.Expr:
    return text.is_null() | text.str.strip_chars().str.to_lowercase().is_in(MISSING_WORDS)


def _typed_column(column: pl.Series) -> pl.Series:
    name = column.name
    if name == "runnable":
        text = column.cast(pl.String).to_frame()
        return text.select(pl.when(~_says_nothing(pl.col(name))).then(name)).to_series()
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
        # No number here: that matters where a text was, or where a runtime should be.
        lost = numbers.is_null() & (raw[name].is_not_null() | (name == "runtime_s" and need_runtime))
        doubtful = ok & (unfit.fill_null(False) | lost)
    return checking.column_problems(name, raw.filter(doubtful).select(ROW, name).iter_rows(), need_runtime)


def _problems_across(frame: pl.DataFrame) -> list[Problem]:
    """Ask about the rows that share what should differ, or differ in what should be shared."""
    names = [name for name in (ROW, "run_id", *_REPEAT, "platform_class") if name in frame.columns]
    suspect = pl.lit(False)
    if "run_id" in names:
        suspect |= pl.col("run_id").is_not_null() & pl.col("run_id").is_duplicated()
    if set(_REPEAT) <= set(names):
        suspect |= pl.col("repeat").is_not_null() & pl.struct(_REPEAT).is_duplicated()
    if {"platform", "platform_class"} <= set(names):
        suspect |= pl.col("platform_class").drop_nulls().n_unique().over("platform") > 1
    rows = frame.filter(suspect).select(*names, "status")
    ok = (rows["status"] == OK).to_list()
    problems = checking.problems_across(rows[ROW].to_list(), rows.to_dict(as_series=False), ok)
    return problems + _runnable_problems(frame)


def _runnable_problems(frame: pl.DataFrame) -> list[Problem]:
    """Ask about where workloads can run: the first row of each combination will do."""
    names = ("app", "input", "platform", "platform_class", "runnable")
    if "runnable" not in frame.columns or not frame["runnable"].count():
        return []
    lacking = [pl.lit(None, pl.String).alias(name) for name in names if name not in frame.columns]
    cells = frame.with_columns(*lacking, ok=pl.col("status") == OK).unique([*names, "ok"], keep="first")
    return checking.runnable_problems(cells.sort(ROW).select(ROW, *names, "ok").iter_rows())
