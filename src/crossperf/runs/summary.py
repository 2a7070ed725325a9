"""What a runs table holds: applications, platforms, completeness, repeats, noise, missing counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from crossperf.records import OK
from crossperf.runs.rules import COUNTER_PREFIX
from crossperf.runs.visits import CELL, with_visits

if TYPE_CHECKING:  # a saved model remembers its `TableInfo`, and answers without polars
    import polars as pl

    from crossperf.runs.table import RunsTable

#: What a workload is known by.
WORKLOAD = ("app", "input")


@dataclass(frozen=True)
class Spread:
    """The fewest, the usual and the most repeats of a cell; ``None`` where no run succeeded."""

    min: int | None
    median: float | None
    max: int | None


@dataclass(frozen=True)
class Noise:
    """A coefficient of variation within cells, of repeats or of visits: its median and 90th percentile over cells.

    Only cells with repeats count; both are ``None`` where none has any.
    """

    median: float | None
    p90: float | None


@dataclass(frozen=True)
class PlatformInfo:
    """What a runs table holds of one platform, its successful runs alone; noise is the median over its cells."""

    name: str
    platform_class: str | None = field(metadata={"json": "class"})
    runs: int
    workloads: int
    noise: float | None
    noise_between_visits: float | None = None


@dataclass(frozen=True)
class TableInfo:
    """The facts of a runs table; `crossperf.plain.to_json` writes them as JSON.

    ``failed`` counts runs by status, ``complete_workloads`` the workloads that ran on every platform, and
    ``missing_counters[counter][platform]`` is the share of runs that lack a counter, where any does. `noise` is that of
    repeats in a row where the table tells visits apart (`visits`), and `noise_between_visits` that of visits.
    """

    path: str
    fingerprint: str
    runs: int
    failed: Mapping[str, int]
    apps: int
    workloads: int
    complete_workloads: int
    cells: int
    repeats: Spread
    noise: Noise
    platforms: tuple[PlatformInfo, ...]
    counters: int
    missing_counters: Mapping[str, Mapping[str, float]]
    visits: Spread | None = None
    noise_between_visits: Noise | None = None


def info(table: RunsTable) -> TableInfo:
    """Return the facts of a table: how many runs of what, how complete, how noisy, what is missing.

    >>> from crossperf.datasets import toy
    >>> facts = info(toy.make_table(apps=3, inputs=2, platforms=4, repeats=2, seed=1))
    >>> facts.workloads, facts.cells, facts.repeats
    (6, 24, Spread(min=2, median=2.0, max=2))
    """
    import polars as pl

    ok = table.succeeded
    visits = with_visits(ok.lazy()).group_by(*CELL, "visit", maintain_order=True)
    by_visit = visits.agg(pl.len().alias("runs"), pl.col("runtime_s").median(), _variation().alias("within")).collect()
    cells = by_visit.group_by(CELL, maintain_order=True).agg(
        pl.col("runs").sum(),
        pl.len().cast(pl.Int64).alias("visits"),
        _variation().alias("between"),
        pl.col("within").mean(),
    )
    apart = "measured_in" in ok.columns and ok["measured_in"].null_count() < ok.height
    # Without visits each repeat stands for one.
    cells = cells.with_columns(variation=pl.col("within" if apart else "between"))
    workloads = cells.group_by("app", "input").agg(pl.len().alias("platforms"))
    n_platforms = cells["platform"].n_unique()
    failures = table.frame["status"].filter(table.frame["status"] != OK).value_counts().sort("status")
    repeats: Any = cells["runs"]
    number: Any = cells["visits"]
    return TableInfo(
        path=table.path,
        fingerprint=table.fingerprint,
        runs=table.frame.height,
        failed=dict(failures.iter_rows()),
        apps=ok["app"].n_unique(),
        workloads=workloads.height,
        complete_workloads=workloads.filter(pl.col("platforms") == n_platforms).height,
        cells=cells.height,
        repeats=Spread(repeats.min(), repeats.median(), repeats.max()),
        noise=_noise(cells["variation"]),
        platforms=tuple(_platform(table, name, cells, apart) for name in sorted(ok["platform"].unique())),
        counters=len(table.counters),
        missing_counters=_missing(table, ok),
        visits=Spread(number.min(), number.median(), number.max()) if apart else None,
        noise_between_visits=_noise(cells["between"]) if apart else None,
    )


def runnable_of(frame: pl.DataFrame) -> pl.DataFrame:
    """Return where each workload of some runs can run, as the first of its runs that tells says; null where none."""
    import polars as pl

    if "runnable" not in frame.columns:
        frame = frame.with_columns(runnable=pl.lit(None, pl.String))
    return frame.group_by(WORKLOAD, maintain_order=True).agg(pl.col("runnable").drop_nulls().first())


def _variation() -> pl.Expr:
    """Return the expression of the coefficient of variation of runtimes."""
    import polars as pl

    return pl.col("runtime_s").std() / pl.col("runtime_s").mean()


def _noise(variation: pl.Series) -> Noise:
    repeated = variation.drop_nulls().drop_nans()
    return Noise(cast(float | None, repeated.median()), repeated.quantile(0.9))


def _platform(table: RunsTable, name: str, cells: pl.DataFrame, apart: bool) -> PlatformInfo:
    own, classes = cells.filter(cells["platform"] == name), []
    if "platform_class" in table.frame.columns:
        classes = table.frame.filter(table.frame["platform"] == name)["platform_class"].drop_nulls().to_list()
    runs = int(own["runs"].sum())
    between = _noise(own["between"]).median if apart else None
    platform_class = classes[0] if classes else None
    return PlatformInfo(name, platform_class, runs, own.height, _noise(own["variation"]).median, between)


def _missing(table: RunsTable, ok: pl.DataFrame) -> dict[str, dict[str, float]]:
    """Return the share of runs that lack a counter, by counter and platform, where any does."""
    import polars as pl

    shares = ok.group_by("platform").agg(pl.col(name).is_null().mean() for name in table.counters).sort("platform")
    lacking = {name: shares.filter(pl.col(name) > 0).select("platform", name).rows() for name in table.counters}
    return {name.removeprefix(COUNTER_PREFIX): dict(rows) for name, rows in lacking.items() if rows}
