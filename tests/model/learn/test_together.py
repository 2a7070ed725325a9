"""Targets with gaps are learned, and no answer is made of what a gap was filled with."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LinearRegression

from crossperf import dataset, model
from crossperf.datasets import toy
from crossperf.model.learn.together import common_contrast, grow, grow_whole, together
from crossperf.model.wrapped import Wrapped
from tests.limited import limited_runs

QUICK = {"trees": 16, "members": 3, "width": 16, "steps": 30, "vae_steps": 20}


def _gappy() -> tuple[np.ndarray, np.ndarray]:
    """Return features and three targets, of which the last is known for every other row alone."""
    rng = np.random.default_rng(0)
    features_nf = rng.normal(size=(40, 3))
    target_np = features_nf @ rng.normal(size=(3, 3))
    target_np[::2, 2] = np.nan
    return features_nf, target_np


def test_columns_known_for_the_same_cells_go_together() -> None:
    _, target_np = _gappy()
    first, second = together(target_np)
    assert (first.columns.tolist(), len(first.rows_n)) == ([0, 1], 40)
    assert (second.columns.tolist(), second.rows_n.tolist()) == ([2], list(range(1, 40, 2)))


def test_trees_grown_once_answer_each_gap_from_the_least_node_that_knows_more() -> None:
    features_nf = np.array([[0.0], [1.0], [2.0], [3.0]])
    target_np = np.array([[0.0, 10.0], [1.0, np.nan], [8.0, 30.0], [9.0, np.nan]])
    forest = grow_whole(ExtraTreesRegressor(1, random_state=3), features_nf, target_np)
    answers = forest.predict(features_nf)
    np.testing.assert_allclose(answers[:, 0], [0.0, 1.0, 8.0, 9.0])
    np.testing.assert_allclose(answers[[0, 2], 1], [10.0, 30.0])
    # The node above a leaf without a known target holds its neighbour in the same half, or, split elsewhere, all.
    assert all(answer in (10.0, 20.0, 30.0) for answer in answers[[1, 3], 1])


def test_trees_grown_once_answer_as_a_plain_walk_up_the_tree_does() -> None:
    features_nf, target_np = _gappy()
    trees = ExtraTreesRegressor(3, random_state=0)
    forest = grow_whole(trees, features_nf, target_np)
    by_hand = np.zeros((3, *target_np.shape))
    for t, own in enumerate(trees.estimators_):
        path = own.decision_path(features_nf).toarray().astype(bool)
        for cell, column in np.ndindex(*target_np.shape):
            for node in np.flatnonzero(path[cell])[::-1]:  # the nodes of a path are numbered from the root down
                known = target_np[path[:, node], column]
                if not np.isnan(known).all():
                    by_hand[t, cell, column] = np.nanmean(known)
                    break
    np.testing.assert_allclose(forest.predict(features_nf), by_hand.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(forest.predict_median(features_nf)[0], np.median(by_hand, axis=0), atol=1e-12)


def test_without_gaps_trees_grown_once_are_those_of_scikit_learn() -> None:
    features_nf, target_np = _gappy()
    whole_np = target_np[:, :2]
    forest = grow_whole(ExtraTreesRegressor(5, random_state=0), features_nf, whole_np)
    plain = ExtraTreesRegressor(5, random_state=0).fit(features_nf, whole_np)
    np.testing.assert_allclose(forest.predict(features_nf), plain.predict(features_nf), atol=1e-12)


def test_a_column_that_was_never_measured_is_answered_with_0() -> None:
    features_nf, target_np = _gappy()
    target_np[:, 2] = np.nan
    forest = grow_whole(ExtraTreesRegressor(2, random_state=0), features_nf, target_np)
    assert (forest.predict(features_nf)[:, 2] == 0.0).all()


def test_a_joined_forest_answers_as_its_parts_do() -> None:
    features_nf, target_np = _gappy()
    forest = grow(lambda: ExtraTreesRegressor(7, random_state=0), features_nf, target_np)
    many = ExtraTreesRegressor(7, random_state=0).fit(features_nf, target_np[:, :2]).predict(features_nf)
    single = ExtraTreesRegressor(7, random_state=0).fit(features_nf[1::2], target_np[1::2, 2]).predict(features_nf)
    np.testing.assert_allclose(forest.predict(features_nf), np.column_stack([many, single]), atol=1e-12)


def test_a_forest_answers_zero_for_a_column_that_was_never_measured() -> None:
    features_nf, target_np = _gappy()
    forest = grow(lambda: ExtraTreesRegressor(7, random_state=0), features_nf[::2], target_np[::2])
    known = ExtraTreesRegressor(7, random_state=0).fit(features_nf[::2], target_np[::2, :2]).predict(features_nf)
    zeros_n = np.zeros(len(features_nf))
    np.testing.assert_allclose(forest.predict(features_nf), np.column_stack([known, zeros_n]), atol=1e-12)
    assert (forest.predict_median(features_nf)[0][:, 2] == zeros_n).all()


def test_contrasts_are_to_the_columns_without_gaps() -> None:
    _, target_np = _gappy()
    contrast_np = common_contrast(target_np)
    np.testing.assert_allclose(contrast_np, target_np - target_np[:, :2].mean(axis=1, keepdims=True))
    np.testing.assert_allclose(common_contrast(target_np[1::2]).mean(axis=1), 0.0, atol=1e-12)


def test_a_model_of_ones_own_learns_the_known_targets_exactly() -> None:
    features_nf, target_np = _gappy()
    predicted_np = Wrapped(LinearRegression()).fit(features_nf, target_np).predict(features_nf)
    known_np = ~np.isnan(target_np)
    np.testing.assert_allclose(predicted_np[known_np], target_np[known_np], atol=1e-9)


@pytest.mark.parametrize("name", ["crossperf", "ridge", "extra-trees", "random-forest", "xgboost"])
def test_every_kind_of_model_lives_with_workloads_that_cannot_run_everywhere(name: str) -> None:
    """Answers are finite everywhere, and close to the truth where there is any."""
    data = dataset.build(limited_runs())
    settings = QUICK if name == "crossperf" else {} if name in ("ridge", "xgboost") else {"n_estimators": 20}
    fitted = model.make(name, **settings).learn(data)
    error_np = np.abs(fitted.predict(data.X) - data.y)
    assert np.isfinite(fitted.predict(data.X)).all()
    assert np.isnan(error_np).sum() == 6 * 2 * 2
    assert np.nanmean(error_np) < np.log(2.5)


def test_the_default_learns_of_a_platform_that_a_single_application_ran_on() -> None:
    """What is blind to that application has nothing of the platform to learn from."""
    runs = toy.make_runs(apps=4, inputs=2, repeats=1, seed=1)
    data = dataset.build([run for run in runs if run.platform != "gpu-b" or run.app == runs[0].app])
    fitted = model.make("crossperf", **QUICK).learn(data)
    assert np.isfinite(fitted.predict(data.X)).all()
