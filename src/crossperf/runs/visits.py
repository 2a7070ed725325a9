"""Visits: which runs of a cell were made in a row, and so are one measurement."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

#: What a cell is known by.
CELL = ("app", "input", "platform")


def with_visits(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return runs with a column ``visit``: the name under ``measured_in``, or the place among the cell's repeats.

    Names sort in the order of the visits, as those that a campaign gives do.
    """
    import polars as pl

    columns = frame.collect_schema().names()
    if "repeat" in columns:
        frame = frame.sort("repeat", nulls_last=True, maintain_order=True)
    place = pl.int_range(pl.len()).over(CELL).cast(pl.String).str.zfill(9)
    named = [pl.col("measured_in")] if "measured_in" in columns else []
    return frame.with_columns(pl.coalesce(*named, place).alias("visit"))
