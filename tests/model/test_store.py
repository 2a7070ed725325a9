"""Model folders: whole or not at all, never somebody else's folder, clear words for a damaged one."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from crossperf import dataset, model
from crossperf.dataset import Dataset
from crossperf.datasets import toy
from crossperf.errors import ModelFolderError
from crossperf.model import Saved, store
from tests.model.conftest import QUICK


@pytest.fixture
def saved(toy_data: Dataset) -> Saved:
    return Saved.of(model.make("ridge").learn(toy_data), toy_data)


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_an_existing_model_is_replaced_only_when_told_to(saved: Saved, tmp_path: Path) -> None:
    target = tmp_path / "model"
    model.save(saved, target)
    before = (target / "model.json").read_text()
    with pytest.raises(ModelFolderError, match="--overwrite"):
        model.save(saved, target)
    assert (target / "model.json").read_text() == before
    model.save(saved, target, overwrite=True)
    assert leftovers(tmp_path) == []


def test_a_folder_that_is_no_model_is_never_replaced(saved: Saved, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("years of work")
    with pytest.raises(ModelFolderError, match="not a crossperf model"):
        model.save(saved, tmp_path / "thesis", overwrite=True)
    assert (tmp_path / "thesis" / "chapter1.tex").read_text() == "years of work"


def test_a_save_that_fails_half_way_leaves_the_old_model_and_nothing_else(
    saved: Saved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "model"
    model.save(saved, target)
    monkeypatch.setattr(store, "_write_state", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        model.save(saved, target, overwrite=True)
    assert model.load(target).platforms == saved.platforms
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("name", ["ridge", "vae-dnn"])
@pytest.mark.parametrize("damage", ["empty", "cut short", "gone", "noise"])
def test_a_damaged_state_is_one_clear_sentence(name: str, damage: str, toy_data: Dataset, tmp_path: Path) -> None:
    fitted = model.make(name, **QUICK[name]).learn(toy_data)
    model.save(Saved.of(fitted, toy_data), tmp_path / "model")
    state = tmp_path / "model" / fitted.state_file
    whole = state.read_bytes()
    if damage == "gone":
        state.unlink()
    else:
        noise = np.random.default_rng(0).bytes(len(whole))
        state.write_bytes({"empty": b"", "cut short": whole[: len(whole) // 2], "noise": noise}[damage])
    with pytest.raises(ModelFolderError, match="Train it again"):
        model.load(tmp_path / "model")


def test_a_pickle_in_the_place_of_the_weights_is_refused_and_not_run(toy_data: Dataset, tmp_path: Path) -> None:
    import pickle

    class Trap:
        def __reduce__(self):  # type: ignore[no-untyped-def]
            return (Path.touch, (tmp_path / "trapped",))

    fitted = model.make("dnn", **QUICK["dnn"]).learn(toy_data)
    model.save(Saved.of(fitted, toy_data), tmp_path / "model")
    (tmp_path / "model" / "weights.pt").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ModelFolderError):
        model.load(tmp_path / "model")
    assert not (tmp_path / "trapped").exists()


def test_a_newer_format_is_named_and_not_guessed(saved: Saved, tmp_path: Path) -> None:
    model.save(saved, tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 3}))
    with pytest.raises(ModelFolderError, match=r"found format 3, expected 2\. Upgrade crossperf"):
        model.load(tmp_path / "model")


def test_a_place_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFolderError, match="no such folder"):
        model.load(tmp_path / "nowhere")


def test_the_times_of_the_training_workloads_come_back_to_the_last_digit(tmp_path: Path) -> None:
    table = toy.make_table(apps=4, inputs=3, repeats=2, seed=1).frame
    gappy = dataset.build(table.filter(~((pl.col("input") == "n0") & (pl.col("platform") == "gpu-a"))))
    assert np.isnan(gappy.log_time_wp).any()
    training = gappy.take(np.flatnonzero(gappy.app_n != 0))
    model.save(Saved.of(model.make("ridge").learn(training), training), tmp_path / "model")
    loaded = model.load(tmp_path / "model")
    assert loaded.workloads == tuple(workload for workload in gappy.workloads if workload[0] != gappy.apps[0])
    truth_wp = gappy.log_time_wp[[gappy.workloads.index(workload) for workload in loaded.workloads]]
    np.testing.assert_array_equal(loaded.log_time_wp, truth_wp)
    np.testing.assert_array_equal(loaded.features_nf, training.features_nf)
    np.testing.assert_array_equal(loaded.source_n, training.source_n)
    assert [loaded.workloads[w] for w in loaded.workload_n] == [gappy.workloads[w] for w in training.workload_n]


def test_a_folder_without_the_times_of_its_workloads_loads_as_before(saved: Saved, tmp_path: Path) -> None:
    model.save(saved, tmp_path / "model")
    (tmp_path / "model" / "workloads.json").unlink()
    (tmp_path / "model" / "cells.npz").unlink()
    loaded = model.load(tmp_path / "model")
    assert loaded.workloads == ()
    assert loaded.log_time_wp.shape == (0, len(saved.platforms))


@pytest.mark.parametrize("text", ["", "{}", '{"workloads": [["a", "b"]], "log_time_s": [[1.0]]}'])
def test_damaged_times_of_workloads_are_one_clear_sentence(saved: Saved, tmp_path: Path, text: str) -> None:
    model.save(saved, tmp_path / "model")
    (tmp_path / "model" / "workloads.json").write_text(text)
    with pytest.raises(ModelFolderError, match="Train it again"):
        model.load(tmp_path / "model")
