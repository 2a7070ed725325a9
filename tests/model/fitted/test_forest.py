"""Forests as arrays against scikit-learn's own predictions."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from crossperf.model.fitted.peers import Forest
from crossperf.model.store import flatten, restore


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor])
@pytest.mark.parametrize("share_missing", [0.0, 0.2])
def test_arrays_predict_what_scikit_learn_predicts(kind: type, share_missing: float) -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 6))
    features[rng.random(features.shape) < share_missing] = np.nan
    targets = np.nan_to_num(features[:, :3]) + 0.1 * rng.normal(size=(300, 3))
    trees = kind(n_estimators=20, random_state=0).fit(features[:200], targets[:200])
    forest = Forest.of(trees.estimators_)
    assert np.allclose(forest.predict(features[200:]), trees.predict(features[200:]), rtol=0, atol=1e-12)


def test_a_tree_that_is_one_leaf_gives_its_value() -> None:
    trees = RandomForestRegressor(n_estimators=3).fit(np.zeros((4, 2)), np.full((4, 2), 7.0))
    assert np.array_equal(Forest.of(trees.estimators_).predict(np.zeros((1, 2))), [[7.0, 7.0]])


def test_saving_brings_the_forest_back() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(50, 3))
    forest = Forest.of(RandomForestRegressor(n_estimators=5).fit(features, features).estimators_)
    again = restore(Forest, flatten(forest))
    assert np.array_equal(again.predict(features), forest.predict(features))


def test_few_cells_end_in_the_leaves_that_many_do() -> None:
    rng = np.random.default_rng(0)
    features_nf = rng.normal(size=(60, 5))
    features_nf[rng.random(features_nf.shape) < 0.2] = np.nan
    fitted = ExtraTreesRegressor(8, random_state=0).fit(features_nf, rng.normal(size=(60, 3)))
    forest = Forest.of(fitted.estimators_)
    alone_np = np.concatenate([forest.predict(features_nf[i : i + 1]) for i in range(60)])
    np.testing.assert_array_equal(alone_np, forest.predict(features_nf))
    np.testing.assert_allclose(alone_np, fitted.predict(features_nf), atol=1e-12)
