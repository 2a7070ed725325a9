"""Simulations as tables: their metrics, the use of the clusters, and comparisons over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crossperf.display import CellView, Row, TableView, integer, number, numbers, words

if TYPE_CHECKING:
    from crossperf.schedule.compare import Comparison
    from crossperf.schedule.outcome import Outcome

_COLUMNS = ("turnaround", "p95", "wait", "p95", "slowdown", "p95", "run", "makespan", "limits")
#: The metrics of a comparison that are shown, where any of them is not zero.
_COMPARED = ("mean_turnaround_s", "mean_wait_s", "mean_bounded_slowdown", "mean_run_s", "makespan_s", "cost")


def metrics(outcomes: Sequence[Outcome], caption: str = "") -> TableView:
    """Return the metrics of simulations of the same jobs, a row for each."""
    priced = any(outcomes[0].machines.price_per_node_hour)
    rows: list[Row] = []
    for outcome in outcomes:
        values = outcome.metrics()
        times = (values.mean_turnaround_s, values.p95_turnaround_s, values.mean_wait_s, values.p95_wait_s)
        slowdowns = (values.mean_bounded_slowdown, values.p95_bounded_slowdown)
        cells = [*map(_duration, times), *(number(slowdown, 2) for slowdown in slowdowns)]
        cells += map(_duration, (values.mean_run_s, values.makespan_s))
        cells += [integer(outcome.counts().limit_violations), *([number(values.cost, 2)] if priced else [])]
        rows.append((outcome.policy, outcome.predictor, *cells))
    columns = numbers(*_COLUMNS, *(["cost"] if priced else []))
    return TableView(caption, (*words("policy", "predictor"), *columns), tuple(rows))


def use(outcomes: Sequence[Outcome], caption: str = "") -> TableView:
    """Return the share of each cluster in use, and the jobs that ran there."""
    rows: list[Row] = []
    for outcome in outcomes:
        clusters = outcome.clusters().values()
        cells = [CellView(f"{use.utilisation:.0%}, {use.jobs:,}", use.utilisation) for use in clusters]
        rows.append((outcome.policy, outcome.predictor, *cells))
    return TableView(caption, (*words("policy", "predictor"), *numbers(*outcomes[0].machines.names)), tuple(rows))


def scores(result: Comparison, caption: str = "") -> TableView:
    """Return the mean metrics over the seeds, with half of their 95 % intervals."""
    shown = [name for name in _COMPARED if any(scores.metrics[name].any() for scores in result.scores)]
    rows: list[Row] = []
    for scores in result.scores:
        rows.append((scores.policy, scores.predictor, *(_interval(*scores.interval(name)) for name in shown)))
    return TableView(caption, (*words("policy", "predictor"), *numbers(*shown)), tuple(rows))


def _interval(mean: float, half: float | None) -> CellView:
    return CellView(f"{mean:,.1f}" + ("" if half is None else f" ± {half:,.1f}"), mean)


def _duration(seconds: float | None) -> CellView:
    if seconds is not None:
        for unit, length in (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
            if seconds >= 2 * length:
                return CellView(f"{seconds / length:,.1f} {unit}", seconds)
    return number(seconds, 1, unit=" s")
