"""How fast one application is on each platform, measured and predicted (the paper's Figure 3)."""

# N cells, W workloads, P platforms, A applications, 3 quartiles

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from crossperf.arrays import Floats, Integers
from crossperf.errors import CrossperfError, did_you_mean, several, some_of
from crossperf.evaluation import metrics
from crossperf.evaluation.heldout import HeldOut
from crossperf.evaluation.result import Evaluation
from crossperf.report.figures import FIGURES, Drawn, cells
from crossperf.report.figures.axes import (
    legend,
    line_at_1x,
    most_marks,
    named_rows,
    ratio_axis,
    ratio_limits,
    ratio_marks,
)
from crossperf.report.figures.colours import INK, Look, lines_of
from crossperf.report.figures.sheet import Sheet, draw
from crossperf.report.figures.words import fitted, fitted_apart, left_out, number, plain, times

#: Applications to choose from; of more, those with the most cells.
MOST_APPS = 200
#: More models than this would bury the measurement: the first are drawn, and fewer of them on many platforms.
_MOST_MODELS, _FEW_MODELS, _MANY_PLATFORMS = 4, 2, 12


@dataclass(frozen=True, eq=False)
class Vector:
    """The quartiles of an application's relative times on each platform: measured, and predicted by each model.

    They are over its inputs and over its cells, NaN where none of them ran.
    """

    app: str
    inputs: int
    cells: int
    measured_3p: Floats
    predicted_3p: dict[str, Floats]

    @property
    def series(self) -> list[Floats]:
        """The quartiles, the measured ones first."""
        return [self.measured_3p, *self.predicted_3p.values()]


def vector(
    sheet: Sheet,
    evaluation: Evaluation,
    *,
    app: str | None = None,
    rpv: str | None = None,
    among: Sequence[Vector] | None = None,
) -> None:
    """Draw the relative times of an application: measured, and below it as each model predicts them.

    Parameters
    ----------
    app
        The application; ``None`` takes the one with the most cells held out.
    rpv
        What times are relative to; ``None`` takes the fastest platform.
    among
        Leave room for the platforms of these as well: a page moves the marks from one of them to another.
    """
    held, reference = cells.held_out(evaluation), cells.rpv_of(rpv, "fastest")
    app = _chosen(held, app)
    sheet.title = _question(fitted(sheet, app, 1.6 if sheet.narrow else 2.6, 14))
    shown = vectors(evaluation, [app], reference)[0]
    _draw(sheet, evaluation, shown, among or [shown], reference)
    sheet.caption = _caption(evaluation, shown)


def _question(app: str) -> str:
    return f"How fast is {app} on each platform?"


def vectors(evaluation: Evaluation, apps: Sequence[str], rpv: str = "fastest") -> list[Vector]:
    """Return the vectors of applications."""
    held = cells.held_out(evaluation)
    most = _MOST_MODELS if len(held.platforms) <= _MANY_PLATFORMS else _FEW_MODELS
    measured_np = np.exp(_measured(held, rpv))
    predicted = {name: np.exp(cells.relative(held, name, rpv)[1]) for name in list(held.predictions)[:most]}
    app_n, number = held.app_n, {app: i for i, app in enumerate(held.apps)}
    made = []
    for app in apps:
        rows_n = np.flatnonzero(app_n == number[app])
        own_w, first_n = np.unique(held.workload_n[rows_n], return_index=True)
        # Relative to the fastest or the slowest, an input has one vector, whichever platform it was profiled on.
        inputs_n = rows_n if rpv == "source" else rows_n[first_n]
        predicted_3p = {name: _quartiles(relative_np[rows_n]) for name, relative_np in predicted.items()}
        made.append(Vector(app, len(own_w), len(rows_n), _quartiles(measured_np[inputs_n]), predicted_3p))
    return made


def _measured(held: HeldOut, rpv: str) -> Floats:
    """Return the log times of each cell relative to its fastest, slowest or source platform."""
    truth_np = held.log_relative_time_np
    if rpv == "source":
        return metrics.without_source(truth_np, held.source_n)
    return np.asarray(truth_np - (np.nanmin if rpv == "fastest" else np.nanmax)(truth_np, axis=1, keepdims=True))


def rows_of(evaluation: Evaluation, among: Sequence[Vector]) -> Integers:
    """Return the platforms that any of these applications ran on, in the order shown."""
    known_p = np.asarray(~np.isnan(np.array([own.measured_3p[1] for own in among])).all(axis=0))
    return np.array([p for p in cells.places(evaluation, cells.held_out(evaluation)) if known_p[p]], dtype=np.int64)


def _quartiles(relative_np: Floats) -> Floats:
    quartiles_3p = np.full((3, relative_np.shape[1]), np.nan)
    known_p = ~np.isnan(relative_np).all(axis=0)
    quartiles_3p[:, known_p] = np.nanquantile(relative_np[:, known_p], [0.25, 0.5, 0.75], axis=0)
    return quartiles_3p


def _chosen(held: HeldOut, app: str | None) -> str:
    if app is None:
        number, size = np.unique(held.app_n, return_counts=True)
        return held.apps[int(number[size.argmax()])]
    if app not in held.held_apps:
        raise CrossperfError(
            f"application {app!r} has no held-out cell{did_you_mean(app, held.held_apps)}, expected one of "
            f"{some_of(held.held_apps)}.",
            app=app,
        )
    return app


def _draw(sheet: Sheet, evaluation: Evaluation, shown: Vector, among: Sequence[Vector], rpv: str) -> None:
    """Draw a row for each platform: the measurement on top, the models below it, one under another."""
    order_p = rows_of(evaluation, among)
    platforms = [cells.held_out(evaluation).platforms[p] for p in order_p]
    rows = 1 + len(shown.predicted_3p)
    line = 0.19 if len(platforms) <= 8 else 0.135
    axes = sheet.panel(1.2 + len(platforms) * (line * rows + 0.14))
    named_rows(sheet, axes, platforms)
    ratio_axis(axes.xaxis, _known(shown), f"time relative to {cells.RPV[rpv]}", most=most_marks(sheet))
    for place, tick in enumerate(axes.xaxis.get_major_ticks()):
        tick.set_gid(f"tick-{place}")  # a page that moves the marks moves these with the axis
    step = line / (line * rows + 0.14)
    looks, styles = cells.looks(evaluation), lines_of(list(evaluation.held_out.predictions))  # type: ignore[union-attr]
    for row, (p, name) in enumerate(zip(order_p, platforms, strict=True)):
        look, top = looks[name], row - step * (rows - 1) / 2
        _series(sheet, axes, shown.measured_3p[:, p], (top, f"{row}-0"), look, f"{plain(name)}, measured", filled=True)
        for place, (model, own_3p) in enumerate(shown.predicted_3p.items(), start=1):
            where, shape = (top + place * step, f"{row}-{place}"), replace(look, shape=styles[model].shape)
            whose = f"{plain(name)}, predicted by {plain(model)}"
            _series(sheet, axes, own_3p[:, p], where, shape, whose, filled=False)
        if row:
            axes.axhline(row - 0.5, color=INK, linewidth=0.5, alpha=0.2)
    line_at_1x(axes).set_gid("once")
    _legend(sheet, axes, {model: styles[model].shape for model in shown.predicted_3p})


def _known(shown: Vector) -> Floats:
    every = np.array(shown.series)
    return np.asarray(every[~np.isnan(every)])


def _series(
    sheet: Sheet, axes: Axes, quartiles_3: Floats, where: tuple[float, str], look: Look, name: str, *, filled: bool
) -> None:
    """Draw median and middle half of some ratios at a height, with a tooltip.

    Where there are none, both are drawn unseen at 1x: a page that moves the marks finds them by their names in the SVG.
    """
    height, gid = where
    known = not np.isnan(quartiles_3).any()
    first, middle, third = (float(value) for value in np.nan_to_num(quartiles_3, nan=1.0))
    (line,) = axes.plot([first, third], [height] * 2, color=look.colour, linewidth=3.5 if filled else 1.2)
    line.set(gid=f"line-{gid}", solid_capstyle="butt", alpha=None if known else 0.0)
    (dot,) = axes.plot([middle], [height], marker=look.shape, markersize=8 if filled else 6, color=look.colour)
    dot.set(gid=f"dot-{gid}", linestyle="none", markeredgewidth=1.4, alpha=None if known else 0.0)
    if not filled:
        dot.set_markerfacecolor("none")
    if known:
        sheet.box(axes, (first, third), (height - 0.08, height + 0.08), f"{name}: {_in_words(quartiles_3)}")


def _legend(sheet: Sheet, axes: Axes, shapes: dict[str, str]) -> None:
    handles = [Line2D([], [], color=INK, marker="o", markersize=8, linewidth=3.5)]
    for shape in shapes.values():
        handles.append(Line2D([], [], color=INK, marker=shape, markersize=6, linewidth=1.2, markeredgewidth=1.4))
        handles[-1].set_markerfacecolor("none")
    labels = ["measured", *fitted_apart(sheet, shapes, 1.4, 10)]
    legend(sheet, axes, labels, handles, bbox_to_anchor=(1.0, 1.0), handletextpad=0.7)


def _caption(evaluation: Evaluation, shown: Vector) -> str:
    models_left = len(cells.held_out(evaluation).predictions) - len(shown.predicted_3p)
    left = left_out(models_left, "further model")
    predicted = (
        f", predicted from {several(shown.cells, 'cell')}, one for each platform that an input was profiled on"
        if shown.predicted_3p
        else ""
    )
    return (
        f"{plain(shown.app)}: {cells.those(evaluation, shown.inputs, 'input')}{predicted}. The mark is the median, the "
        f"line the middle half.{left}"
    )


@dataclass(frozen=True)
class Chooser:
    """The drawings of the first choice, what the script needs for the others, and a note on those left out."""

    drawn: Drawn
    narrow: Drawn
    facts: dict[str, Any]
    left_out: str


def chooser(evaluation: Evaluation, rpv: str | None = None) -> Chooser:
    """Return the figure with a choice of applications: a drawing whose marks and axis a script can move."""
    held, reference = cells.held_out(evaluation), cells.rpv_of(rpv, "fastest")
    often_a = np.bincount(held.app_n, minlength=len(held.apps))
    names = [held.apps[a] for a in np.argsort(-often_a, kind="stable") if often_a[a]]
    among = vectors(evaluation, sorted(names[:MOST_APPS]), reference)
    how, chosen = partial(vector, among=among), {"app": names[0], "rpv": rpv}
    wide, narrow = (
        draw(FIGURES["vector"], how, evaluation, chosen, bare=True, narrow=narrow) for narrow in (False, True)
    )
    order_p = rows_of(evaluation, among)
    facts = {
        "chosen": [own.app for own in among].index(names[0]),
        "platforms": [plain(held.platforms[p]) for p in order_p],
        "series": ["measured", *(f"predicted by {plain(model)}" for model in among[0].predicted_3p)],
        "spans": [_span(wide), _span(narrow)],
        "apps": [
            {
                "name": plain(own.app),
                "question": _question(plain(own.app)),
                "caption": _caption(evaluation, own),
                "axis": _axis(own),
                "marks": [[_mark(own_3p[:, p]) for own_3p in own.series] for p in order_p],
            }
            for own in among
        ],
    }
    more = len(names) - len(among)
    left = f"the {len(among)} with the most cells; {more:,} more are left out" if more else ""
    return Chooser(wide, narrow, facts, left)


def _span(drawn: Drawn) -> list[float]:
    """Return where the axis begins and ends, in points from the left edge."""
    box = drawn.figure.axes[0].get_window_extent()
    return [round(edge * 72 / drawn.figure.dpi, 2) for edge in (box.x0, box.x1)]


def _axis(own: Vector) -> list[Any]:
    """Return where the axis of an application begins and ends, and its marks on a wide and on a narrow drawing."""
    low, high = ratio_limits(_known(own))
    marks = [[[mark, f"{number(mark)}x"] for mark in ratio_marks(low, high, most)] for most in (7, 4)]
    return [float(f"{low:.5g}"), float(f"{high:.5g}"), *marks]


def _mark(quartiles_3: Floats) -> list[Any] | None:
    """Return where a line begins, its mark lies and it ends, as ratios, and in words."""
    if np.isnan(quartiles_3).any():
        return None
    return [*(float(f"{ratio:.4g}") for ratio in quartiles_3), _in_words(quartiles_3)]


def _in_words(quartiles_3: Floats) -> str:
    first, middle, third = map(times, quartiles_3.tolist())
    return f"median {middle}, middle half {first} to {third}"
