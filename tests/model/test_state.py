"""Fitted models as named arrays: every kind comes back bit for bit, and what does not fit is refused."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from crossperf.adaptation.adapt import adapt
from crossperf.dataset import Features
from crossperf.datasets import toy
from crossperf.errors import CrossperfError
from crossperf.model import TrainedModel, load, save, train
from crossperf.model.fitted.adapted import AdaptedForecaster
from crossperf.model.fitted.model import FittedModel
from crossperf.model.store import PARTS, State, flatten, part_class, restore
from crossperf.model.wrapped import Wrapped
from tests.model.conftest import QUICK
from tests.model.test_store_v2 import FORMAT_2

#: A model of each kind; those behind optional packages are tested with their peers.
KINDS = {
    "blend": "crossperf",
    "latent-network": "vae-dnn",
    "network": "dnn",
    "linear": "ridge",
    "medians": "median",
    "trees": "extra-trees",
    "xgboost": "xgboost",
    "adapted": "adapted-trees",
    "adapted-forecaster": "adapted",
}


@functools.cache
def blend() -> TrainedModel:
    """A default model of few members."""
    few = {"trees": 4, "members": 4, "width": 8, "steps": 20, "latent_dim": 3, "vae_steps": 20}
    return train(toy.make_table(apps=4, inputs=3, platforms=4, repeats=2, seed=5), "crossperf", **few)


def trained_of(kind: str) -> TrainedModel:
    name = KINDS[kind]
    if kind == "blend":
        return blend()
    if kind == "adapted-forecaster":
        table = toy.make_table(apps=4, inputs=3, platforms=5, repeats=1, seed=5).frame
        return adapt(blend(), table.filter(pl.col("platform") == "cpu-4")).model
    if (FORMAT_2 / name).is_dir():
        return load(FORMAT_2 / name, trust=True)
    return train(toy.make_table(apps=3, inputs=2, repeats=1, seed=1), name, **QUICK[name])


def test_every_kind_is_tested_here_or_with_its_optional_package() -> None:
    assert set(PARTS) - set(KINDS) == {"lightgbm", "catboost"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_comes_back_bit_for_bit(kind: str) -> None:
    trained = trained_of(kind)
    assert trained.fitted.part.kind == kind
    assert type(trained.fitted.part) is part_class(kind)
    state = flatten(trained.fitted)
    assert all(isinstance(array, np.ndarray) and array.dtype != object for array in state.values())
    again = restore(FittedModel, state)
    assert type(again.part) is type(trained.fitted.part)
    assert again.columns == trained.columns
    assert_same(flatten(again), state)
    np.testing.assert_array_equal(again.predict(trained.features), trained.fitted.predict(trained.features))


def assert_same(left: State, right: State) -> None:
    assert left.keys() == right.keys()
    for name, array in left.items():
        assert array.dtype == right[name].dtype, name
        assert array.tobytes() == right[name].tobytes(), name


def test_an_adapted_forecaster_forecasts_the_same_when_it_comes_back() -> None:
    fitted = trained_of("adapted-forecaster").fitted
    again = restore(FittedModel, flatten(fitted))
    assert isinstance(again.part, AdaptedForecaster)
    assert again.part.added == ("cpu-4",)
    rows = again.part.background[:3]
    np.testing.assert_array_equal(again.forecast(rows).error_nbp, fitted.forecast(rows).error_nbp)


def test_names_are_paths_through_the_fields() -> None:
    state = flatten(load(FORMAT_2 / "adapted-trees").fitted)
    assert state["part.kind"] == "adapted"
    assert state["part.base.part.kind"] == "trees"
    assert {"columns.names", "part.heads.0.encoder.mean_f", "part.base.part.forest.left_m"} <= state.keys()
    assert not any(name.startswith("limits") for name in state)  # an adapted model keeps to those of its base


def test_features_come_back_with_the_groups_they_have_and_without_those_they_lack() -> None:
    columns = load(FORMAT_2 / "ridge").columns
    values_nf = np.arange(2.0 * len(columns)).reshape(2, -1)
    with_groups = Features(values_nf, columns, np.array([3, 4]), None, np.array([True, False]))
    again = restore(Features, flatten(with_groups))
    assert again.app_n is None
    np.testing.assert_array_equal(again.workload_n, [3, 4])
    np.testing.assert_array_equal(again.cpu_n, [True, False])
    assert again.columns == columns


#: Facts that files of earlier versions do not have, and that are false there.
ADDED_LATER = ("sees_derived", "of_workload")


@pytest.mark.parametrize("kind", ["linear", "adapted", "blend"])
def test_an_array_that_is_missing_raises_whichever_it_is(kind: str) -> None:
    state = flatten(trained_of(kind).fitted)
    for name in state:
        last = name.split(".")[-1]
        if last.isdigit() or last in ADDED_LATER:
            continue  # one of several (see the gap below), or absent from files of before
        with pytest.raises((KeyError, ValueError)):
            restore(FittedModel, {key: array for key, array in state.items() if key != name})


def test_a_gap_in_a_list_of_arrays_raises() -> None:
    state = flatten(load(FORMAT_2 / "vae-dnn").fitted)
    with pytest.raises(KeyError):
        restore(FittedModel, {key: array for key, array in state.items() if key != "part.regressor.weights.1"})


def test_a_kind_that_nobody_knows_raises() -> None:
    state = flatten(load(FORMAT_2 / "ridge").fitted)
    with pytest.raises(KeyError, match="from-the-future"):
        restore(FittedModel, state | {"part.kind": np.array("from-the-future")})


def test_an_object_of_ones_own_is_neither_flattened_nor_saved_as_a_pickle(tmp_path: Path) -> None:
    from sklearn.neighbors import KNeighborsRegressor

    from crossperf.dataset import build

    data = build(toy.make_table(apps=3, inputs=2, repeats=1, seed=1))
    wrapped = Wrapped(KNeighborsRegressor(2)).learn(data)
    with pytest.raises(KeyError, match="wrapped"):
        flatten(wrapped.fitted_)
    with pytest.raises(CrossperfError, match=r"'wrapped' cannot be saved: .*a pickle"):
        save(TrainedModel.of(wrapped, data), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
