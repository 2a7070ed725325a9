"""What out-of-fold predictions teach, on errors that we made up ourselves."""

from dataclasses import replace

import numpy as np
import pytest

from crossperf.model.learn.stacking import HeldBack, _best_weights, _cautious_weights

#: Two members that know no workload by its name, and are moved each by itself.
TWO = {"recognises_m": np.zeros(2, bool), "moved_as_m": np.arange(2)}
#: What is told of a cell of a known workload, of another input of a known application, and of another application.
SIGNS = [[0.01, 0.2, 0.5], [0.1, 0.3, 0.6], [0.5, 5.0, 50.0], [3.0, 0.3, 0.1]]


def held_back(rng: np.random.Generator, cells: int = 400) -> tuple[HeldBack, np.ndarray]:
    """Return two members: the first is exact near what is known, the second is better far from it; and the truth."""
    truth = rng.standard_normal((cells, 3))
    sizes = {0: (0.01, 0.2), 1: (0.5, 0.3), 2: (1.0, 0.4)}
    predicted = np.stack([[truth + size * rng.standard_normal(truth.shape) for size in sizes[way]] for way in sizes])
    apart = np.stack([np.full(cells, 0.01), np.full(cells, 0.2), np.full(cells, 0.5)]) * rng.uniform(
        0.7, 1.4, (3, cells)
    )
    gap = np.stack([np.full(cells, 0.1), np.full(cells, 0.3), np.full(cells, 0.6)]) * rng.uniform(0.7, 1.4, (3, cells))
    away = np.stack([np.full(cells, 0.5), np.full(cells, 5.0), np.full(cells, 50.0)])
    lead = np.stack([np.full(cells, 3.0), np.full(cells, 0.3), np.full(cells, 0.1)])
    return HeldBack(predicted, apart, gap, away, lead, np.tile(np.arange(cells), (3, 1)), **TWO), truth


def test_a_cell_with_the_signs_of_known_workloads_counts_as_one() -> None:
    held, _ = held_back(np.random.default_rng(0))
    nearness = held.nearness()
    share = nearness(nearness.signs(*map(np.array, SIGNS)))
    assert (share.argmax(axis=1) == [0, 1, 2]).all()
    assert (share.max(axis=1) > 0.8).all()
    np.testing.assert_allclose(share.sum(axis=1), 1.0)


def test_a_run_that_is_known_already_counts_as_near_however_much_nearer_it_is() -> None:
    """No cell held out has a gap of 0 or agrees with all trees; far beyond these, squares of signs may say anything."""
    held, _ = held_back(np.random.default_rng(0))
    nearness = held.nearness()
    nearer = nearness.signs(*np.array([[0.0, 1e-9], [0.0, 1e-9], [0.0, 1e-9], [9.0, 99.0]]))
    assert (nearness(nearer)[:, 0] > 0.95).all()
    farther = nearness.signs(*np.array([[9.0, 1e9], [1.0, 1e9], [1e5, 1e9], [0.0, -1e9]]))
    assert (nearness(farther)[:, 2] > 0.8).all()


def test_each_way_of_holding_out_has_its_own_best_member() -> None:
    held, truth = held_back(np.random.default_rng(1))
    weights = held.weights(truth)
    assert weights[0, 0] > 0.95
    assert weights[1, 1] > 0.6
    assert weights[2, 1] > 0.8
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)


def test_the_best_weights_of_two_independent_members_are_those_of_least_variance() -> None:
    """With standard deviations 1 and 2 the first weighs 4/5 (inverse variances)."""
    rng = np.random.default_rng(2)
    errors = rng.standard_normal((2, 5000, 2)) * np.array([1.0, 2.0])[:, None, None]
    assert _best_weights(errors)[0] == pytest.approx(0.8, abs=0.03)


def test_who_erred_more_counts_for_less_by_the_fourth_power() -> None:
    """The second is off by twice as much as the first and third: half to the power of four, a sixteenth."""
    errors = np.stack([np.full((4, 2), 0.1), np.full((4, 2), -0.2), np.full((4, 2), 0.1)])
    np.testing.assert_allclose(_cautious_weights(errors, 4.0), np.array([16, 1, 16]) / 33, rtol=1e-6)


def test_few_groups_hardly_tell_the_members_apart() -> None:
    """The same errors, of 400 groups and of four: what four applications say need not hold for the fifth."""
    held, truth = held_back(np.random.default_rng(5))
    of_few = replace(held, group_rn=held.group_rn % 4)
    many, few = held.weights(truth), of_few.weights(truth)
    assert (np.abs(few - 0.5) < np.abs(many - 0.5)).all()
    assert few[2, 1] < 0.65
    assert many[2, 1] > 0.8


def test_where_nothing_was_held_out_all_members_and_ways_count_the_same() -> None:
    nothing = np.full((3, 2, 5, 2), np.nan)
    held = HeldBack(nothing, *np.full((4, 3, 5), np.nan), np.tile(np.arange(5), (3, 1)), **TWO)
    np.testing.assert_allclose(held.weights(np.zeros((5, 2))), 0.5)
    nearness = held.nearness()
    signs = nearness.signs(*np.ones((4, 2)))
    gate = held.gate(np.zeros((5, 2)), nearness)
    np.testing.assert_allclose(gate(nearness(signs), nearness.standard(signs)), 0.5)
    np.testing.assert_allclose(nearness(nearness.signs(*np.ones((4, 2)))), 1 / 3)


def test_with_one_way_of_holding_out_every_cell_counts_as_such() -> None:
    held, truth = held_back(np.random.default_rng(3), cells=60)
    predicted = held.predicted_rmnp.copy()
    predicted[1:] = np.nan
    one = replace(held, predicted_rmnp=predicted)
    nearness = one.nearness()
    np.testing.assert_allclose(nearness(nearness.signs(*np.ones((4, 2)))), [[1, 0, 0], [1, 0, 0]], atol=1e-12)
    assert one.weights(truth)[0, 0] > 0.9


@pytest.mark.parametrize(("groups", "least", "most"), [(600, 0.85, 1.01), (3, 0.5, 0.87)])
def test_signs_move_the_weights_to_whom_they_favour_if_many_groups_say_so(
    groups: int, least: float, most: float
) -> None:
    """Of cells of one way the first member is right where trees agree, the second where they do not."""
    rng = np.random.default_rng(4)
    truth, cells = rng.standard_normal((600, 3)), 600
    agree = rng.random(cells) < 0.5
    errors = np.where(agree, [[0.02], [0.5]], [[0.5], [0.02]])[:, :, None] * rng.standard_normal((2, cells, 3))
    predicted = np.full((3, 2, cells, 3), np.nan)
    predicted[1] = truth + errors
    apart = np.where(agree, 0.01, 1.0) * rng.uniform(0.8, 1.2, cells)
    held = HeldBack(
        predicted,
        np.tile(apart, (3, 1)),
        np.full((3, cells), 0.5),
        *np.ones((2, 3, cells)),
        np.tile(np.arange(cells) % groups, (3, 1)),
        **TWO,
    )
    nearness = held.nearness()
    gate = held.gate(truth, nearness)
    signs = nearness.signs(np.array([0.01, 1.0]), np.full(2, 0.5), *np.ones((2, 2)))
    weights = gate(nearness(signs), nearness.standard(signs))
    assert least < weights[0, 0] < most
    assert least < weights[1, 1] < most


def test_who_recognises_workloads_counts_as_far_as_a_run_looks_like_one_of_a_known_one() -> None:
    """The first member is exact near what is known and, by chance, the better one far from it as well."""
    held, truth = held_back(np.random.default_rng(6))
    lucky = held.predicted_rmnp.copy()
    lucky[1:, 0] = truth
    settings = {"recognises_m": np.array([True, False]), "moved_as_m": np.array([1, 1])}
    recognising = replace(held, predicted_rmnp=lucky, **settings)
    weights = recognising.weights(truth)
    assert weights[0, 0] > 0.95
    assert weights[1:, 0].tolist() == [0.0, 0.0]
    nearness = recognising.nearness()
    gate = recognising.gate(truth, nearness)
    signs = nearness.signs(*map(np.array, SIGNS))
    near, new_input, new_app = gate(nearness(signs), nearness.standard(signs))[:, 0]
    assert near > 0.95
    assert new_input < 0.01
    assert new_app < 0.01


def test_members_may_be_moved_together() -> None:
    """The second errs like the first, and a third is right where these are not: both are moved away from there."""
    rng = np.random.default_rng(7)
    truth, agree = rng.standard_normal((600, 3)), rng.random(600) < 0.5
    sizes = np.where(agree, [[0.02], [0.02], [0.5]], [[0.5], [0.5], [0.02]])
    predicted = np.full((3, 3, 600, 3), np.nan)
    predicted[1] = truth + sizes[:, :, None] * rng.standard_normal((3, 600, 3))
    apart = np.where(agree, 0.01, 1.0) * rng.uniform(0.8, 1.2, 600)
    signs = np.tile(apart, (3, 1)), np.full((3, 600), 0.5), *np.ones((2, 3, 600))
    groups = np.tile(np.arange(600), (3, 1))
    held = HeldBack(predicted, *signs, groups, recognises_m=np.zeros(3, bool), moved_as_m=np.array([0, 0, 2]))
    nearness = held.nearness()
    gate = held.gate(truth, nearness)
    np.testing.assert_array_equal(gate.moves_dm[:, 0], gate.moves_dm[:, 1])
    assert gate.bias_m[0] == gate.bias_m[1] != gate.bias_m[2]
    shown = nearness.signs(np.array([0.01, 1.0]), np.full(2, 0.5), *np.ones((2, 2)))
    weights = gate(nearness(shown), nearness.standard(shown))
    assert weights[0, :2].sum() > 0.85
    assert weights[1, 2] > 0.85
