"""What a runs table holds: applications, platforms, completeness, repeats, noise, missing counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from crossperf.records import OK, can_run, versions
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
    """What a runs table holds of one platform, its successful runs alone; noise is the median over its cells.

    ``cannot_run`` counts the workloads that have no version for it, ``not_measured`` those that have one, or may have
    one, and never ran there.
    """

    name: str
    platform_class: str | None = field(metadata={"json": "class"})
    runs: int
    workloads: int
    noise: float | None
    noise_between_visits: float | None = None
    cannot_run: int = 0
    not_measured: int = 0


@dataclass(frozen=True)
class TableInfo:
    """The facts of a runs table; `crossperf.plain.to_json` writes them as JSON.

    ``failed`` counts runs by status, ``complete_workloads`` the workloads that ran on every platform that can run them,
    ``limited_workloads`` those that cannot run on some, and
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
    limited_workloads: int = 0


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
    workloads = cells.group_by("app", "input").agg(pl.col("platform"))
    gaps = _gaps(table, workloads, {name: _class_of(table, name) for name in ok["platform"].unique()})
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
        complete_workloads=sum(not unmeasured for _, unmeasured in gaps),
        cells=cells.height,
        repeats=Spread(repeats.min(), repeats.median(), repeats.max()),
        noise=_noise(cells["variation"]),
        platforms=tuple(_platform(table, name, cells, apart, gaps) for name in sorted(ok["platform"].unique())),
        counters=len(table.counters),
        missing_counters=_missing(table, ok),
        visits=Spread(number.min(), number.median(), number.max()) if apart else None,
        noise_between_visits=_noise(cells["between"]) if apart else None,
        limited_workloads=sum(bool(cannot) for cannot, _ in gaps),
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


#: The platforms that cannot run a workload, and those that can and never did.
_Gaps = tuple[set[str], set[str]]


def _gaps(table: RunsTable, workloads: pl.DataFrame, classes: Mapping[str, str | None]) -> list[_Gaps]:
    """Return the gaps of each workload: what is absent because it cannot be, and what was not measured."""
    gaps = []
    for platforms, runnable in workloads.join(runnable_of(table.frame), WORKLOAD).drop(WORKLOAD).iter_rows():
        names = versions(runnable)
        cannot = {platform for platform, kind in classes.items() if not can_run(names, platform, kind)}
        gaps.append((cannot, {*classes} - {*platforms} - cannot))
    return gaps


def _class_of(table: RunsTable, platform: str) -> str | None:
    if "platform_class" not in table.frame.columns:
        return None
    classes = table.frame.filter(table.frame["platform"] == platform)["platform_class"].drop_nulls()
    return classes[0] if len(classes) else None


def _platform(table: RunsTable, name: str, cells: pl.DataFrame, apart: bool, gaps: Sequence[_Gaps]) -> PlatformInfo:
    own = cells.filter(cells["platform"] == name)
    counts = [sum(name in part for part in parts) for parts in zip(*gaps, strict=True)]
    between = _noise(own["between"]).median if apart else None
    measured = int(own["runs"].sum()), own.height, _noise(own["variation"]).median, between
    return PlatformInfo(name, _class_of(table, name), *measured, *counts)


def _missing(table: RunsTable, ok: pl.DataFrame) -> dict[str, dict[str, float]]:
    """Return the share of runs that lack a counter, by counter and platform, where any does."""
    import polars as pl

    shares = ok.group_by("platform").agg(pl.col(name).is_null().mean() for name in table.counters).sort("platform")
    lacking = {name: shares.filter(pl.col(name) > 0).select("platform", name).rows() for name in table.counters}
    return {name.removeprefix(COUNTER_PREFIX): dict(rows) for name, rows in lacking.items() if rows}
