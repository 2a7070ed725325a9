"""The default model: what it holds out inside, how it does without counters, and what it says beside its times."""

import numpy as np
import pytest

pytest.importorskip("torch")

from crossperf import dataset, model
from crossperf.dataset import Dataset
from crossperf.datasets import toy
from crossperf.errors import SettingsError
from crossperf.evaluation import metrics
from crossperf.model.default import Crossperf, _even_folds, _weights
from tests.model.conftest import QUICK


def quick(**settings: object) -> Crossperf:
    return Crossperf(**{**QUICK["crossperf"], **settings})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def data() -> Dataset:
    return dataset.build(toy.make_table(apps=16, inputs=5, repeats=2, seed=1))


@pytest.fixture(scope="module")
def fitted(data: Dataset) -> Crossperf:
    return quick(steps=300).learn(data)


def test_it_predicts_applications_it_has_never_seen_better_than_the_median(data: Dataset) -> None:
    (fold, *_) = dataset.folds(data, "app", 4, seed=0)
    train, test = data.take(fold.train_n), data.take(fold.test_n)
    factors = []
    for made in (quick(steps=300), model.make("median")):
        truth, predicted = metrics.to_fastest(test.y, made.learn(train).predict(test.features_nf))
        factors.append(metrics.typical_factor(truth, predicted))
    assert factors[0] - 1 < 0.6 * (factors[1] - 1)


def test_every_source_gets_nearly_the_same_contrasts_of_a_known_workload(data: Dataset, fitted: Crossperf) -> None:
    predicted = fitted.predict(data.features_nf)
    contrast = predicted - predicted.mean(axis=1, keepdims=True)
    within = np.mean([np.std(contrast[data.workload_n == w], axis=0).mean() for w in range(20)])
    assert within < 0.3 * contrast.std(axis=0).mean()


def test_a_run_on_its_own_platform_takes_about_as_long_as_it_did(data: Dataset, fitted: Crossperf) -> None:
    own = fitted.predict(data.features_nf)[np.arange(len(data)), data.source_n]
    assert np.abs(own).mean() < 0.1


def test_folds_are_whole_and_hold_about_as_many_cells() -> None:
    names = np.repeat(np.arange(12), [40, 5, 5, 10, 10, 10, 10, 10, 10, 10, 10, 10])
    folds = _even_folds(names, 4, np.random.default_rng(0))
    assert all(len(set(folds[names == name])) == 1 for name in range(12))
    assert np.ptp(np.bincount(folds)) <= 10


def test_who_erred_more_where_it_was_blind_counts_for_less() -> None:
    """The second is off by twice as much as the first and third: half to the power of four, a sixteenth."""
    truth = np.zeros((5, 2))
    said = np.stack([np.full((5, 2), 0.1), np.full((5, 2), -0.2), np.full((5, 2), 0.1)])
    said[:, 4] = np.nan  # in no fold
    np.testing.assert_allclose(_weights(said, truth, np.ones(3)), np.array([16, 1, 16]) / 33, rtol=1e-6)


def test_counters_that_are_gone_are_guessed_and_those_a_source_never_offers_are_not(
    data: Dataset, fitted: Crossperf
) -> None:
    features = data.features_nf.copy()
    assert fitted._completed(features) is features
    gone = data.counters.index("instructions")
    features[:, gone] = np.nan
    completed = fitted._completed(features)
    assert np.isfinite(completed[:, gone]).all()
    never = np.isnan(data.features_nf)
    assert never.any()
    np.testing.assert_array_equal(np.isnan(completed), never)
    truth = data.features_nf[:, gone]
    assert np.abs(np.log(completed[:, gone] / truth)).mean() < np.abs(np.log(truth / np.median(truth))).mean()


def test_with_half_of_the_counters_gone_it_still_beats_the_median(data: Dataset) -> None:
    (fold, *_) = dataset.folds(data, "workload", 4, seed=0)
    train, test = data.take(fold.train_n), data.take(fold.test_n)
    features = test.features_nf.copy()
    gone = np.random.default_rng(0).permutation(len(data.counters))[: len(data.counters) // 2]
    features[:, gone] = np.nan
    truth = test.y
    ours, median = (
        metrics.typical_factor(*metrics.to_fastest(truth, made.learn(train).predict(features)))
        for made in (quick(steps=300), model.make("median"))
    )
    assert ours < median


def test_a_forecast_is_the_prediction_with_errors_around_it(data: Dataset, fitted: Crossperf) -> None:
    forecast = fitted.forecast(data.features_nf[:10])
    np.testing.assert_array_equal(forecast.log_relative_np, fitted.predict(data.features_nf[:10]))
    low, high = forecast.between(0.8, data.source_n[:10])
    assert (low <= high).all()
    assert len(forecast.oddness.words) == 10


def test_ranges_hold_on_applications_never_seen(data: Dataset) -> None:
    """Over four folds of sixteen made-up applications; few, so the share may stray."""
    held = []
    for fold in dataset.folds(data, "app", 4, seed=0):
        train, test = data.take(fold.train_n), data.take(fold.test_n)
        low, high = quick(steps=200).learn(train).forecast(test.features_nf).between(0.8, test.source_n)
        other = np.arange(len(data.platforms)) != test.source_n[:, None]
        held.append(((low <= test.y) & (test.y <= high))[other].mean())
    assert np.mean(held) == pytest.approx(0.8, abs=0.1)


def test_a_table_with_one_application_and_one_workload_is_learned_without_anything_held_out() -> None:
    small = dataset.build(toy.make_table(apps=1, inputs=1, repeats=2, seed=1))
    made = quick().learn(small)
    assert np.isfinite(made.predict(small.features_nf)).all()
    assert np.isfinite(made.forecast(small.features_nf).between(0.8, small.source_n)).all()


def test_a_setting_that_leaves_nothing_to_learn_with_is_refused(data: Dataset) -> None:
    with pytest.raises(SettingsError, match="found members=0, expected 1 or more"):
        quick(members=0).learn(data)
