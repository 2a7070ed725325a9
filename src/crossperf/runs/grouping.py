"""Runs in the order of their cells and visits: exact medians of any column, with one column in memory at a time."""

# R runs, C cells with a run that did not fail, V visits, W workloads

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from crossperf.arrays import Floats, Mask
from crossperf.runs.columns import whole_numbers
from crossperf.runs.index import CellIndex, Coded, Numbers, ranked

if TYPE_CHECKING:
    from crossperf.runs.table import RunsTable

#: Runs that are grouped together: whole cells of about as many.
_AT_ONCE = 1 << 21
_RUNTIME = "runtime_s"


@dataclass(frozen=True, eq=False)
class Grouped:
    """The runs of a table that did not fail, sorted by cell and visit; within a visit by repeat, as they come.

    Repeats in a row are one visit: those of one name under ``measured_in``. Without names each repeat is one. Names
    sort in the order of the visits, as those that a campaign gives do.

    Parameters
    ----------
    row_r
        The row of each run in the table.
    first_c, number_c
        The place of the first run of each cell, and the number of each cell in the table's index.
    visit_r
        The visit of each run, numbered in their order; ``None`` where each run is a visit of its own.
    """

    index: CellIndex
    row_r: Numbers
    first_c: Numbers
    number_c: Numbers
    visit_r: Numbers | None

    @classmethod
    def of(cls, table: RunsTable, platforms: Sequence[str] | None = None) -> Grouped:
        """Return the runs of a table on some platforms, or on all."""
        index = table.index
        ok_r = table.columns.ok_r
        if platforms is not None:
            chosen_p = index.platforms.is_in(list(platforms)).to_numpy()
            ok_r = ok_r & chosen_p[index.platform_c][index.cell_r]
        row_r = np.flatnonzero(ok_r).astype(np.uint32)
        row_r = row_r[ranked(_with_repeats(table, row_r))[0]]
        number_r = index.cell_r[row_r]
        changed_r = np.ones(len(row_r), bool)
        np.not_equal(number_r[1:], number_r[:-1], out=changed_r[1:])
        first_c = np.flatnonzero(changed_r).astype(np.uint32)
        row_r, visit_r = _by_visit(table, row_r, first_c)
        return cls(index, row_r, first_c, number_r[first_c], visit_r)

    def __len__(self) -> int:
        return len(self.number_c)

    @property
    def has_visits(self) -> bool:
        """Whether the table names visits."""
        return self.visit_r is not None

    def names(self, part: str) -> list[str]:
        """Return the ``apps``, ``inputs`` or ``platforms`` of the cells; each text is one object."""
        texts: list[str] = getattr(self.index, part).to_list()
        codes = {"apps": self.index.app_c, "inputs": self.index.input_c, "platforms": self.index.platform_c}[part]
        return [texts[code] for code in codes[self.number_c].tolist()]

    def medians(self, column: pl.Series) -> Floats:
        """Return the median of a column of the table for each cell; NaN where it has no value."""
        parts = [
            _medians(self._cells(cells), column.gather(pl.Series(self.row_r[runs])), cells)
            for cells, runs in self._blocks()
        ]
        return np.concatenate(parts) if parts else np.empty(0)

    def times(self, runtime_s: pl.Series) -> tuple[Floats, Floats, Floats]:
        """Return the runtime of each cell, the median over its visits, and that of the earlier and the later half.

        The visit in the middle of an odd number is earlier.
        """
        parts = [
            _times(self._cells(cells), self._visits(runs), runtime_s.gather(pl.Series(self.row_r[runs])), cells)
            for cells, runs in self._blocks()
        ]
        if not parts:
            return np.empty(0), np.empty(0), np.empty(0)
        every, earlier, later = (np.concatenate(own) for own in zip(*parts, strict=True))
        return every, earlier, later

    def by_cell(self, column: pl.Series, summed_up: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
        """Return what a function makes of the runs of whole cells: ``cell``, ``visit`` and the column's values."""
        blocks = list(self._blocks()) or [(range(0), slice(0, 0))]
        return pl.concat([summed_up(self._runs(column, cells, runs)) for cells, runs in blocks])

    def _runs(self, column: pl.Series, cells: range, runs: slice) -> pl.DataFrame:
        keys = {"cell": _sorted(self._cells(cells)), "visit": _sorted(self._visits(runs))}
        return pl.DataFrame(keys | {column.name: column.gather(pl.Series(self.row_r[runs]))})

    def _blocks(self) -> Iterator[tuple[range, slice]]:
        """Yield whole cells of about `_AT_ONCE` runs each: their numbers, and the places of their runs."""
        start = 0
        while start < len(self):
            end = int(np.searchsorted(self.first_c, int(self.first_c[start]) + _AT_ONCE))
            yield range(start, end), slice(int(self.first_c[start]), self._place(end))
            start = end

    def _place(self, cell: int) -> int:
        return int(self.first_c[cell]) if cell < len(self) else len(self.row_r)

    def _cells(self, cells: range) -> Numbers:
        """Return the cell of each run of some cells."""
        ends = np.append(self.first_c[cells.start + 1 : cells.stop], self._place(cells.stop))
        return np.repeat(
            np.arange(cells.start, cells.stop, dtype=np.uint32), ends - self.first_c[cells.start : cells.stop]
        )

    def _visits(self, runs: slice) -> Numbers:
        return np.arange(runs.start, runs.stop, dtype=np.uint32) if self.visit_r is None else self.visit_r[runs]


def _with_repeats(table: RunsTable, row_r: Numbers) -> NDArray[np.uint64]:
    """Return keys that sort runs by cell, then by repeat, unnumbered ones last."""
    cell_r = table.index.cell_r[row_r].astype(np.uint64)
    if table.has("repeat"):
        number, count = whole_numbers(table.column("repeat"))
        cell_r *= np.uint64(count)
        cell_r += number[row_r]
    return cell_r


def _by_visit(table: RunsTable, row_r: Numbers, first_c: Numbers) -> tuple[Numbers, Numbers | None]:
    """Return runs sorted by visit within their cells, and the number of each visit; ``None`` where each is its own.

    A run without a name in a table with names is called by its place in the cell.
    """
    names = table.column("measured_in").gather(pl.Series(row_r)) if table.has("measured_in") else None
    if names is None or names.null_count() == len(names):
        return row_r, None
    count_c = np.diff(np.append(first_c, len(row_r)))
    if names.null_count():
        place_r = np.arange(len(row_r)) - np.repeat(first_c, count_c)
        places = pl.Series(place_r).cast(pl.String).str.zfill(9)
        names = pl.select(pl.coalesce(pl.lit(names), pl.lit(places))).to_series()
    coded = Coded.of(names)
    cell_r = np.repeat(np.arange(len(first_c), dtype=np.uint64), count_c)
    order_r, visit_r = ranked(cell_r * np.uint64(len(coded.texts)) + coded.code_r)
    return row_r[order_r], visit_r


def _sorted(values: Numbers) -> pl.Series:
    """Return sorted numbers as keys that Polars knows to be sorted: it then groups by slices."""
    return pl.Series(values).set_sorted()


def _medians(key: Numbers, values: pl.Series, numbers: range) -> Floats:
    """Return the median of values for each number; NaN where a number has none. Keys are sorted."""
    if len(key) == len(numbers) and (key[1:] != key[:-1]).all():
        # One value each, as in runs to be predicted: a query for each of a hundred columns takes longer than the model.
        return values.cast(pl.Float64).fill_null(np.nan).to_numpy(writable=True)
    grouped = pl.DataFrame({"key": _sorted(key), "value": values}).group_by("key", maintain_order=True)
    medians = grouped.agg(pl.col("value").median())
    known = np.full(len(numbers), np.nan)
    known[medians["key"].to_numpy() - numbers.start] = medians["value"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    return known


def _times(cell: Numbers, visit: Numbers, runtime_s: pl.Series, cells: range) -> tuple[Floats, Floats, Floats]:
    first = np.concatenate([[True], visit[1:] != visit[:-1]])
    if not first.all():
        runtime_s = pl.Series(_medians(visit, runtime_s, range(int(visit[0]), int(visit[-1]) + 1))).fill_nan(None)
        cell = cell[first]
    begins = np.searchsorted(cell, np.arange(cells.start, cells.stop))
    count = np.diff(np.append(begins, len(cell)))
    place = np.arange(len(cell)) - np.repeat(begins, count) + 1
    later = 2 * place > np.repeat(count, count) + 1
    halves = (_medians(cell[own], runtime_s.filter(pl.Series(own)), cells) for own in (~later, later))
    return _medians(cell, runtime_s, cells), *halves  # type: ignore[return-value]


def runnable_of(table: RunsTable) -> list[str | None]:
    """Return where each workload of a table's index can run, as the first of its runs that tells says."""
    index = table.index
    texts: list[str | None] = [None] * len(index.first_w)
    if table.has("runnable"):
        coded = Coded.of(table.column("runnable"))
        known = np.flatnonzero(coded.code_r != (-1 if (null := coded.number_of(None)) is None else null))
        workload, first = np.unique(index.workload_c[index.cell_r[known]], return_index=True)
        for number, code in zip(workload.tolist(), coded.code_r[known[first]].tolist(), strict=True):
            texts[number] = coded.values[code]
    return texts


def presence(index: CellIndex, number_c: Numbers, platform_p: Sequence[int]) -> tuple[Numbers, Mask]:
    """Return the workloads of some cells, as numbers of the index, and on which platforms each was measured."""
    workload_w, place_c = np.unique(index.workload_c[number_c], return_inverse=True)
    measured_wp = np.zeros((len(workload_w), len(index.platforms)), bool)
    measured_wp[place_c, index.platform_c[number_c]] = True
    return workload_w, measured_wp[:, list(platform_p)]
