"""Predictions against measurements: how near, the coverage of intervals, the error where runs look unfamiliar."""

# N cells, P platforms, B bins

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from crossperf.arrays import Floats, Integers
from crossperf.errors import several
from crossperf.evaluation import metrics
from crossperf.evaluation.heldout import LEVEL, HeldOut, HeldOutPredictions
from crossperf.evaluation.latent import sample
from crossperf.evaluation.result import Evaluation
from crossperf.evaluation.scores import Scores
from crossperf.records import LOOKS, ORDINARY, UNKNOWN_BEYOND, looks
from crossperf.report.figures import NothingToDraw, cells
from crossperf.report.figures import axes as shared
from crossperf.report.figures.colours import FAINT, INK, Look, lines_of
from crossperf.report.figures.sheet import Sheet
from crossperf.report.figures.words import fitted, of_r2, percent, plain, times

_LEVELS = (*(round(0.05 * i, 2) for i in range(1, 20)), 0.99)  # the levels asked of the intervals
#: Where the word for a run changes, and how far the axis reaches at least, so that each word has room.
_BORDERS, _REACH = (ORDINARY, UNKNOWN_BEYOND), (0.25, 4.5)
_BIN, _MOST_BINS = 30, 12  # cells of a point on the line of typical factors, and the most such points
#: On an axis over more than this the lines of a factor of two run too near to be labelled.
_LABELLED, _LABELLED_NARROW = 1e6, 200
_MOST_POINTS, _MOST_NARROW = 1000, 300  # of a cloud; of more, a random sample of this size
_DRAWS = 400  # resamples of the workloads that tell whether oddness matters


def scatter(sheet: Sheet, evaluation: Evaluation, *, model: str | None = None, rpv: str | None = None) -> None:
    """Draw predicted against measured relative times, a point for each cell and each platform but its source."""
    held, reference = cells.held_out(evaluation), cells.rpv_of(rpv, "source")
    name, _ = cells.predictions_of(evaluation, model)
    truth_np, predicted_np = (
        metrics.without_source(own_np, held.source_n) for own_np in cells.relative(held, name, reference)
    )
    cell_k, platform_k = np.nonzero(~np.isnan(truth_np))
    if not len(cell_k):
        raise NothingToDraw("No held-out workload ran on two platforms, so there is nothing to compare.")
    drawn = sample(len(cell_k), _MOST_NARROW if sheet.narrow else _MOST_POINTS, evaluation.seed)
    axes = sheet.panel(max(4.1 if sheet.narrow else 5.0, shared.height_of_legend(sheet, len(held.platforms))))
    measured_k, predicted_k = np.exp(truth_np[cell_k, platform_k]), np.exp(predicted_np[cell_k, platform_k])
    _lines(sheet, axes, np.concatenate([measured_k, predicted_k]), cells.RPV[reference])
    looks = _looks(evaluation, held)
    targets = [looks[held.platforms[p]] for p in platform_k[drawn]]
    shared.cloud(axes, measured_k[drawn], predicted_k[drawn], targets, evaluation.seed)
    for k in drawn:
        run, target = cells.profiled(held, cell_k[k]), plain(held.platforms[platform_k[k]])
        measured, predicted = float(measured_k[k]), float(predicted_k[k])
        sheet.point(axes, measured, predicted, f"{run}: {target} {times(predicted)}, measured {times(measured)}")
    shared.platform_legend(sheet, axes, looks, 1.25, bbox_to_anchor=(1.17, 1.02))
    sheet.title = f"How near is {fitted(sheet, name, 1.4 if sheet.narrow else 2.4, 14)} to what was measured?"
    error_k = np.abs(predicted_np - truth_np)[cell_k, platform_k]
    scores = evaluation.scores[name] if name in evaluation.scores else Scores()
    sheet.caption = f"{_scatter_caption(evaluation, error_k, len(drawn))} {of_r2(scores)}".strip()


def _looks(evaluation: Evaluation, held: HeldOut) -> dict[str, Look]:
    """Return the looks of the platforms that were held out, in the order shown."""
    return {name: look for name, look in cells.looks(evaluation).items() if name in held.platforms}


def _lines(sheet: Sheet, axes: Axes, every: Floats, reference: str) -> None:
    """Draw where prediction and measurement agree, and where they are a factor of two apart."""
    axes.set_aspect("equal")
    most = shared.most_marks(sheet, 6)
    low, high = shared.ratio_axis(axes.xaxis, every, f"measured time, relative to {reference}", most=most)
    shared.ratio_axis(axes.yaxis, every, f"predicted, relative to {reference}", most=most)
    ends = np.array([low, high])
    words: dict[str, Any] = {"textcoords": "offset points", "fontsize": 10}
    axes.plot(ends, ends, color=FAINT, linewidth=1.2, zorder=1)
    axes.annotate("1x", (high, high), (4, 0), ha="left", va="center", **words)
    if high / low < 2:
        return
    for factor in (0.5, 2.0):
        axes.plot(ends, ends * factor, color=FAINT, linewidth=1.2, linestyle="--", zorder=1)
    if high / low < (_LABELLED_NARROW if sheet.narrow else _LABELLED):
        axes.annotate("2x under", (high, high / 2), (4, 0), ha="left", va="center", **words)
        axes.annotate("2x over", (high / 2, high), (0, 3), ha="center", va="bottom", **words)


def _scatter_caption(evaluation: Evaluation, error_k: Floats, drawn: int) -> str:
    held = cells.held_out(evaluation)
    within = percent(float((error_k <= np.log(2.0)).mean()))
    shown = "" if drawn == len(error_k) else f" A random {drawn:,} of them are drawn."
    pooled, off_by = " (all folds pooled)" * (cells.folds_scored(evaluation) > 1), times(float(np.exp(error_k.mean())))
    return (
        f"{several(len(error_k), 'prediction')}: {cells.those(evaluation, len(held), 'cell')} on every platform but "
        f"the source, where it was profiled.{shown} Typically off by {off_by}{pooled}; {within} "
        "are within a factor of two (the dashed lines)."
    )


def reliability(sheet: Sheet, evaluation: Evaluation) -> None:
    """Draw the coverage of the intervals of each model against their nominal level (a reliability diagram)."""
    held = cells.held_out(evaluation)
    cells.predictions_of(evaluation)
    levels_np = {name: own.level_needed_np for name, own in held.predictions.items()}
    needed = {name: level_np[~np.isnan(level_np)] for name, level_np in levels_np.items() if level_np is not None}
    lines = {name: line for name, line in lines_of(list(held.predictions)).items() if len(needed.get(name, ()))}
    if not lines:
        raise NothingToDraw("No model here gives intervals. 'crossperf', the default model, does.")
    axes = shared.unit_square(sheet, "nominal level of the intervals", "coverage: share of times inside")
    at_level = {}
    for name, line in lines.items():
        # Below the level of the model's narrowest interval all have the same coverage.
        narrowest = min(needed[name][needed[name] > 0], default=0.0)
        levels = [level for level in _LEVELS if level >= narrowest or narrowest > _LEVELS[len(_LEVELS) // 2]]
        share_l, at_level[name] = held.predictions[name].coverage(levels), held.predictions[name].coverage([LEVEL])[0]
        axes.plot(levels, share_l, color=INK, linewidth=line.width, linestyle=line.style, clip_on=False)
        axes.plot(LEVEL, at_level[name], color=INK, marker=line.shape, markersize=8, clip_on=False)
        whose = f"{plain(name)}: intervals of"
        texts = [f"{whose} {level:.0%} cover {percent(share)}" for level, share in zip(levels, share_l, strict=True)]
        sheet.points(axes, levels, share_l, texts)
    axes.annotate("calibrated", (0.2, 0.2), (6, -3), textcoords="offset points", va="top", fontsize=10)
    axes.annotate("too narrow", (0.97, 0.04), ha="right", va="bottom", fontsize=10, style="italic")
    axes.annotate("too wide", (0.03, 0.96), ha="left", va="top", fontsize=10, style="italic")
    shared.model_legend(sheet, axes, lines, {})
    intervals = max(len(needed[name]) for name in lines)
    words = ", ".join(f"{share:.1%} ({plain(name)})" for name, share in at_level.items())
    sheet.caption = (
        f"{several(intervals, 'interval')}, one for every platform but the one profiled on, of "
        f"{cells.those(evaluation, len(held), 'cell')}. The mark: intervals of {LEVEL:.0%} cover {words} of the "
        "measured times."
    )


def familiarity(sheet: Sheet, evaluation: Evaluation, *, model: str | None = None) -> None:
    """Draw the error of each cell against how odd its run looked, with the borders between the words."""
    held = cells.held_out(evaluation)
    name, predictions = _with_oddness(evaluation, model)
    truth_np, predicted_np = held.to_source(name)
    rows_n = np.flatnonzero(~np.isnan(truth_np).all(axis=1))
    oddness_n = np.maximum(np.asarray(predictions.oddness_n)[rows_n], 1e-3)
    error_n = np.nanmean(np.abs(predicted_np - truth_np)[rows_n], axis=1)
    drawn = sample(len(rows_n), _MOST_NARROW if sheet.narrow else _MOST_POINTS, evaluation.seed)
    axes = sheet.panel(max(4.4, shared.height_of_legend(sheet, len(held.platforms) + 1)))
    shared.ratio_axis(axes.yaxis, np.exp(error_n), "typical factor of a cell", most=6)
    shared.line_at_1x(axes, upright=False)
    low, high = float(oddness_n.min()) / 1.1, float(oddness_n.max()) * 1.1
    shared.log_axis(axes.xaxis, min(low, _REACH[0]), max(high, _REACH[1]), most=shared.most_marks(sheet))
    axes.set_xlabel("how odd the run looks (up to 1 is ordinary)")
    styles = _looks(evaluation, held)
    sources = [styles[held.platforms[p]] for p in held.source_n[rows_n[drawn]]]
    shared.cloud(axes, oddness_n[drawn], np.exp(error_n[drawn]), sources, evaluation.seed)
    middle_b, factor_b = _binned(oddness_n, error_n)
    if len(middle_b) > 1:
        axes.plot(middle_b, factor_b, color=INK, linewidth=2.4, marker="o", markersize=5, zorder=4)
    for n in drawn:
        run, odd, factor = cells.profiled(held, rows_n[n]), float(oddness_n[n]), float(np.exp(error_n[n]))
        sheet.point(axes, odd, factor, f"{run}: {looks(odd)} ({odd:.2f}), off by {times(factor)}")
    _words(sheet, axes, predictions, truth_np, predicted_np)
    shared.platform_legend(sheet, axes, styles, title="profiled on", alignment="left")
    sheet.title = f"Is {fitted(sheet, name, 1.2 if sheet.narrow else 2.4, 14)} further off where a run looks odd?"
    shown = "" if len(drawn) == len(rows_n) else f"; a random {len(drawn):,} are drawn"
    bins = " The line joins typical factors of equal shares of the cells." if len(middle_b) > 1 else ""
    sheet.caption = (
        f"{oddness_matters(oddness_n, error_n, held.workload_n[rows_n], evaluation.seed)} "
        f"{cells.those(evaluation, len(rows_n), 'cell')}{shown}.{bins} Above: the word that the model gives, the share "
        "of the cells that got it, and the typical factor of those."
    )


def oddness_matters(oddness_n: Floats, error_n: Floats, workload_n: Integers, seed: int) -> str:
    """Return whether the oddest third of the cells is further off than the most ordinary third, in a sentence.

    A bootstrap over workloads tells: cells of one workload are no independent witnesses.
    """
    order_n = np.argsort(oddness_n, kind="stable")
    third = len(order_n) // 3
    if third < _BIN:
        return "Too few cells to tell whether oddness matters."
    which_n = np.zeros(len(order_n), dtype=np.int64)
    which_n[order_n[:third]], which_n[order_n[-third:]] = -1, 1
    _, number_n = np.unique(workload_n, return_inverse=True)
    # Sums and counts of both thirds by workload, so that a draw of workloads is a weighted sum.
    sums_2w, counts_2w = (
        np.array([np.bincount(number_n, weight_n * (which_n == side)) for side in (-1, 1)])
        for weight_n in (error_n, np.ones(len(error_n)))
    )
    workloads = sums_2w.shape[1]
    draws_dw = np.random.default_rng(seed).multinomial(workloads, np.full(workloads, 1 / workloads), _DRAWS)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_d2 = (draws_dw @ sums_2w.T) / (draws_dw @ counts_2w.T)
    low, high = np.nanquantile(mean_d2[:, 1] - mean_d2[:, 0], [0.025, 0.975])
    ordinary, odd = (times(float(np.exp(error_n[which_n == side].mean()))) for side in (-1, 1))
    compared = f"the oddest third of the cells is off by {odd}, the most ordinary third by {ordinary}"
    if low > 0:
        return f"Oddness matters here: {compared}."
    if high < 0:
        return f"Oddness misleads here: {compared}."
    return f"Oddness does not matter here: {compared}, which may be chance."


def _with_oddness(evaluation: Evaluation, model: str | None) -> tuple[str, HeldOutPredictions]:
    """Return the predictions of a model that tells how familiar a run looks: the first of those, unless named."""
    by_model = cells.held_out(evaluation).predictions
    first = next((name for name, own in by_model.items() if own.oddness_n is not None), None)
    name, predictions = cells.predictions_of(evaluation, model or first)
    if predictions.oddness_n is None:
        raise NothingToDraw(
            f"{plain(name)} does not tell how familiar a run looks. 'crossperf', the default model, does."
        )
    return name, predictions


def _binned(oddness_n: Floats, error_n: Floats) -> tuple[Floats, Floats]:
    """Return the median oddness and the typical factor of equal shares of the cells, the ordinary ones first."""
    bins = min(len(oddness_n) // _BIN, _MOST_BINS)
    if bins < 2:
        return np.empty(0), np.empty(0)
    parts = np.array_split(np.argsort(oddness_n, kind="stable"), bins)
    middle_b = np.array([np.median(oddness_n[part]) for part in parts])
    return middle_b, np.exp([error_n[part].mean() for part in parts])


def _words(sheet: Sheet, axes: Axes, predictions: HeldOutPredictions, truth_np: Floats, predicted_np: Floats) -> None:
    """Draw where the word for a run changes, and above each part its word, share and typical factor."""
    low, high = axes.get_xlim()
    edges = (low, *_BORDERS, high)
    words_n = np.array(predictions.words)
    for word, left, right in zip(LOOKS, edges, edges[1:], strict=False):
        own_n = words_n == word
        factor = metrics.typical_factor(truth_np[own_n], predicted_np[own_n])
        between = "\n" if sheet.narrow else ", "
        text = f"{word}\n{percent(float(own_n.mean()))}{between}{'-' if factor is None else times(factor)}"
        above, middle = axes.get_xaxis_transform(), float(np.sqrt(left * right))
        axes.text(middle, 1.02, text, transform=above, ha="center", va="bottom", fontsize=10)
    for border in _BORDERS:
        axes.axvline(border, color=FAINT, linewidth=1.2, linestyle="--", zorder=1)
