"""Novelty: a run like the others is familiar, one from elsewhere is not, and the counter behind it is named."""

import numpy as np
import pytest

pytest.importorskip("torch")

from crossperf.model.fitted.confidence import Novelty
from crossperf.model.learn.vae import fit_novelty
from crossperf.records import FAMILIAR, UNKNOWN


def programs(rng: np.random.Generator, cells: int) -> np.ndarray:
    """Return eight features that two traits explain."""
    traits = rng.standard_normal((cells, 2))
    mix = np.random.default_rng(7).standard_normal((2, 8))
    return traits @ mix / 2 + 0.05 * rng.standard_normal((cells, 8))


@pytest.fixture(scope="module")
def made() -> Novelty:
    features = programs(np.random.default_rng(0), 400)
    groups = np.arange(400) // 2
    return fit_novelty(features, groups, np.zeros(400, bool), latent_dim=4, steps=400, device="cpu", seed=0)


def test_about_one_in_twenty_new_runs_of_the_same_kind_is_called_unusual(made: Novelty) -> None:
    words = made.scores(programs(np.random.default_rng(1), 1000)).words
    assert np.mean([word == FAMILIAR for word in words]) == pytest.approx(0.9, abs=0.07)


def test_a_run_with_one_counter_gone_wild_is_unknown_and_that_counter_is_named(made: Novelty) -> None:
    features = programs(np.random.default_rng(2), 20)
    features[:, 5] += 4.0
    scores = made.scores(features)
    assert np.mean([word == UNKNOWN for word in scores.words]) > 0.9
    oddest_two = np.argsort(-scores.by_feature_nf, axis=1)[:, :2]
    assert np.mean((oddest_two == 5).any(axis=1)) > 0.9


def test_novelty_grows_with_the_distance_from_what_is_known(made: Novelty) -> None:
    features = programs(np.random.default_rng(3), 50)
    medians = [np.median(made.scores(features * factor).score_n) for factor in (1.0, 2.0, 4.0)]
    assert medians == sorted(medians)


def test_what_was_not_measured_is_guessed_better_than_by_the_mean(made: Novelty) -> None:
    truth = programs(np.random.default_rng(4), 300)
    hidden = np.random.default_rng(5).random(truth.shape) < 0.3
    guessed = made.impute(np.where(hidden, np.nan, truth), np.zeros(8, bool))
    np.testing.assert_array_equal(guessed[~hidden], truth[~hidden])
    assert np.abs(guessed - truth)[hidden].mean() < 0.5 * np.abs(truth)[hidden].mean()


def test_what_was_not_measured_is_taken_from_a_cell_of_the_same_source(made: Novelty) -> None:
    exact = np.arange(8) == 3
    cell = np.full((1, 8), np.nan)
    cell[0, [0, 3]] = made.known_bf[17, [0, 3]]
    np.testing.assert_allclose(made.impute(cell, exact)[0], made.known_bf[17])


def test_what_was_not_measured_is_taken_from_the_cell_nearest_in_what_was_whatever_a_cell_lacks(made: Novelty) -> None:
    rng, exact = np.random.default_rng(6), np.arange(8) == 3
    asked = np.where(rng.random((200, 8)) < 0.4, np.nan, programs(rng, 200))
    asked[:, 3] = rng.choice(made.known_bf[:, 3], 200)  # a source that is known
    for cell, guessed in zip(asked, made.impute(asked, exact), strict=True):
        apart = np.nansum(np.where(exact, 1e6, 1.0) * (made.known_bf - cell) ** 2, axis=1)
        np.testing.assert_array_equal(guessed, np.where(np.isnan(cell), made.known_bf[apart.argmin()], cell))
