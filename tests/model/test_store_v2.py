"""Released formats stay readable: real folders of format 2, their predictions, and what happens to damaged ones."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

from crossperf import dataset, model
from crossperf.datasets import toy
from crossperf.errors import ModelFolderError
from crossperf.model import store

FORMAT_2 = Path(__file__).parents[1] / "data" / "formats" / "2"
READ = ("ridge", "vae-dnn", "median", "xgboost", "adapted-trees")
TOLERANCE = 1e-6


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the ridge's folder, to damage."""
    return Path(shutil.copytree(FORMAT_2 / "ridge", tmp_path / "old"))


def test_every_folder_beside_the_note_is_tested() -> None:
    assert {path.name for path in FORMAT_2.iterdir() if path.is_dir()} == {*READ, "crossperf"}


def test_a_default_model_of_format_2_is_refused_in_a_clear_sentence() -> None:
    with pytest.raises(
        ModelFolderError, match=r"default model of format 2, .* expected one of format 3\. Train it again"
    ):
        model.load(FORMAT_2 / "crossperf")


@pytest.mark.parametrize("name", READ)
def test_a_model_of_format_2_predicts_what_it_did(name: str) -> None:
    loaded = model.load(FORMAT_2 / name, trust=name == "xgboost")
    with np.load(FORMAT_2 / "expected.npz") as expected:
        np.testing.assert_allclose(
            loaded.fitted.predict(loaded.features), expected[name], rtol=TOLERANCE, atol=TOLERANCE
        )
    assert len(loaded.cells) == len(loaded.features) > 0
    assert loaded.training is not None
    assert loaded.training.workloads == 12
    assert loaded.versions["python"]


@pytest.mark.parametrize("name", READ)
def test_saving_it_writes_the_format_of_today_which_predicts_the_same_bit_for_bit(name: str, tmp_path: Path) -> None:
    old = model.load(FORMAT_2 / name, trust=name == "xgboost")
    old.save(tmp_path / "new")
    assert json.loads((tmp_path / "new" / "model.json").read_text())["format"] == store.FORMAT == 3
    new = model.load(tmp_path / "new")
    np.testing.assert_array_equal(new.fitted.predict(old.features), old.fitted.predict(old.features))
    assert (new.name, new.platforms, new.sources, new.workloads) == (
        old.name,
        old.platforms,
        old.sources,
        old.workloads,
    )
    assert new.training == old.training
    assert (new.settings, new.summary, new.versions) == (old.settings, old.summary, old.versions)
    np.testing.assert_array_equal(new.cells.log_time_wp, old.cells.log_time_wp)
    np.testing.assert_array_equal(new.features.values_nf, old.features.values_nf)


@pytest.mark.parametrize("name", READ)
def test_it_answers_for_new_runs(name: str) -> None:
    loaded = model.load(FORMAT_2 / name, trust=name == "xgboost")
    runs = [run for run in toy.make_runs(apps=1, inputs=1, repeats=1, seed=9) if run.platform in loaded.sources]
    answer = loaded.predict(runs)
    assert answer.notes == ()
    assert len(answer) == len(loaded.sources)
    assert all(list(prediction.relative_time) == list(loaded.platforms) for prediction in answer.predictions)


def test_its_training_cells_are_those_of_the_table_it_names() -> None:
    loaded = model.load(FORMAT_2 / "ridge")
    data = dataset.build(toy.make_table(apps=4, inputs=3, platforms=4, repeats=2, seed=5))
    assert loaded.workloads == data.workloads
    assert loaded.columns == data.X.columns
    np.testing.assert_allclose(loaded.features.values_nf, data.X.values_nf)
    np.testing.assert_allclose(loaded.cells.log_relative_time_np, data.y)


def test_an_adapted_model_keeps_its_added_platform_apart_from_its_sources() -> None:
    loaded = model.load(FORMAT_2 / "adapted-trees")
    assert loaded.platforms == ("cpu-a", "cpu-b", "gpu-b", "gpu-a")
    assert loaded.sources == ("cpu-a", "cpu-b", "gpu-b")


def test_a_folder_without_the_times_of_its_workloads_loads(copied: Path) -> None:
    (copied / "workloads.json").unlink()
    (copied / "cells.npz").unlink()
    loaded = model.load(copied)
    assert loaded.workloads == ()
    assert loaded.cells.log_time_wp.shape == (0, len(loaded.platforms))
    assert len(loaded.predict(toy.make_runs(apps=1, inputs=1, repeats=1, seed=9))) == 4


@pytest.mark.parametrize("text", ["", "{}", '{"workloads": [["a", "b"]], "log_time_s": [[1.0]]}'])
def test_damaged_times_of_workloads_are_refused_in_a_clear_sentence(copied: Path, text: str) -> None:
    (copied / "workloads.json").write_text(text)
    with pytest.raises(ModelFolderError, match=r"Train (it|the model) again"):
        model.load(copied)


@pytest.mark.parametrize(("name", "file"), [("ridge", "arrays.npz"), ("vae-dnn", "weights.pt")])
@pytest.mark.parametrize("damage", ["empty", "cut short", "gone", "noise"])
def test_a_damaged_state_is_refused_in_a_clear_sentence(name: str, file: str, damage: str, tmp_path: Path) -> None:
    state = Path(shutil.copytree(FORMAT_2 / name, tmp_path / "old")) / file
    whole = state.read_bytes()
    if damage == "gone":
        state.unlink()
    else:
        noise = np.random.default_rng(0).bytes(len(whole))
        state.write_bytes({"empty": b"", "cut short": whole[: len(whole) // 2], "noise": noise}[damage])
    with pytest.raises(ModelFolderError, match=r"Train (it|the model) again"):
        model.load(tmp_path / "old")


def test_a_pickle_in_the_place_of_the_weights_is_refused_and_not_run(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self):  # type: ignore[no-untyped-def]
            return (Path.touch, (tmp_path / "trapped",))

    folder = Path(shutil.copytree(FORMAT_2 / "vae-dnn", tmp_path / "old"))
    (folder / "weights.pt").write_bytes(pickle.dumps(Trap(), protocol=2))
    with pytest.raises(ModelFolderError):
        model.load(folder)
    assert not (tmp_path / "trapped").exists()
