"""Data frames of other libraries: pandas, polars and Arrow in; pandas, where it is installed, out."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

import polars as pl

from crossperf.errors import RunsTableError
from crossperf.runs.checking import column_values
from crossperf.runs.formats import refuse_doubles, series


@runtime_checkable
class ArrowStream(Protocol):
    """Columns in Arrow's form, as pyarrow, DuckDB and others export them."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the columns as a stream of Arrow's C interface."""


def is_frame(source: Any) -> bool:
    """Tell whether an object is a data frame that `to_polars` can try to read."""
    return isinstance(source, pl.DataFrame | pl.LazyFrame | ArrowStream) or _is_pandas(source)


def to_polars(frame: Any, name: str = "frame") -> pl.DataFrame:
    """Return a data frame of pandas, polars or any library that exports Arrow; `name` stands in messages."""
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    if _is_pandas(frame):
        return _from_pandas(frame, name)
    try:
        return pl.DataFrame(frame)
    except Exception as error:  # whatever another library raises when it exports its columns
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        what = f"a {type(frame).__name__} that cannot be read as columns ({type(error).__name__}: {reason})"
        advice = "expected a data frame of pandas, polars or pyarrow. Convert it to one of these."
        raise RunsTableError(f"{name}: found {what}, {advice}", path=name, problems=[]) from error


def _is_pandas(source: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(source, getattr(pandas, "DataFrame", ()))


def _from_pandas(frame: Any, name: str) -> pl.DataFrame:
    """Return a frame of pandas column by column: polars itself would need pyarrow for texts."""
    names = [str(column) for column in frame.columns]
    refuse_doubles(name, dict.fromkeys(column for column in names if names.count(column) > 1))
    return pl.DataFrame([_column(column, frame.iloc[:, i]) for i, column in enumerate(names)])


def _column(name: str, column: Any) -> pl.Series:
    # Floats, signed and unsigned integers of NumPy are copied whole.
    if getattr(column.dtype, "kind", "") in "fiu" and type(column.dtype).__module__.startswith("numpy"):
        return pl.Series(name, column.to_numpy())
    pairs = zip(column.tolist(), column.isna().tolist(), strict=True)
    return series(name, column_values(name, [None if missing else value for value, missing in pairs]))


def to_frame(columns: Mapping[str, Iterable[Any]]) -> Any:
    """Return columns as a data frame of pandas if it is installed, else of polars; ``None`` is a missing value.

    >>> list(to_frame({"platform": ["cpu-a", "gpu-a"], "relative_time": [1.0, 0.25]}).columns)
    ['platform', 'relative_time']
    """
    try:
        pandas: Any = importlib.import_module("pandas")
    except ImportError:
        return pl.DataFrame(dict(columns))
    return pandas.DataFrame({name: _pandas_column(pandas, list(values)) for name, values in columns.items()})


def _pandas_column(pandas: Any, values: list[Any]) -> Any:
    """Return a column for pandas: whole numbers stay whole beside missing values."""
    whole = any(value is not None for value in values) and all(value is None or type(value) is int for value in values)
    return pandas.array(values, dtype="Int64") if whole and None in values else pandas.Series(values)
