"""The nearest known workloads, by hand on a plane."""

from __future__ import annotations

import json

import numpy as np

from crossperf import plain
from crossperf.dataset import Cells
from crossperf.prediction.explain import Neighbour, nearest

WORKLOADS = (("a", "1"), ("b", "1"), ("c", "1"), ("d", "1"))
TIME_WP = np.array([[1.0, 2.0, 4.0], [6.0, 3.0, 9.0], [np.nan, 5.0, 10.0], [7.0, 7.0, np.nan]])
LATENT_NK = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0], [6.0, 8.0], [0.0, 2.0]])
WORKLOAD_N = np.array([0, 0, 1, 1, 2])
CELLS = Cells(("p", "q", "r"), ("cpu",) * 3, WORKLOADS, np.log(TIME_WP), WORKLOAD_N, np.array([0, 1, 0, 1, 1]))


def find(point: tuple[float, float], source: int = 0, count: int = 5) -> tuple[Neighbour, ...]:
    return nearest(np.array(point), LATENT_NK, WORKLOAD_N, CELLS, source=source, count=count)


def test_each_workload_comes_once_by_its_nearest_cell() -> None:
    assert [(near.app, round(near.distance, 12)) for near in find((3.0, 4.0))] == [
        ("a", 0.0),
        ("c", round(13**0.5, 12)),  # (3, 4) to (0, 2)
        ("b", round(18**0.5, 12)),  # (3, 4) to (0, 1); its other cell is 5 away
    ]


def test_a_workload_without_training_cells_is_no_neighbour() -> None:
    assert all(near.app != "d" for near in find((0.0, 0.0)))


def test_no_more_neighbours_than_asked_for() -> None:
    assert [near.app for near in find((0.0, 0.0), count=2)] == ["a", "b"]


def test_true_times_are_relative_to_the_platform_of_the_run() -> None:
    a, b, _ = find((0.0, 0.0), source=1)
    assert {name: round(time or 0.0, 12) for name, time in a.relative_time.items()} == {"p": 0.5, "q": 1.0, "r": 2.0}
    assert {name: round(time or 0.0, 12) for name, time in b.relative_time.items()} == {"p": 2.0, "q": 1.0, "r": 3.0}
    assert a.relative_to == "q"


def test_a_workload_that_never_ran_there_is_relative_to_its_fastest_platform() -> None:
    c = find((0.0, 2.0), source=0)[0]
    assert (c.app, c.relative_to, c.relative_time["p"]) == ("c", "q", None)
    assert round(c.relative_time["r"] or 0.0, 12) == 2.0


def test_a_neighbour_turns_to_json() -> None:
    facts = json.loads(json.dumps(plain.to_json(find((0.0, 2.0))), allow_nan=False))
    assert facts[0]["relative_time"]["p"] is None
    assert set(facts[0]) == {"app", "input", "distance", "relative_to", "relative_time"}
