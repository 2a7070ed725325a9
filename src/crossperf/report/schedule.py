"""Simulations as a person sees them: tables and sentences on stdout, and a figure.

The figure shows every job on its nodes where there are few, and use and queues over time where there are many.
"""

# C clusters

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from crossperf.arrays import Floats, Integers
from crossperf.errors import MissingDependencyError
from crossperf.report.figures.drawn import Drawn
from crossperf.report.terminal import show
from crossperf.schedule.compare import METRIC, Comparison, TurnaroundDifference
from crossperf.schedule.outcome import Outcome, metrics_table, use_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Up to this number of jobs each is drawn as a bar.
FEW = 300
#: Points in time at which use and queues are drawn.
_POINTS = 1_000
_HOUR_S = 3600.0


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


def draw(outcome: Outcome) -> Drawn:
    """Return the figure of an outcome, a panel for each cluster."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch
    except ImportError as error:
        raise MissingDependencyError("a figure needs matplotlib: pip install 'crossperf[report]'") from error
    few = len(outcome.jobs) <= FEW
    names = outcome.machines.names
    figure = Figure(figsize=(10.0, 1.2 + 1.5 * len(names)), layout="constrained")
    axes = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    for c, ax in enumerate(axes):
        (_gantt if few else _use)(ax, outcome, c)
        ax.set_title(f"{names[c]}, {outcome.machines.nodes[c]} nodes, {outcome.utilisation[c]:.0%} used", loc="left")
        ax.set_xlim(0.0, max(outcome.makespan_s, 1.0) / _HOUR_S)
        ax.spines[["top", "right"]].set_visible(False)
    axes[-1].set_xlabel("hours since the first job arrived")
    question = "Where did every job run?" if few else "Which clusters were busy, and where did jobs queue?"
    placed = f"{outcome.placed.sum():,} of {len(outcome.jobs):,} jobs placed"
    caption = f"{outcome.policy} with {outcome.predictor}: {placed}"
    figure.suptitle(f"{question}\n{caption}", fontsize="large")
    if not few:
        used = Patch(color="tab:blue", alpha=0.4, label="nodes in use (left)")
        waiting = Line2D([], [], color="tab:red", linewidth=0.8, label="jobs waiting (right)")
        figure.legend(handles=[used, waiting], loc="outside lower right", ncols=2, frameon=False)
    return Drawn(figure, caption, title=question, name="schedule")


def _hours(outcome: Outcome, time_s: Floats) -> Floats:
    return np.asarray((time_s - outcome.jobs.submit_s.min()) / _HOUR_S)


def _gantt(ax: Axes, outcome: Outcome, c: int) -> None:
    """Draw each job as a bar over the nodes that it takes."""
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    here = np.flatnonzero(outcome.cluster == c)
    colours = colormaps["tab20"]
    starts, ends = _hours(outcome, outcome.start_s[here]), _hours(outcome, outcome.end_s[here])
    for job, start, end, nodes in zip(here, starts, ends, nodes_of(outcome, c), strict=True):
        for first, count in _stretches(nodes):
            width, colour = end - start, colours(job % 20)
            ax.add_patch(Rectangle((start, first), width, count, facecolor=colour, edgecolor="white", linewidth=0.3))
    ax.set_ylim(0, outcome.machines.nodes[c])
    ax.set_ylabel("node")


def nodes_of(outcome: Outcome, c: int) -> list[Integers]:
    """Return which nodes each job of a cluster has: the lowest that are free when it starts."""
    here = np.flatnonzero(outcome.cluster == c)
    free_at = np.full(outcome.machines.nodes[c], -np.inf)
    taken: dict[int, Integers] = {}
    for job in here[np.argsort(outcome.start_s[here], kind="stable")]:
        nodes = np.flatnonzero(free_at <= outcome.start_s[job])[: outcome.nodes[job]]
        free_at[nodes] = outcome.end_s[job]
        taken[int(job)] = nodes
    return [taken[int(job)] for job in here]


def _stretches(nodes: Integers) -> list[tuple[int, int]]:
    """Return the first node and the length of each unbroken stretch.

    >>> _stretches(np.array([0, 1, 2, 5, 6]))
    [(0, 3), (5, 2)]
    """
    parts = np.split(nodes, np.flatnonzero(np.diff(nodes) > 1) + 1)
    return [(int(part[0]), len(part)) for part in parts if len(part)]


def _use(ax: Axes, outcome: Outcome, c: int) -> None:
    """Draw the share of nodes in use, and the number of jobs that wait."""
    from matplotlib.ticker import MaxNLocator

    here = outcome.cluster == c
    first = outcome.jobs.submit_s.min()
    grid_s = np.linspace(first, first + outcome.makespan_s, _POINTS)
    nodes, start, end = outcome.nodes[here], outcome.start_s[here], outcome.end_s[here]
    used = levels(grid_s, start, end, nodes) / outcome.machines.nodes[c]
    waiting = levels(grid_s, outcome.arrival_s[here], start, np.ones_like(nodes))
    hours = _hours(outcome, grid_s)
    ax.fill_between(hours, used, color="tab:blue", alpha=0.4, linewidth=0)
    ax.set_ylim(0.0, 1.05)
    ax.set_yticks([0.0, 0.5, 1.0], ["0", "50 %", "100 %"])
    right = ax.twinx()
    right.plot(hours, waiting, color="tab:red", linewidth=0.8)
    right.set_ylim(bottom=0.0, top=max(1.0, 1.05 * waiting.max()))
    right.yaxis.set_major_locator(MaxNLocator("auto", integer=True))  # there is no half a job
    right.spines["top"].set_visible(False)


def levels(grid_s: Floats, from_s: Floats, to_s: Floats, weight: Integers) -> Floats:
    """Return the sum of the weights of what is under way at each point of time.

    >>> levels(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0]), np.array([2.0, 3.0]), np.array([4, 1]))
    array([4., 5., 1.])
    """

    def sum_until_now(time_s: Floats) -> Floats:
        order = np.argsort(time_s)
        so_far = np.concatenate([[0.0], np.cumsum(weight[order])])
        return np.asarray(so_far[np.searchsorted(time_s[order], grid_s, side="right")])

    return sum_until_now(from_s) - sum_until_now(to_s)
