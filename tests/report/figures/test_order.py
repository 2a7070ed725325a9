from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crossperf.evaluation import metrics
from crossperf.evaluation.scores import ModelScores, Scoreboard, Scores
from crossperf.report.figures import FIGURES, order
from tests.report.figures.evaluations import by_chance, by_hand

# Two workloads keep the order p0 < p1 and two do not; the predicted margins are 0.5 and 2.0, and 1.0 and 0.1.
# Of the four pairs of one that does and one that does not, three have the larger margin on the right side.
FOUR = by_hand([[1, 2], [1, 4], [2, 1], [4, 1]], {"m": np.exp([[0, 0.5], [0, 2.0], [0, 1.0], [0, 0.1]]).tolist()})


def test_bars_are_the_shares_of_the_table_with_their_references() -> None:
    evaluation = by_hand([[1, 2], [1, 4], [2, 1]], {"m": [[1, 3]] * 3, "n": [[3, 1]] * 3})
    axes = FIGURES["order"](evaluation).figure.axes[0]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([2 / 3, 1 / 3])
    assert [bar.get_width() for bar in axes.patches] == [scores.same_order for _, scores in evaluation.scores.items()]
    texts = [text.get_text() for text in axes.texts]
    assert texts == ["67%", "33%", "always the same order: 67%", "noise ceiling: 90%"]
    assert [line.get_xdata()[0] for line in axes.lines] == pytest.approx([2 / 3, 0.9])


def test_the_bars_of_several_folds_are_means_and_say_so() -> None:
    folds = ModelScores.of([Scores(same_order=0.25), Scores(same_order=0.75)])
    evaluation = replace(FOUR, scored_folds=2, scores=Scoreboard({"m": folds}))
    drawn = FIGURES["order"](evaluation)
    assert "mean over folds" in drawn.caption
    assert drawn.tooltips[0].text == "m: 50.0% (25% to 75% over folds)"


def test_the_area_is_the_pooled_metric_and_that_worked_out_by_hand() -> None:
    drawn = FIGURES["roc"](FOUR)
    axes = drawn.figure.axes[0]
    false_c, true_c = axes.lines[1].get_data()
    assert np.trapezoid(true_c, false_c) == pytest.approx(0.75)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["0.75  m"]
    assert drawn.caption.startswith(
        "4 held-out cells (split 'workload', 1 of 5 folds), measured on every platform; 2 of"
    )
    assert "the most common order: p0 < p1." in drawn.caption and "pooled" not in drawn.caption
    assert "all folds pooled" in FIGURES["roc"](replace(FOUR, scored_folds=2)).caption


def test_the_diagonal_stands_beside_the_curves() -> None:
    diagonal = FIGURES["roc"](FOUR).figure.axes[0].lines[0]
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata()) == [0, 1]


def test_curves_keep_their_area_when_their_corners_are_thinned() -> None:
    evaluation = by_chance(["a"], ["p", "q", "r"], inputs=4000)
    held = evaluation.held_out
    assert held is not None
    truth_np, predicted_np = held.log_relative_time_np, held.predictions["median"].predicted_np
    common = tuple(held.platforms.index(name) for name in evaluation.constant.order)
    false_c, true_c = order.corners(
        metrics.order_margin(truth_np, common) > 0, metrics.order_margin(predicted_np, common)
    )
    area = metrics.order_auc(truth_np, predicted_np, common)
    assert len(false_c) <= 500 and (false_c[-1], true_c[-1]) == (1.0, 1.0)
    assert np.trapezoid(true_c, false_c) == pytest.approx(area, abs=2e-3)


def test_cells_with_gaps_count_in_no_curve() -> None:
    evaluation = by_chance(["a", "b"], ["p", "q", "r"], inputs=20, gaps=0.3)
    held = evaluation.held_out
    assert held is not None
    complete = int((~np.isnan(held.log_relative_time_np).any(axis=1)).sum())
    assert FIGURES["roc"](evaluation).caption.startswith(f"{complete} held-out cells (")
