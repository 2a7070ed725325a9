from __future__ import annotations

from dataclasses import replace

import pytest

from crossperf.report.figures import FIGURES, NothingToDraw
from tests.report.figures.evaluations import by_chance, of

EVALUATION = by_chance(["a"], ["q", "p"])


def test_noise_is_what_the_table_says_the_steadiest_first() -> None:
    drawn = FIGURES["noise"](EVALUATION)
    axes = drawn.figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["p", "q"]
    assert [float(line.get_xdata()[-1]) for line in axes.lines] == pytest.approx([0.01, 0.01, 0.02, 0.02, 0.015])
    assert [text.get_text() for text in axes.texts] == ["1.0%", "2.0%"]
    assert "10 cells of 20 runs, each measured 1 to 2 times" in drawn.caption


def test_without_repeats_nothing_is_known_of_noise() -> None:
    held = EVALUATION.held_out
    assert held is not None
    with pytest.raises(NothingToDraw, match="Measure each run twice"):
        FIGURES["noise"](of(held, noise=False))


def test_gaps_are_shares_of_runs_and_a_counter_that_is_there_is_a_dot() -> None:
    drawn = FIGURES["missing"](EVALUATION)
    assert {mark.text for mark in drawn.tooltips} == {
        "counter_2 is missing from 75% of the runs on q",
        "counter_1 is missing from 50% of the runs on q",
        "counter_0 is missing from 25% of the runs on q",
    }
    assert drawn.caption.startswith("3 counters of 7 with gaps")


def test_a_table_without_gaps_says_so() -> None:
    held = EVALUATION.held_out
    assert held is not None
    with pytest.raises(NothingToDraw, match="None of 4 counters is missing"):
        FIGURES["missing"](of(held, gaps=0))


def test_many_gaps_are_cut_to_the_largest() -> None:
    held = EVALUATION.held_out
    assert held is not None
    drawn = FIGURES["missing"](of(held, gaps=45))
    assert drawn.caption.endswith("5 counters with smaller gaps left out.")


def test_a_platform_left_out_of_the_evaluation_still_has_a_look() -> None:
    table = replace(EVALUATION.table, platforms=("q",))
    assert FIGURES["noise"](replace(EVALUATION, table=table)).tooltips
