"""Where jobs ran and how busy clusters were: small multiples of simulations, one for each policy."""

# C clusters, T points in time

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from crossperf.arrays import Floats, Integers
from crossperf.errors import several
from crossperf.platforms import in_order
from crossperf.report.figures.axes import legend
from crossperf.report.figures.colours import FAINT, GROUP_COLOURS, INK, looks_of
from crossperf.report.figures.drawn import Drawn
from crossperf.report.figures.sheet import Sheet, settings
from crossperf.report.figures.words import fitted, fitted_apart, left_out, percent, plain
from crossperf.schedule.outcome import Outcome

#: Up to this number of jobs each is drawn as a bar.
FEW = 300
#: Panels of a figure; of more simulations the first are drawn.
MOST_PANELS = 12
#: Points in time at which use and queues are drawn.
_POINTS = 1_000
_HOUR_S = 3600.0
_NAME = "schedule"
_EDGED = 0.12  # the height of a bar, in bands, from which on it has an edge
_BAND = 0.82  # the height of a cluster's band, of the room that it has


def jobs(outcomes: Sequence[Outcome], apps: Sequence[str] | None = None, *, bare: bool = False) -> Drawn:
    """Return the figure of simulations of the same jobs, a panel for each: jobs on nodes, or use and queues over time.

    Parameters
    ----------
    apps
        The application of each workload, to colour jobs by; ``None`` colours them by the cluster they ran on.
    """
    shown, few = list(outcomes)[:MOST_PANELS], len(outcomes[0].jobs) <= FEW
    with settings(_NAME):
        question = "Where did every job run?" if few else "Which clusters were busy, and where did jobs queue?"
        sheet = Sheet(_NAME, question)
        clusters = in_order(shown[0].machines.names)
        row = max(0.2, 1.1 / len(clusters)) if few else max(0.24, 1.1 / len(clusters))
        panels = sheet.stacked((0.55 + row * len(clusters)) * len(shown) + 0.4, len(shown), sharex=True)
        colours = _Colours(shown, clusters, apps if few else None)
        most_waiting = (
            0.0 if few else max(_queue(own, c).max(initial=0.0) for own in shown for c in range(len(clusters)))
        )
        for axes, outcome in zip(panels, shown, strict=True):
            _panel(sheet, axes, outcome, clusters)
            for band, name in enumerate(clusters):
                place = outcome.machines.names.index(name)
                if few:
                    _gantt(sheet, axes, outcome, (place, band), colours)
                else:
                    _use(sheet, axes, outcome, (place, band), colours, most_waiting)
        panels[-1].set_xlabel("hours since the first job arrived")
        panels[0].set_xlim(0.0, max(*(own.makespan_s for own in shown), 1.0) / _HOUR_S)
        _legend(sheet, panels[0], colours, most_waiting, few=few)
        sheet.caption = _caption(shown, len(outcomes) - len(shown), most_waiting, few=few, by_app=colours.by_app)
        return sheet.finish(bare=bare)


class _Colours:
    """Which colour each job has: that of its application, or of the cluster it ran on."""

    def __init__(self, outcomes: Sequence[Outcome], clusters: Sequence[str], apps: Sequence[str] | None) -> None:
        self.apps = apps
        self.by_app = apps is not None
        self.named: dict[str, str] = {name: look.colour for name, look in looks_of(clusters).items()}
        if apps is not None:
            counts = Counter(apps[w] for w in outcomes[0].workload.tolist() if w >= 0)
            often = sorted(app for app, _ in counts.most_common(len(GROUP_COLOURS)))
            self.named = dict(zip(often, GROUP_COLOURS, strict=False))
            if rest := len(counts) - len(often):
                self.named[f"{rest} others"] = FAINT

    def of(self, outcome: Outcome, job: int) -> str:
        """Return the colour of a job."""
        return self.named.get(self.group(outcome, job), FAINT)

    def group(self, outcome: Outcome, job: int) -> str:
        """Return what a job is coloured by."""
        if self.apps is not None:
            return self.apps[int(outcome.workload[job])]
        return outcome.machines.names[int(outcome.cluster[job])]


def _panel(sheet: Sheet, axes: Axes, outcome: Outcome, clusters: Sequence[str]) -> None:
    """Set up the panel of a simulation: a band for each cluster, and above it who chose and what came of it."""
    nodes = dict(zip(outcome.machines.names, outcome.machines.nodes, strict=True))
    names = fitted_apart(sheet, clusters, 1.2, 10)
    axes.set_yticks(
        range(len(clusters)), [f"{short} ({nodes[name]})" for short, name in zip(names, clusters, strict=True)]
    )
    axes.set_ylim(len(clusters) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    turnaround = outcome.metrics().mean_turnaround_s
    result = (
        "no job ran"
        if turnaround is None
        else f"turnaround {_duration(turnaround)}, makespan {_duration(outcome.makespan_s)}"
    )
    whose = fitted(sheet, f"{outcome.policy} with {outcome.predictor}", 3.2, 11)
    axes.set_title(f"{whose}: {result}", loc="left", fontsize=11, color=INK)
    axes.grid(True, axis="x")


def _duration(seconds: float) -> str:
    for unit, length in (("d", 86_400.0), ("h", _HOUR_S), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:,.1f} s"


def _hours(outcome: Outcome, time_s: Floats) -> Floats:
    return np.asarray((time_s - outcome.jobs.submit_s.min()) / _HOUR_S)


def _gantt(sheet: Sheet, axes: Axes, outcome: Outcome, where: tuple[int, int], colours: _Colours) -> None:
    """Draw each job of a cluster as a bar over the nodes that it takes, in the cluster's band."""
    c, band = where
    here = np.flatnonzero(outcome.cluster == c)
    top, scale = band - _BAND / 2, _BAND / outcome.machines.nodes[c]
    axes.axhspan(top, top + _BAND, color=FAINT, alpha=0.12, linewidth=0)
    starts, ends = _hours(outcome, outcome.start_s[here]), _hours(outcome, outcome.end_s[here])
    bars, fills, edges = [], [], []
    for job, start, end, nodes in zip(here.tolist(), starts.tolist(), ends.tolist(), nodes_of(outcome, c), strict=True):
        stretches = _stretches(nodes)
        bars += [Rectangle((start, top + first * scale), end - start, count * scale) for first, count in stretches]
        fills += [colours.of(outcome, job)] * len(stretches)
        # A bar of few nodes out of many has no room for an edge of its own.
        edges += ["white" if count * scale > _EDGED else fills[-1] for _, count in stretches]
        first, count = stretches[0]
        waited = _duration(float(outcome.wait_s[job]))
        text = f"job {job + 1:,}, {plain(colours.group(outcome, job))}: {several(len(nodes), 'node')} of "
        text += f"{plain(outcome.machines.names[c])} for {_duration((end - start) * _HOUR_S)}, after a wait of {waited}"
        sheet.box(axes, (start, end), (top + first * scale, top + (first + count) * scale), text)
    axes.add_collection(PatchCollection(bars, facecolors=fills, edgecolors=edges, linewidths=0.5))


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


def _use(
    sheet: Sheet, axes: Axes, outcome: Outcome, where: tuple[int, int], colours: _Colours, most_waiting: float
) -> None:
    """Draw the share of a cluster's nodes in use as its band fills up, and the jobs that wait as a line in it."""
    c, band = where
    here, grid_s = outcome.cluster == c, _grid(outcome)
    name, bottom = outcome.machines.names[c], band + _BAND / 2
    used_t = levels(grid_s, outcome.start_s[here], outcome.end_s[here], outcome.nodes[here])
    used_t, waiting_t, hours_t = used_t / outcome.machines.nodes[c], _queue(outcome, c), _hours(outcome, grid_s)
    axes.fill_between(hours_t, bottom - _BAND * used_t, bottom, color=colours.named[name], alpha=0.55, linewidth=0)
    axes.plot(hours_t, bottom - _BAND * waiting_t / max(most_waiting, 1.0), color=INK, linewidth=1.0)
    text = f"{plain(name)}: {percent(float(outcome.utilisation[c]))} of {outcome.machines.nodes[c]:,} nodes used, "
    text += f"{several(int(here.sum()), 'job')}, up to {int(waiting_t.max(initial=0.0)):,} waiting"
    sheet.box(axes, (0.0, float(hours_t[-1])), (band - _BAND / 2, bottom), text)


def _grid(outcome: Outcome) -> Floats:
    first = outcome.jobs.submit_s.min()
    return np.linspace(first, first + outcome.makespan_s, _POINTS)


def _queue(outcome: Outcome, c: int) -> Floats:
    """Return how many jobs wait for a cluster at each point in time."""
    here = outcome.cluster == c
    return levels(_grid(outcome), outcome.arrival_s[here], outcome.start_s[here], np.ones(int(here.sum()), np.int64))


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


def _legend(sheet: Sheet, axes: Axes, colours: _Colours, most_waiting: float, *, few: bool) -> None:
    handles: list[Artist] = [Patch(color=colour, alpha=1.0 if few else 0.55) for colour in colours.named.values()]
    labels = fitted_apart(sheet, colours.named, 1.2, 10)
    if not few:
        handles.append(Line2D([], [], color=INK, linewidth=1.0))
        labels.append(f"waiting (top: {most_waiting:,.0f})")
    title = "application" if colours.by_app else "cluster" if few else "nodes in use"
    legend(sheet, axes, labels, handles, title=title, alignment="left", handlelength=1.2, handletextpad=0.5)


def _caption(outcomes: Sequence[Outcome], more: int, most_waiting: float, *, few: bool, by_app: bool) -> str:
    first, placed = outcomes[0], Counter(int(own.placed.sum()) for own in outcomes)
    counts = "" if len(placed) > 1 else f", {next(iter(placed)):,} of them placed"
    rows = "the nodes of a cluster, whose number is in brackets"
    if few:
        what = f"A bar is a job over the nodes that it took, its colour the {'application' if by_app else 'cluster'}"
    else:
        what = f"A full band is a cluster in use; the line is jobs that wait, {most_waiting:,.0f} at the top of a band"
    left = left_out(more, "further simulation")
    return f"{several(len(first.jobs), 'job')}{counts}. Rows are {rows}. {what}.{left}"
