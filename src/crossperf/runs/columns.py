"""A table's columns typed and checked at any size: screened by polars, judged value by value by `rules`."""

# R runs

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from crossperf.records import COLUMNS, OK, can_run, versions
from crossperf.runs import checking, rules
from crossperf.runs.index import CellIndex, Coded, Numbers, copies
from crossperf.runs.raw import Raw
from crossperf.runs.rules import MISSING_WORDS, MOST_SHOWN, TEXTS, WHOLE_NUMBERS, Problem, bounds, is_counter

#: What tells one repeat from another.
_REPEAT = ("app", "input", "platform", "repeat")
_RUNNABLE = ("app", "input", "platform", "platform_class", "runnable")


@dataclass(frozen=True, eq=False)
class TypedColumns:
    """The columns of a table as their types, by name; those of a table that is not held are read when asked for.

    There is always a status, ``ok`` where a row tells none, and a runtime, null where there is none.
    """

    raw: Raw

    @cached_property
    def names(self) -> list[str]:
        """The columns: the known ones, the counters by name, and what else the table holds."""
        own = {*self.raw.names, "status"}
        known = [*(name for name in COLUMNS if name in own), *sorted(filter(is_counter, self.raw.names))]
        lacking = [] if "runtime_s" in own else ["runtime_s"]
        return [*known, *lacking, *(name for name in self.raw.names if name not in known)]

    @cached_property
    def _held(self) -> dict[str, pl.Series]:
        return {}

    def column(self, name: str) -> pl.Series:
        """Return one column as its type."""
        if not self.raw.is_held:
            return self._typed(name)
        if name not in self._held:
            self._held[name] = self._typed(name)
        return self._held[name]

    def _typed(self, name: str) -> pl.Series:
        if name in self.raw.names:
            return typed_column(self.raw.column(name))
        if name == "runtime_s":
            return pl.Series(name, [None], pl.Float64).new_from_index(0, self.raw.height)
        return pl.Series(name, [OK], pl.String).new_from_index(0, self.raw.height)

    @cached_property
    def ok_r(self) -> NDArray[np.bool_]:
        """Which runs did not fail."""
        return (self.column("status") == OK).to_numpy()

    @cached_property
    def index(self) -> CellIndex:
        """The cell of each run."""
        return CellIndex.of(*(Coded.of(self.column(name)) for name in ("app", "input", "platform")))

    def frame(self, names: Iterable[str] | None = None, rows: Sequence[int] | Numbers | None = None) -> pl.DataFrame:
        """Return columns together, of some rows or of all: what is to be had in memory at once."""
        chosen = self.names if names is None else list(names)
        columns = (self.column(name) for name in chosen)
        return pl.DataFrame([own if rows is None else own.gather(pl.Series(rows)) for own in columns])


def check(columns: TypedColumns, need_runtime: bool) -> list[Problem]:
    """Return every problem of a table, errors first."""
    raw = columns.raw
    if raw.height == 0:
        return [*raw.unread, rules.NO_RUNS]
    problems = rules.check_columns(raw.names)
    kinds = {name: kind for name, kind in raw.schema.items() if name in COLUMNS or is_counter(name)}
    advice = "Write one column for each value."  # Parquet may hold lists and records
    nested = {name: f"values of type {kind}" for name, kind in kinds.items() if kind.is_nested()}
    if nested:
        problems += [Problem(nested[name], "one value a row", advice, column=name) for name in nested]
        return [*raw.unread, *problems]
    ok = pl.Series("ok", columns.ok_r)
    for name in columns.names:
        if name in kinds and (name not in TEXTS or name in ("app", "platform")):
            problems += _column_problems(columns, name, ok, need_runtime)
    if "runtime_s" not in raw.names and not (need_runtime and ok.any()):
        problems = [problem for problem in problems if problem.column != "runtime_s"]
    problems = sorted([*problems, *_problems_across(columns)], key=lambda problem: problem.severity)
    return [*raw.unread, *raw.located(problems)]


def typed_column(column: pl.Series) -> pl.Series:
    """Return a column as its type: texts, floats, or whole numbers; null where a value is none of that."""
    name = column.name
    if name == "status":
        text = pl.col(name).cast(pl.String)
        return (
            column.to_frame()
            .select(pl.when(_says_nothing(text)).then(pl.lit(OK)).otherwise(text).alias(name))
            .to_series()
        )
    if name == "runnable":
        texts = column.cast(pl.String).to_frame()
        return texts.select(pl.when(~_says_nothing(pl.col(name))).then(name)).to_series()
    if name in TEXTS:
        return column.cast(pl.String).fill_null("") if name == "input" else column.cast(pl.String)
    if name not in COLUMNS and not is_counter(name):
        return column
    numbers = _numbers(column)
    if numbers.is_nan().any():
        numbers = numbers.fill_nan(None)
    return numbers.cast(pl.Int64, strict=False) if name in WHOLE_NUMBERS else numbers


def _says_nothing(text: pl.Expr) -> pl.Expr:
    return text.is_null() | text.str.strip_chars().str.to_lowercase().is_in(MISSING_WORDS)


def _numbers(column: pl.Series) -> pl.Series:
    """Return a column as floats, null where a value is none; dates and truth values are no numbers."""
    if not column.dtype.is_numeric():
        text = column.cast(pl.String)
        column = text.str.strip_chars()
    return column.cast(pl.Float64, strict=False)


def _column_problems(columns: TypedColumns, name: str, ok: pl.Series, need_runtime: bool) -> list[Problem]:
    """Ask the rules about every value that typing lost or that stands out."""
    raw = columns.raw.column(name)
    if name in ("app", "platform"):
        doubtful = raw.to_frame().select(_says_nothing(pl.col(name).cast(pl.String))).to_series()
    else:
        least, greatest = bounds(name)
        numbers = _numbers(raw)
        unfit = ~numbers.is_finite() | (numbers < least) | (numbers > greatest)
        if name in WHOLE_NUMBERS:
            unfit |= numbers != typed_column(raw)
        # No number here: that matters where a text was, or where a runtime should be.
        lost = numbers.is_null() & (raw.is_not_null() | (name == "runtime_s" and need_runtime))
        doubtful = ok & (unfit.fill_null(False) | lost)
    if not doubtful.any():
        return []
    places = doubtful.arg_true()
    values = zip((places + 1).to_list(), raw.gather(places).to_list(), strict=True)
    return checking.column_problems(name, values, need_runtime)


def _problems_across(columns: TypedColumns) -> list[Problem]:
    """Ask about the rows that share what should differ, or differ in what should be shared."""
    suspects = [*_same_ids(columns), *_same_repeats(columns), *_several_classes(columns)]
    problems = []
    if suspects:
        rows = np.unique(np.concatenate(suspects))
        names = [name for name in ("run_id", *_REPEAT, "platform_class", "status") if name in columns.names]
        frame = columns.frame(names, rows)
        ok = (frame["status"] == OK).to_list()
        problems = checking.problems_across((rows + 1).tolist(), frame.to_dict(as_series=False), ok)
    return problems + _runnable_problems(columns)


def _same_ids(columns: TypedColumns) -> tuple[Numbers, ...]:
    """Return the rows whose id an earlier row has, and those earlier rows."""
    if "run_id" not in columns.names:
        return ()
    hashes = columns.raw.hashes("run_id")
    known = hashes.is_not_null().arg_true().to_numpy()
    again, first = (known[own] for own in copies(hashes.drop_nulls().to_numpy(), MOST_SHOWN))
    return (again, first) if len(again) else ()


def _same_repeats(columns: TypedColumns) -> tuple[Numbers, ...]:
    """Return the runs that succeeded whose cell and repeat an earlier one has, and those earlier runs."""
    if not set(_REPEAT) <= set(columns.names):
        return ()
    repeat = columns.column("repeat")
    known = np.flatnonzero(columns.ok_r & repeat.is_not_null().to_numpy()).astype(np.uint32)
    number, count = whole_numbers(repeat)
    key = columns.index.cell_r[known].astype(np.uint64) * np.uint64(count) + number[known]
    again, first = (known[own] for own in copies(key, MOST_SHOWN))
    return (again, first) if len(again) else ()


def whole_numbers(column: pl.Series) -> tuple[Numbers, int]:
    """Return a column of whole numbers as places in their order, null last, and how many places there are.

    >>> number, count = whole_numbers(pl.Series([7, None, -1, 7]))
    >>> number.tolist(), count
    ([1, 2, 0, 1], 3)
    """
    distinct = column.drop_nulls().unique().sort()
    places = distinct.search_sorted(column.fill_null(0)).cast(pl.UInt32)
    return np.where(column.is_null().to_numpy(), np.uint32(len(distinct)), places.to_numpy()), len(distinct) + 1


def _several_classes(columns: TypedColumns) -> tuple[Numbers, ...]:
    """Return the first row of each class of the platforms that have several."""
    if not {"platform", "platform_class"} <= set(columns.names):
        return ()
    platform, kind = (Coded.of(columns.column(name)) for name in ("platform", "platform_class"))
    pairs = pl.DataFrame({"platform": platform.code_r, "kind": kind.code_r}).with_row_index("row")
    nothing = kind.number_of(None)
    firsts = pairs.filter(pl.col("kind") != (-1 if nothing is None else nothing)).group_by("platform", "kind")
    rows = firsts.agg(pl.col("row").min()).filter(pl.len().over("platform") > 1)["row"]
    return (rows.to_numpy(),) if len(rows) else ()


def _runnable_problems(columns: TypedColumns) -> list[Problem]:
    """Ask about where workloads can run: rows that could clash, and the first row of each combination besides."""
    if "runnable" not in columns.names:
        return []
    coded = {name: _coded_or_none(columns, name) for name in _RUNNABLE}
    if coded["runnable"].texts.drop_nulls().is_empty():
        return []
    codes = pl.DataFrame({name: own.code_r for name, own in coded.items()} | {"ok": columns.ok_r})
    cells = codes.with_row_index("row").unique([*_RUNNABLE, "ok"], keep="first")
    stated = cells.filter(pl.col("runnable") != (-1 if (null := coded["runnable"].number_of(None)) is None else null))
    workloads = stated.select("app", "input", "runnable").unique()
    clash = workloads.filter(pl.len().over("app", "input") > 1).select("app", "input").unique()
    combined = stated.select("platform", "platform_class", "runnable", "ok").unique()
    wrong = combined.filter([_cannot_have_run(row, coded) for row in combined.iter_rows(named=True)])
    rows = [
        cells.unique(["platform", "platform_class", "runnable"], keep="first")["row"],
        stated.join(clash, on=["app", "input"], how="semi")["row"].sort().head(10 * MOST_SHOWN),
        stated.join(wrong, on=combined.columns, how="semi")["row"].sort().head(MOST_SHOWN),
    ]
    chosen = cells.filter(pl.col("row").is_in(pl.concat(rows).implode())).sort("row")
    texts = [[coded[name].values[code] for code in chosen[name]] for name in _RUNNABLE]
    return checking.runnable_problems(zip((chosen["row"] + 1).to_list(), *texts, chosen["ok"].to_list(), strict=True))


def _coded_or_none(columns: TypedColumns, name: str) -> Coded:
    if name in columns.names:
        return Coded.of(columns.column(name))
    return Coded(np.zeros(columns.raw.height, np.uint32), pl.Series([None], dtype=pl.String))


def _cannot_have_run(row: dict[str, int], coded: dict[str, Coded]) -> bool:
    """Tell whether a run succeeded on a platform that its workload has no version for."""
    platform, kind, runnable = (coded[name].values[row[name]] for name in ("platform", "platform_class", "runnable"))
    return bool(row["ok"]) and platform is not None and not can_run(versions(runnable), platform, kind)
