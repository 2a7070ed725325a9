"""What a runs table holds: applications, platforms, completeness, repeats, noise, missing counters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from crossperf.arrays import Mask
from crossperf.records import OK, can_run, versions
from crossperf.runs.rules import COUNTER_PREFIX

if TYPE_CHECKING:  # a saved model remembers its `TableInfo`, and answers without polars
    import polars as pl

    from crossperf.runs.grouping import Grouped
    from crossperf.runs.table import RunsTable


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
    from crossperf.runs.grouping import Grouped

    grouped = Grouped.of(table)
    apart = grouped.has_visits
    cells = grouped.by_cell(table.column("runtime_s"), _by_cell)
    # Without visits each repeat stands for one.
    cells = cells.with_columns(cells["within" if apart else "between"].alias("variation"))
    names = table.platforms
    gaps = _gaps(table, grouped, names)
    repeats: Any = cells["runs"]
    number: Any = cells["visits"]
    return TableInfo(
        path=table.path,
        fingerprint=table.fingerprint,
        runs=len(table),
        failed=_failed(table),
        apps=len(np.unique(table.index.app_c[grouped.number_c])),
        workloads=len(gaps.cannot_wp),
        complete_workloads=int((~gaps.not_measured_wp.any(axis=1)).sum()),
        cells=cells.height,
        repeats=Spread(repeats.min(), repeats.median(), repeats.max()),
        noise=_noise(cells["variation"]),
        platforms=tuple(_platforms(table, grouped, cells, gaps, names)),
        counters=len(table.counters),
        missing_counters=_missing(table),
        visits=Spread(number.min(), number.median(), number.max()) if apart else None,
        noise_between_visits=_noise(cells["between"]) if apart else None,
        limited_workloads=int(gaps.cannot_wp.any(axis=1).sum()),
    )


def _failed(table: RunsTable) -> dict[str, int]:
    """Return how many runs failed, by status."""
    status = table.column("status")
    return dict(status.filter(status != OK).value_counts().sort("status").iter_rows())


def _by_cell(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the number of runs and visits of each cell, and how its runtimes vary within and between visits."""
    import polars as pl

    visits = runs.group_by("visit", maintain_order=True).agg(
        pl.col("cell").first(),
        pl.len().alias("runs"),
        pl.col("runtime_s").median(),
        _variation().alias("within"),
    )
    return visits.group_by("cell", maintain_order=True).agg(
        pl.col("runs").sum(),
        pl.len().cast(pl.Int64).alias("visits"),
        _variation().alias("between"),
        pl.col("within").mean(),
    )


def _variation() -> pl.Expr:
    """Return the expression of the coefficient of variation of runtimes."""
    import polars as pl

    return pl.col("runtime_s").std() / pl.col("runtime_s").mean()


def _noise(variation: pl.Series) -> Noise:
    repeated = variation.drop_nulls().drop_nans()
    return Noise(cast(float | None, repeated.median()), repeated.quantile(0.9))


@dataclass(frozen=True, eq=False)
class _Gaps:
    """Which platforms cannot run a workload, and which can and never did."""

    cannot_wp: Mask
    not_measured_wp: Mask


def _gaps(table: RunsTable, grouped: Grouped, platforms: Sequence[str]) -> _Gaps:
    """Return the gaps of each workload: what is absent because it cannot be, and what was not measured."""
    from crossperf.runs.grouping import presence, runnable_of

    places = [int(table.index.platforms.index_of(name)) for name in platforms]  # type: ignore[arg-type]
    workload_w, measured_wp = presence(table.index, grouped.number_c, places)
    kinds = table.platform_classes
    texts = runnable_of(table)
    stated = [texts[w] for w in workload_w.tolist()]
    able = {text: [can_run(versions(text), name, kinds.get(name)) for name in platforms] for text in set(stated)}
    cannot_wp = ~np.array([able[text] for text in stated], bool).reshape(measured_wp.shape)
    return _Gaps(cannot_wp, ~measured_wp & ~cannot_wp)


def _platforms(
    table: RunsTable, grouped: Grouped, cells: pl.DataFrame, gaps: _Gaps, names: Sequence[str]
) -> Iterator[PlatformInfo]:
    platform_c = table.index.platform_c[grouped.number_c]
    for place, name in enumerate(names):
        own = cells.filter(platform_c == table.index.platforms.index_of(name))
        between = _noise(own["between"]).median if grouped.has_visits else None
        measured = int(own["runs"].sum()), own.height, _noise(own["variation"]).median, between
        counts = int(gaps.cannot_wp[:, place].sum()), int(gaps.not_measured_wp[:, place].sum())
        yield PlatformInfo(name, table.platform_classes.get(name), *measured, *counts)


def _missing(table: RunsTable) -> dict[str, dict[str, float]]:
    """Return the share of runs that lack a counter, by counter and platform, where any does."""
    names = table.index.platforms.to_list()
    platform_r = table.index.platform_c[table.index.cell_r]
    ok_r = table.columns.ok_r
    all_p = np.bincount(platform_r[ok_r], minlength=len(names))
    shares: dict[str, dict[str, float]] = {}
    for counter in table.counters:
        column = table.column(counter)
        if column.null_count():
            lacking_p = np.bincount(platform_r[ok_r & column.is_null().to_numpy()], minlength=len(names))
            own = {names[p]: float(lacking_p[p] / all_p[p]) for p in np.flatnonzero(lacking_p)}
            shares |= {counter.removeprefix(COUNTER_PREFIX): own} if own else {}
    return shares
