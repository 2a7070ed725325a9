"""Intervals proved on a second model: errors that we made up, so that their scale is known."""

from dataclasses import dataclass

import numpy as np
import pytest

from crossperf.dataset import Columns, Features
from crossperf.model.fitted.blend import Blended
from crossperf.model.fitted.confidence import Intervals, Residuals
from crossperf.model.learn.proof import HeldOutParts, scales

PLATFORMS = ["a", "b", "c"]


def groups(apps: int, workloads: int = 5, cells: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Return the workload and the application of each cell."""
    workload_n = np.repeat(np.arange(apps * workloads), cells)
    return workload_n, workload_n // workloads


def parts_of(apps: int, seed: int = 0) -> HeldOutParts:
    return HeldOutParts.drawn(*groups(apps), np.random.default_rng(seed))


@dataclass
class Stub:
    """A model that answers 0 for every cell, and takes each for what it is, or all to be equally near."""

    intervals: Intervals
    parts: HeldOutParts
    tells: bool = True

    def ask(self, features: Features) -> Blended:
        number_n = features.column("number").astype(int)
        share_nr = self.parts.held_rn[:, number_n].T.astype(float) if self.tells else np.full((len(features), 3), 1 / 3)
        return Blended(np.zeros((len(features), 3)), np.zeros((len(features), 1)), share_nr)


def cells(apps: int) -> Features:
    """Return cells that carry their own number, each measured on one of the platforms."""
    count = len(groups(apps)[0])
    number_n1 = np.arange(count, dtype=float)[:, None]
    columns = Columns.of(["number"], PLATFORMS)
    return Features.of(number_n1, np.ones(count), np.arange(count) % 3, columns)


def intervals_of(spread: float, seed: int = 0) -> Intervals:
    """Return intervals for errors of a spread, the same however near a cell is."""
    errors = np.random.default_rng(seed).standard_normal((2000, 3)) * spread
    signs = np.zeros((2000, 4))
    return Intervals((Residuals.fit(errors, signs, np.arange(2000), seed),) * 3)


def scales_of(apps: int, promised: float, true_r: tuple[float, float], *, tells: bool = True) -> np.ndarray:
    """Return the scales of intervals that promise errors of one spread, where the true ones have others."""
    parts, features = parts_of(apps), cells(apps)
    model = Stub(intervals_of(promised), parts, tells)
    spread_n = np.array([1.0, *true_r])[(parts.held_rn * np.array([[0], [1], [2]])).sum(axis=0)]
    truth = np.random.default_rng(1).standard_normal((len(features), 3)) * spread_n[:, None]
    return scales(lambda _: model, features, truth, parts, np.random.default_rng(2))


def test_groups_are_held_out_whole_and_no_cell_twice() -> None:
    parts = parts_of(30)
    workload_n, app_n = groups(30)
    assert (parts.held_rn.sum(axis=0) <= 1).all()
    assert not (parts.seen_n & parts.held_rn.any(axis=0)).any()
    assert parts.seen_n.sum() == pytest.approx(len(app_n) * (5 / 6) ** 2, rel=0.1)
    assert not set(app_n[parts.held_rn[2]]) & set(app_n[~parts.held_rn[2]])
    assert not set(workload_n[parts.held_rn[1]]) & set(workload_n[~parts.held_rn[1]])
    assert not parts.held_rn[0].any()
    assert parts.groups_r()[2] == 5


def test_intervals_twice_as_wide_as_the_errors_are_halved() -> None:
    np.testing.assert_allclose(scales_of(400, 1.0, (0.6, 0.6)), (1.0, 0.6, 0.6), rtol=0.15)


def test_each_way_has_a_scale_of_its_own() -> None:
    np.testing.assert_allclose(scales_of(400, 1.0, (0.7, 1.5)), (1.0, 0.7, 1.5), rtol=0.15)


def test_where_ways_cannot_be_told_apart_each_holds_as_often_as_it_says() -> None:
    """Errors of all three ways are mixed for every cell: those of the farther are made larger until its cells fit."""
    near, far = scales_of(400, 1.0, (0.7, 1.5), tells=False)[1:]
    assert near < 1.0 < far


def test_few_groups_move_the_scale_less_than_many() -> None:
    few, many = (scales_of(apps, 1.0, (0.6, 0.6))[2] for apps in (20, 400))
    assert many < few - 0.05
    assert few < 1.0


def test_a_small_table_is_not_divided() -> None:
    parts, features = parts_of(4), cells(4)
    truth = np.zeros((len(features), 3))

    def fit(_: np.ndarray) -> Stub:
        raise AssertionError("a second model was made")

    np.testing.assert_array_equal(scales(fit, features, truth, parts, np.random.default_rng(0)), 1.0)


def test_of_a_long_table_the_second_model_learns_from_whole_workloads_of_a_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("crossperf.model.learn.proof._MOST_CELLS", 200)
    parts = parts_of(60)
    workload_n, _ = groups(60)
    left = ~parts.held_rn.any(axis=0)
    assert 150 < parts.seen_n.sum() <= 200
    assert not set(workload_n[parts.seen_n]) & set(workload_n[left & ~parts.seen_n])
