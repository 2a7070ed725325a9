"""Models by name: crossperf's own, and those of installed packages."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from crossperf import model, plugins
from crossperf.dataset import Dataset, Features
from crossperf.errors import SettingsError


def test_an_unknown_model_is_named_with_the_nearest_known() -> None:
    with pytest.raises(SettingsError, match="did you mean 'random-forest'"):
        model.make("random_forest")


def test_an_unknown_setting_is_named_with_the_nearest_known() -> None:
    with pytest.raises(SettingsError, match="did you mean 'latent_dim'"):
        model.make("vae-dnn", latent_dims=4)


@pytest.mark.parametrize("name", list(model.MODELS))
def test_every_name_leads_to_a_class_that_knows_its_name(name: str) -> None:
    assert model.make(name).name == name


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that a package offers scikit-learn's linear regression and a ridge of crossperf's as models."""
    offered = [
        EntryPoint("linear", "sklearn.linear_model:LinearRegression", "crossperf.models"),
        EntryPoint("their-ridge", "crossperf.model.peers:Ridge", "crossperf.models"),
    ]

    def entry_points(*, group: str) -> list[EntryPoint]:
        assert group == "crossperf.models"
        return offered

    monkeypatch.setattr(plugins, "entry_points", entry_points)


def test_an_installed_package_offers_models_by_name(installed: None, toy_data: Dataset) -> None:
    made = model.make("linear", positive=True)
    assert isinstance(made, model.Wrapped)
    assert made.regressor.positive
    measured_nf = toy_data.X.values_nf[:, -5:]  # runtime and source, without gaps
    by_hand = LinearRegression(positive=True).fit(measured_nf, toy_data.y)
    predicted_np = made.fit(measured_nf, toy_data.y).fitted_.part.predict(Features.read(measured_nf))
    np.testing.assert_allclose(predicted_np, by_hand.predict(measured_nf))
    assert isinstance(model.make("their-ridge"), model.Ridge)


def test_names_of_installed_models_are_suggested_too(installed: None) -> None:
    with pytest.raises(SettingsError, match="did you mean 'linear'") as caught:
        model.make("liner")
    assert caught.value.facts["argument"] == "model"


def test_nothing_is_offered_under_a_name_that_does_not_exist() -> None:
    assert not hasattr(model, "Nothing")
