"""Simulations as a person reads them in a terminal: tables and sentences on stdout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from crossperf.report.terminal import console
from crossperf.schedule.compare import METRIC

if TYPE_CHECKING:
    from crossperf.schedule.compare import Comparison, PolicyScores, TurnaroundDifference
    from crossperf.schedule.outcome import Outcome


def outcomes(simulations: Sequence[Outcome]) -> None:
    """Print the metrics of simulations of the same jobs, and the use of the clusters."""
    out = console()
    first = simulations[0]
    total = sum(first.machines.nodes)
    out.print(escape(f"{first.jobs.name} on {len(first.machines.names)} clusters of {total:,} nodes"))
    priced = any(first.machines.price_per_node_hour)
    table = Table(
        "policy", "predictor", "turnaround", "p95", "wait", "p95", "slowdown", "p95", "run", "makespan", "limits"
    )
    use = Table("policy", "predictor", *(escape(name) for name in first.machines.names))
    if priced:
        table.add_column("cost")
    for column in (*table.columns[2:], *use.columns[2:]):
        column.justify = "right"
    for outcome in simulations:
        metrics = outcome.metrics()
        times = (metrics.mean_turnaround_s, metrics.p95_turnaround_s, metrics.mean_wait_s, metrics.p95_wait_s)
        row = [*map(_duration, times), _plain(metrics.mean_bounded_slowdown), _plain(metrics.p95_bounded_slowdown)]
        row += [_duration(metrics.mean_run_s), _duration(metrics.makespan_s), f"{outcome.counts().limit_violations:,}"]
        row += [_plain(metrics.cost)] if priced else []
        who = escape(outcome.policy), escape(outcome.predictor)
        table.add_row(*who, *row)
        use.add_row(*who, *(f"{cluster.utilisation:.0%}, {cluster.jobs:,}" for cluster in outcome.clusters().values()))
    out.print(table)
    out.print("share of each cluster in use, and jobs that ran there:")
    out.print(use)


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for unit, length in (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:,.1f} s"


def _plain(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}"


def comparison(result: Comparison) -> None:
    """Print the mean figures over the seeds with their intervals, and which differences are real."""
    out = console()
    columns = ("mean_turnaround_s", "mean_wait_s", "mean_bounded_slowdown", "mean_run_s", "makespan_s", "cost")
    shown = [name for name in columns if any(scores.metrics[name].any() for scores in result.scores)]
    table = Table("policy", "predictor", *shown)
    for column in table.columns[2:]:
        column.justify = "right"
    for scores in result.scores:
        intervals = [scores.interval(name) for name in shown]
        texts = [f"{mean:,.1f}" + ("" if half is None else f" ± {half:,.1f}") for mean, half in intervals]
        table.add_row(escape(scores.policy), escape(scores.predictor), *texts)
    out.print(
        f"mean over {len(result.seeds)} seeds ({result.seeds[0]} to {result.seeds[-1]}) ± half of its 95 % interval"
    )
    out.print(table)
    if not result.differences:
        out.print("which differences are real takes two seeds or more, and two policies or predictors")
        return
    real = [difference for difference in result.differences if difference.real]
    out.print(
        f"{len(real)} of {len(result.differences)} differences in mean turnaround are real (paired over the seeds, "
        "corrected for their number); the best with each predictor and of each policy:"
    )
    for difference in _from_the_best(result):
        out.print(escape(_sentence(difference)), style=None if difference.real else "dim")


def _from_the_best(result: Comparison) -> list[TurnaroundDifference]:
    """Return the differences whose better side is the best of its predictor or policy."""

    def best(shared: str, value: str) -> PolicyScores:
        rivals = [scores for scores in result.scores if getattr(scores, shared) == value]
        return min(rivals, key=lambda scores: scores.interval(METRIC)[0])

    shown = []
    for difference in result.differences:
        first, second = difference.first, difference.second
        shared = "predictor" if first.predictor == second.predictor else "policy"
        if best(shared, getattr(first, shared)).name in (first.name, second.name):
            shown.append(difference)
    return shown


def _sentence(difference: TurnaroundDifference) -> str:
    """Return how two combinations differ in words, the shorter turnaround first."""
    first, second, change = difference.first, difference.second, difference.factor
    low, high = difference.low, difference.high
    if change > 1.0:
        first, second, change, low, high = second, first, 1.0 / change, 1.0 / high, 1.0 / low
    what = "real" if difference.real else "may be chance"
    return (
        f"{first.name}: {1 - change:.1%} less than {second.name} ({1 - high:.1%} to {1 - low:.1%}; "
        f"p {difference.p:.2g}, {what})"
    )
