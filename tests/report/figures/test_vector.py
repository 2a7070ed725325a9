from __future__ import annotations

import numpy as np

from crossperf.report.figures import FIGURES
from tests.report.figures.evaluations import by_chance, by_hand

TWO_APPS = by_hand(
    [[1.0, 2.0, 8.0], [1.0, 4.0, 8.0], [2.0, 6.0, 1.0], [3.0, 3.0, 1.0]],
    {"m": [[1.0, 3.0, 9.0], [1.0, 3.0, 9.0], [1.0, 5.0, 0.5], [1.0, 1.0, 1.0]]},
    apps=["amg", "amg", "lulesh", "one"],
)


def at(axes: object, gid: str) -> list[float]:
    (line,) = [line for line in axes.lines if line.get_gid() == gid]  # type: ignore[attr-defined]
    return [float(x) for x in line.get_xdata()]


def test_measured_and_predicted_medians_are_those_worked_out_by_hand() -> None:
    drawn = FIGURES["vector"](TWO_APPS)
    axes = drawn.figure.axes[0]
    assert drawn.title == "How fast is amg on each platform?"  # the application with the most cells
    np.testing.assert_allclose([at(axes, f"dot-{row}-0") for row in range(3)], [[1.0], [3.0], [8.0]])
    np.testing.assert_allclose([at(axes, f"dot-{row}-1") for row in range(3)], [[1.0], [3.0], [9.0]])
    np.testing.assert_allclose(at(axes, "line-1-0"), [2.5, 3.5])
    assert "amg: 2 held-out inputs" in drawn.caption and "from 2 cells" in drawn.caption


def test_an_application_that_is_chosen_is_relative_to_its_own_fastest_platform() -> None:
    axes = FIGURES["vector"](TWO_APPS, app="lulesh").figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["p0", "p1", "p2"]
    np.testing.assert_allclose([at(axes, f"dot-{row}-0") for row in range(3)], [[2.0], [6.0], [1.0]])
    np.testing.assert_allclose([at(axes, f"dot-{row}-1") for row in range(3)], [[2.0], [10.0], [1.0]])


def test_relative_to_the_slowest_or_to_the_source_the_vector_is_the_same_times_another_number() -> None:
    axes = FIGURES["vector"](TWO_APPS, app="lulesh", rpv="slowest").figure.axes[0]
    np.testing.assert_allclose([at(axes, f"dot-{row}-0") for row in range(3)], [[1 / 3], [1.0], [1 / 6]])
    source = FIGURES["vector"](TWO_APPS, app="lulesh", rpv="source").figure.axes[0]
    # It was profiled on p0, whose own time is no prediction.
    assert [label.get_text() for label in source.get_yticklabels()] == ["p1", "p2"]
    np.testing.assert_allclose([at(source, f"dot-{row}-0") for row in range(2)], [[3.0], [0.5]])
    np.testing.assert_allclose([at(source, f"dot-{row}-1") for row in range(2)], [[5.0], [0.5]])


def test_platforms_stand_by_machine_and_threads_in_every_figure() -> None:
    names = ["h200", "xeon-16t", "xeon-4t", "epyc-1t"]
    evaluation = by_chance(["a", "b"], names)
    wanted = ["epyc-1t", "h200", "xeon-4t", "xeon-16t"]  # all of one class here; a GPU comes last
    for name in ("distribution", "vector", "noise"):
        axes = FIGURES[name](evaluation).figure.axes[0]
        assert [label.get_text() for label in axes.get_yticklabels()] == wanted, name
    heads = [label.get_text() for label in FIGURES["errors"](evaluation).figure.axes[0].get_xticklabels()]
    assert heads == [*wanted, "all"]
    legend = FIGURES["scatter"](evaluation).figure.axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == wanted


def test_of_applications_with_equally_many_cells_the_first_by_name_is_shown() -> None:
    assert "How fast is aa" in FIGURES["vector"](by_chance(["b", "aa", "c"], ["p", "q"])).title


def test_more_models_than_fit_are_left_out_and_counted() -> None:
    drawn = FIGURES["vector"](by_chance(["a"], ["p", "q"], models=[f"m{i}" for i in range(6)]))
    assert drawn.caption.endswith("2 further models left out.")
    assert len(drawn.tooltips) == 2 * (1 + 4)


def test_marks_lie_on_the_medians() -> None:
    drawn = FIGURES["vector"](TWO_APPS, app="lulesh")
    width, height = drawn.figure.get_size_inches() * drawn.figure.dpi
    (mark,) = [mark for mark in drawn.tooltips if mark.text.startswith("p1, measured")]
    (dot,) = [line for line in drawn.figure.axes[0].lines if line.get_gid() == "dot-1-0"]
    x, y = drawn.figure.axes[0].transData.transform(dot.get_xydata())[0]
    np.testing.assert_allclose([mark.x * width, (1 - mark.y) * height], [x, y])
