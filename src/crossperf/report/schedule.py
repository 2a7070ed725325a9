"""Simulations as a person sees them: tables and sentences on stdout, and a figure."""

from __future__ import annotations

from collections.abc import Sequence

from crossperf.errors import MissingDependencyError
from crossperf.report.figures.drawn import Drawn
from crossperf.report.terminal import show
from crossperf.schedule.compare import METRIC, Comparison, TurnaroundDifference
from crossperf.schedule.outcome import Outcome, metrics_table, use_table


def outcomes(simulations: Sequence[Outcome]) -> None:
    """Print the metrics of simulations of the same jobs, and the use of the clusters."""
    show(simulations[0].about, metrics_table(simulations))
    show("share of each cluster in use, and jobs that ran there:", use_table(simulations))


def comparison(result: Comparison) -> None:
    """Print the mean metrics over the seeds with their intervals, and which differences are real."""
    show(result.about, result.table())
    if not result.differences:
        show("which differences are real takes two seeds or more, and two policies or predictors")
        return
    real = [difference for difference in result.differences if difference.real]
    show(
        f"{len(real)} of {len(result.differences)} differences in mean turnaround are real (paired over the seeds, "
        "corrected for their number); the best with each predictor and of each policy:"
    )
    for difference in result.differences:
        if _holds_the_best(difference, result):
            show(_sentence(difference), style=None if difference.real else "dim")


def _holds_the_best(difference: TurnaroundDifference, result: Comparison) -> bool:
    """Tell whether one side is the best of the predictor or policy that both share."""
    first, second = difference.first, difference.second
    shared = "predictor" if first.predictor == second.predictor else "policy"
    rivals = [scores for scores in result.scores if getattr(scores, shared) == getattr(first, shared)]
    return min(rivals, key=lambda scores: scores.interval(METRIC)[0]).name in (first.name, second.name)


def _sentence(difference: TurnaroundDifference) -> str:
    """Return how two combinations differ in words, the shorter turnaround first."""
    first, second, change = difference.first, difference.second, difference.factor
    low, high = difference.low, difference.high
    if change > 1.0:
        first, second, change, low, high = second, first, 1.0 / change, 1.0 / high, 1.0 / low
    what = "real" if difference.real else "may be chance"
    interval = f"{1 - high:.1%} to {1 - low:.1%}; p {difference.p:.2g}, {what}"
    return f"{first.name}: {1 - change:.1%} less than {second.name} ({interval})"


def draw(outcomes: Sequence[Outcome], apps: Sequence[str] | None = None) -> Drawn:
    """Return the figure of simulations of the same jobs, a panel for each.

    Parameters
    ----------
    apps
        The application of each workload, to colour jobs by; ``None`` colours them by cluster.
    """
    try:
        from crossperf.report.figures.jobs import jobs
    except ImportError as error:
        raise MissingDependencyError("a figure needs matplotlib: pip install 'crossperf[report]'") from error
    return jobs(outcomes, apps)
