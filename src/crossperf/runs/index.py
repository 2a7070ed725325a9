"""Which cell each run of a table belongs to, as numbers in the order of the names: what all counting is done with."""

# R runs, C cells, W workloads, T texts

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

Numbers = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Coded:
    """A column of texts as numbers: `texts`, sorted, has each once (null, where there is one, comes first)."""

    code_r: Numbers
    texts: pl.Series

    @classmethod
    def of(cls, column: pl.Series) -> Coded:
        """Return a column of texts as numbers.

        >>> coded = Coded.of(pl.Series(["b", "a", None, "b"]))
        >>> coded.code_r.tolist(), coded.texts.to_list()
        ([2, 1, 0, 2], [None, 'a', 'b'])
        """
        coded = column.cast(pl.String).cast(pl.Categorical(pl.Categories.random()))
        distinct = coded.unique()
        texts = distinct.cast(pl.String)
        order_t = texts.arg_sort().to_numpy()
        # What stands for null in NumPy is the highest number there is.
        own_t = _physical(distinct)[order_t]
        place = np.zeros(int(own_t.max(initial=0)) + 1, np.uint32)
        place[own_t] = np.arange(len(own_t), dtype=np.uint32)
        return cls(place[_physical(coded)], texts.gather(order_t))

    def number_of(self, text: str | None) -> int | None:
        """Return the number of a text; ``None`` where no row has it."""
        return next((place for place, own in enumerate(self.values) if own == text), None)

    @cached_property
    def values(self) -> list[str | None]:
        """The texts as Python's own."""
        return self.texts.to_list()


def _physical(column: pl.Series) -> Numbers:
    """Return the numbers of categories, 0 for null."""
    return (column.to_physical().cast(pl.UInt32) + 1).fill_null(0).to_numpy()


@dataclass(frozen=True, eq=False)
class CellIndex:
    """The cell of each run of a table, failed runs included; cells are in the order of app, input and platform."""

    apps: pl.Series
    inputs: pl.Series
    platforms: pl.Series
    cell_r: Numbers
    app_c: Numbers
    input_c: Numbers
    platform_c: Numbers

    @classmethod
    def of(cls, app: Coded, input_: Coded, platform: Coded) -> CellIndex:
        """Return the cells of runs whose names are given as numbers."""
        key_r = app.code_r.astype(np.uint64)
        for coded in (input_, platform):
            key_r *= np.uint64(max(len(coded.texts), 1))
            key_r += coded.code_r
        order_r, number_r = ranked(key_r)
        first_c = order_r[np.flatnonzero(np.diff(number_r, prepend=np.uint32(1 << 31)))] if len(key_r) else order_r
        cell_r = np.empty(len(key_r), np.uint32)
        cell_r[order_r] = number_r
        codes = (coded.code_r[first_c] for coded in (app, input_, platform))
        return cls(app.texts, input_.texts, platform.texts, cell_r, *codes)

    def __len__(self) -> int:
        return len(self.app_c)

    @cached_property
    def workload_c(self) -> Numbers:
        """The number of each cell's workload, in the order of app and input."""
        changed_c = (np.diff(self.app_c, prepend=0) != 0) | (np.diff(self.input_c, prepend=0) != 0)
        changed_c[:1] = False
        return np.cumsum(changed_c, dtype=np.uint32)

    @cached_property
    def first_w(self) -> NDArray[np.int64]:
        """The first cell of each workload."""
        return np.unique(self.workload_c, return_index=True)[1].astype(np.int64)

    def workloads_of(self, numbers: Numbers) -> tuple[tuple[str, str], ...]:
        """Return workloads by their numbers; each name is one object, however often it is used."""
        apps, inputs = self.apps.to_list(), self.inputs.to_list()
        first = self.first_w[numbers]
        pairs = zip(self.app_c[first].tolist(), self.input_c[first].tolist(), strict=True)
        return tuple((apps[app], inputs[own]) for app, own in pairs)

    def platform_places(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Return the place of each platform in a list of names; -1 where it is not in it."""
        place = {name: i for i, name in enumerate(names)}
        return np.array([place.get(name, -1) for name in self.platforms], dtype=np.int64)


def ranked(key_r: NDArray[np.uint64]) -> tuple[Numbers, Numbers]:
    """Return the order that sorts keys, rows of one key as they come, and the rank of each key in that order, from 0.

    >>> order, rank = ranked(np.array([7, 3, 7], np.uint64))
    >>> order.tolist(), rank.tolist()
    ([1, 0, 2], [0, 1, 1])
    """
    order_r = np.argsort(key_r, kind="stable").astype(np.uint32)
    sorted_r = key_r[order_r]
    changed_r = np.zeros(len(key_r), bool)
    np.not_equal(sorted_r[1:], sorted_r[:-1], out=changed_r[1:])
    return order_r, np.cumsum(changed_r, dtype=np.uint32)


def copies(key_r: NDArray[np.uint64], most: int) -> tuple[Numbers, Numbers]:
    """Return the first rows whose key an earlier row has, by row, and that earlier row of each: the first of its key.

    >>> [rows.tolist() for rows in copies(np.array([5, 1, 5, 1, 5], np.uint64), 9)]
    [[2, 3, 4], [0, 1, 0]]
    """
    order_r = np.argsort(key_r, kind="stable").astype(np.uint32)
    sorted_r = key_r[order_r]
    again_r = np.zeros(len(key_r), bool)
    np.equal(sorted_r[1:], sorted_r[:-1], out=again_r[1:])
    if not again_r.any():
        return order_r[:0], order_r[:0]
    start_r = np.maximum.accumulate(np.where(again_r, 0, np.arange(len(key_r))))
    rows, firsts = order_r[again_r], order_r[start_r[again_r]]
    kept = np.argsort(rows, kind="stable")[:most]
    return rows[kept], firsts[kept]
