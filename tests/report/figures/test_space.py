from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.colors import to_hex

from crossperf.report.figures import FIGURES, Drawn
from crossperf.report.figures.colours import looks_of
from tests.report.figures.evaluations import by_chance

EVALUATION = by_chance([f"app{i}" for i in range(7)], ["p", "q", "r"], inputs=3)


def named(drawn: Drawn, panel: int) -> list[str]:
    return [text.get_text() for text in drawn.figure.axes[panel].get_legend().get_texts()]


def test_every_panel_shows_every_cell_where_the_map_has_it() -> None:
    drawn = FIGURES["space"](EVALUATION)
    latent = EVALUATION.latent
    assert latent is not None
    for axes in drawn.figure.axes:
        points = np.concatenate([part.get_offsets() for part in axes.collections])
        assert {tuple(point) for point in np.round(points, 6)} == {tuple(point) for point in np.round(latent.xy_n2, 6)}
    assert len(drawn.tooltips) == 3 * len(latent)


def test_the_third_panel_has_the_colours_of_the_fastest_platforms() -> None:
    held = EVALUATION.held_out
    latent = EVALUATION.latent
    assert held is not None and latent is not None
    (part,) = FIGURES["space"](EVALUATION).figure.axes[2].collections
    drawn = {
        tuple(np.round(xy, 6)): to_hex(colour)
        for xy, colour in zip(part.get_offsets(), part.get_facecolors(), strict=True)
    }
    colour = {i: look.colour for i, look in enumerate(looks_of(held.platforms).values())}
    for xy, workload in zip(latent.xy_n2, latent.workload_n, strict=True):
        assert drawn[tuple(np.round(xy, 6))] == colour[int(held.log_time_wp[workload].argmin())]


def test_the_most_frequent_applications_have_colours_and_the_rest_stand_back() -> None:
    assert named(FIGURES["space"](EVALUATION), 0) == ["app0", "app1", "app2", "app3", "app4", "2 others"]
    assert named(FIGURES["space"](EVALUATION), 1) == ["cpu"]


def test_a_map_knows_the_fastest_platforms_of_cells_that_were_not_held_out() -> None:
    assert named(FIGURES["space"](replace(EVALUATION, held_out=None)), 2) == named(FIGURES["space"](EVALUATION), 2)


def test_bars_are_the_rank_correlations_of_the_strongest_counters() -> None:
    drawn = FIGURES["drivers"](EVALUATION)
    first, second = drawn.figure.axes
    latent = EVALUATION.latent
    assert latent is not None
    assert [bar.get_width() for bar in first.patches] == [driver.x for driver in latent.drivers[:15]]
    assert [bar.get_width() for bar in second.patches] == [driver.y for driver in latent.drivers[:15]]
    assert drawn.caption.endswith("5 counters with weaker correlations left out.")
    assert "counter_0, first component: +0.90" in {mark.text for mark in drawn.tooltips}
