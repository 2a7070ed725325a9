"""Adapted models: the columns of the base stay bit for bit, each head adds one, and capabilities follow the base."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crossperf import dataset, model
from crossperf.adaptation.head import KnownWorkloads, fit_head
from crossperf.dataset import Dataset
from crossperf.datasets import toy
from crossperf.errors import SettingsError
from crossperf.model import TrainedModel
from crossperf.model.fitted.adapted import Adapted, AdaptedForecaster, Head, add_platform
from crossperf.model.fitted.model import FittedModel, Forecaster, KnownRuns, LatentSpace
from tests.model.conftest import QUICK

SHOTS = np.array([0, 11, 22, 33])


@pytest.fixture(scope="module")
def data() -> Dataset:
    return dataset.build(toy.make_table(apps=10, inputs=4, platforms=5, repeats=2, noise=0.01, seed=1))


def head_like(data: Dataset, twin: int, log_factor: float) -> Head:
    """Return the head of a platform that is a known one, a factor apart."""
    return fit_head(KnownWorkloads.of(data, data.X), SHOTS, data.log_time_wp[SHOTS, twin] + log_factor)


@pytest.mark.parametrize("name", ["ridge", "extra-trees", "dnn"])
def test_the_columns_of_the_base_model_stay_bit_for_bit_and_loading_changes_nothing(
    name: str, data: Dataset, tmp_path: Path
) -> None:
    base = TrainedModel.of(model.make(name, **QUICK[name]).learn(data), data)
    once = add_platform(base.fitted, head_like(data, 0, 0.5), "first")
    twice = add_platform(once, head_like(data, 1, -0.5), "second")
    before_np, after_np = base.fitted.predict(data.X), twice.predict(data.X)
    assert after_np.shape[1] == before_np.shape[1] + 2
    np.testing.assert_array_equal(after_np[:, :-2], before_np)
    np.testing.assert_array_equal(after_np[:, :-1], once.predict(data.X))
    part = twice.part
    assert isinstance(part, Adapted)
    assert part.base is base.fitted  # not an adapted model within another
    assert part.added == ("first", "second")
    assert [added["platform"] for added in part.summary] == ["first", "second"]
    assert [added["workloads"] for added in part.summary] == [4, 4]

    cells = base.cells.on((*data.platforms, "first", "second"), (*data.platform_classes, "cpu", "gpu"))
    replace(base, name="adapted", fitted=twice, cells=cells).save(tmp_path / "model")
    loaded = model.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.fitted.predict(data.X), after_np)
    assert loaded.sources == data.platforms
    assert loaded.platforms == (*data.platforms, "first", "second")
    assert isinstance(loaded.fitted.part, Adapted)
    assert loaded.fitted.part.summary == part.summary


def test_a_base_that_forecasts_and_remembers_passes_both_on(data: Dataset) -> None:
    base = model.make("crossperf", **{**QUICK["crossperf"], "steps": 20}).learn(data).fitted_
    fitted = add_platform(base, head_like(data, 0, 0.5), "new")
    part = fitted.part
    assert isinstance(part, AdaptedForecaster)
    assert isinstance(part, Forecaster)
    assert isinstance(part, KnownRuns)
    assert isinstance(base.part, KnownRuns)
    assert part.background is base.part.background
    np.testing.assert_array_equal(part.known_latent_bk, base.part.known_latent_bk)
    np.testing.assert_array_equal(part.latent(data.X[:3]), base.part.latent(data.X[:3]))
    forecast, known = fitted.forecast(data.X[:5]), base.forecast(data.X[:5])
    np.testing.assert_array_equal(forecast.log_relative_np, fitted.predict(data.X[:5]))
    np.testing.assert_array_equal(forecast.error_nbp[:, :, :-1], known.error_nbp)
    low_np, high_np = forecast.between(0.8, data.source_n[:5])
    assert (low_np[:, -1] < high_np[:, -1]).all()
    np.testing.assert_allclose(forecast.chance_fastest().sum(axis=1), 1.0)


@pytest.mark.parametrize("name", ["ridge", "dnn"])
def test_a_base_that_cannot_makes_an_adapted_model_that_cannot(name: str, data: Dataset) -> None:
    base = model.make(name, **QUICK[name]).learn(data).fitted_
    fitted = add_platform(base, head_like(data, 0, 0.5), "new")
    assert type(fitted.part) is Adapted
    assert not fitted.forecasts
    assert not isinstance(fitted.part, LatentSpace)
    assert not isinstance(fitted.part, KnownRuns)


def test_the_errors_of_a_twin_are_those_of_the_platform_it_follows(data: Dataset) -> None:
    """A head that passes one column on, and was never off itself, passes that column's errors on."""
    base = model.make("crossperf", **{**QUICK["crossperf"], "steps": 20}).learn(data).fitted_
    head = head_like(data, 0, 0.5)
    exact = replace(head, left_out_k=np.zeros(4), limits_2=np.array([-1e3, 1e3]))
    exact = replace(
        exact,
        contrast_weights_sp=np.tile(np.eye(5)[2], (5, 1)),
        feature_weights_sf=np.zeros_like(head.feature_weights_sf),
        shot_weights_sk=np.zeros_like(head.shot_weights_sk),
    )
    fitted = add_platform(base, exact, "twin of the third")
    error_nbp = fitted.forecast(data.X[:4]).error_nbp
    np.testing.assert_allclose(error_nbp[:, :, -1], error_nbp[:, :, 2], atol=1e-6)


def test_an_adapted_model_is_not_made_by_name() -> None:
    with pytest.raises(SettingsError, match="model: found 'adapted', expected"):
        model.make("adapted")


def test_a_fitted_model_is_asked_with_anything_that_has_its_columns(data: Dataset) -> None:
    fitted = model.make("ridge").learn(data).fitted_
    assert isinstance(fitted, FittedModel)
    expected_np = fitted.predict(data.X)
    np.testing.assert_array_equal(fitted.predict(data.X.to_frame()), expected_np)
    np.testing.assert_array_equal(fitted.predict(data.X.values_nf), expected_np)


def test_a_head_sees_rates_and_one_saved_without_them_answers_as_it_did(data: Dataset) -> None:
    head, plain = head_like(data, 0, 0.5), len(data.X.columns)
    assert len(head.encoder.mean_f) == data.X.derived().values_nf.shape[1] > plain
    encoder = replace(
        head.encoder,
        scale_f=head.encoder.scale_f[:plain],
        mean_f=head.encoder.mean_f[:plain],
        spread_f=head.encoder.spread_f[:plain],
    )
    before = replace(
        head,
        encoder=encoder,
        mean_sf=head.mean_sf[:, :plain],
        gain_sf=head.gain_sf[:, :plain],
        feature_weights_sf=head.feature_weights_sf[:, :plain],
        shots_skf=head.shots_skf[:, :, :plain],
    )
    # The same head with rates that count nothing.
    deaf = replace(head, gain_sf=head.gain_sf.copy(), shots_skf=head.shots_skf.copy())
    deaf.gain_sf[:, plain:] = 0.0
    deaf.shots_skf[:, :, plain:] = 0.0
    np.testing.assert_allclose(before.predict(data.X, data.y), deaf.predict(data.X, data.y), rtol=1e-9)
