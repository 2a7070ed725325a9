"""The optional peers: the same promises as every model, wherever their packages are installed."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from crossperf import model
from crossperf.dataset import Dataset
from crossperf.errors import CrossperfError, MissingDependencyError, ModelFolderError
from crossperf.model import TrainedModel
from tests.model.conftest import held_out_factor, with_gaps

#: Settings with which each fits in a second or two.
QUICK: dict[str, dict[str, Any]] = {
    "lightgbm": {"n_estimators": 20, "n_jobs": 1},
    "catboost": {"n_estimators": 20, "n_jobs": 1, "learning_rate": 0.3},
    "tabm": {"n_epochs": 20, "width": 32, "members": 4, "n_jobs": 1, "device": "cpu"},
    "realmlp": {"n_epochs": 10, "width": 32, "n_jobs": 1, "device": "cpu"},
}
BOOSTED = ["lightgbm", "catboost"]
NETWORKS = ["tabm", "realmlp"]


def where_installed(names: list[str]) -> list[Any]:
    """Return the names, each marked to be skipped where its package is absent: an extra that no CI promises."""
    return [
        pytest.param(
            name,
            marks=pytest.mark.skipif(
                find_spec(model.PACKAGES[name]) is None,
                reason=f"{model.PACKAGES[name]} is optional and not installed: pip install 'crossperf[more-peers]'",
            ),
        )
        for name in names
    ]


def quick(name: str, **settings: Any) -> model.Predictor:
    return model.make(name, **{**QUICK[name], **settings})


def test_every_optional_peer_is_tested_here() -> None:
    assert set(QUICK) == set(model.PACKAGES)


@pytest.mark.parametrize("name", list(QUICK))
def test_a_missing_package_is_named_with_the_pip_command(
    name: str, toy_data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, model.PACKAGES[name], None)
    with pytest.raises(MissingDependencyError, match=rf"'{name}' needs .*: pip install 'crossperf\[more-peers\]'"):
        quick(name).learn(toy_data)


@parametrize_with_checks([quick(name) for name in BOOSTED if find_spec(model.PACKAGES[name])])
def test_scikit_learns_checks(estimator: model.Predictor, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("name", where_installed([*BOOSTED, *NETWORKS]))
def test_an_optional_peer_learns_from_gaps_in_counters_and_targets(name: str, toy_data: Dataset) -> None:
    features, targets = with_gaps(toy_data.X), toy_data.y.copy()
    targets[np.random.default_rng(0).random(targets.shape) < 0.2] = np.nan
    predicted = quick(name).fit(features, targets).predict(features)
    assert predicted.shape == targets.shape
    assert np.isfinite(predicted).all()


@pytest.mark.parametrize("name", where_installed([*BOOSTED, *NETWORKS]))
def test_the_same_seed_gives_the_same_model_whatever_the_random_state_outside(name: str, toy_data: Dataset) -> None:
    np.random.seed(1)
    first = quick(name).learn(toy_data).predict(toy_data.X)
    np.random.seed(2)
    after = np.random.get_state()[1].copy()
    again = quick(name).learn(toy_data).predict(toy_data.X)
    other = quick(name, seed=1).learn(toy_data).predict(toy_data.X)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert np.array_equal(np.random.get_state()[1], after)  # and it leaves the caller's draws alone


@pytest.mark.parametrize("name", where_installed([*BOOSTED, *NETWORKS]))
def test_an_optional_peer_is_ahead_of_the_constant_answer(name: str, toy_data: Dataset) -> None:
    longer = {"tabm": {"n_epochs": 60}, "realmlp": {"n_epochs": 100, "width": 64}}.get(name, {})
    ours = held_out_factor(lambda: quick(name, **longer), toy_data, scored=1)
    assert ours < held_out_factor(lambda: model.make("median"), toy_data, scored=1)


@pytest.mark.parametrize("name", where_installed(NETWORKS))
def test_the_groups_that_a_network_stops_on_are_whole(name: str, toy_data: Dataset) -> None:
    groups = toy_data.groups_n("app")
    watched = quick(name)._stopping(groups)
    learned = np.setdiff1d(np.arange(len(groups)), watched)
    assert len(watched) and len(learned)
    assert not set(groups[watched]) & set(groups[learned])


@pytest.mark.parametrize("name", where_installed(NETWORKS))
def test_a_network_says_nothing_and_leaves_no_files(
    name: str, toy_data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    quick(name, n_epochs=2).learn(toy_data).predict(toy_data.X)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", where_installed(BOOSTED))
def test_a_saved_booster_predicts_what_it_did_and_holds_no_pickle(name: str, toy_data: Dataset, tmp_path: Path) -> None:
    fitted = quick(name).learn(toy_data)
    model.save(TrainedModel.of(fitted, toy_data), tmp_path / "model")
    with np.load(tmp_path / "model" / "arrays.npz", allow_pickle=False) as arrays:
        assert all(arrays[key].dtype != object for key in arrays)
    loaded = model.load(tmp_path / "model")
    assert np.array_equal(loaded.fitted.predict(toy_data.X), fitted.predict(toy_data.X))
    assert loaded.settings == fitted.get_params()


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9])
@pytest.mark.parametrize("name", where_installed(BOOSTED))
def test_a_booster_cut_short_is_one_clear_sentence(name: str, share: float, toy_data: Dataset, tmp_path: Path) -> None:
    fitted = quick(name).learn(toy_data)
    model.save(TrainedModel.of(fitted, toy_data), tmp_path / "model")
    path = tmp_path / "model" / "arrays.npz"
    with np.load(path) as arrays:
        state = dict(arrays)
    first = "fitted.part.raw.0"
    state[first] = state[first][: int(share * len(state[first]))]
    np.savez(path, **state)
    with pytest.raises(ModelFolderError, match="Train it again"):
        model.load(tmp_path / "model")


@pytest.mark.parametrize("name", where_installed(NETWORKS))
def test_a_network_that_is_only_a_pickle_is_not_saved_and_says_so(name: str, toy_data: Dataset, tmp_path: Path) -> None:
    fitted = quick(name, n_epochs=2).learn(toy_data)
    with pytest.raises(CrossperfError, match=f"'{name}' cannot be saved"):
        model.train(toy_data, name)
    with pytest.raises(CrossperfError, match=f"'{name}' cannot be saved"):
        model.save(TrainedModel.of(fitted, toy_data), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", where_installed(BOOSTED))
def test_a_booster_chooses_its_settings_as_xgboost_does(name: str, toy_data: Dataset) -> None:
    summary = quick(name).learn(toy_data).summary_
    assert summary["tuned"]
    assert {**summary["settings"], "rounds": summary["rounds"]}.items() <= next(
        tried
        for tried in summary["tried"]
        if tried["rounds"] == summary["rounds"] and summary["settings"].items() <= tried.items()
    ).items()
