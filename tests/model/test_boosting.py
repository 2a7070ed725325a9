"""How the boosted trees choose their settings: on whole groups of training cells, and not at all without tuning."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crossperf import dataset, model
from crossperf.arrays import Floats
from crossperf.dataset import Dataset, folds
from crossperf.datasets import toy
from crossperf.model import boosting
from crossperf.model.boosting import Candidate, Rows, trials_of
from crossperf.model.fitted.boosters import XGBoosters
from crossperf.model.peers import XGBoost


class WatchedBoosters(XGBoosters):
    """Boosters with a note of every row that they are asked about."""

    @staticmethod
    def answer(booster: Any, values_nf: Floats, rounds: int | None = None, n_jobs: int | None = None) -> Floats:
        seen.append(values_nf)
        return XGBoosters.answer(booster, values_nf, rounds, n_jobs)


class Watched(XGBoost):
    """The model, with a note of every row that it is shown."""

    library = WatchedBoosters

    def _train(self, settings: dict[str, float], rounds: int, rows: Rows) -> Any:
        seen.append(rows.features_nf)
        return super()._train(settings, rounds, rows)


seen: list[Floats] = []


@pytest.mark.parametrize("split", ["workload", "app"])
def test_the_groups_held_out_are_whole_and_a_quarter(split: dataset.Split) -> None:
    data = dataset.build(toy.make_table(apps=16, inputs=3, platforms=12, repeats=1, seed=1))
    groups = data.groups_n(split)
    group_of_row = {row.tobytes(): group for row, group in zip(data.X.values_nf, groups, strict=True)}
    assert len(group_of_row) == len(groups)
    trials = list(trials_of(data.X.values_nf, data.y, groups, seed=0))
    assert len(trials) == 2
    held_parts = []
    for trial in trials:
        held = {group_of_row[row.tobytes()] for row in trial.held_features_nf}
        assert held == set(trial.held_group_n)
        for rows in trial.learned:
            assert not held & {group_of_row[row.tobytes()] for row in rows.features_nf}
        assert len(held) == pytest.approx(len(set(groups)) / 4, abs=1)
        held_parts.append(held)
    assert not held_parts[0] & held_parts[1]


def test_what_is_held_out_is_the_log_ratio_of_two_platforms(toy_data: Dataset) -> None:
    (trial,) = trials_of(toy_data.X.values_nf, toy_data.y, toy_data.groups_n("workload"), seed=3)
    first, second = trial.platforms
    row_of = {row.tobytes(): i for i, row in enumerate(toy_data.X.values_nf)}
    cells = [row_of[row.tobytes()] for row in trial.held_features_nf]
    log_time = toy_data.log_time_wp[toy_data.workload_n[cells]]
    np.testing.assert_allclose(trial.held_difference_n, log_time[:, first] - log_time[:, second], atol=1e-12)


def test_a_choice_looks_at_a_bounded_number_of_cells_in_whole_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boosting, "MOST_CELLS", 100)
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat(np.arange(30), 9))
    features, target = rng.normal(size=(270, 3)), rng.normal(size=(270, 2))
    (trial,) = trials_of(features, target, groups, seed=0)
    sizes = np.unique(trial.held_group_n, return_counts=True)[1]
    assert len(trial.learned[0].target_n) + len(trial.held_group_n) == 99
    assert (sizes == 9).all()


def test_the_choice_never_sees_a_test_row(toy_data: Dataset) -> None:
    part = folds(toy_data, "workload", 3, seed=0)[0]
    training = toy_data.take(part.train_n)
    seen.clear()
    fitted = Watched(n_estimators=10).learn(training)
    assert fitted.summary_["tuned"]
    seen_nf = toy_data.X.derived().values_nf
    train_rows = {row.tobytes() for row in seen_nf[part.train_n]}
    test_rows = {row.tobytes() for row in seen_nf[part.test_n]}
    shown = {row.tobytes() for rows in seen for row in rows}
    assert shown == train_rows
    assert not shown & test_rows


def test_without_tuning_it_is_the_model_of_before(toy_data: Dataset) -> None:
    import xgboost

    fitted = model.make("xgboost", n_estimators=30, tune=False, n_jobs=1, target="source").learn(toy_data)
    features = toy_data.X.derived()
    assert fitted.summary_["tuned"] is False
    settings = {"max_depth": 6, "eta": 0.05, "subsample": 0.8, "colsample_bytree": 0.5, "nthread": 1, "seed": 0}
    for platform, target in enumerate(toy_data.y.T):
        booster = xgboost.train(settings, xgboost.DMatrix(features.values_nf, target), num_boost_round=30)
        by_hand = booster.predict(xgboost.DMatrix(features.values_nf))
        assert np.array_equal(fitted.fitted_.part.predict(features)[:, platform], by_hand.astype(np.float64))


def test_too_few_groups_leave_the_settings_as_given(toy_data: Dataset) -> None:
    assert len(toy_data.apps) < boosting.FEWEST_GROUPS
    tuned = model.make("xgboost", n_estimators=10).learn(toy_data, "app")
    untuned = model.make("xgboost", n_estimators=10, tune=False).learn(toy_data, "app")
    assert tuned.summary_ == untuned.summary_
    assert np.array_equal(tuned.predict(toy_data.X), untuned.predict(toy_data.X))


def test_hopeless_settings_are_replaced_by_better_ones_and_the_fit_says_which(toy_data: Dataset) -> None:
    hopeless = {"n_estimators": 60, "learning_rate": 0.001, "n_jobs": 1}
    fitted = model.make("xgboost", **hopeless).learn(toy_data)
    summary = fitted.summary_
    assert summary["settings"]["learning_rate"] == 0.1
    by_error = min(summary["tried"], key=lambda tried: tried["rmse"])
    assert {**summary["settings"], "rounds": summary["rounds"]} == {k: v for k, v in by_error.items() if k != "rmse"}
    assert json.loads(json.dumps(summary))["tried"] == summary["tried"]
    assert fitted.fitted_.part.native[0].num_boosted_rounds() == summary["rounds"]
    untuned = model.make("xgboost", **hopeless, tune=False).learn(toy_data)
    truth = toy_data.y
    errors = [np.abs(made.predict(toy_data.X) - truth).mean() for made in (fitted, untuned)]
    assert errors[0] < errors[1]


def test_a_candidate_that_is_no_better_changes_nothing(toy_data: Dataset) -> None:
    class Same(XGBoost):
        candidates = (Candidate({"learning_rate": 0.0001}), Candidate({}))

    summary = Same(n_estimators=40, learning_rate=0.1).learn(toy_data).summary_
    assert summary["settings"]["learning_rate"] == 0.1
    assert summary["rounds"] == 40


def test_a_platform_where_nothing_was_held_out_is_no_reason_to_fail(toy_data: Dataset) -> None:
    target = toy_data.y.copy()
    target[4:] = np.where(np.arange(target.shape[1]) == 0, target[4:], np.nan)
    fitted = model.make("xgboost", n_estimators=5).fit(toy_data.X, target, groups=toy_data.groups_n("workload"))
    assert np.isfinite(fitted.predict(toy_data.X)).all()


def test_a_tuned_model_comes_back_from_its_folder(toy_data: Dataset, tmp_path: Path) -> None:
    fitted = model.make("xgboost", n_estimators=20, learning_rate=0.001).learn(toy_data)
    model.save(model.TrainedModel.of(fitted, toy_data), tmp_path / "model")
    loaded = model.load(tmp_path / "model")
    assert np.array_equal(loaded.fitted.predict(toy_data.X), fitted.predict(toy_data.X))
    assert loaded.settings == fitted.get_params()
    facts = json.loads((tmp_path / "model" / "model.json").read_text())["fit"]
    assert facts["rounds"] == fitted.summary_["rounds"]


def test_each_seed_holds_out_other_groups(toy_data: Dataset) -> None:
    groups = toy_data.groups_n("workload")
    held = [set(next(trials_of(toy_data.X.values_nf, toy_data.y, groups, seed)).held_group_n) for seed in range(3)]
    assert held[0] != held[1] or held[1] != held[2]
