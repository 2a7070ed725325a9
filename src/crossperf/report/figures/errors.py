"""Where a model is wrong: by application and platform, and prediction against measurement."""

# N cells, A applications, P platforms

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from crossperf.arrays import Floats, Integers
from crossperf.evaluation.heldout import HeldOut
from crossperf.evaluation.result import Evaluation
from crossperf.report.figures import cells
from crossperf.report.figures.axes import cloud, height_of_legend, platform_legend, ratio_axis
from crossperf.report.figures.colours import FAINT
from crossperf.report.figures.drawn import NothingToDraw
from crossperf.report.figures.heat import APART, MOST_ROWS, Classes, Map, heat
from crossperf.report.figures.sheet import Sheet
from crossperf.report.figures.words import count, fitted, left_out, percent, plain, times

#: On an axis over more than this the lines of a factor of two run too near to be labelled.
_LABELLED = 1e6
#: Points of a cloud; of more, a random sample of this size.
MOST_POINTS = 2000
_FACTORS = Classes((1.0, 1.1, 1.25, 1.5, 2.0, 4.0), ("to 1.1x", "to 1.25x", "to 1.5x", "to 2x", "to 4x", "4x or more"))


def errors(sheet: Sheet, evaluation: Evaluation, *, model: str | None = None) -> None:
    """Draw the typical factor of a model for each application on each platform, the worst applications first."""
    held = cells.held_out(evaluation)
    name, predictions = cells.predictions_of(evaluation, model)
    truth_np, predicted_np = cells.to_source(held, predictions)
    sum_ap, count_ap = _by_app(np.abs(predicted_np - truth_np), held)
    worst_a = np.argsort(-sum_ap.sum(axis=1) / np.maximum(count_ap.sum(axis=1), 1), kind="stable")[:MOST_ROWS]
    sum_rc, count_rc = (_with_totals(whole_ap, worst_a) for whole_ap in (sum_ap, count_ap))
    factor_rc = np.exp(np.divide(sum_rc, count_rc, out=np.full(sum_rc.shape, np.nan), where=count_rc > 0))
    rows = ["all applications", *(held.apps[a] for a in worst_a)]
    columns = [*held.platforms, "all"]

    def text(row: int, column: int) -> str:
        where = "all platforms" if column == len(held.platforms) else plain(columns[column])
        factor, often = times(float(factor_rc[row, column])), count(int(count_rc[row, column]), "prediction")
        return f"{plain(rows[row])} on {where}: off by {factor} ({often})"

    at_r = [0.0, *(1 + APART + a for a in range(len(worst_a)))]
    at_c = [*map(float, range(len(held.platforms))), len(held.platforms) + APART]
    heat(sheet, Map(rows, columns, factor_rc, at_r, at_c, _FACTORS, _short, text), cells.looks(evaluation), "off by")
    sheet.title = f"Where is {fitted(sheet, name, 2.6, 14)} wrong?"
    sheet.caption = (
        f"{cells.those(evaluation, len(held), 'cell')}, {count(len(held.apps), 'application')}, the worst first. Off "
        "by: the typical factor between predicted and measured time, each over that on the source; 1.00 is "
        "perfect. A dot: nothing to predict there."
        f"{left_out(len(held.apps) - len(worst_a), 'application', 'with smaller errors')}"
    )


def _short(factor: float) -> str:
    return f"{factor:.2f}" if factor < 9.995 else f"{factor:.0f}" if factor < 999.5 else "1k+"


def _by_app(error_np: Floats, held: HeldOut) -> tuple[Floats, Floats]:
    """Return sum and number of the errors of each application on each platform."""
    sums = np.zeros((len(held.apps), len(held.platforms)))
    counts = np.zeros_like(sums)
    app_n = held.app_n
    np.add.at(sums, app_n, np.nan_to_num(error_np))
    np.add.at(counts, app_n, ~np.isnan(error_np))
    return sums, counts


def _with_totals(whole_ap: Floats, rows_a: Integers) -> Floats:
    """Return some rows below the total of all rows, each with its total at the end."""
    with_row = np.vstack([whole_ap.sum(axis=0), whole_ap[rows_a]])
    return np.column_stack([with_row, with_row.sum(axis=1)])


def scatter(sheet: Sheet, evaluation: Evaluation, *, model: str | None = None) -> None:
    """Draw predicted against measured relative times, a point for each cell and each platform but its source."""
    held = cells.held_out(evaluation)
    name, predictions = cells.predictions_of(evaluation, model)
    truth_np, predicted_np = cells.to_source(held, predictions)
    cell_k, platform_k = np.nonzero(~np.isnan(truth_np))
    if not len(cell_k):
        raise NothingToDraw("No held-out workload ran on two platforms, so there is nothing to compare.")
    truth_k, predicted_k = truth_np[cell_k, platform_k], predicted_np[cell_k, platform_k]
    drawn = cells.sample(len(truth_k), MOST_POINTS, evaluation.seed)
    axes = sheet.panel(max(5.0, height_of_legend(len(held.platforms))))
    _lines(axes, np.exp(np.concatenate([truth_k, predicted_k])))
    looks = cells.looks(evaluation)
    targets = [held.platforms[p] for p in platform_k[drawn]]
    cloud(
        axes, np.exp(truth_k[drawn]), np.exp(predicted_k[drawn]), [looks[target] for target in targets], evaluation.seed
    )
    for k in drawn:
        workload = cells.workload_name(held.workloads[held.workload_n[cell_k[k]]])
        source, target = held.platforms[held.source_n[cell_k[k]]], held.platforms[platform_k[k]]
        measured, predicted = times(float(np.exp(truth_k[k]))), times(float(np.exp(predicted_k[k])))
        sheet.point(
            axes,
            float(np.exp(truth_k[k])),
            float(np.exp(predicted_k[k])),
            f"{workload}, profiled on {plain(source)}: {plain(target)} {predicted}, measured {measured}",
        )
    platform_legend(sheet, axes, {name: looks[name] for name in held.platforms}, 1.25, bbox_to_anchor=(1.17, 1.02))
    sheet.title = f"How near is {fitted(sheet, name, 2.4, 14)} to what was measured?"
    sheet.caption = _scatter_caption(evaluation, held, truth_k, predicted_k, len(drawn))


def _lines(axes: Axes, every: Floats) -> None:
    """Draw where prediction and measurement agree, and where they are a factor of two apart."""
    axes.set_aspect("equal")
    low, high = ratio_axis(axes.xaxis, every, "measured time, relative to the source platform", most=6)
    ratio_axis(axes.yaxis, every, "predicted time, relative to the source", most=6)
    ends = np.array([low, high])
    words: dict[str, Any] = {"textcoords": "offset points", "fontsize": 10}
    axes.plot(ends, ends, color=FAINT, linewidth=1.2, zorder=1)
    axes.annotate("1x", (high, high), (4, 0), ha="left", va="center", **words)
    if high / low < 2:
        return
    for factor in (0.5, 2.0):
        axes.plot(ends, ends * factor, color=FAINT, linewidth=1.2, linestyle="--", zorder=1)
    if high / low < _LABELLED:
        axes.annotate("2x under", (high, high / 2), (4, 0), ha="left", va="center", **words)
        axes.annotate("2x over", (high / 2, high), (0, 3), ha="center", va="bottom", **words)


def _scatter_caption(evaluation: Evaluation, held: HeldOut, truth_k: Floats, predicted_k: Floats, drawn: int) -> str:
    error_k = np.abs(predicted_k - truth_k)
    within = percent(float((error_k <= np.log(2.0)).mean()))
    shown = "" if drawn == len(truth_k) else f" A random {drawn:,} of them are drawn."
    return (
        f"{count(len(truth_k), 'prediction')}: {cells.those(evaluation, len(held), 'cell')} on every platform but "
        f"the source, where it was profiled.{shown} Typically off by {times(float(np.exp(error_k.mean())))}; {within} "
        "are within a factor of two (the dashed lines)."
    )
