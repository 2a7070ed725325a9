"""The centre of the members' predictions, against a search, a weighted mean and a weighted median."""

import numpy as np
from scipy.optimize import minimize_scalar

from crossperf.model.fitted.blend import AGREE, blended


def centre(predictions: list[float], weights: list[float]) -> float:
    return float(blended(np.array(predictions)[:, None, None], np.array([weights]))[0, 0])


def test_members_that_agree_are_averaged_by_their_weights() -> None:
    assert np.isclose(centre([0.0, 0.001], [0.25, 0.75]), 0.00075, atol=1e-6)


def test_a_member_far_from_the_others_counts_for_less_than_in_a_mean() -> None:
    assert abs(centre([0.0, 0.01, 5.0], [0.4, 0.4, 0.2])) < 0.05 < np.average([0.0, 0.01, 5.0], weights=[0.4, 0.4, 0.2])


def test_the_answer_is_that_of_a_member_with_most_of_the_weight() -> None:
    assert abs(centre([1.0, 0.0, 3.0], [0.9, 0.05, 0.05]) - 1.0) < AGREE


def test_it_has_the_least_smooth_distance_to_the_members() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        members, weights = rng.normal(0.0, 0.1, 4), rng.dirichlet(np.ones(4))

        def distance(x: float, members: np.ndarray = members, weights: np.ndarray = weights) -> float:
            return float(weights @ np.sqrt(1.0 + np.square((members - x) / AGREE)))

        # A few rounds of reweighting come as near to the least distance as matters.
        least = minimize_scalar(distance, bounds=(members.min(), members.max()), method="bounded").fun
        assert distance(centre(members.tolist(), weights.tolist())) < least * 1.02


def test_it_moves_with_the_predictions() -> None:
    members, weights = [0.0, 0.3, -0.2], [0.5, 0.3, 0.2]
    moved = [member + 7.0 for member in members]
    assert np.isclose(centre(moved, weights), centre(members, weights) + 7.0)
