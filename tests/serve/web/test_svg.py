"""Drawings: places on a log axis are checked against logarithms, and nothing in a name becomes markup."""

from __future__ import annotations

import math
import re

import pytest

from crossperf.report.figures.colours import Look
from crossperf.serve.web import svg

LOOK = Look("#112233", "o")


@pytest.mark.parametrize("values", [(0.26, 1.32), (0.001, 900.0), (1.0, 1.0), (3e-9, 2.0), (0.9, 1.1), (40.0, 41.0)])
def test_an_axis_holds_its_values_and_one_with_a_mark_at_each_end(values: tuple[float, float]) -> None:
    axis = svg.LogAxis.over(values)
    assert axis.low <= min(*values, 1.0)
    assert axis.high >= max(*values, 1.0)
    assert 2 <= len(axis.ticks) <= 14
    assert axis.ticks[0] == pytest.approx(axis.low)
    assert axis.ticks[-1] == pytest.approx(axis.high)


def test_equal_factors_are_equally_far_apart() -> None:
    axis = svg.LogAxis.over([0.01, 100.0])
    assert axis.at(10.0) - axis.at(1.0) == pytest.approx(axis.at(0.1) - axis.at(0.01))
    assert axis.at(1.0) == pytest.approx(50.0)


def test_a_bar_reaches_from_the_low_to_the_high_end_of_its_interval() -> None:
    axis = svg.LogAxis.over([0.1, 10.0])
    drawn = svg.interval(axis, 0.5, 0.2, 2.0, LOOK)
    x, width = (float(own) for own in re.search(r'x="([\d.]+)%" y="9" width="([\d.]+)%"', drawn).groups())  # type: ignore[union-attr]
    share = math.log(2.0 / 0.2) / math.log(10.0 / 0.1)
    assert width == pytest.approx(100 * 0.92 * share, abs=0.02)
    assert x == pytest.approx(axis.at(0.2), abs=0.01)


def test_a_guess_is_hatched_and_a_measured_time_has_no_bar() -> None:
    axis = svg.LogAxis.over([0.1, 10.0])
    assert 'fill="url(#hatch)"' in svg.interval(axis, 1.0, 0.5, 2.0, LOOK, hatched=True)
    assert "<rect" not in svg.interval(axis, 1.0, 1.0, 1.0, LOOK)


def test_fewer_labels_keep_that_of_one() -> None:
    axis = svg.LogAxis.over([0.001, 100.0])
    assert "1×" in re.findall(r">([^<]+)</text>", svg.axis(axis, 3))


@pytest.mark.parametrize("shape", "os^DvPX<>phd")
def test_every_shape_that_a_platform_may_have_can_be_drawn(shape: str) -> None:
    drawn = svg.mark(10.0, 20.0, "#123456", shape)
    assert ("<circle" in drawn) == (shape == "o")
    assert "#123456" in drawn


def test_colours_are_escaped() -> None:
    assert "<script" not in svg.swatch('"><script>')


def test_gaps_of_a_series_stay_gaps() -> None:
    assert svg.line([1.0, None, 1.0, 1.1], low=0.9, high=1.2).count("<line") == 1
