"""What every model promises: scikit-learn's own checks, missing values, limits, determinism, saving."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from crossperf import model
from crossperf.dataset import Dataset
from crossperf.model import TrainedModel, store
from tests.model.conftest import QUICK, held_out_factor, with_gaps, with_values

#: The optional peers have tests of their own.
NAMES = [name for name in model.MODELS if name not in model.PACKAGES]


def quick(name: str, **settings: Any) -> model.Predictor:
    return model.make(name, **{**QUICK[name], **settings})


def expected_failures(estimator: model.Predictor) -> dict[str, str]:
    """Return the checks that a model may fail, each with its reason."""
    if estimator.name in ("crossperf", "vae-dnn", "dnn"):
        rounding = "single-precision matrix products round by the number of rows (about 1e-6; double would cost 70 %)"
        return {"check_methods_subset_invariance": rounding}
    return {}


@pytest.mark.filterwarnings("ignore:Crossperf.fit. X has no column:UserWarning")
@parametrize_with_checks([quick(name) for name in NAMES], expected_failed_checks=expected_failures)
def test_scikit_learns_own_checks(estimator: model.Predictor, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_learns_from_gaps_in_counters_and_targets(name: str, toy_data: Dataset) -> None:
    rng = np.random.default_rng(0)
    features, targets = with_gaps(toy_data.X), toy_data.y.copy()
    targets[rng.random(targets.shape) < 0.2] = np.nan
    predicted = quick(name).fit(features, targets).predict(features)
    assert predicted.shape == targets.shape
    assert np.isfinite(predicted).all()


@pytest.mark.parametrize("name", NAMES)
def test_no_prediction_leaves_the_training_range_by_more_than_a_tenth(name: str, toy_data: Dataset) -> None:
    targets = toy_data.y
    fitted = quick(name).learn(toy_data)
    wild = with_values(toy_data.X, toy_data.X.values_nf * np.random.default_rng(0).lognormal(0, 20, toy_data.X.shape))
    low, high = targets.min(axis=0), targets.max(axis=0)
    predicted = fitted.predict(wild)
    assert (predicted >= low - 0.1 * (high - low) - 1e-9).all()
    assert (predicted <= high + 0.1 * (high - low) + 1e-9).all()


def test_a_wild_linear_model_keeps_the_differences_between_platforms_seen_in_training(toy_data: Dataset) -> None:
    targets = toy_data.y
    seen = targets - targets.mean(axis=1, keepdims=True)
    low, high = seen.min(axis=0) - 0.1 * np.ptp(seen, axis=0), seen.max(axis=0) + 0.1 * np.ptp(seen, axis=0)
    fitted = quick("ridge").set_params(target="source").learn(toy_data)
    wild = with_values(toy_data.X, toy_data.X.values_nf * np.random.default_rng(0).lognormal(0, 20, toy_data.X.shape))
    free = fitted.fitted_.part.predict(wild.derived())
    level = free.mean(axis=1, keepdims=True)
    assert ((free - level < low) | (free - level > high)).any()  # left alone, it would leave them
    held = fitted.predict(wild)
    limits = fitted.fitted_.limits
    assert limits is not None
    inside = (held > limits.target_2p[0]) & (held < limits.target_2p[1])
    kept = (held - level >= low - 1e-9) & (held - level <= high + 1e-9)
    assert inside.any()
    assert kept[inside].all()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_model(name: str, toy_data: Dataset) -> None:
    first = quick(name).learn(toy_data).predict(toy_data.X)
    again = quick(name).learn(toy_data).predict(toy_data.X)
    assert np.array_equal(first, again)


@pytest.mark.parametrize("name", ["vae-dnn", "dnn", "random-forest", "extra-trees", "xgboost"])
def test_another_seed_gives_another_model(name: str, toy_data: Dataset) -> None:
    # extra-trees answers its own training rows exactly, whatever the seed
    unseen = with_values(toy_data.X, toy_data.X.values_nf * 1.1)
    first = quick(name, seed=0).learn(toy_data).predict(unseen)
    other = quick(name, seed=1).learn(toy_data).predict(unseen)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_model_predicts_what_it_did(name: str, toy_data: Dataset, tmp_path: Path) -> None:
    fitted = quick(name).learn(toy_data)
    model.save(TrainedModel.of(fitted, toy_data), tmp_path / "model")
    loaded = model.load(tmp_path / "model")
    assert np.array_equal(loaded.fitted.predict(toy_data.X), fitted.predict(toy_data.X))
    assert loaded.platforms == toy_data.platforms
    assert loaded.counters == toy_data.counters
    assert loaded.columns == toy_data.X.columns
    # JSON has no tuples, so a setting that is one comes back as a list.
    assert loaded.settings == json.loads(json.dumps(fitted.get_params()))
    assert loaded.summary == json.loads(json.dumps(fitted.summary_))


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_model_holds_no_pickle_of_objects(name: str, toy_data: Dataset, tmp_path: Path) -> None:
    fitted = quick(name).learn(toy_data)
    model.save(TrainedModel.of(fitted, toy_data), tmp_path / "model")
    names = sorted(path.name for path in (tmp_path / "model").iterdir())
    assert names == ["arrays.npz", "model.json"]
    with np.load(tmp_path / "model" / "arrays.npz", allow_pickle=False) as arrays:
        assert all(arrays[key].dtype != object for key in arrays)


def test_the_description_says_what_a_reader_needs(toy_data: Dataset, tmp_path: Path) -> None:
    model.save(TrainedModel.of(quick("ridge").learn(toy_data), toy_data), tmp_path / "model")
    facts = json.loads((tmp_path / "model" / "model.json").read_text())
    assert facts["format"] == store.FORMAT
    assert facts["counters"] == list(toy_data.counters)
    assert facts["platforms"] == ["cpu-a", "cpu-b", "gpu-a", "gpu-b"]
    assert facts["platform_classes"] == ["cpu", "cpu", "gpu", "gpu"]
    assert facts["training"]["fingerprint"] == toy_data.table.fingerprint
    assert "numpy" in facts["versions"]


@pytest.mark.parametrize("name", NAMES)
def test_each_model_is_ahead_of_the_constant_answer_on_inputs_never_seen(name: str, toy_data: Dataset) -> None:
    if name == "median":
        pytest.skip("median is the constant answer")
    ours, median = (held_out_factor(lambda name=name: quick(name), toy_data) for name in (name, "median"))
    assert ours < median
