"""Networks trained as one: what a member is blind to leaves no trace in it, and an outlier is outvoted."""

import numpy as np
import pytest

pytest.importorskip("torch")

from crossperf.model.fitted.network import Ensemble
from crossperf.model.learn.ensemble import Plan, fit_ensemble

QUICK = Plan(width=16, steps=60, fewest_epochs=1, batch_size=32)


def fit(features: np.ndarray, targets: np.ndarray, blind: np.ndarray) -> Ensemble:
    return fit_ensemble(features, targets, blind, QUICK, device="cpu", seed=0)


def cells(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    features = rng.standard_normal((96, 5))
    features[::3, 4] = np.nan
    return features, np.stack([features[:, 0], -features[:, 1]], axis=1)


def test_targets_that_a_member_is_blind_to_do_not_change_it() -> None:
    rng = np.random.default_rng(0)
    features, targets = cells(rng)
    blind = np.zeros((3, 96), bool)
    blind[0, :32] = True
    shuffled = targets.copy()
    shuffled[:32] = targets[rng.permutation(32)]  # the same mean and spread, as those scale the targets
    before, after = (fit(features, y, blind).predict_each(features) for y in (targets, shuffled))
    np.testing.assert_allclose(before[0], after[0], rtol=1e-4, atol=1e-5)
    assert np.abs(before[1:] - after[1:]).max() > 1e-2


def test_the_answer_is_the_median_of_the_members() -> None:
    features, targets = cells(np.random.default_rng(0))
    made = fit(features, targets, np.zeros((5, 96), bool))
    each = made.predict_each(features)
    np.testing.assert_array_equal(made.predict(features), np.median(each, axis=0))
    assert np.ptp(each, axis=0).max() > 0


def test_it_learns_a_simple_law() -> None:
    features, targets = cells(np.random.default_rng(0))
    plan = Plan(width=32, steps=300, batch_size=32)
    made = fit_ensemble(features, targets, np.zeros((4, 96), bool), plan, device="cpu", seed=0)
    assert np.abs(made.predict(features) - targets).mean() < 0.2 * np.abs(targets).mean()


def test_long_tables_get_more_steps_and_short_ones_fewer() -> None:
    plan = Plan()
    assert plan.steps_for(100) == plan.fewest_steps
    assert plan.steps_for(3_000) == plan.steps
    assert plan.steps_for(80_000) == plan.fewest_epochs * 80_000 // plan.batch_size
