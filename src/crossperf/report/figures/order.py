"""Whether the order of the platforms is right (the paper's Figures 4 and 5)."""

# N cells, P platforms

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from sklearn.metrics import roc_curve

from crossperf.arrays import Floats, Mask
from crossperf.errors import several
from crossperf.evaluation import metrics
from crossperf.evaluation.result import Evaluation
from crossperf.report.figures import NothingToDraw, cells
from crossperf.report.figures.axes import model_legend, named_rows, unit_square
from crossperf.report.figures.colours import FAINT, INK, lines_of
from crossperf.report.figures.sheet import WIDTH, Sheet
from crossperf.report.figures.words import percent, plain

_CORNERS = 500  # corners that a curve keeps: finer than a screen shows
_TOOLTIPS = 60  # corners of a curve that have a tooltip
_BESIDE = 1.1  # inches of the sheet that neither bars nor the names before them have


def order(sheet: Sheet, evaluation: Evaluation) -> None:
    """Draw the share of cells whose whole order is right, of each model, with the constant order and the ceiling."""
    shares = {name: scores.same_order or 0.0 for name, scores in evaluation.scores.items()}
    if not shares:
        raise NothingToDraw("No model was scored in this evaluation. 'crossperf evaluate' scores them.")
    axes = sheet.panel(1.35 + 0.46 * len(shares))
    named_rows(sheet, axes, list(shares))
    for row, (name, share) in enumerate(shares.items()):
        axes.barh(row, share, height=0.62, color=INK, alpha=1.0 if row == 0 else 0.55, linewidth=0)
        axes.text(1.08, row, percent(share), transform=axes.get_yaxis_transform(), ha="right", va="center")
        per_fold = [fold.same_order or 0.0 for fold in evaluation.scores.models[name].folds]
        spread = f" ({percent(min(per_fold))} to {percent(max(per_fold))} over folds)" if len(per_fold) > 1 else ""
        sheet.box(axes, (0, share), (row - 0.31, row + 0.31), f"{plain(name)}: {share:.1%}{spread}")
    _references(sheet, axes, evaluation)
    axes.set(xlim=(0, 1), xticks=[0, 0.25, 0.5, 0.75, 1], xlabel="share of cells whose whole order is right")
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.grid(True, axis="x")
    sheet.caption = _order_caption(evaluation)


def _references(sheet: Sheet, axes: Axes, evaluation: Evaluation) -> None:
    """Draw what always answering the same order gets, and what repeats of the same run get."""
    marks = {
        "always the same order": (evaluation.constant.order_share, "--"),
        "noise ceiling": (evaluation.scores.noise_ceiling.same_order, "-"),
    }
    known = {name: (share, dash) for name, (share, dash) in marks.items() if share is not None}
    room = WIDTH - _BESIDE - max(sheet.width_of(label.get_text(), 10) for label in axes.get_yticklabels())
    taken: list[tuple[float, float]] = []
    for name, (share, dash) in known.items():
        axes.axvline(share, color=FAINT, linewidth=1.6, linestyle=dash)
        text, left = f"{name}: {percent(share)}", share > 0.5
        width = sheet.width_of(text, 10) / room
        from_, to = (share - width, share) if left else (share, share + width)
        line = sum(begin < to and from_ < end for begin, end in taken)
        taken.append((from_, to))
        offset, side = (-3 if left else 3, 4 + 15 * line), "right" if left else "left"
        axes.annotate(text, (share, 1), offset, ("data", "axes fraction"), "offset points", ha=side, fontsize=10)


def _order_caption(evaluation: Evaluation) -> str:
    held = evaluation.held_out
    caption = f"{cells.those(evaluation, len(held), 'cell')}. " if held else ""
    if cells.folds_scored(evaluation) > 1:
        caption += "Each bar is the mean over folds, as in the table of scores. "
    if evaluation.constant.order_share is not None:
        whose = "the whole table" if evaluation.is_split else "these workloads"
        caption += f"The most common order of {whose}: {_chain(evaluation)}. "
    if evaluation.scores.noise_ceiling.same_order is not None:
        caption += "Noise ceiling: how often one half of the repeats has the order of the other half."
    return caption.strip()


def roc(sheet: Sheet, evaluation: Evaluation) -> None:
    """Draw the ROC curve of each model for "this cell has the most common order"."""
    held = cells.held_out(evaluation)
    cells.predictions_of(evaluation)
    if len(evaluation.constant.order) < 2:
        raise NothingToDraw("No workload ran on every platform, so there is no most common order to look for.")
    common = tuple(held.platforms.index(name) for name in evaluation.constant.order)
    truth_np = held.log_relative_time_np
    complete_n = ~np.isnan(truth_np).any(axis=1)
    positive_n = metrics.order_margin(truth_np[complete_n], common) > 0
    if positive_n.all() or not positive_n.any():
        share = "All" if len(positive_n) and positive_n.all() else "None"
        raise NothingToDraw(
            f"{share} of {several(len(positive_n), 'cell')} measured on every platform have the most common order "
            f"({_chain(evaluation)}), so there is nothing to tell apart."
        )
    axes = unit_square(sheet, "false positive rate", "true positive rate")
    axes.annotate("by chance", (0.62, 0.62), (4, -4), textcoords="offset points", va="top", fontsize=10)
    areas, lines = {}, lines_of(list(held.predictions))
    for name, line in lines.items():
        predicted_np = held.predictions[name].predicted_np
        areas[name] = f"{metrics.order_auc(truth_np, predicted_np, common):.2f}  "
        false_c, true_c = corners(positive_n, metrics.order_margin(predicted_np[complete_n], common))
        axes.plot(false_c, true_c, color=INK, linewidth=line.width, linestyle=line.style, clip_on=False)
        every = -(-len(false_c) // _TOOLTIPS)
        for false, true in zip(false_c[::every].tolist(), true_c[::every].tolist(), strict=True):
            shares = f"{percent(true)} of the cells that have the order, with {percent(false)} of the others"
            sheet.point(axes, false, true, f"{plain(name)}: finds {shares}")
    model_legend(sheet, axes, lines, areas, title="area", alignment="left")
    sheet.caption = _roc_caption(evaluation, positive_n)


def _roc_caption(evaluation: Evaluation, positive_n: Mask) -> str:
    pooled = " The area is that of all folds pooled, the table's 'order_auc' the mean of the folds."
    pooled = pooled if cells.folds_scored(evaluation) > 1 else ""
    return (
        f"{cells.those(evaluation, len(positive_n), 'cell')}, measured on every platform; {int(positive_n.sum()):,} of "
        f"them have the most common order: {_chain(evaluation)}. A cell counts as having it when the prediction keeps "
        f"every step by more than a margin; the curve runs over all margins.{pooled}"
    )


def _chain(evaluation: Evaluation) -> str:
    return " < ".join(plain(name) for name in evaluation.constant.order)


def corners(positive_n: Mask, score_n: Floats) -> tuple[Floats, Floats]:
    """Return the corners of an ROC curve as false and true positive rates, at most `_CORNERS` of them."""
    false_c, true_c, _ = roc_curve(positive_n, score_n)
    if len(false_c) > _CORNERS:
        way_c = false_c + true_c
        kept = np.unique(np.searchsorted(way_c, np.linspace(0, 2, _CORNERS)).clip(0, len(way_c) - 1))
        false_c, true_c = false_c[kept], true_c[kept]
    return false_c, true_c
