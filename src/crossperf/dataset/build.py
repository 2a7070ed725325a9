"""Runs paired across platforms: features, relative times, groups and folds.

One row of the task is one *cell*: one workload seen from one source platform, its repeats combined by
the median. Nothing here is fitted: scaling belongs to the estimators, which see training rows alone.
"""

# N cells, F features, W workloads, P platforms, H halves of the repeats

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, KFold

from crossperf.dataset.facts import TableFacts
from crossperf.errors import DatasetError, did_you_mean, some_of
from crossperf.records import Run
from crossperf.runs.rules import COUNTER_PREFIX
from crossperf.runs.summary import info
from crossperf.runs.table import RunsTable, from_frame, from_runs, read

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Split = Literal["row", "workload", "app"]
SPLITS: tuple[Split, ...] = ("row", "workload", "app")

RUNTIME = "runtime_s"
SOURCE_PREFIX = "source="

#: What a runs table can come as: a path, a table, records, or a data frame that speaks Arrow.
Source = str | os.PathLike[str] | RunsTable | Iterable[Run] | Any


@dataclass(frozen=True)
class Cells:
    """Runs combined by workload and platform: what was measured there, and nothing paired yet."""

    counters: tuple[str, ...]
    app_n: tuple[str, ...]
    input_n: tuple[str, ...]
    platform_n: tuple[str, ...]
    counters_nc: Floats
    runtime_s_n: Floats
    runtime_s_halves_hn: Floats
    runs_n: Integers

    def __len__(self) -> int:
        return len(self.app_n)


@dataclass(frozen=True)
class Dataset:
    """What the models learn from and are scored on.

    ``features_nf`` and ``log_relative_time_np`` are scikit-learn's ``X`` and ``y``: a counter that was
    not measured and a platform that a workload never ran on are NaN.
    """

    counters: tuple[str, ...]
    platforms: tuple[str, ...]
    platform_classes: tuple[str, ...]
    workloads: tuple[tuple[str, str], ...]
    counters_nc: Floats
    runtime_s_n: Floats
    source_n: Integers
    workload_n: Integers
    log_time_wp: Floats
    log_time_halves_hwp: Floats
    table: TableFacts

    def __len__(self) -> int:
        return len(self.source_n)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features, in their order."""
        return feature_names(self.counters, self.platforms)

    @cached_property
    def features_nf(self) -> Floats:
        """Counters as measured, the runtime on the source platform, and the source platform one-hot."""
        return encode(self.counters_nc, self.runtime_s_n, self.source_n, len(self.platforms))

    @cached_property
    def log_relative_time_np(self) -> Floats:
        """log(time on p / time on the source platform) of each cell."""
        log_time_np = self.log_time_wp[self.workload_n]
        own_n1 = np.take_along_axis(log_time_np, self.source_n[:, None], axis=1)
        return np.asarray(log_time_np - own_n1)

    @property
    def app_n(self) -> Integers:
        """The number of each cell's application."""
        return self._app_of_workload_w[self.workload_n]

    @cached_property
    def _app_of_workload_w(self) -> Integers:
        number = {app: i for i, app in enumerate(self.apps)}
        return np.array([number[app] for app, _ in self.workloads], dtype=np.int64)

    @cached_property
    def apps(self) -> tuple[str, ...]:
        """The applications, by name."""
        return tuple(sorted({app for app, _ in self.workloads}))

    @property
    def complete_w(self) -> NDArray[np.bool_]:
        """Which workloads ran on every platform."""
        return np.asarray(~np.isnan(self.log_time_wp).any(axis=1))

    @property
    def cpu_n(self) -> NDArray[np.bool_]:
        """Which cells were measured on a platform of class ``cpu``."""
        return np.array([name == "cpu" for name in self.platform_classes])[self.source_n]

    def take(self, rows_n: Integers) -> Dataset:
        """Return the dataset with these cells alone; the measured times of all workloads stay."""
        return replace(
            self,
            counters_nc=self.counters_nc[rows_n],
            runtime_s_n=self.runtime_s_n[rows_n],
            source_n=self.source_n[rows_n],
            workload_n=self.workload_n[rows_n],
        )

    def without(self, platform: str) -> Dataset:
        """Return the dataset as if a platform had never been measured; the workloads keep their numbers."""
        number = self.platforms.index(platform)
        rows_n = np.flatnonzero(self.source_n != number)
        kept = self.take(rows_n)
        names = tuple(name for name in self.platforms if name != platform)
        return replace(
            kept,
            platforms=names,
            platform_classes=tuple(kind for i, kind in enumerate(self.platform_classes) if i != number),
            source_n=kept.source_n - (kept.source_n > number),
            log_time_wp=np.delete(self.log_time_wp, number, axis=1),
            log_time_halves_hwp=np.delete(self.log_time_halves_hwp, number, axis=2),
            table=replace(self.table, platforms=names),
        )

    def groups_n(self, split: Split) -> Integers:
        """Return the group of each cell that a split keeps whole."""
        return {"row": np.arange(len(self)), "workload": self.workload_n, "app": self.app_n}[split]


@dataclass(frozen=True)
class Fold:
    """The cells that train and the cells that are held out, as row numbers."""

    train_n: Integers
    test_n: Integers


def build(source: Source, *, platforms: Sequence[str] | None = None) -> Dataset:
    """Return the dataset of a runs table: every cell, paired with the times on every platform.

    Parameters
    ----------
    source
        A path, a `RunsTable`, records, or a data frame.
    platforms
        The platforms to keep, in the order of the answer; all of the table's, by name, when ``None``.

    >>> from crossperf.datasets import toy
    >>> data = build(toy.make_runs(apps=3, inputs=2, seed=1))
    >>> data.features_nf.shape, data.log_relative_time_np.shape
    ((24, 22), (24, 4))
    """
    table = open_table(source)
    names = _chosen_platforms(table, platforms)
    cells = combine(table, names)
    workloads = tuple(dict.fromkeys(zip(cells.app_n, cells.input_n, strict=True)))
    workload_number = {workload: i for i, workload in enumerate(workloads)}
    platform_number = {name: i for i, name in enumerate(names)}
    pairs = zip(cells.app_n, cells.input_n, strict=True)
    workload_n = np.array([workload_number[pair] for pair in pairs], dtype=np.int64)
    source_n = np.array([platform_number[name] for name in cells.platform_n], dtype=np.int64)

    def spread(runtime_s_n: Floats) -> Floats:
        log_time_wp = np.full((len(workloads), len(names)), np.nan)
        log_time_wp[workload_n, source_n] = np.log(runtime_s_n)
        return log_time_wp

    log_time_wp = spread(cells.runtime_s_n)
    if not (~np.isnan(log_time_wp)).all(axis=1).any():
        raise DatasetError(
            f"{table.path}: none of {len(workloads):,} workloads ran on all {len(names)} platforms, expected at "
            "least one that did. Measure one everywhere, or choose platforms that share workloads.",
            path=table.path,
        )
    return Dataset(
        counters=cells.counters,
        platforms=names,
        platform_classes=_classes(table, names),
        workloads=workloads,
        counters_nc=cells.counters_nc,
        runtime_s_n=cells.runtime_s_n,
        source_n=source_n,
        workload_n=workload_n,
        log_time_wp=log_time_wp,
        log_time_halves_hwp=np.stack([spread(half_n) for half_n in cells.runtime_s_halves_hn]),
        table=TableFacts(
            path=table.path,
            fingerprint=table.fingerprint,
            runs=table.frame.height,
            failed_runs=table.n_failed,
            warnings=len(table.warnings),
            apps=len({app for app, _ in workloads}),
            workloads=len(workloads),
            platforms=names,
            info=info(table),
        ),
    )


def open_table(source: Source, *, need_runtime: bool = True) -> RunsTable:
    """Return a runs table from whatever it comes as."""
    if isinstance(source, RunsTable):
        return source
    if isinstance(source, str | os.PathLike):
        return read(source, need_runtime=need_runtime)
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__dataframe__"):
        return from_frame(source, need_runtime=need_runtime)
    return from_runs(source, need_runtime=need_runtime)


def combine(table: RunsTable, platforms: Sequence[str] | None = None) -> Cells:
    """Return the cells of a table's successful runs: the median over repeats of runtime and counters.

    The repeats of a cell, in their order, also fall alternately into two halves, whose medians tell how
    well the data predicts itself.
    """
    frame = table.succeeded.lazy()
    if platforms is not None:
        frame = frame.filter(pl.col("platform").is_in(list(platforms)))
    cell = ["app", "input", "platform"]
    order = [*cell, "repeat"] if "repeat" in table.frame.columns else cell
    odd = (pl.int_range(pl.len()) % 2).over(cell).cast(pl.Boolean).alias("odd")
    columns = table.counters
    cells = (
        frame.select(*order, RUNTIME, *columns)
        .sort(order, maintain_order=True)
        .with_columns(odd)
        .group_by(cell, maintain_order=True)
        .agg(
            pl.col(RUNTIME).median(),
            pl.col(RUNTIME).filter(~pl.col("odd")).median().alias("even_s"),
            pl.col(RUNTIME).filter("odd").median().alias("odd_s"),
            pl.len().alias("runs"),
            *(pl.col(name).median() for name in columns),
        )
        .collect()
    )
    measured = [name for name in columns if cells[name].null_count() < cells.height]
    return Cells(
        counters=tuple(name.removeprefix(COUNTER_PREFIX) for name in measured),
        app_n=tuple(cells["app"]),
        input_n=tuple(cells["input"]),
        platform_n=tuple(cells["platform"]),
        # A frame without columns has no rows either, so a table without counters needs its own.
        counters_nc=_floats(cells.select(measured)) if measured else np.empty((cells.height, 0)),
        runtime_s_n=_floats(cells.select(RUNTIME))[:, 0],
        runtime_s_halves_hn=_floats(cells.select("even_s", "odd_s")).T,
        runs_n=cells["runs"].cast(pl.Int64).to_numpy(),
    )


def _floats(frame: pl.DataFrame) -> Floats:
    floats = frame.cast(pl.Float64).fill_null(np.nan)
    return np.ascontiguousarray(floats.to_numpy())


def feature_names(counters: Sequence[str], platforms: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns that `encode` makes."""
    return (*counters, RUNTIME, *(SOURCE_PREFIX + name for name in platforms))


def encode(counters_nc: Floats, runtime_s_n: Floats, source_n: Integers, n_platforms: int) -> Floats:
    """Return the features of cells: counters, runtime on the source, the source one-hot."""
    return np.column_stack([counters_nc, runtime_s_n, np.eye(n_platforms)[source_n]])


def folds(data: Dataset, split: Split, n_folds: int = 5, seed: int = 0) -> list[Fold]:
    """Return the folds of a split; a workload, or an application, is never on both sides.

    Parameters
    ----------
    split
        ``row``: cells at random, as in the paper; siblings of one workload fall on both sides.
        ``workload``: inputs never seen. ``app``: applications never seen.
    """
    groups_n = data.groups_n(split)
    n_groups = len(np.unique(groups_n))
    if n_folds < 2 or n_groups < n_folds:
        unit = {"row": "cells", "workload": "workloads", "app": "applications"}[split]
        raise DatasetError(
            f"{data.table.path}: {n_folds} folds of the split '{split}' asked for with {n_groups} {unit}, "
            f"expected between 2 and {n_groups}. Choose --folds in that range, another split, or add {unit}.",
            split=split,
            groups=n_groups,
        )
    splitter = (KFold if split == "row" else GroupKFold)(n_folds, shuffle=True, random_state=seed)
    return [
        Fold(np.asarray(train_n, np.int64), np.asarray(test_n, np.int64))
        for train_n, test_n in splitter.split(groups_n, groups=None if split == "row" else groups_n)
    ]


def _chosen_platforms(table: RunsTable, platforms: Sequence[str] | None) -> tuple[str, ...]:
    there = sorted(table.succeeded["platform"].unique())
    names = tuple(there if platforms is None else dict.fromkeys(platforms))
    for name in names:
        if name not in there:
            raise DatasetError(
                f"{table.path}: no successful run on platform {name!r}{did_you_mean(name, there)}, expected "
                f"one of {some_of(there)}. Correct --platforms.",
                platform=name,
            )
    if len(names) < 2:
        found = f"one platform only ({names[0]!r})" if names else "no successful run"
        raise DatasetError(
            f"{table.path}: found {found}, expected runs of the same workloads on two platforms or more. "
            "Measure them on a second platform and add those runs to the table.",
            path=table.path,
        )
    return names


def _classes(table: RunsTable, names: Sequence[str]) -> tuple[str, ...]:
    if "platform_class" not in table.frame.columns:
        return ("unknown",) * len(names)
    known = dict(table.frame.select("platform", "platform_class").drop_nulls().unique().iter_rows())
    return tuple(known.get(name, "unknown") for name in names)
