from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex

from crossperf.report.figures import FIGURES
from crossperf.report.figures.colours import PALE_TO_DEEP
from tests.report.figures.evaluations import by_chance, by_hand

NAN = float("nan")
# Profiled on p0: amg on p1 is predicted as 4 and is 2; lulesh is right everywhere, and never ran on p2.
TWO = by_hand([[1.0, 2.0, 1.0], [3.0, 3.0, NAN]], {"m": [[1.0, 4.0, 1.0], [1.0, 1.0, 7.0]]}, apps=["amg", "lulesh"])


def test_the_map_holds_the_typical_factors_worked_out_by_hand() -> None:
    drawn = FIGURES["errors"](TWO)
    third = 2 ** (1 / 3)
    # On p0 all were profiled, so nothing was predicted there: it counts nowhere.
    assert {tooltip.text for tooltip in drawn.tooltips} == {
        "all applications on p1: off by 1.41x (2 predictions)",  # the geometric mean of 2 and 1
        "all applications on p2: off by 1.00x (1 prediction)",
        f"all applications on all platforms: off by {third:.2f}x (3 predictions)",
        "amg on p1: off by 2.00x (1 prediction)",
        "amg on p2: off by 1.00x (1 prediction)",
        "amg on all platforms: off by 1.41x (2 predictions)",
        "lulesh on p1: off by 1.00x (1 prediction)",
        "lulesh on all platforms: off by 1.00x (1 prediction)",
    }


def test_a_cell_of_the_map_has_the_colour_of_its_class_and_the_worst_application_comes_first() -> None:
    axes = FIGURES["errors"](TWO).figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["all applications", "amg", "lulesh"]
    colours = [to_hex(colour) for colour in axes.collections[0].get_facecolors()]
    assert colours[:6] == [PALE_TO_DEEP[i] for i in (2, 0, 2, 4, 0, 2)]  # 1.41, 1, 1.26; 2, 1, 1.41


def test_the_whole_map_is_the_metric_of_the_table() -> None:
    evaluation = by_chance(["a", "b"], ["p", "q", "r"], gaps=0.2)
    (total,) = [mark.text for mark in FIGURES["errors"](evaluation).tooltips if "applications on all" in mark.text]
    assert f"off by {evaluation.scores['crossperf'].typical_factor:.2f}x" in total


def test_more_applications_than_fit_are_left_out_and_counted() -> None:
    drawn = FIGURES["errors"](by_chance([f"app{i}" for i in range(43)], ["p", "q"], inputs=1), model="median")
    assert drawn.title == "Where is median wrong?"
    assert drawn.caption.endswith("3 applications with smaller errors left out.")
    assert len(drawn.figure.axes[0].get_yticklabels()) == 41


def test_points_are_measured_against_predicted_and_tooltips_lie_on_them() -> None:
    drawn = FIGURES["scatter"](TWO)
    axes = drawn.figure.axes[0]
    points = {tuple(np.round(point, 6)) for part in axes.collections for point in part.get_offsets()}
    assert points == {(1.0, 1.0), (2.0, 4.0)}
    (mark,) = [mark for mark in drawn.tooltips if "p1 4.00x, measured 2.00x" in mark.text]
    assert mark.text.startswith("amg, input n0, profiled on p0")
    pixels = np.array([mark.x, 1 - mark.y]) * drawn.figure.get_size_inches() * drawn.figure.dpi
    np.testing.assert_allclose(axes.transData.inverted().transform(pixels), [2.0, 4.0])
    assert "3 predictions" in drawn.caption and "100% are within a factor of two" in drawn.caption


def test_lines_of_a_factor_of_two_lie_beside_the_diagonal() -> None:
    axes = FIGURES["scatter"](TWO).figure.axes[0]
    factors = [np.asarray(line.get_ydata()) / np.asarray(line.get_xdata()) for line in axes.lines]
    np.testing.assert_allclose(factors, [[1, 1], [0.5, 0.5], [2, 2]])


def test_the_caption_tells_the_typical_factor_of_all_points_though_a_sample_is_drawn() -> None:
    evaluation = by_chance([f"a{i}" for i in range(20)], ["p", "q", "r"], inputs=20)
    drawn = FIGURES["scatter"](evaluation)
    assert "2,400 predictions" in drawn.caption and "A random 1,000 of them are drawn." in drawn.caption
    assert f"Typically off by {evaluation.scores['crossperf'].typical_factor:.2f}x" in drawn.caption
    assert len(drawn.tooltips) == 1000


def test_a_platform_has_its_colour_on_every_figure() -> None:
    evaluation = by_chance([f"a{i}" for i in range(4)], [f"p{i}" for i in range(5)])
    third = "#007351"  # the third platform's
    for name in ("distribution", "vector", "errors", "scatter", "familiarity", "noise", "missing"):
        drawn = FIGURES[name](evaluation)
        assert third in drawn.as_bytes("svg").decode(), name


@pytest.mark.parametrize("name", ["errors", "scatter"])
def test_cells_and_their_order_do_not_change_with_a_second_drawing(name: str) -> None:
    first, second = FIGURES[name](TWO), FIGURES[name](TWO)
    assert first.tooltips == second.tooltips
