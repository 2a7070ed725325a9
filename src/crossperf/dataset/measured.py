"""What was measured: one time of each workload on each platform, not paired yet."""

# N cells, C counters and events, H halves of the visits

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from crossperf.arrays import Floats, Integers
from crossperf.dataset.cells import Workload
from crossperf.dataset.features import RUNTIME, TABLE_1, Columns, Features, FeatureSet
from crossperf.errors import PredictError, did_you_mean, some_of
from crossperf.records import OK, Run
from crossperf.runs.events import EVENT_PREFIX, EVENTS, events_of
from crossperf.runs.rules import COUNTER_PREFIX

if TYPE_CHECKING:
    from crossperf.runs.grouping import Grouped
    from crossperf.runs.table import RunsTable


@dataclass(frozen=True, eq=False)
class Measured:
    """N workloads on a platform each: counters and events as medians over their successful runs, and the runtime.

    Repeats in a row are one measurement, so the runtime is the median over visits of the median of each visit. Where
    the table does not tell visits apart, every repeat counts as one. ``runtime_s_halves_hn`` holds the same of the
    earlier and of the later half of the visits: how well the data predicts itself. ``runnable_n`` says where there is a
    version of each cell's workload; it is empty, or ``None``, where it is not stated.
    """

    where: str
    names: tuple[str, ...]
    app_n: tuple[str, ...]
    input_n: tuple[str, ...]
    platform_n: tuple[str, ...]
    values_nc: Floats
    runtime_s_n: Floats
    runtime_s_halves_hn: Floats
    failed_runs: int = 0
    runnable_n: tuple[str | None, ...] = ()

    def __len__(self) -> int:
        return len(self.app_n)

    @property
    def counters(self) -> tuple[str, ...]:
        """The counters, by name."""
        return tuple(name for name in self.names if not name.startswith(EVENT_PREFIX))

    @property
    def workload_of_n(self) -> list[Workload]:
        """The workload of each cell."""
        return list(zip(self.app_n, self.input_n, strict=True))

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """The workloads, each once, in the order of the cells."""
        return tuple(dict.fromkeys(self.workload_of_n))

    def numbers_of(self, platforms: Sequence[str]) -> Integers:
        """Return the number of each cell's platform in a list."""
        number = {name: i for i, name in enumerate(platforms)}
        return np.array([number[name] for name in self.platform_n], dtype=np.int64)

    def take(self, rows: Sequence[int]) -> Measured:
        """Return these cells alone."""
        kept = np.array(rows, dtype=np.int64)
        return replace(
            self,
            app_n=tuple(self.app_n[i] for i in rows),
            input_n=tuple(self.input_n[i] for i in rows),
            platform_n=tuple(self.platform_n[i] for i in rows),
            values_nc=self.values_nc[kept],
            runtime_s_n=self.runtime_s_n[kept],
            runtime_s_halves_hn=self.runtime_s_halves_hn[:, kept],
            runnable_n=tuple(self.runnable_n[i] for i in rows) if self.runnable_n else (),
        )

    def features(self, columns: Columns) -> Features:
        """Return the features that a model knows, matched by name: what is absent counts as not measured."""
        place = {name: i for i, name in enumerate(self.names)}
        wanted = columns.measured
        if wanted and not any(name in place for name in wanted):
            raise PredictError(
                f"{self.where}: found none of the {len(wanted)} counters that the model was trained on, expected "
                f"{some_of(wanted)}{did_you_mean(wanted[0], place)}. Collect these counters, or train a model on the "
                "ones you have.",
                missing=list(wanted),
            )
        absent_n = np.full(len(self), np.nan)
        by_column = [self.values_nc[:, place[name]] if name in place else absent_n for name in wanted]
        values_nc = np.stack(by_column, axis=1) if by_column else np.empty((len(self), 0))
        return Features.of(values_nc, self.runtime_s_n, self.numbers_of(columns.sources), columns)


def measured_table(
    table: RunsTable, platforms: Sequence[str] | None = None, *, features: FeatureSet = "all"
) -> Measured:
    """Return the cells of a table's successful runs, on some platforms or on all.

    The visits of a cell also fall into an earlier and a later half; the one in the middle of an odd number is earlier.

    Parameters
    ----------
    features
        ``table1``: the counters of the paper's Table I. ``counters``: all counters. ``all``: raw events as well.
    """
    cells = CellMedians.of(table, platforms, features=features)
    grouped, stated = cells.grouped, cells.runnable_of_workloads
    return Measured(
        where=table.path,
        names=cells.names,
        app_n=tuple(grouped.names("apps")),
        input_n=tuple(grouped.names("inputs")),
        platform_n=tuple(grouped.names("platforms")),
        values_nc=cells.values_nf,
        runtime_s_n=cells.runtime_s_n,
        runtime_s_halves_hn=cells.runtime_s_halves_hn,
        failed_runs=table.n_failed,
        runnable_n=tuple(stated[w] for w in table.index.workload_c[grouped.number_c].tolist()),
    )


@dataclass(frozen=True, eq=False)
class CellMedians:
    """The medians of a table's cells, which are numbers in its index: no name of four million is written out.

    ``values_nf`` holds the counters and events of ``names``, and behind them columns of zeros for whoever goes on to
    fill it: a second matrix may not fit into memory. ``runnable_of_workloads`` is by the workloads of the index.
    """

    grouped: Grouped
    names: tuple[str, ...]
    values_nf: Floats
    runtime_s_n: Floats
    runtime_s_halves_hn: Floats
    runnable_of_workloads: list[str | None]

    @classmethod
    def of(
        cls, table: RunsTable, platforms: Sequence[str] | None = None, *, features: FeatureSet = "all", more: int = 0
    ) -> CellMedians:
        """Return the medians of the cells on some platforms, or on all, with `more` columns of zeros behind them."""
        from crossperf.runs.grouping import Grouped, runnable_of

        grouped = Grouped.of(table, platforms)
        names, values_nf = _medians(table, grouped, features, more)
        runtime_s_n, *halves_hn = grouped.times(table.column(RUNTIME))
        return cls(grouped, names, values_nf, runtime_s_n, np.stack(halves_hn), runnable_of(table))

    def __len__(self) -> int:
        return len(self.grouped)


def _medians(table: RunsTable, grouped: Grouped, features: FeatureSet, more: int) -> tuple[tuple[str, ...], Floats]:
    """Return the counters and events that any cell has, by name, and their medians with columns of zeros behind."""
    wanted = {COUNTER_PREFIX + name for name in TABLE_1} if features == "table1" else table.counters
    counters = [name for name in table.counters if name in wanted]
    events = table.events.columns[1:] if features == "all" else []
    values_nf = np.zeros((len(grouped), len(counters) + len(events) + more))
    kept: list[str] = []
    for name in (*counters, *events):
        medians_n = grouped.medians(table.event(name) if name.startswith(EVENT_PREFIX) else table.column(name))
        if not np.isnan(medians_n).all():
            values_nf[:, len(kept)] = medians_n
            kept.append(name.removeprefix(COUNTER_PREFIX))
    values_nf[:, len(kept) :] = 0.0
    width = len(kept) + more
    return tuple(kept), values_nf if width == values_nf.shape[1] else np.ascontiguousarray(values_nf[:, :width])


def measured_runs(runs: Sequence[Run], where: str = "runs") -> Measured:
    """Return the cells of a few checked runs in plain Python: a table of one row is not worth a query engine."""
    by_cell: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        if run.status == OK:
            by_cell.setdefault((run.app, run.input, run.platform), []).append(run)
    cells = sorted(by_cell)
    known = {cell: [{**run.counters, **events_of(run.metadata.get(EVENTS))} for run in by_cell[cell]] for cell in cells}
    every = (own.items() for runs_of_cell in known.values() for own in runs_of_cell)
    names = sorted({name for own in every for name, value in own if value is not None}, key=counters_first)
    runtime_s_n = np.array([_median_of_visits(by_cell[cell]) for cell in cells])
    runnable = {(run.app, run.input): run.runnable for run in runs if run.runnable is not None}
    return Measured(
        where=where,
        names=tuple(names),
        app_n=tuple(app for app, _, _ in cells),
        input_n=tuple(input_ for _, input_, _ in cells),
        platform_n=tuple(platform for _, _, platform in cells),
        values_nc=np.array(
            [[_median(own.get(name) for own in known[cell]) for name in names] for cell in cells]
        ).reshape(len(cells), len(names)),
        runtime_s_n=runtime_s_n,
        runtime_s_halves_hn=np.full((2, len(cells)), np.nan),
        failed_runs=sum(run.status != OK for run in runs),
        runnable_n=tuple(runnable.get((app, input_)) for app, input_, _ in cells),
    )


def counters_first(name: str) -> tuple[bool, str]:
    """Return the place of a name in the order of columns: counters, then events."""
    return name.startswith(EVENT_PREFIX), name


def _median_of_visits(runs: Sequence[Run]) -> float:
    visits: dict[object, list[float | None]] = {}
    for number, run in enumerate(runs):
        visits.setdefault(number if run.measured_in is None else run.measured_in, []).append(run.runtime_s)
    return _median(value for times in visits.values() if not math.isnan(value := _median(times)))


def _median(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None]
    return float(median(known)) if known else float("nan")
