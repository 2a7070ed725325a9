"""Cells: workloads seen from source platforms, beside the measured time of each workload on every platform."""

# N cells, W workloads, P platforms

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from crossperf.arrays import Floats, Integers, Mask, axes_of, refuse_outside
from crossperf.records import can_run, versions
from crossperf.runs.summary import TableInfo

#: An application and one of its inputs.
Workload = tuple[str, str]
Split = Literal["row", "workload", "app"]
SPLITS: tuple[Split, ...] = ("row", "workload", "app")


#: The logarithm of no time in seconds is as large.
_LONGEST = 100.0


@dataclass(frozen=True, eq=False)
class Cells:
    """N cells of W workloads on P platforms; one cell is one workload seen from one source platform.

    ``log_time_wp`` holds log seconds, NaN where a workload never ran. ``runnable_w`` tells where there is a version of
    each workload; it is empty, or ``None``, where it is not stated. Datasets, held-out predictions and saved models
    all hold these, and hold them here.
    """

    platforms: tuple[str, ...]
    platform_classes: tuple[str, ...]
    workloads: tuple[Workload, ...]
    log_time_wp: Floats
    workload_n: Integers
    source_n: Integers
    runnable_w: tuple[str | None, ...] = field(default=(), kw_only=True, metadata={"json": "runnable"})

    def __len__(self) -> int:
        return len(self.source_n)

    def refuse_misfits(self) -> None:
        """Raise `ValueError` unless the columns fit together: what a file holds need not."""
        axes = axes_of(self)
        number, sizes = len(self), {"w": len(self.workloads), "p": len(self.platforms), "n": len(self)}
        clash = next((axis for axis, size in sizes.items() if axes.get(axis, size) != size), None)
        if clash or len(self.workload_n) != number or self.log_time_wp.size != sizes["w"] * sizes["p"]:
            raise ValueError("the columns of the cells do not fit together")
        if len(set(self.platforms)) != sizes["p"] or len(self.platform_classes) != sizes["p"]:
            raise ValueError("the platforms do not fit together")
        if self.runnable_w and len(self.runnable_w) != sizes["w"]:
            raise ValueError("'runnable' does not fit the workloads")
        if (np.abs(self.log_time_wp) > _LONGEST).any():
            raise ValueError("a time is none that a clock could show")
        refuse_outside("workload", self.workload_n, sizes["w"])
        refuse_outside("source", self.source_n, sizes["p"])

    @property
    def log_relative_time_np(self) -> Floats:
        """log(time on p / time on the source platform) of each cell."""
        return relative_to(self.log_time_wp[self.workload_n], self.source_n)

    @cached_property
    def apps(self) -> tuple[str, ...]:
        """The applications, by name."""
        return tuple(sorted({app for app, _ in self.workloads}))

    @cached_property
    def app_w(self) -> Integers:
        """The number of each workload's application."""
        number = {app: i for i, app in enumerate(self.apps)}
        return np.array([number[app] for app, _ in self.workloads], dtype=np.int64)

    @property
    def app_n(self) -> Integers:
        """The number of each cell's application."""
        return self.app_w[self.workload_n]

    @cached_property
    def runnable_wp(self) -> Mask:
        """Which platforms can run each workload: all of them where it is not stated."""
        kinds = list(zip(self.platforms, self.platform_classes, strict=True))
        if not self.runnable_w:
            return np.ones((len(self.workloads), len(kinds)), bool)
        able = {text: [can_run(versions(text), *kind) for kind in kinds] for text in set(self.runnable_w)}
        return np.array([able[text] for text in self.runnable_w], dtype=bool).reshape(len(self.workloads), len(kinds))

    @property
    def complete_w(self) -> Mask:
        """Which workloads ran on every platform that can run them."""
        return np.asarray((~np.isnan(self.log_time_wp) | ~self.runnable_wp).all(axis=1))

    @property
    def cpu_n(self) -> Mask:
        """Which cells were measured on a platform of class ``cpu``."""
        return np.array([name == "cpu" for name in self.platform_classes])[self.source_n]

    def groups_n(self, split: Split) -> Integers:
        """Return the group of each cell that a split keeps whole."""
        return {"row": np.arange(len(self)), "workload": self.workload_n, "app": self.app_n}[split]

    def shared(self) -> dict[str, Any]:
        """Return the fields that all kinds of cells share, by name: what another kind of cells is made of."""
        return {name: getattr(self, name) for name in Cells.__dataclass_fields__}

    def take(self, rows_n: Integers) -> Self:
        """Return these cells alone; the times of all workloads stay."""
        return replace(self, workload_n=self.workload_n[rows_n], source_n=self.source_n[rows_n])

    def compact(self) -> Self:
        """Return the same cells with their own workloads alone."""
        kept_w, workload_n = np.unique(self.workload_n, return_inverse=True)
        return replace(
            self,
            workloads=tuple(self.workloads[w] for w in kept_w),
            log_time_wp=self.log_time_wp[kept_w],
            workload_n=workload_n.astype(np.int64),
            runnable_w=tuple(self.runnable_w[w] for w in kept_w) if self.runnable_w else (),
        )

    def on(self, platforms: Sequence[str], platform_classes: Sequence[str]) -> Self:
        """Return the cells with their platforms in another list, which holds all of them and may hold more."""
        place_p = np.array([platforms.index(name) for name in self.platforms], dtype=np.int64)
        return replace(
            self,
            platforms=tuple(platforms),
            platform_classes=tuple(platform_classes),
            log_time_wp=spread(self.log_time_wp, place_p, len(platforms)),
            source_n=place_p[self.source_n],
        )


def relative_to(log_time_np: Floats, reference_n: Integers) -> Floats:
    """Return log times less that on each row's reference platform, which is then exactly 0.

    >>> relative_to(np.array([[1.0, 3.0]]), np.array([1])).tolist()
    [[-2.0, 0.0]]
    """
    return np.asarray(log_time_np - np.take_along_axis(log_time_np, reference_n[:, None], axis=1))


def spread(values: Floats, place_p: Integers, count: int) -> Floats:
    """Return values whose last axis is moved to other places of a longer one; NaN elsewhere."""
    wider = np.full((*values.shape[:-1], count), np.nan)
    wider[..., place_p] = values
    return wider


@dataclass(frozen=True)
class TableFacts:
    """Which runs table a dataset, a model or an evaluation was made from.

    ``apps`` and ``workloads`` are counts over the ``platforms`` chosen; ``info`` is of the whole table, and ``None``
    where it was not kept.
    """

    path: str
    fingerprint: str = ""
    runs: int = 0
    failed_runs: int = 0
    warnings: int = 0
    apps: int = 0
    workloads: int = 0
    platforms: tuple[str, ...] = ()
    info: TableInfo | None = None
