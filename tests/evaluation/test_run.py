"""Scoring: the same folds for all, nothing of the held-out part in a fit, a ceiling, and honest doubts."""

import json
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from crossperf import dataset
from crossperf.dataset.build import Dataset
from crossperf.datasets import toy
from crossperf.errors import CrossperfError, DatasetError, MissingDependencyError, SettingsError
from crossperf.evaluation import metrics
from crossperf.evaluation.heldout import Said
from crossperf.evaluation.run import Evaluation, ablation, average, evaluate, noise_ceiling, trust
from crossperf.model import Median, Ridge
from crossperf.records import Run
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
    everything = {row.tobytes() for row in toy_data.features_nf}
    held_out = [row.tobytes() for part in Recorder.predictions for row in part]
    assert sorted(held_out) == sorted(everything)
    for train, test in zip(Recorder.fits, Recorder.predictions, strict=True):
        assert not {row.tobytes() for row in train} & {row.tobytes() for row in test}


def test_all_models_see_the_same_folds(toy_data: Dataset) -> None:
    twice = evaluate(toy_data, {"one": Median, "other": Median}, n_folds=3)
    timeless = [
        [{k: v for k, v in fold.items() if not k.endswith("_s")} for fold in twice.models[name]["folds"]]
        for name in ("one", "other")
    ]
    assert timeless[0] == timeless[1]


def test_scores_are_those_of_the_metrics_on_the_held_out_part(toy_data: Dataset) -> None:
    result = evaluate(toy_data, {"ridge": Ridge}, n_folds=3, seed=4)
    part = dataset.folds(toy_data, "workload", 3, seed=4)[0]
    fitted = Ridge().fit(toy_data.features_nf[part.train_n], toy_data.log_relative_time_np[part.train_n])
    truth, predicted = toy_data.log_relative_time_np[part.test_n], fitted.predict(toy_data.features_nf[part.test_n])
    expected = metrics.score(truth, predicted)
    assert result.models["ridge"]["folds"][0]["typical_factor"] == pytest.approx(expected["typical_factor"])
    assert result.models["ridge"]["folds"][0]["r2_log"] == pytest.approx(expected["r2_log"])


def test_the_figures_on_top_are_means_over_the_folds_that_have_them() -> None:
    assert average([{"r2": 1.0, "auc": None}, {"r2": 0.0, "auc": 0.8}]) == {"r2": 0.5, "auc": 0.8}
    assert average([{"auc": None}]) == {"auc": None}


def test_the_noise_ceiling_is_perfect_without_noise_and_worse_with_it() -> None:
    silent = dataset.build(toy.make_table(apps=3, inputs=3, noise=0.0))
    noisy = dataset.build(toy.make_table(apps=3, inputs=3, noise=0.5))
    assert noise_ceiling(silent)["typical_factor"] == pytest.approx(1.0)
    assert noise_ceiling(silent)["same_order"] == 1.0
    worse = noise_ceiling(noisy)["typical_factor"]
    assert worse is not None
    assert worse > 1.2


def test_the_noise_ceiling_worked_by_hand() -> None:
    runs = [
        Run("a", "1", platform, seconds, repeat=i, counters={"c": 1.0})
        for platform, times in {"p": (1.0, 1.0), "q": (2.0, 4.0)}.items()
        for i, seconds in enumerate(times)
    ]
    # One half says q is 2x, the other 4x: |log 2| on q, 0 on p, so exp(log(2) / 2).
    assert noise_ceiling(dataset.build(runs))["typical_factor"] == pytest.approx(np.sqrt(2.0))


def test_without_repeats_the_ceiling_is_not_known_and_that_is_a_doubt() -> None:
    data = dataset.build(toy.make_table(apps=3, inputs=3, repeats=1))
    result = evaluate(data, ["median"], n_folds=2)
    assert set(result.noise_ceiling.values()) == {None}
    assert any("repeats" in doubt for doubt in result.doubts)


def test_few_apps_a_dominant_order_and_the_row_split_are_doubts(toy_data: Dataset) -> None:
    result = evaluate(toy_data, ["median"], split="row", n_folds=2)
    assert any("Few applications (4)" in doubt for doubt in result.doubts)
    assert any("flatters" in doubt for doubt in result.doubts)
    runs = [
        Run("a", str(i), platform, seconds, repeat=0, counters={"c": float(i)})
        for i in range(6)
        for platform, seconds in (("p", 1.0), ("q", 2.0))
    ]
    dominated = evaluate(dataset.build(runs), ["median"], n_folds=2)
    assert any("100% of the workloads have p < q" in doubt for doubt in dominated.doubts)


def test_a_model_at_the_noise_ceiling_is_a_doubt() -> None:
    noisy = dataset.build(toy.make_table(apps=4, inputs=4, noise=2.0))
    result = evaluate(noisy, ["median"], n_folds=2)
    assert any("noise ceiling" in doubt for doubt in result.doubts)


def test_workloads_that_lack_a_platform_are_scored_on_those_they_have(toy_table) -> None:  # type: ignore[no-untyped-def]
    frame = toy_table.frame
    gone = (frame["app"] == "app0") & (frame["platform"] == "gpu-b")
    data = dataset.build(from_frame(frame.filter(~gone)))
    result = evaluate(data, ["median", "ridge"], n_folds=3)
    assert all(np.isfinite(result.models[name]["typical_factor"]) for name in ("median", "ridge"))
    assert any("lack a platform" in doubt for doubt in result.doubts)


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
    assert facts["format"] == 2
    assert {"path", "fingerprint", "runs", "apps", "workloads", "platforms"} <= set(facts["table"])
    assert set(metrics.METRICS) | {"fit_s", "predict_s", "folds"} == set(facts["models"]["median"])
    assert Evaluation.from_json(facts) == result


def test_an_evaluation_of_another_format_is_refused() -> None:
    with pytest.raises(CrossperfError, match="format 99 was found, expected 2"):
        Evaluation.from_json({"format": 99})


def test_an_unknown_model_is_told_before_the_first_fit(toy_data: Dataset) -> None:
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
    found, constant = (result.models[name]["typical_factor"] for name in ("vae-dnn", "median"))
    assert np.log(found) < 0.5 * np.log(constant)
    assert result.models["vae-dnn"]["r2_log"] > 0.7


def test_one_fold_of_five_is_an_80_20_split_and_says_so(toy_data: Dataset) -> None:
    all_folds = evaluate(toy_data, ["ridge"], split="row", n_folds=5, seed=3)
    first = evaluate(toy_data, ["ridge"], split="row", n_folds=5, seed=3, scored_folds=1)
    assert first.models["ridge"]["r2"] == all_folds.models["ridge"]["folds"][0]["r2"]
    assert (first.folds, first.scored_folds) == (5, 1)
    assert any("Only 1 of 5 folds" in doubt for doubt in first.doubts)
    with pytest.raises(SettingsError, match="expected 1 to 5"):
        evaluate(toy_data, ["ridge"], scored_folds=9)


class Sure(Median):
    """A model whose ranges are half a unit to either side, and to which every other run looks unknown."""

    def forecast(self, X):  # type: ignore[no-untyped-def]
        predicted_np = self.predict(X)

        class Forecast:
            log_relative_np = predicted_np

            class oddness:  # noqa: N801
                score_n = np.array([0.5 if i % 2 else 3.0 for i in range(len(predicted_np))])

            def between(self, level, reference_n):  # type: ignore[no-untyped-def]
                return predicted_np - 0.5, predicted_np + 0.5

            def level_needed(self, log_truth_np, reference_n):  # type: ignore[no-untyped-def]
                return np.where(np.arange(predicted_np.shape[1]) == reference_n[:, None], np.nan, 0.5)

        return Forecast()


def test_coverage_counts_the_other_platforms_and_familiarity_splits_the_error(toy_data: Dataset) -> None:
    predictor = Sure().learn(toy_data)
    cells = (toy_data.features_nf, toy_data.log_relative_time_np, toy_data.source_n)
    found = trust(Said.by(predictor, *cells, predictor.predict(toy_data.features_nf)), toy_data)
    error_np = np.abs(predictor.predict(toy_data.features_nf) - toy_data.log_relative_time_np)
    other_np = np.arange(4) != toy_data.source_n[:, None]
    assert found["coverage"] == pytest.approx((error_np <= 0.5)[other_np].mean())
    assert found["range_factor"] == pytest.approx(np.exp(0.5))
    assert (found["share_familiar"], found["share_unusual"], found["share_unknown"]) == (0.5, 0.0, 0.5)
    assert found["factor_unusual"] is None
    truth_np, predicted_np = metrics.to_fastest(toy_data.log_relative_time_np, predictor.predict(toy_data.features_nf))
    assert found["factor_familiar"] == pytest.approx(metrics.typical_factor(truth_np[1::2], predicted_np[1::2]))
