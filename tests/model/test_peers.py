"""What is particular to the peers."""

from __future__ import annotations

import numpy as np
import pytest

from crossperf.dataset import Dataset, Features
from crossperf.errors import SettingsError
from crossperf.model import ExtraTrees, Median, RandomForest, Ridge
from tests.model.conftest import with_flag, with_gaps


def test_the_median_is_that_of_the_cells_with_the_same_source(toy_data: Dataset) -> None:
    predicted_np = Median().learn(toy_data).predict(toy_data.X)
    for source in range(len(toy_data.platforms)):
        same_n = toy_data.source_n == source
        expected_p = np.median(toy_data.y[same_n], axis=0)
        np.testing.assert_array_equal(predicted_np[same_n], np.tile(expected_p, (same_n.sum(), 1)))


def test_the_median_uses_no_counter_not_even_one_of_zeros_and_ones(toy_data: Dataset) -> None:
    first, other = (with_flag(toy_data, seed) for seed in (0, 1))
    assert not np.array_equal(first.X.column("uses_avx"), other.X.column("uses_avx"))
    expected_np = Median().learn(toy_data).predict(toy_data.X)
    np.testing.assert_array_equal(Median().learn(first).predict(first.X), expected_np)
    np.testing.assert_array_equal(Median().learn(first).predict(other.X), expected_np)


def test_a_run_from_nowhere_gets_the_median_of_all(toy_data: Dataset) -> None:
    values_nf = np.where(toy_data.X.columns.mask("source"), 0.0, toy_data.X.values_nf[:1])
    predicted_np = Median().learn(toy_data).predict(Features(values_nf, toy_data.X.columns))
    np.testing.assert_array_equal(predicted_np[0], np.median(toy_data.y, axis=0))


def test_the_median_of_a_source_skips_workloads_that_never_ran_there(toy_data: Dataset) -> None:
    target_np = toy_data.y.copy()
    target_np[toy_data.source_n == 0, 2] = np.nan  # from the first source, the third platform is not known at all
    target_np[:7, 1] = np.nan
    predicted_np = Median().fit(toy_data.X, target_np).predict(toy_data.X)
    from_first = target_np[toy_data.source_n == 0]
    assert predicted_np[0, 1] == pytest.approx(np.nanmedian(from_first[:, 1]))
    assert predicted_np[0, 2] == pytest.approx(np.nanmedian(target_np[:, 2]))


@pytest.mark.parametrize("kind", [RandomForest, ExtraTrees])
def test_a_forest_predicts_what_scikit_learn_does_on_log_features(kind: type, toy_data: Dataset) -> None:
    features = with_gaps(toy_data.X)
    made = kind(n_estimators=8, n_jobs=1, seed=3, target="source").fit(features, toy_data.y)
    encoded_nf = made.fitted_.part.encoder.log(features.derived().values_nf)
    trees = kind._regressor(n_estimators=8, random_state=3).fit(encoded_nf, toy_data.y)
    np.testing.assert_allclose(made.fitted_.part.predict(features.derived()), trees.predict(encoded_nf), atol=1e-12)


def test_the_ridge_is_the_least_squares_fit_with_its_penalty_worked_by_hand(toy_data: Dataset) -> None:
    made = Ridge(penalties=(10.0,), target="source").learn(toy_data)
    standard_nf = np.nan_to_num(made.fitted_.part.encoder(toy_data.X.derived().values_nf))
    centred_nf = standard_nf - standard_nf.mean(axis=0)
    gram_ff = centred_nf.T @ centred_nf + 10.0 * np.eye(centred_nf.shape[1])
    weights_fp = np.linalg.solve(gram_ff, centred_nf.T @ (toy_data.y - toy_data.y.mean(axis=0)))
    np.testing.assert_allclose(made.fitted_.part.weights_pf, weights_fp.T, atol=1e-8)


def test_a_peer_that_learns_the_workloads_vector_answers_relative_to_the_source(toy_data: Dataset) -> None:
    made = ExtraTrees(n_estimators=8, n_jobs=1, target="workload").learn(toy_data)
    vector_np = made.fitted_.part.predict(toy_data.X.derived())
    log_time_np = toy_data.log_time_wp[toy_data.workload_n]
    # Trees that are grown to the end know their own cells by heart: the log times less their mean over platforms.
    np.testing.assert_allclose(vector_np, log_time_np - log_time_np.mean(axis=1, keepdims=True), atol=1e-9)
    np.testing.assert_allclose(made.predict(toy_data.X), toy_data.y, atol=1e-9)


def test_the_workloads_vector_is_learned_where_a_platform_never_ran_it(toy_data: Dataset) -> None:
    target_np = toy_data.y.copy()
    lacking_n = np.isin(toy_data.workload_n, [0, 3]) & (toy_data.source_n != 2)
    target_np[lacking_n, 2] = np.nan
    kept = np.flatnonzero(~(np.isin(toy_data.workload_n, [0, 3]) & (toy_data.source_n == 2)))
    made = ExtraTrees(n_estimators=8, n_jobs=1, target="workload").fit(toy_data.X[kept], target_np[kept])
    predicted_np, known_np = made.predict(toy_data.X[kept]), ~np.isnan(target_np[kept])
    assert np.isfinite(predicted_np).all()
    np.testing.assert_allclose(predicted_np[known_np], target_np[kept][known_np], atol=1e-9)


def test_without_named_sources_targets_are_learned_as_they_are(toy_data: Dataset) -> None:
    target_np = toy_data.y + 5.0
    made = ExtraTrees(n_estimators=8, n_jobs=1, target="workload").fit(toy_data.X.values_nf, target_np)
    np.testing.assert_allclose(made.predict(toy_data.X.values_nf), target_np, atol=1e-9)


def test_an_unknown_target_is_refused(toy_data: Dataset) -> None:
    with pytest.raises(SettingsError, match=r"^target: found 'fastest' .*expected 'source' or 'workload'\.$"):
        Ridge(target="fastest").learn(toy_data)
