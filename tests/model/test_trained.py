"""Training: the documented path, scikit-learn's path and a data frame's path give the same model."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.model_selection import GroupKFold, cross_val_score

import crossperf
from crossperf import dataset, model
from crossperf.dataset import Dataset
from crossperf.datasets import toy
from crossperf.errors import DatasetError, SettingsError
from crossperf.model import TrainedModel
from crossperf.runs.table import RunsTable

#: The default model in half a second.
QUICK = {"trees": 8, "members": 3, "width": 16, "steps": 30, "latent_dim": 3, "vae_steps": 20, "n_jobs": 1}


@pytest.fixture(scope="module")
def table() -> RunsTable:
    return toy.make_table(apps=6, inputs=3, repeats=2, seed=1)


@pytest.fixture(scope="module")
def data(table: RunsTable) -> Dataset:
    return dataset.build(table)


@pytest.fixture(scope="module")
def trained(table: RunsTable) -> TrainedModel:
    return crossperf.train(table, **QUICK)


def test_fit_on_x_and_y_is_what_train_does_bit_for_bit(trained: TrainedModel, data: Dataset) -> None:
    fitted = crossperf.Crossperf(**QUICK).fit(data.X, data.y)
    np.testing.assert_array_equal(fitted.predict(data.X), trained.fitted.predict(data.X))
    ours, theirs = (
        made.forecast(data.X[:5]).between(0.8, data.source_n[:5]) for made in (fitted.fitted_, trained.fitted)
    )
    np.testing.assert_array_equal(ours, theirs)


def test_a_data_frame_with_its_groups_gives_the_same_model(data: Dataset) -> None:
    """The same as of cells that nothing is known of but their groups: a frame does not tell how times repeat."""
    frame = data.X.to_frame()
    expected = crossperf.Crossperf(**QUICK).fit(replace(data.X, noise_np=None), data.y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = crossperf.Crossperf(**QUICK).fit(
            frame, data.y, groups=data.groups_n("workload"), apps=data.groups_n("app"), cpu=data.cpu_n
        )
        predicted_np = fitted.predict(frame)
        np.testing.assert_array_equal(fitted.predict(data.X), predicted_np)
    np.testing.assert_array_equal(predicted_np, expected.predict(data.X))


def test_groups_may_be_words(trained: TrainedModel, data: Dataset) -> None:
    words = [f"{app} {input_}" for app, input_ in data.workloads]
    groups, apps = ([names[w] for w in data.workload_n] for names in (words, [app for app, _ in data.workloads]))
    fitted = crossperf.Crossperf(**QUICK).fit(data.X, data.y, groups=groups, apps=apps)
    np.testing.assert_array_equal(fitted.predict(data.X), trained.fitted.predict(data.X))


def test_without_its_groups_it_is_another_model(trained: TrainedModel, data: Dataset) -> None:
    """So that the tests above would see it where the groups that X brings were lost."""
    frame = data.X.to_frame()
    alone = crossperf.Crossperf(**QUICK).fit(frame, data.y)
    assert not np.array_equal(alone.predict(frame), trained.fitted.predict(data.X))


def test_cross_val_score_scores_the_documented_model(data: Dataset) -> None:
    groups_n, scoring = data.groups_n("workload"), "neg_mean_absolute_error"
    scores = cross_val_score(
        crossperf.Crossperf(**QUICK), data.X, data.y, groups=groups_n, cv=GroupKFold(3), scoring=scoring
    )
    by_hand = []
    for train_n, test_n in GroupKFold(3).split(data.y, groups=groups_n):
        held_in, held_out = data.take(train_n), data.take(test_n)
        fitted = model.make("crossperf", **QUICK).learn(held_in)
        by_hand.append(get_scorer(scoring)(fitted, held_out.X, held_out.y))
    np.testing.assert_array_equal(scores, by_hand)
    assert len(set(scores)) == 3


def test_a_model_that_learned_from_features_matches_a_frame_by_name(data: Dataset) -> None:
    fitted = model.make("extra-trees", n_estimators=5, n_jobs=1).fit(data.X, data.y)
    frame = data.X.to_frame()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(fitted.predict(frame[list(frame.columns)[::-1]]), fitted.predict(data.X))
    with pytest.raises(SettingsError, match=r"X: found no column 'runtime_s'"):
        fitted.predict(frame.drop("runtime_s", axis=1) if hasattr(frame, "loc") else frame.drop("runtime_s"))


def test_a_trained_model_knows_its_table_its_columns_and_its_cells(trained: TrainedModel, data: Dataset) -> None:
    assert trained.name == "crossperf"
    assert trained.platforms == trained.sources == data.platforms
    assert trained.counters == data.counters
    assert trained.workloads == data.workloads
    assert trained.training == data.table
    assert trained.settings["trees"] == 8
    np.testing.assert_array_equal(trained.cells.log_relative_time_np, data.y)
    np.testing.assert_array_equal(trained.features.values_nf, data.X.values_nf)
    assert {"python", "numpy", "scikit-learn"} <= trained.versions.keys()
    assert len(repr(trained).splitlines()) <= 10
    assert "<pre>" in trained._repr_html_()


def test_paths_records_and_datasets_are_trained_on_alike(table: RunsTable, data: Dataset, tmp_path: Path) -> None:
    table.write(tmp_path / "runs.parquet")
    expected_np = model.train(table, "ridge").fitted.predict(data.X)
    for source in (tmp_path / "runs.parquet", str(tmp_path / "runs.parquet"), table.runs(), table.frame, data):
        np.testing.assert_array_equal(model.train(source, "ridge").fitted.predict(data.X), expected_np)


def test_chosen_platforms_are_learned_about_alone(table: RunsTable) -> None:
    assert model.train(table, "ridge", platforms=["gpu-a", "cpu-a"]).platforms == ("gpu-a", "cpu-a")


def test_the_seed_reaches_models_that_draw_and_a_setting_of_ones_own_wins(data: Dataset) -> None:
    def predicted(**settings: int) -> np.ndarray:
        trained = model.train(data, "random-forest", n_estimators=3, n_jobs=1, **settings)
        return trained.fitted.predict(data.X)

    assert not np.array_equal(predicted(seed=1), predicted(seed=2))
    np.testing.assert_array_equal(predicted(), predicted(seed=0))
    model.train(data, "median", seed=3)  # draws nothing, and has no seed


def test_an_unfitted_model_is_trained_as_it_is_and_stays_unfitted(data: Dataset) -> None:
    given = model.ExtraTrees(n_estimators=4, n_jobs=1, seed=5)
    trained = model.train(data, given)
    expected = clone(given).fit(data.X, data.y)
    np.testing.assert_array_equal(trained.fitted.predict(data.X), expected.predict(data.X))
    assert trained.settings["seed"] == 5
    assert not hasattr(given, "fitted_")


@pytest.mark.parametrize("name", ["crossperf", "ridge"])
def test_a_table_with_a_single_workload_is_refused(name: str) -> None:
    with pytest.raises(DatasetError, match="found a single workload, expected at least 2") as caught:
        model.train(toy.make_table(apps=1, inputs=1, repeats=2, seed=1), name)
    assert caught.value.facts["workloads"] == 1


def test_a_model_that_cannot_be_saved_is_refused_before_it_is_trained(data: Dataset) -> None:
    class Never:
        def fit(self, X: object, y: object) -> None:
            raise AssertionError("fitted")

        def predict(self, X: object) -> None: ...

    with pytest.raises(crossperf.errors.CrossperfError, match="'Never' is not one of crossperf's and cannot be saved"):
        model.train(data, Never())


def test_saving_and_asking_are_methods(trained: TrainedModel, table: RunsTable, tmp_path: Path) -> None:
    trained.save(tmp_path / "model")
    runs = table.runs()[:3]
    assert crossperf.load(tmp_path / "model").predict(runs).predictions == trained.predict(runs).predictions
