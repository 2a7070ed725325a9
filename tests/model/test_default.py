"""The default model: what it holds out inside, how it does without counters, and what comes with its times."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")

from crossperf import dataset, model
from crossperf.dataset import Columns, Dataset, Features
from crossperf.datasets import toy
from crossperf.errors import SettingsError
from crossperf.model.default import Crossperf, _even_folds
from crossperf.model.fitted.blend import Blend, difficulty
from crossperf.model.fitted.model import Forecaster, KnownRuns
from tests.model.conftest import QUICK, factor_elsewhere, with_flag, with_values


def quick(**settings: object) -> Crossperf:
    return Crossperf(**{**QUICK["crossperf"], **settings})  # type: ignore[arg-type]


def blend_of(fitted: Crossperf) -> Blend:
    assert isinstance(fitted.fitted_.part, Blend)
    return fitted.fitted_.part


@pytest.fixture(scope="module")
def data() -> Dataset:
    return dataset.build(toy.make_table(apps=16, inputs=5, repeats=2, seed=1))


@pytest.fixture(scope="module")
def fitted(data: Dataset) -> Crossperf:
    return quick(steps=300).learn(data)


def test_it_predicts_applications_it_has_never_seen_better_than_the_median(data: Dataset) -> None:
    (fold, *_) = dataset.folds(data, "app", 4, seed=0)
    train, test = data.take(fold.train_n), data.take(fold.test_n)
    ours, median = (
        factor_elsewhere(test, made.learn(train).predict(test.X)) for made in (quick(steps=300), model.make("median"))
    )
    assert ours - 1 < 0.6 * (median - 1)


def test_every_source_gets_nearly_the_same_contrasts_of_a_known_workload(data: Dataset, fitted: Crossperf) -> None:
    predicted = fitted.predict(data.X)
    contrast = predicted - predicted.mean(axis=1, keepdims=True)
    within = np.mean([np.std(contrast[data.workload_n == w], axis=0).mean() for w in range(20)])
    assert within < 0.3 * contrast.std(axis=0).mean()


def test_a_run_on_its_own_platform_takes_about_as_long_as_it_did(data: Dataset, fitted: Crossperf) -> None:
    own = fitted.predict(data.X)[np.arange(len(data)), data.source_n]
    assert np.abs(own).mean() < 0.1


def test_folds_are_whole_and_hold_about_as_many_cells() -> None:
    names = np.repeat(np.arange(12), [40, 5, 5, 10, 10, 10, 10, 10, 10, 10, 10, 10])
    folds = _even_folds(names, 4, np.random.default_rng(0))
    assert all(len(set(folds[names == name])) == 1 for name in range(12))
    assert np.ptp(np.bincount(folds)) <= 10


def test_counters_that_are_gone_are_guessed_and_those_a_source_never_offers_are_not(
    data: Dataset, fitted: Crossperf
) -> None:
    blend, features = blend_of(fitted), data.X
    assert blend._completed(features) is features
    values = features.values_nf.copy()
    values[:, features.columns.names.index("instructions")] = np.nan
    completed = blend._completed(with_values(features, values))
    guessed, truth = completed.column("instructions"), features.column("instructions")
    assert np.isfinite(guessed).all()
    never = np.isnan(features.values_nf)
    assert never.any()
    np.testing.assert_array_equal(np.isnan(completed.values_nf), never)
    assert np.abs(np.log(guessed / truth)).mean() < np.abs(np.log(truth / np.median(truth))).mean()


def test_with_half_of_the_counters_gone_it_still_beats_the_median(data: Dataset) -> None:
    (fold, *_) = dataset.folds(data, "workload", 4, seed=0)
    train, test = data.take(fold.train_n), data.take(fold.test_n)
    values = test.X.values_nf.copy()
    gone = np.random.default_rng(0).permutation(len(data.counters))[: len(data.counters) // 2]
    values[:, np.flatnonzero(test.X.columns.mask("counter"))[gone]] = np.nan
    features = with_values(test.X, values)
    ours, median = (
        factor_elsewhere(test, made.learn(train).predict(features)) for made in (quick(steps=300), model.make("median"))
    )
    assert ours < median


def test_a_forecast_is_the_prediction_with_errors_around_it(data: Dataset, fitted: Crossperf) -> None:
    assert isinstance(blend_of(fitted), Forecaster)
    assert isinstance(blend_of(fitted), KnownRuns)
    assert fitted.fitted_.forecasts
    forecast = fitted.fitted_.forecast(data.X[:10])
    np.testing.assert_array_equal(forecast.log_relative_np, fitted.predict(data.X[:10]))
    low, high = forecast.between(0.8, data.source_n[:10])
    assert (low <= high).all()
    assert len(forecast.novelty.words) == 10


def test_intervals_hold_on_applications_never_seen(data: Dataset) -> None:
    """Over four folds of sixteen made-up applications; few, so the share may stray."""
    held = []
    for fold in dataset.folds(data, "app", 4, seed=0):
        train, test = data.take(fold.train_n), data.take(fold.test_n)
        low, high = quick(steps=200).learn(train).fitted_.forecast(test.X).between(0.8, test.source_n)
        other = np.arange(len(data.platforms)) != test.source_n[:, None]
        held.append(((low <= test.y) & (test.y <= high))[other].mean())
    assert np.mean(held) == pytest.approx(0.8, abs=0.1)


def test_a_table_with_one_application_and_one_workload_is_learned_without_anything_held_out() -> None:
    small = dataset.build(toy.make_table(apps=1, inputs=1, repeats=2, seed=1))
    made = quick().learn(small)
    assert np.isfinite(made.predict(small.X)).all()
    assert np.isfinite(made.fitted_.forecast(small.X).between(0.8, small.source_n)).all()


def test_runs_of_a_source_that_was_never_seen_are_answered(data: Dataset) -> None:
    seen_n = data.source_n < 2
    fitted = quick().fit(data.X[seen_n], data.y[seen_n])
    assert np.isfinite(fitted.predict(data.X[~seen_n])).all()


def test_a_setting_that_leaves_nothing_to_learn_with_is_refused(data: Dataset) -> None:
    with pytest.raises(SettingsError, match=r"^members: found 0 for the model 'crossperf', expected 1 or more"):
        quick(members=0).learn(data)


def test_a_counter_of_zeros_and_ones_is_no_source_platform() -> None:
    """Whether a run uses AVX says nothing of where it was measured, whatever the column looks like."""
    data = with_flag(dataset.build(toy.make_table(apps=4, inputs=3, repeats=2, seed=1)), seed=2)
    blend = blend_of(quick(steps=20).learn(data))
    assert set(blend.patterns.source_t.tolist()) == set(range(len(data.platforms)))
    assert blend.patterns.seen_tf.shape[1] == len(data.X.columns)
    signs = blend.intervals.residuals[0].difficulty.weights_d
    assert len(signs) == 4 + len(data.platforms)  # four signs of nearness, and each source
    np.testing.assert_array_equal(np.bincount(blend.background.source_n), np.bincount(data.source_n))
    np.testing.assert_array_equal(difficulty(data.X, np.zeros((len(data), 4)))[:, 4:], np.eye(4)[data.source_n])


def test_a_matrix_without_names_is_learned_from_with_a_warning(data: Dataset) -> None:
    with pytest.warns(UserWarning, match=r"Crossperf\.fit: X has no column 'runtime_s'.*Pass data\.X"):
        bare = quick(steps=20).fit(data.X.values_nf, data.y)
    assert bare.predict(data.X.values_nf).shape == data.y.shape


def test_named_features_are_learned_from_without_a_warning(data: Dataset) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick(steps=20).fit(data.X, data.y)


def test_a_fitted_model_matches_columns_by_name(data: Dataset, fitted: Crossperf) -> None:
    order = np.random.default_rng(0).permutation(len(data.X.columns))
    columns = Columns.named([data.X.columns.names[i] for i in order])
    turned = Features(data.X.values_nf[:, order], columns)
    np.testing.assert_array_equal(fitted.predict(turned), fitted.predict(data.X))


def test_intervals_of_known_workloads_are_as_wide_as_two_measurements_lie_apart(data: Dataset) -> None:
    """Cells of one workload share its measured times; the next measurement of them does not."""
    rng = np.random.default_rng(5)
    widths = []
    for noise in (0.0, 0.3):
        apart_wp = noise * rng.standard_normal((len(data.workloads), len(data.platforms)))
        made = quick(steps=20).fit(replace(data.X, noise_np=apart_wp[data.workload_n]), data.y)
        low_np, high_np = made.fitted_.forecast(data.X).between(0.8, data.source_n)
        other_np = np.arange(len(data.platforms)) != data.source_n[:, None]
        widths.append(float(np.median((high_np - low_np)[other_np])))
    # The difference of two platforms, each with a standard deviation of 0.3: 80 % lie within 1.28 of 0.42 either way.
    assert widths[0] < 0.5 * widths[1]
    assert widths[1] == pytest.approx(2 * 1.28 * 0.3 * np.sqrt(2), rel=0.3)
