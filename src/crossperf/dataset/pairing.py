"""Pairs the runs of a table across platforms into features and relative times, and divides them into folds.

One row is one *cell*: one workload seen from one source platform, its visits combined by the median. Nothing here
is fitted: scaling belongs to the estimators, which see training rows alone.
"""

# N cells, F features, W workloads, P platforms, H halves of the visits

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import Self

import numpy as np

from crossperf.arrays import Floats, Integers
from crossperf.dataset.cells import Cells, Split, TableFacts, Workload
from crossperf.dataset.features import FEATURE_SETS, TABLE_1, Columns, Features, FeatureSet
from crossperf.dataset.measured import CellMedians, Measured
from crossperf.errors import DatasetError, SettingsError, did_you_mean, some_of
from crossperf.runs.summary import info
from crossperf.runs.table import RunsTable, Source, read_runs

#: The share of workloads whose halves differ by no more than the noise.
NOISE_SHARE = 0.9
_UNITS: dict[Split, str] = {"row": "cells", "workload": "workloads", "app": "applications"}


@dataclass(frozen=True, eq=False)
class Dataset(Cells):
    """What models learn from and are scored on: cells with their features and the facts of their table.

    ``X`` and ``y`` are scikit-learn's: ``y`` is the log relative time on each platform, NaN where a workload never
    ran; ``runnable_wp`` tells where it cannot. ``log_time_halves_hwp`` holds the log times of the earlier and of the
    later half of the visits.

    >>> from crossperf.datasets import toy
    >>> data = build(toy.make_table(apps=3, inputs=2, seed=1))
    >>> data.X.columns.sources, data.without("gpu-a").platforms
    (('cpu-a', 'cpu-b', 'gpu-a', 'gpu-b'), ('cpu-a', 'cpu-b', 'gpu-b'))
    """

    features: Features
    log_time_halves_hwp: Floats
    table: TableFacts

    def __repr__(self) -> str:
        able = "" if self.runnable_wp.all() else " that can run them"
        return (
            f"Dataset of {self.table.path}: {len(self):,} cells\n"
            f"  {len(self.workloads):,} workloads of {len(self.apps):,} applications ({some_of(self.apps, 4)})\n"
            f"  {len(self.platforms)} platforms: {some_of(self.platforms, 8)}\n"
            f"  {len(self.counters)} counters: {some_of(self.counters, 4)}\n"
            + (f"  {len(self.events)} events: {some_of(self.events, 4)}\n" if self.events else "")
            + f"  {int(self.complete_w.sum()):,} workloads ran on every platform{able}\n"
            f"  {self.table.runs:,} runs, {self.table.failed_runs:,} failed; fingerprint {self.table.fingerprint}"
        )

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"

    @property
    def X(self) -> Features:  # noqa: N802
        """The features, with the groups and the noise of their rows: ``fit(data.X, data.y)`` is what `train` does."""
        earlier_wp, later_wp = self.log_time_halves_hwp
        return replace(
            self.features,
            workload_n=self.workload_n,
            app_n=self.app_n,
            cpu_n=self.cpu_n,
            noise_np=(earlier_wp - later_wp)[self.workload_n],
        )

    @property
    def y(self) -> Floats:
        """log(time on p / time on the source platform) of each cell."""
        return self.log_relative_time_np

    @property
    def counters(self) -> tuple[str, ...]:
        """The counters, by name."""
        return self.features.columns.counters

    @property
    def events(self) -> tuple[str, ...]:
        """The raw events, by name."""
        return self.features.columns.events

    @cached_property
    def noise_pp(self) -> Floats:
        """What may lie between two measurements of log(time on p / time on q); see `noise_of`."""
        return noise_of(self.log_time_halves_hwp)

    def take(self, rows_n: Integers) -> Self:
        """Return these cells alone; the measured times of all workloads stay."""
        return replace(super().take(rows_n), features=self.features[rows_n])

    def compact(self) -> Self:
        """Return the same cells with their own workloads alone."""
        return replace(super().compact(), log_time_halves_hwp=self.log_time_halves_hwp[:, np.unique(self.workload_n)])

    def without(self, platform: str) -> Self:
        """Return the dataset as if a platform had never been measured; the workloads keep their numbers."""
        number = self.platforms.index(platform)
        kept = self.take(np.flatnonzero(self.source_n != number))
        names = tuple(name for name in self.platforms if name != platform)
        source_n = kept.source_n - (kept.source_n > number)
        runtime_s_n = kept.features.values_nf[:, kept.features.columns.mask("runtime")][:, 0]
        columns = Columns.of(kept.features.columns.measured, names)
        return replace(
            kept,
            platforms=names,
            platform_classes=tuple(kind for i, kind in enumerate(self.platform_classes) if i != number),
            source_n=source_n,
            features=Features.of(kept.features.measured_nc, runtime_s_n, source_n, columns),
            log_time_wp=np.delete(self.log_time_wp, number, axis=1),
            log_time_halves_hwp=np.delete(self.log_time_halves_hwp, number, axis=2),
            table=replace(self.table, platforms=names),
        )


def noise_of(log_time_halves_hwp: Floats) -> Floats:
    """Return how far two halves of the visits differ in log(time on p / time on q), for 90 % of the workloads.

    A difference below that may be the other way round in the next measurement; 0 where nothing was repeated.

    >>> noise_of(np.log([[[1.0, 2.0]], [[1.0, 4.0]]])).round(3).tolist()
    [[0.0, 0.693], [0.693, 0.0]]
    """
    apart_wp = log_time_halves_hwp[0] - log_time_halves_hwp[1]
    platforms = apart_wp.shape[1]
    noise_pp = np.zeros((platforms, platforms))
    for p in range(platforms):
        noise_pp[p] = noise_pp[:, p] = _quantile_of_known(np.abs(apart_wp[:, p, None] - apart_wp), NOISE_SHARE)
    return noise_pp


def _quantile_of_known(values_wp: Floats, share: float) -> Floats:
    """Return a quantile of each column over what is known in it, 0 where nothing is; as `numpy.nanquantile`, sooner.

    >>> _quantile_of_known(np.array([[1.0, 2.0], [3.0, np.nan]]), 0.5).tolist()
    [2.0, 2.0]
    """
    ordered_wp = np.sort(values_wp, axis=0)  # NaN comes last
    place_p = share * np.maximum((~np.isnan(ordered_wp)).sum(axis=0) - 1, 0)
    below_p = np.floor(place_p).astype(np.int64)
    columns, above_p = np.arange(values_wp.shape[1]), np.ceil(place_p).astype(np.int64)
    low_p, high_p = (np.nan_to_num(ordered_wp[at_p, columns]) for at_p in (below_p, above_p))
    return np.asarray(low_p + (high_p - low_p) * (place_p - below_p))


def build(source: Source, *, platforms: Sequence[str] | None = None, features: FeatureSet = "all") -> Dataset:
    """Return the dataset of a runs table: every cell, paired with the times on every platform.

    Parameters
    ----------
    source
        A path, a folder, a pattern or an address of runs (see `read_runs`), a `RunsTable`, records, or a data frame of
        pandas, Polars or pyarrow.
    platforms
        The platforms to keep, in the order of the answer; all of the table's, by name, when ``None``.
    features
        ``table1``: the counters of the paper's Table I. ``counters``: all counters of the table. ``all``: its raw
        events as well.

    Returns
    -------
    Dataset
        ``X`` and ``y`` for any scikit-learn regressor, with the groups of each split.

    >>> from crossperf.datasets import toy
    >>> data = build(toy.make_runs(apps=3, inputs=2, seed=1))
    >>> data.X.shape, data.y.shape
    ((24, 22), (24, 4))
    """
    if features not in FEATURE_SETS:
        expected = "'table1', 'counters' or 'all'"
        message = f"features: found {features!r}{did_you_mean(str(features), FEATURE_SETS)}, expected {expected}."
        raise SettingsError(message, argument="features")
    table = read_runs(source)
    names = _chosen_platforms(table, platforms)
    facts = TableFacts(
        path=table.path,
        fingerprint=table.fingerprint,
        runs=len(table),
        failed_runs=table.n_failed,
        warnings=len(table.warnings),
        platforms=names,
        info=info(table),
    )
    cells = CellMedians.of(table, names, features=features, more=1 + len(names))
    if not len(cells):
        raise DatasetError(f"{table.path}: found no successful run, expected at least one.", path=table.path)
    if features == "table1" and not cells.names:
        raise DatasetError(
            f"{table.path}: found none of the {len(TABLE_1)} counters of Table I, expected some of {some_of(TABLE_1)}. "
            "Use all counters that the table has (features='counters').",
            path=table.path,
        )
    number_n, index = cells.grouped.number_c, table.index
    workload_w, workload_n = np.unique(index.workload_c[number_n], return_inverse=True)
    workloads = index.workloads_of(workload_w)
    source_n = index.platform_places(names)[index.platform_c[number_n]]
    times = (cells.runtime_s_n, *cells.runtime_s_halves_hn)
    log_time_wp, *halves_wp = (_by_platform(own_n, workload_n, source_n, len(names)) for own_n in times)
    if np.isnan(log_time_wp).any(axis=1).all():
        raise DatasetError(
            f"{table.path}: none of {len(workloads):,} workloads ran on all {len(names)} platforms, expected at "
            "least one that can and did. Measure one everywhere, or choose platforms that share workloads.",
            path=table.path,
        )
    classes = table.platform_classes
    return Dataset(
        platforms=names,
        platform_classes=tuple(classes.get(name, "unknown") for name in names),
        workloads=workloads,
        log_time_wp=log_time_wp,
        workload_n=workload_n.astype(np.int64),
        source_n=source_n,
        features=Features.filled(cells.values_nf, cells.runtime_s_n, source_n, Columns.of(cells.names, names)),
        log_time_halves_hwp=np.stack(halves_wp),
        table=replace(facts, apps=len({app for app, _ in workloads}), workloads=len(workloads)),
        runnable_w=_runnable(cells.runnable_of_workloads[w] for w in workload_w.tolist()),
    )


def _runnable(stated: Iterable[str | None]) -> tuple[str | None, ...]:
    """Return where each workload can run; nothing where no workload tells."""
    by_workload = tuple(stated)
    return by_workload if any(by_workload) else ()


def _by_platform(runtime_s_n: Floats, workload_n: Integers, platform_n: Integers, platforms: int) -> Floats:
    """Return log times by workload and platform, NaN where there is none."""
    log_time_wp = np.full((int(workload_n.max(initial=-1)) + 1, platforms), np.nan)
    log_time_wp[workload_n, platform_n] = np.log(runtime_s_n)
    return log_time_wp


def paired(measured: Measured, workloads: Sequence[Workload], platforms: Sequence[str]) -> list[Floats]:
    """Return log times by workload and platform, NaN where there is none: of all visits, then of each half."""
    number = {workload: i for i, workload in enumerate(workloads)}
    cells = [(number.get(workload), i) for i, workload in enumerate(measured.workload_of_n)]
    workload_n = np.array([w for w, _ in cells if w is not None], dtype=np.int64)
    known_n = np.array([i for w, i in cells if w is not None], dtype=np.int64)
    platform_n = measured.numbers_of(platforms)[known_n]
    tables = []
    for runtime_s_n in (measured.runtime_s_n, *measured.runtime_s_halves_hn):
        log_time_wp = np.full((len(workloads), len(platforms)), np.nan)
        log_time_wp[workload_n, platform_n] = np.log(runtime_s_n[known_n])
        tables.append(log_time_wp)
    return tables


def _chosen_platforms(table: RunsTable, platforms: Sequence[str] | None) -> tuple[str, ...]:
    measured = table.platforms
    names = tuple(measured if platforms is None else dict.fromkeys(platforms))
    for name in names:
        if name not in measured:
            raise DatasetError(
                f"platforms: found {name!r}{did_you_mean(name, measured)}, which has no successful run in "
                f"{table.path}, expected some of {some_of(measured)}.",
                argument="platforms",
                platform=name,
            )
    if len(names) < 2:
        what = f"one platform only ({names[0]!r})" if names else "no successful run"
        raise DatasetError(
            f"{table.path}: found {what}, expected runs of the same workloads on two platforms or more. "
            "Measure them on a second platform and add those runs to the table.",
            path=table.path,
        )
    return names


@dataclass(frozen=True)
class Fold:
    """The training cells and the held-out cells, as row numbers."""

    train_n: Integers
    test_n: Integers


def folds(data: Dataset, split: Split, n_folds: int = 5, seed: int = 0) -> list[Fold]:
    """Return the folds of a split; a workload, or an application, is never on both sides.

    Parameters
    ----------
    split
        ``row``: cells at random, as in the paper; cells of one workload fall on both sides.
        ``workload``: inputs never seen. ``app``: applications never seen.

    >>> from crossperf.datasets import toy
    >>> from crossperf.dataset import build
    >>> [len(fold.test_n) for fold in folds(build(toy.make_table(apps=4, inputs=2)), "app", n_folds=4)]
    [8, 8, 8, 8]
    """
    from sklearn.model_selection import GroupKFold, KFold

    groups_n = data.groups_n(split)
    unit, n_groups = _UNITS[split], len(np.unique(groups_n))
    if n_groups < 2:
        raise DatasetError(
            f"{data.table.path}: found {n_groups} {unit[:-1]}, expected at least 2 {unit} for the split {split!r}, one "
            f"to train on and one to hold out. Add {unit}, or choose another split.",
            split=split,
            groups=n_groups,
        )
    if not 2 <= n_folds <= n_groups:
        raise DatasetError(
            f"folds: found {n_folds} for the split {split!r} of {data.table.path}, expected between 2 and {n_groups}, "
            f"the number of its {unit}. Choose fewer folds, another split, or add {unit}.",
            argument="folds",
            split=split,
            groups=n_groups,
        )
    splitter = (KFold if split == "row" else GroupKFold)(n_folds, shuffle=True, random_state=seed)
    return [
        Fold(np.asarray(train_n, np.int64), np.asarray(test_n, np.int64))
        for train_n, test_n in splitter.split(groups_n, groups=None if split == "row" else groups_n)
    ]
