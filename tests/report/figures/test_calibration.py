from __future__ import annotations

from dataclasses import replace

import numpy as np

from crossperf.evaluation.heldout import HeldOutPredictions
from crossperf.evaluation.result import Evaluation
from crossperf.records import LOOKS, looks
from crossperf.report.figures import FIGURES
from crossperf.report.figures.calibration import _BORDERS
from tests.report.figures.evaluations import by_hand, of

NAN = float("nan")


def sure() -> Evaluation:
    """Four workloads on two platforms, p1 twice as slow; predicted 2, 4, 8 and 2, more and more odd."""
    evaluation = by_hand([[1.0, 2.0]] * 4, {"m": [[1.0, 2.0], [1.0, 4.0], [1.0, 8.0], [1.0, 2.0]]})
    held = evaluation.held_out
    assert held is not None
    own = replace(
        held.predictions["m"],
        level_needed_np=np.array([[NAN, 0.5], [NAN, 0.9], [NAN, 0.2], [NAN, np.inf]]),
        oddness_n=np.array([0.5, 0.9, 1.5, 3.0]),
    )
    return of(replace(held, predictions={"m": own, "plain": HeldOutPredictions(own.predicted_np)}))


def test_the_share_held_is_that_worked_out_by_hand() -> None:
    drawn = FIGURES["reliability"](sure())
    levels, share_l = drawn.figure.axes[0].lines[1].get_data()
    held = dict(zip(np.round(levels, 2), share_l, strict=True))
    assert (held[0.2], held[0.45], held[0.5], held[0.85], held[0.9], held[0.99]) == (0.25, 0.25, 0.5, 0.5, 0.75, 0.75)
    assert min(levels) == 0.2  # below the narrowest interval that was needed nothing is known
    assert drawn.caption.startswith(
        "4 intervals, one for every platform but the one profiled on, of 4 held-out cells ("
    )
    assert "intervals of 80% cover 50.0% (m) of the measured times" in drawn.caption


def test_only_models_with_intervals_have_a_curve() -> None:
    legend = FIGURES["reliability"](sure()).figure.axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["m"]


def test_each_word_has_its_share_and_typical_factor() -> None:
    texts = [text.get_text() for text in FIGURES["familiarity"](sure()).figure.axes[0].texts]
    # On p1, which was not profiled: factors 1 and 2 of the familiar, 4 of the unusual, 1 of the unknown.
    assert texts == ["familiar\n50%, 1.41x", "unusual\n25%, 4.00x", "unknown\n25%, 1.00x"]


def many(steeper: float, seed: int = 3) -> Evaluation:
    """Two hundred workloads on two platforms, further off where they look odd by a power of their oddness."""
    rng = np.random.default_rng(seed)
    oddness_n = np.exp(rng.normal(-0.5, 0.6, 200))
    off_n = np.exp(np.abs(rng.normal(0.3, 0.1, 200))) * np.clip(oddness_n, 0.5, 2.0) ** steeper
    evaluation = by_hand([[1.0, 2.0]] * 200, {"m": [[1.0, 2.0 * off] for off in off_n]})
    held = evaluation.held_out
    assert held is not None
    own = replace(held.predictions["m"], oddness_n=oddness_n)
    return of(replace(held, predictions={"m": own}))


def test_the_figure_says_whether_oddness_matters() -> None:
    assert FIGURES["familiarity"](many(0.5)).caption.startswith("Oddness matters here: the oddest third of the cells")
    assert FIGURES["familiarity"](many(0.0)).caption.startswith("Oddness does not matter here: ")
    assert FIGURES["familiarity"](many(-0.3)).caption.startswith("Oddness misleads here: ")
    assert FIGURES["familiarity"](sure()).caption.startswith("Too few cells to tell")


def test_r2_of_the_papers_vector_stands_in_the_caption_in_three_forms() -> None:
    evaluation = many(0.0)
    scores = evaluation.scores["m"]
    caption = FIGURES["scatter"](evaluation).caption
    assert "R2 of the paper's vector" not in caption  # the truth never varies here, so there is none
    assert scores.r2 is None
    caption = FIGURES["scatter"](by_hand([[1.0, 2.0], [1.0, 4.0]], {"m": [[1.0, 3.0], [1.0, 1.0]]})).caption
    assert "-4.00 as time over the fastest" in caption.replace("\u2212", "-")  # residual 10 over a variance of 2
    assert "worse than answering each platform's mean every time" in caption


def test_points_are_oddness_against_the_factor_of_the_cell() -> None:
    axes = FIGURES["familiarity"](sure()).figure.axes[0]
    points = sorted(tuple(np.round(point, 6)) for part in axes.collections for point in part.get_offsets())
    np.testing.assert_allclose(points, [(0.5, 1.0), (0.9, 2.0), (1.5, 4.0), (3.0, 1.0)], rtol=1e-5)


def test_the_borders_are_where_the_word_changes() -> None:
    assert [looks(border) for border in _BORDERS] == list(LOOKS[:-1])
    assert [looks(border * 1.0001) for border in _BORDERS] == list(LOOKS[1:])
