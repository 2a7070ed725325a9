"""Scoring: the same folds for all, nothing of the held-out part in a fit, a ceiling, and honest caveats."""

import json
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from crossperf import dataset
from crossperf.dataset import Dataset
from crossperf.datasets import toy
from crossperf.errors import DatasetError, MissingDependencyError, SettingsError
from crossperf.evaluation import metrics
from crossperf.evaluation.heldout import HeldOutPredictions
from crossperf.evaluation.result import Evaluation
from crossperf.evaluation.run import ablation, evaluate
from crossperf.evaluation.scores import METRICS, Scores
from crossperf.evaluation.scoring import score_cells
from crossperf.model import Median, Ridge
from crossperf.model.fitted.confidence import Forecast, NoveltyScores
from crossperf.model.fitted.peers import Medians
from crossperf.runs.table import from_frame


class Recorder(Median):
    """A model that notes which cells it was given."""

    fits: ClassVar[list[np.ndarray]] = []
    predictions: ClassVar[list[np.ndarray]] = []

    def fit(self, X, y, **kwargs):  # type: ignore[no-untyped-def]
        Recorder.fits.append(X)
        return super().fit(X, y, **kwargs)

    def predict(self, X):  # type: ignore[no-untyped-def]
        Recorder.predictions.append(X)
        return super().predict(X)


@pytest.mark.parametrize("split", dataset.SPLITS)
def test_no_held_out_cell_is_in_the_fit_and_each_is_held_out_once(split: dataset.Split, toy_data: Dataset) -> None:
    Recorder.fits, Recorder.predictions = [], []
    evaluate(toy_data, {"recorder": Recorder}, split=split, n_folds=3)
    everything = {row.tobytes() for row in toy_data.features.values_nf}
    held_out = [row.tobytes() for part in Recorder.predictions for row in part.values_nf]
    assert sorted(held_out) == sorted(everything)
    for train, test in zip(Recorder.fits, Recorder.predictions, strict=True):
        assert not {row.tobytes() for row in train.values_nf} & {row.tobytes() for row in test.values_nf}


def test_all_models_see_the_same_folds(toy_data: Dataset) -> None:
    twice = evaluate(toy_data, {"one": Median, "other": Median}, n_folds=3)
    timeless = [
        [replace(fold, fit_s=None, predict_s=None) for fold in twice.scores.models[name].folds]
        for name in ("one", "other")
    ]
    assert timeless[0] == timeless[1]


def test_scores_are_those_of_the_metrics_on_the_held_out_part(toy_data: Dataset) -> None:
    result = evaluate(toy_data, {"ridge": Ridge}, n_folds=3, seed=4)
    part = dataset.folds(toy_data, "workload", 3, seed=4)[0]
    fitted = Ridge().fit(toy_data.features[part.train_n], toy_data.log_relative_time_np[part.train_n])
    truth, predicted = toy_data.log_relative_time_np[part.test_n], fitted.predict(toy_data.features[part.test_n])
    expected = metrics.score(truth, predicted, toy_data.source_n[part.test_n])
    first = result.scores.models["ridge"].folds[0]
    assert first.typical_factor == pytest.approx(expected.typical_factor)
    assert first.r2_log == pytest.approx(expected.r2_log)


def test_the_figures_on_top_are_means_over_the_folds_that_have_them() -> None:
    assert Scores.mean([Scores(r2=1.0), Scores(r2=0.0, order_auc=0.8)]) == Scores(r2=0.5, order_auc=0.8)
    assert Scores.mean([Scores()]) == Scores()


def test_workloads_that_lack_a_platform_are_scored_on_those_they_have(toy_table) -> None:  # type: ignore[no-untyped-def]
    frame = toy_table.frame
    gone = (frame["app"] == "app0") & (frame["platform"] == "gpu-b")
    data = dataset.build(from_frame(frame.filter(~gone)))
    result = evaluate(data, ["median", "ridge"], n_folds=3)
    assert all(np.isfinite(scores.typical_factor or np.nan) for _, scores in result.scores.items())
    assert any("lack a platform" in caveat for caveat in result.caveats)


def test_a_platform_seen_in_no_training_row_is_one_clear_sentence(toy_table) -> None:  # type: ignore[no-untyped-def]
    frame = toy_table.frame
    kept = (frame["platform"] != "gpu-b") | (frame["app"] == "app0")
    data = dataset.build(from_frame(frame.filter(kept)))
    with pytest.raises(DatasetError, match="platform gpu-b is seen in no training row of fold"):
        evaluate(data, ["median"], split="app", n_folds=4)


def test_json_goes_there_and_back(toy_data: Dataset, tmp_path: Path) -> None:
    result = evaluate(toy_data, ["median"], n_folds=2)
    result.write(tmp_path / "evaluation.json")
    facts = json.loads((tmp_path / "evaluation.json").read_text())
    assert facts["format"] == 3
    assert {"path", "fingerprint", "runs", "apps", "workloads", "platforms"} <= set(facts["table"])
    assert set(METRICS) | {"fit_s", "predict_s", "coverage"} <= set(facts["scores"]["models"]["median"]["mean"])
    assert Evaluation.from_json(facts) == result


def test_an_unknown_model_is_reported_before_the_first_fit(toy_data: Dataset) -> None:
    with pytest.raises(SettingsError, match="did you mean 'ridge'"):
        evaluate(toy_data, ["median", "rigde"], n_folds=2)


def test_a_missing_package_is_named_with_the_pip_command(monkeypatch: pytest.MonkeyPatch, toy_data: Dataset) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'crossperf\[peers\]'"):
        evaluate(toy_data, ["xgboost"], n_folds=2)


def test_the_ablation_switches_off_each_stage_by_itself() -> None:
    whole = ablation()["vae-dnn"]().get_params()
    for name, maker in ablation().items():
        if name in ("vae-dnn", "without VAE (dnn)"):
            continue
        changed = {key for key, value in maker().get_params().items() if value != whole[key]}
        assert changed, name


@pytest.mark.slow
def test_vae_dnn_recovers_the_planted_law_far_better_than_the_constant_answer() -> None:
    """With no noise the error that is left is the model's own."""
    data = dataset.build(toy.make_table(apps=24, inputs=8, repeats=1, noise=0.0, seed=5))
    result = evaluate(data, ["vae-dnn", "median"], n_folds=2)
    learned, constant = (result.scores[name].typical_factor or np.nan for name in ("vae-dnn", "median"))
    assert np.log(learned) < 0.5 * np.log(constant)
    assert (result.scores["vae-dnn"].r2_log or 0.0) > 0.7


def test_one_fold_of_five_is_an_80_20_split_and_says_so(toy_data: Dataset) -> None:
    all_folds = evaluate(toy_data, ["ridge"], split="row", n_folds=5, seed=3)
    first = evaluate(toy_data, ["ridge"], split="row", n_folds=5, seed=3, scored_folds=1)
    assert first.scores["ridge"].r2 == all_folds.scores.models["ridge"].folds[0].r2
    assert (first.folds, first.scored_folds) == (5, 1)
    assert any("Only 1 of 5 folds" in caveat for caveat in first.caveats)
    with pytest.raises(SettingsError, match="expected 1 to 5"):
        evaluate(toy_data, ["ridge"], scored_folds=9)


class HalfAUnit(Forecast):
    """Intervals that are half a unit to either side."""

    def between(self, level, reference_n):  # type: ignore[no-untyped-def]
        return self.log_relative_np - 0.5, self.log_relative_np + 0.5

    def level_needed(self, log_truth_np, reference_n):  # type: ignore[no-untyped-def]
        return np.where(np.arange(log_truth_np.shape[1]) == reference_n[:, None], np.nan, 0.5)


class MediansWithIntervals(Medians):
    """Intervals are half a unit to either side, and the runs of every other source look unknown."""

    def forecast(self, features):  # type: ignore[no-untyped-def]
        score_n, count = np.where(features.source_n % 2, 0.5, 3.0), len(features)
        scores = NoveltyScores(score_n, score_n, np.empty((count, 0)))
        return HalfAUnit(self.predict(features), np.empty((count, 0, 4)), np.empty((count, 0)), scores)


class WithIntervals(Median):
    """A model whose fitted part is `MediansWithIntervals`."""

    def _learn(self, *data):  # type: ignore[no-untyped-def]
        return MediansWithIntervals(super()._learn(*data).medians_sp)


def test_coverage_counts_the_other_platforms_and_familiarity_splits_the_error(toy_data: Dataset) -> None:
    predictor = WithIntervals().learn(toy_data)
    predicted_np = predictor.predict(toy_data.features)
    scores = score_cells(HeldOutPredictions.by(predictor.fitted_, toy_data.features, toy_data, predicted_np), toy_data)
    error_np = np.abs(predictor.predict(toy_data.features) - toy_data.log_relative_time_np)
    other_np = np.arange(4) != toy_data.source_n[:, None]
    assert scores.coverage == pytest.approx((error_np <= 0.5)[other_np].mean())
    assert scores.interval_factor == pytest.approx(np.exp(0.5))
    assert (scores.share_familiar, scores.share_unusual, scores.share_unknown) == (0.5, 0.0, 0.5)
    assert scores.factor_unusual is None
    predicted_np = predictor.predict(toy_data.features)
    own_n = predicted_np[np.arange(len(toy_data)), toy_data.source_n]
    off_np = np.abs(predicted_np - own_n[:, None] - toy_data.log_relative_time_np)
    familiar_n = toy_data.source_n % 2 == 1
    assert scores.factor_familiar == pytest.approx(np.exp(off_np[familiar_n][other_np[familiar_n]].mean()))
