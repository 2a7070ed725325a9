from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crossperf.errors import CrossperfError
from crossperf.report.figures import FIGURES, Drawn
from tests.report.figures.evaluations import by_chance, by_hand

# Relative to the fastest: p0 is 1, 1, 2 and p1 is 2, 4, 1.
THREE = by_hand([[1.0, 2.0], [1.0, 4.0], [2.0, 1.0]], {})


def beside(drawn: Drawn) -> list[str]:
    return [text.get_text() for text in drawn.figure.axes[0].texts]


def test_medians_and_shares_of_fastest_are_those_worked_out_by_hand() -> None:
    drawn = FIGURES["distribution"](THREE)
    assert beside(drawn) == ["1.00x", "67%", "2.00x", "33%", "median", "fastest"]
    assert [label.get_text() for label in drawn.figure.axes[0].get_yticklabels()] == ["p0", "p1"]


def test_lines_span_the_percentiles_and_points_are_the_workloads() -> None:
    axes = FIGURES["distribution"](THREE).figure.axes[0]
    thin, thick, median = axes.lines[3:6]
    # Between the sorted values 1, 2 and 4 quartiles lie half-way, the 5th percentile a tenth of the way.
    np.testing.assert_allclose(thin.get_xdata(), [1.1, 3.8])
    np.testing.assert_allclose(thick.get_xdata(), [1.5, 3.0])
    np.testing.assert_allclose(median.get_xdata(), [2.0])
    assert sorted(axes.collections[1].get_offsets()[:, 0]) == [1.0, 2.0, 4.0]


def test_the_axis_is_a_log_one_with_1x_marked() -> None:
    axes = FIGURES["distribution"](THREE).figure.axes[0]
    assert axes.get_xscale() == "log"
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels[0] == "1x" and "2x" in labels and "4x" in labels
    assert any(list(line.get_xdata()) == [1.0, 1.0] for line in axes.lines)


def test_a_workload_on_one_platform_alone_says_nothing() -> None:
    nan = float("nan")
    drawn = FIGURES["distribution"](by_hand([[1.0, 2.0], [3.0, nan]], {}))
    assert drawn.caption.startswith("1 workload of the whole table.")
    assert beside(drawn)[:2] == ["1.00x", "100%"]


def test_many_workloads_are_sampled_and_the_caption_says_so() -> None:
    drawn = FIGURES["distribution"](by_chance(["a"], ["p", "q"], inputs=900))
    assert "Points: a random 400 of 900" in drawn.caption and drawn.caption.startswith(
        "900 workloads of the whole table"
    )
    assert len(drawn.figure.axes[0].collections[0].get_offsets()) == 400


def test_workloads_that_no_cell_was_held_out_of_are_drawn_too() -> None:
    held = THREE.held_out
    assert held is not None
    fewer = replace(held, workload_n=held.workload_n[:1], source_n=held.source_n[:1], fold_n=held.fold_n[:1])
    assert beside(FIGURES["distribution"](replace(THREE, held_out=fewer))) == beside(FIGURES["distribution"](THREE))


def test_an_older_file_with_the_held_out_workloads_alone_says_so() -> None:
    part = replace(THREE, table=replace(THREE.table, workloads=12))
    assert FIGURES["distribution"](part).caption.startswith("3 held-out workloads (split 'workload'")


def test_times_can_be_relative_to_the_slowest_or_to_each_platform_that_was_profiled_on() -> None:
    slowest = FIGURES["distribution"](THREE, rpv="slowest")
    # p0 takes 1/2, 1/4 and 1 of the slowest; p1 1, 1 and 1/2. Which is fastest does not change.
    assert beside(slowest) == ["0.50x", "67%", "1.00x", "33%", "median", "fastest"]
    source = FIGURES["distribution"](THREE, rpv="source")
    assert beside(source)[::2] == ["0.50x", "2.00x", "median"]
    assert "platform profiled on" in source.figure.axes[0].get_xlabel()
    with pytest.raises(CrossperfError, match="did you mean 'slowest'"):
        FIGURES["distribution"](THREE, rpv="slowst")
