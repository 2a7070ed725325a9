"""Models of one's own: anything with fit and predict, with gaps on both sides, and left as it was."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crossperf.arrays import Floats
from crossperf.dataset import Dataset, Features
from crossperf.errors import CrossperfError
from crossperf.model import Wrapped
from crossperf.model.peers import Median
from crossperf.model.wrapped import Regressor, as_predictor
from tests.model.conftest import held_out_factor, with_gaps


class Bare:
    """An object with fit and predict alone: the mean of y, and a note of what it was shown."""

    def __init__(self) -> None:
        self.shown: list[Floats] = []

    def fit(self, X: Floats, y: Floats) -> None:
        self.shown += [X, y]
        self.mean_p = y.mean(axis=0)

    def predict(self, X: Floats) -> Floats:
        return np.tile(self.mean_p, (len(X), 1))


@pytest.fixture
def gappy(toy_data: Dataset) -> tuple[Features, Floats]:
    target_np = toy_data.y.copy()
    target_np[np.random.default_rng(1).random(target_np.shape) < 0.2] = np.nan
    return with_gaps(toy_data.X), target_np


def made() -> dict[str, Any]:
    return {
        "pipeline": make_pipeline(StandardScaler(), Ridge()),
        "single output": GradientBoostingRegressor(n_estimators=5),
        "takes nan": HistGradientBoostingRegressor(max_iter=5),
        "fit and predict alone": Bare(),
    }


@pytest.mark.parametrize("name", made())
def test_any_regressor_learns_from_gaps_on_both_sides(name: str, gappy: tuple[Features, Floats]) -> None:
    features, target_np = gappy
    predicted_np = Wrapped(made()[name]).fit(features, target_np).predict(features)
    assert predicted_np.shape == target_np.shape
    assert np.isfinite(predicted_np).all()


@pytest.mark.parametrize("name", made())
def test_the_object_given_is_not_changed(name: str, gappy: tuple[Features, Floats]) -> None:
    regressor = made()[name]
    before = copy.deepcopy(regressor).__dict__
    wrapped = Wrapped(regressor)
    wrapped.fit(*gappy)
    assert wrapped.regressor is regressor
    assert regressor.__dict__.keys() == before.keys()
    assert not hasattr(regressor, "n_features_in_") or name == "pipeline"
    if name == "pipeline":
        assert not hasattr(regressor[-1], "coef_")
    if name == "fit and predict alone":
        assert regressor.shown == []


def by_platform(make: Callable[[], Any], values_nf: Floats, target_np: Floats) -> Floats:
    """Return what regressors predict that each learned a platform from the cells that ran there."""
    known_np = ~np.isnan(target_np)
    fitted = [make().fit(values_nf[known_np[:, p]], target_np[known_np[:, p], p]) for p in range(target_np.shape[1])]
    return np.column_stack([own.predict(values_nf) for own in fitted])


def test_a_pipeline_gets_medians_for_what_was_not_measured_and_nothing_for_what_never_ran(
    gappy: tuple[Features, Floats],
) -> None:
    features, target_np = gappy
    wrapped = Wrapped(make_pipeline(StandardScaler(), Ridge())).fit(features, target_np)
    values_nf = SimpleImputer(strategy="median", keep_empty_features=True).fit_transform(features.values_nf)
    by_hand_np = by_platform(lambda: make_pipeline(StandardScaler(), Ridge()), values_nf, target_np)
    np.testing.assert_allclose(wrapped.fitted_.part.predict(features), by_hand_np, rtol=1e-6)


def test_a_regressor_with_one_output_learns_each_platform_on_its_own(toy_data: Dataset) -> None:
    measured_nf = np.nan_to_num(toy_data.X.values_nf)
    features = Features(measured_nf, toy_data.X.columns)
    regressor = GradientBoostingRegressor(n_estimators=5, random_state=0)
    wrapped = Wrapped(regressor).fit(features, toy_data.y)
    by_hand = MultiOutputRegressor(regressor).fit(measured_nf, toy_data.y)
    np.testing.assert_allclose(wrapped.fitted_.part.predict(features), by_hand.predict(measured_nf))


def test_a_regressor_that_takes_nan_is_shown_it(gappy: tuple[Features, Floats]) -> None:
    features, target_np = gappy
    wrapped = Wrapped(HistGradientBoostingRegressor(max_iter=5)).fit(features, target_np)
    by_hand_np = by_platform(lambda: HistGradientBoostingRegressor(max_iter=5), features.values_nf, target_np)
    np.testing.assert_allclose(wrapped.fitted_.part.predict(features), by_hand_np)


def test_a_pipeline_takes_nan_only_where_all_of_its_steps_do(gappy: tuple[Features, Floats]) -> None:
    """Its own tag speaks of the first step alone: a scaler takes NaN, the regression behind it does not."""
    for last in (LinearRegression(), HistGradientBoostingRegressor(max_iter=3)):
        predicted_np = Wrapped(make_pipeline(StandardScaler(), last)).fit(*gappy).predict(gappy[0])
        assert np.isfinite(predicted_np).all()


def test_a_single_target_is_handed_over_as_a_vector(toy_data: Dataset) -> None:
    bare = Bare()
    bare_fit_shapes: list[tuple[int, ...]] = []

    class Watching(Bare):
        def fit(self, X: Floats, y: Floats) -> None:
            bare_fit_shapes.append(y.shape)
            self.mean_p = np.atleast_1d(y.mean(axis=0))

    assert isinstance(bare, Regressor)
    predicted_n = Wrapped(Watching()).fit(toy_data.X, toy_data.y[:, 1]).predict(toy_data.X)
    assert bare_fit_shapes == [(len(toy_data),)]
    assert predicted_n.shape == (len(toy_data),)


def test_a_pipeline_is_ahead_of_the_constant_answer(toy_data: Dataset) -> None:
    from sklearn.ensemble import RandomForestRegressor

    ours = held_out_factor(lambda: Wrapped(RandomForestRegressor(20, random_state=0)), toy_data, scored=1)
    assert ours < held_out_factor(Median, toy_data, scored=1)


def test_models_of_crossperf_are_copied_and_others_are_wrapped() -> None:
    median, linear = Median(), LinearRegression()
    copied = as_predictor(median)
    assert isinstance(copied, Median)
    assert copied is not median
    wrapped = as_predictor(linear)
    assert isinstance(wrapped, Wrapped)
    assert wrapped.regressor is linear


def test_a_model_of_ones_own_says_that_it_cannot_be_saved() -> None:
    with pytest.raises(CrossperfError, match="'LinearRegression' is not one of crossperf's"):
        Wrapped(LinearRegression()).refuse_unless_savable()


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (None, r"found object of shape \(\) as what Fixed\.predict returns, expected 24 x 4 real numbers"),
        (np.zeros((1, 4)), r"found float64 of shape \(1, 4\) as what"),
        (np.full((24, 4), 1j), r"found complex128 of shape \(24, 4\) as what"),
        (np.full((24, 4), "1"), r"found <U1 of shape \(24, 4\) as what"),
        ([[1.0], [1.0, 2.0]], "found a ragged list as what"),
        (np.full((24, 4), np.nan), "The model answers nan for run 1 of 24, expected finite numbers"),
        (np.where(np.arange(24)[:, None] == 3, np.inf, np.zeros((24, 4))), r"The model answers inf for run \d+ of 24"),
    ],
)
def test_what_a_model_of_ones_own_may_not_answer_is_one_sentence(
    toy_data: Dataset, answer: object, sentence: str
) -> None:
    """An unknown time would be left out of every score, and an infinite one be cut to the limits."""

    class Fixed:
        def fit(self, X: Floats, y: Floats) -> None: ...

        def predict(self, X: Floats) -> object:
            return answer

    wrapped = Wrapped(Fixed()).fit(toy_data.X[:24], toy_data.y[:24])
    with pytest.raises(CrossperfError, match=sentence):
        wrapped.predict(toy_data.X[:24])
