"""How fast one application is on each platform, measured and predicted (the paper's Figure 3)."""

# N cells, W workloads, P platforms, A applications, 3 quartiles

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from crossperf.errors import CrossperfError, did_you_mean, some_of
from crossperf.report.figures import cells
from crossperf.report.figures.axes import key, mark_one, named_rows, ratio_axis
from crossperf.report.figures.colours import INK, Look, lines_of
from crossperf.report.figures.sheet import Sheet
from crossperf.report.figures.words import count, fitted, fitted_apart, left_out, plain, times

if TYPE_CHECKING:
    from crossperf.evaluation.heldout import HeldOut
    from crossperf.evaluation.run import Evaluation

Floats = NDArray[np.float64]

#: More models than this would bury the measurement: the first are drawn, and fewer of them on many platforms.
_MOST_MODELS, _FEW_MODELS, _MANY_PLATFORMS = 4, 2, 12


@dataclass(frozen=True, eq=False)
class Vector:
    """The quartiles of an application's relative times on each platform: measured, and as each model said them.

    They are over its inputs and over its cells, NaN where none of them ran.
    """

    app: str
    inputs: int
    cells: int
    measured_3p: Floats
    said_3p: dict[str, Floats]

    @property
    def every(self) -> Floats:
        """All quartiles that there are."""
        values = np.concatenate([self.measured_3p.ravel(), *(one_3p.ravel() for one_3p in self.said_3p.values())])
        return np.asarray(values[~np.isnan(values)])


def vector(
    sheet: Sheet, evaluation: Evaluation, *, app: str | None = None, among: Sequence[Vector] | None = None
) -> None:
    """Draw the relative times of an application: measured, and below it what each model said.

    Parameters
    ----------
    app
        The application; ``None`` takes the one with the most cells held out.
    among
        Leave room for these as well, platforms and times: a page moves the marks from one of them to another.
    """
    held = cells.held_out(evaluation)
    app = _chosen(held, app)
    sheet.title = question(fitted(sheet, app, 2.6, 14))
    one = vectors(evaluation, [app])[0]
    _draw(sheet, evaluation, one, among or [one])
    sheet.caption = caption(evaluation, one)


def question(app: str) -> str:
    """Return what the figure of an application answers."""
    return f"How fast is {app} on each platform?"


def vectors(evaluation: Evaluation, apps: Sequence[str]) -> list[Vector]:
    """Return the vectors of applications."""
    held = cells.held_out(evaluation)
    log_time_wp = held.log_time_wp
    measured_wp = np.exp(log_time_wp - np.nanmin(log_time_wp, axis=1, keepdims=True))
    most = _MOST_MODELS if len(held.platforms) <= _MANY_PLATFORMS else _FEW_MODELS
    first = list(held.said.items())[:most]
    said = {name: np.exp(cells.to_fastest(held, one)[1]) for name, one in first}
    app_n, number = held.app_n, {app: i for i, app in enumerate(held.apps)}
    found = []
    for app in apps:
        rows_n = np.flatnonzero(app_n == number[app])
        there_w = np.unique(held.workload_n[rows_n])
        said_3p = {name: _quartiles(relative_np[rows_n]) for name, relative_np in said.items()}
        found.append(Vector(app, len(there_w), len(rows_n), _quartiles(measured_wp[there_w]), said_3p))
    return found


def fastest_first(among: Sequence[Vector]) -> NDArray[np.int64]:
    """Return the platforms that any of these applications ran on, the fastest in the median first."""
    median_ap = np.array([one.measured_3p[1] for one in among])
    there_p = np.flatnonzero(~np.isnan(median_ap).all(axis=0))
    return np.asarray(there_p[np.argsort(np.nanmedian(median_ap[:, there_p], axis=0), kind="stable")])


def _quartiles(relative_np: Floats) -> Floats:
    quartiles_3p = np.full((3, relative_np.shape[1]), np.nan)
    there_p = ~np.isnan(relative_np).all(axis=0)
    quartiles_3p[:, there_p] = np.nanquantile(relative_np[:, there_p], [0.25, 0.5, 0.75], axis=0)
    return quartiles_3p


def _chosen(held: HeldOut, app: str | None) -> str:
    if app is None:
        number, size = np.unique(held.app_n, return_counts=True)
        return held.apps[int(number[size.argmax()])]
    if app not in held.apps:
        raise CrossperfError(
            f"application {app!r} has no held-out cell{did_you_mean(app, held.apps)}, expected one of "
            f"{some_of(held.apps)}.",
            app=app,
        )
    return app


def _draw(sheet: Sheet, evaluation: Evaluation, one: Vector, among: Sequence[Vector]) -> None:
    """Draw a row for each platform: the measurement on top, the models below it, one under another."""
    order_p = fastest_first(among)
    platforms = [cells.held_out(evaluation).platforms[p] for p in order_p]
    rows = 1 + len(one.said_3p)
    line = 0.19 if len(platforms) <= 8 else 0.135
    axes = sheet.panel(1.2 + len(platforms) * (line * rows + 0.14))
    named_rows(sheet, axes, platforms)
    ratio_axis(axes.xaxis, np.concatenate([other.every for other in among]), "time relative to the fastest platform")
    step = line / (line * rows + 0.14)
    looks, styles = cells.looks(evaluation), lines_of(list(evaluation.held_out.said))  # type: ignore[union-attr]
    for row, (p, name) in enumerate(zip(order_p, platforms, strict=True)):
        look, top = looks[name], row - step * (rows - 1) / 2
        _one(sheet, axes, one.measured_3p[:, p], (top, f"{row}-0"), look, f"{plain(name)}, measured", filled=True)
        for place, (model, said_3p) in enumerate(one.said_3p.items(), start=1):
            where, shape = (top + place * step, f"{row}-{place}"), replace(look, shape=styles[model].shape)
            _one(sheet, axes, said_3p[:, p], where, shape, f"{plain(name)}, predicted by {plain(model)}", filled=False)
        if row:
            axes.axhline(row - 0.5, color=INK, linewidth=0.5, alpha=0.2)
    mark_one(axes)
    _key(sheet, axes, {model: styles[model].shape for model in one.said_3p})


def _one(
    sheet: Sheet, axes: Axes, quartiles_3: Floats, where: tuple[float, str], look: Look, name: str, *, filled: bool
) -> None:
    """Draw median and middle half of some ratios, and let a pointer rest on them.

    Where there are none, both are drawn unseen at 1x: a page that moves the marks finds them by their names.

    Parameters
    ----------
    where
        The height of the marks, and how they are called inside an SVG: ``line-`` and ``dot-`` go before.
    """
    height, gid = where
    there = not np.isnan(quartiles_3).any()
    first, middle, third = (float(value) for value in np.nan_to_num(quartiles_3, nan=1.0))
    (line,) = axes.plot([first, third], [height] * 2, color=look.colour, linewidth=3.5 if filled else 1.2)
    line.set(gid=f"line-{gid}", solid_capstyle="butt", alpha=None if there else 0.0)
    (dot,) = axes.plot([middle], [height], marker=look.shape, markersize=8 if filled else 6, color=look.colour)
    dot.set(gid=f"dot-{gid}", linestyle="none", markeredgewidth=1.4, alpha=None if there else 0.0)
    if not filled:
        dot.set_markerfacecolor("none")
    if there:
        words = f"{name}: median {times(middle)}, middle half {times(first)} to {times(third)}"
        sheet.box(axes, (first, third), (height - 0.08, height + 0.08), words)


def _key(sheet: Sheet, axes: Axes, shapes: dict[str, str]) -> None:
    handles = [Line2D([], [], color=INK, marker="o", markersize=8, linewidth=3.5)]
    for shape in shapes.values():
        handles.append(Line2D([], [], color=INK, marker=shape, markersize=6, linewidth=1.2, markeredgewidth=1.4))
        handles[-1].set_markerfacecolor("none")
    labels = ["measured", *fitted_apart(sheet, shapes, 1.4, 10)]
    key(axes, labels, handles, bbox_to_anchor=(1.0, 1.0), handletextpad=0.7)


def caption(evaluation: Evaluation, one: Vector) -> str:
    """Return what the figure of an application shows, with its counts."""
    models_left = len(cells.held_out(evaluation).said) - len(one.said_3p)
    left = left_out(models_left, "further model")
    said = (
        f", predicted from {count(one.cells, 'cell')}, one for each platform that an input was profiled on"
        if one.said_3p
        else ""
    )
    return (
        f"{plain(one.app)}: {cells.those(evaluation, one.inputs, 'input')}{said}. The mark is the median, the line the "
        f"middle half.{left}"
    )
