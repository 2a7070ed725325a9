"""Simulations as a person reads them in a terminal: tables and sentences on stdout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.markup import escape

from crossperf.report.terminal import console, rich_table
from crossperf.schedule.compare import METRIC
from crossperf.schedule.outcome import metrics_table, use_table

if TYPE_CHECKING:
    from crossperf.schedule.compare import Comparison, PolicyScores, TurnaroundDifference
    from crossperf.schedule.outcome import Outcome


def outcomes(simulations: Sequence[Outcome]) -> None:
    """Print the metrics of simulations of the same jobs, and the use of the clusters."""
    out = console()
    out.print(escape(simulations[0].about))
    out.print(rich_table(metrics_table(simulations)))
    out.print("share of each cluster in use, and jobs that ran there:")
    out.print(rich_table(use_table(simulations)))


def comparison(result: Comparison) -> None:
    """Print the mean metrics over the seeds with their intervals, and which differences are real."""
    out = console()
    out.print(result.about)
    out.print(rich_table(result.table()))
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
