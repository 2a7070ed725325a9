"""Whether the fastest platform and the whole order are found (the latter the paper's Figures 4 and 5)."""

# N cells, P platforms

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from sklearn.metrics import roc_curve

from crossperf.arrays import Floats, Mask
from crossperf.errors import several
from crossperf.evaluation import metrics
from crossperf.evaluation.result import Evaluation
from crossperf.report.constant import constant_pick
from crossperf.report.figures import NothingToDraw, cells
from crossperf.report.figures.axes import model_legend, named_rows, unit_square
from crossperf.report.figures.colours import FAINT, INK, lines_of
from crossperf.report.figures.sheet import Sheet
from crossperf.report.figures.words import percent, plain

_CORNERS = 500  # corners that a curve keeps: finer than a screen shows
_TOOLTIPS = 60  # corners of a curve that have a tooltip
_BESIDE = 1.1  # inches of the sheet that neither bars nor the names before them have


def picks(sheet: Sheet, evaluation: Evaluation) -> None:
    """Draw the share of cells whose fastest platform is found, of each model and of the constant pick."""
    constant = constant_pick(evaluation)
    name = plain(evaluation.constant.fastest)
    marks = {f"always {name}": constant.top1, "noise ceiling": evaluation.scores.noise_ceiling.top1}
    _bars(sheet, evaluation, "top1", marks)
    axes = sheet.axes[0]
    axes.set_xlabel("share of cells whose fastest platform is found")
    held = evaluation.held_out
    counted = cells.those(evaluation, len(held), "cell") if held else "Cells"
    sheet.caption = f"{counted}: a cell is one workload, as profiled on one platform. {_of_picks(evaluation)}"
    if evaluation.scores.noise_ceiling.top1 is not None:
        sheet.caption += " Noise ceiling: how often one half of the repeats names the fastest of the other half."


def _of_picks(evaluation: Evaluation) -> str:
    often, best = constant_pick(evaluation).top1, max(scores.top1 or 0.0 for _, scores in evaluation.scores.items())
    name = plain(evaluation.constant.fastest)
    if often is None:
        return f"Always {name}: what the best of constant picks would get."
    wins = "the best of constant picks, and more than any model finds" if often > best else "the best of constant picks"
    return f"Always {name}: {wins}."


def order(sheet: Sheet, evaluation: Evaluation) -> None:
    """Draw the share of cells whose whole order is right, of each model, with the constant order and the ceiling."""
    share = evaluation.constant.order_share
    marks = {"always the same order": share, "noise ceiling": evaluation.scores.noise_ceiling.same_order}
    _bars(sheet, evaluation, "same_order", marks)
    sheet.axes[0].set_xlabel("share of cells whose whole order is right")
    sheet.caption = _order_caption(evaluation)


def _bars(sheet: Sheet, evaluation: Evaluation, metric: str, references: Mapping[str, float | None]) -> None:
    """Draw a share of cells for each model as bars, and references as lines across them."""
    shares = {name: scores[metric] or 0.0 for name, scores in evaluation.scores.items()}
    if not shares:
        raise NothingToDraw("No model was scored in this evaluation. 'crossperf evaluate' scores them.")
    axes = sheet.panel(1.35 + 0.46 * len(shares))
    named_rows(sheet, axes, list(shares))
    for row, (name, share) in enumerate(shares.items()):
        axes.barh(row, share, height=0.62, color=INK, alpha=1.0 if row == 0 else 0.55, linewidth=0)
        beside: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center"}
        axes.text(1.2 if sheet.narrow else 1.08, row, percent(share), **beside)
        per_fold = [fold[metric] or 0.0 for fold in evaluation.scores.models[name].folds]
        spread = f" ({percent(min(per_fold))} to {percent(max(per_fold))} over folds)" if len(per_fold) > 1 else ""
        sheet.box(axes, (0, share), (row - 0.31, row + 0.31), f"{plain(name)}: {share:.1%}{spread}")
    _references(sheet, axes, references)
    axes.set(xlim=(0, 1), xticks=[0, 0.5, 1] if sheet.narrow else [0, 0.25, 0.5, 0.75, 1])
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.grid(True, axis="x")


def _references(sheet: Sheet, axes: Axes, marks: Mapping[str, float | None]) -> None:
    """Draw what a constant answer gets, and what repeats of the same run get."""
    known = {name: share for name, share in marks.items() if share is not None}
    names = max(sheet.width_of(label.get_text(), 10) for label in axes.get_yticklabels())
    room = sheet.width - _BESIDE - names
    taken: list[tuple[float, float]] = []
    for name, share in known.items():
        dash = "-" if name == "noise ceiling" else "--"
        axes.axvline(share, color=FAINT, linewidth=1.6, linestyle=dash)
        text = f"{name}: {percent(share)}"
        width = sheet.width_of(text, 10) / room
        left = share > 0.5 and share - width > -names / room
        from_, to = (share - width, share) if left else (share, share + width)
        # A text that would leave the sheet is moved back onto it; its line stays where it is.
        back = 0.0 if left else max(0.0, to - 1.0 - (_BESIDE - 0.2) / room)
        line = sum(begin < to - back and from_ - back < end for begin, end in taken)
        taken.append((from_ - back, to - back))
        offset, side = (-3 if left else 3 - 72 * back * room, 4 + 15 * line), "right" if left else "left"
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
