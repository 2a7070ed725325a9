"""Model folders: whole or not at all, never somebody else's folder, clear words for a damaged one."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from crossperf import dataset, model, packing
from crossperf.dataset import Dataset
from crossperf.datasets import toy
from crossperf.errors import ModelFolderError
from crossperf.model import TrainedModel, store
from crossperf.model.fitted import boosters
from tests.model.conftest import QUICK

FORMAT_2 = Path(__file__).parents[1] / "data" / "formats" / "2"


@pytest.fixture
def trained(toy_data: Dataset) -> TrainedModel:
    return TrainedModel.of(model.make("ridge").learn(toy_data), toy_data)


def resealed(folder: Path) -> Path:
    """Write the digest of what a folder holds now, as somebody would who wants his changes believed."""
    path = folder / "model.json"
    facts = json.loads(path.read_text())
    path.write_text(json.dumps(facts | {"digest": store.digest_of(facts, (folder / "arrays.npz").read_bytes())}))
    return folder


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_an_existing_model_is_replaced_only_where_that_is_asked_for(trained: TrainedModel, tmp_path: Path) -> None:
    target = tmp_path / "model"
    model.save(trained, target)
    before = (target / "model.json").read_text()
    with pytest.raises(ModelFolderError, match="overwrite=True"):
        model.save(trained, target)
    assert (target / "model.json").read_text() == before
    model.save(trained, target, overwrite=True)
    assert leftovers(tmp_path) == []


def test_a_folder_that_is_no_model_is_never_replaced(trained: TrainedModel, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("years of work")
    with pytest.raises(ModelFolderError, match="not a crossperf model"):
        model.save(trained, tmp_path / "thesis", overwrite=True)
    assert (tmp_path / "thesis" / "chapter1.tex").read_text() == "years of work"


def test_a_save_that_fails_half_way_leaves_the_old_model_and_nothing_else(
    trained: TrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "model"
    model.save(trained, target)
    monkeypatch.setattr(store, "_description", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        model.save(trained, target, overwrite=True)
    assert model.load(target).platforms == trained.platforms
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("name", ["ridge", "vae-dnn"])
@pytest.mark.parametrize("damage", ["empty", "cut short", "gone", "noise"])
def test_a_damaged_state_is_refused_in_a_clear_sentence(
    name: str, damage: str, toy_data: Dataset, tmp_path: Path
) -> None:
    fitted = model.make(name, **QUICK[name]).learn(toy_data)
    model.save(TrainedModel.of(fitted, toy_data), tmp_path / "model")
    state = tmp_path / "model" / "arrays.npz"
    whole = state.read_bytes()
    if damage == "gone":
        state.unlink()
    else:
        noise = np.random.default_rng(0).bytes(len(whole))
        state.write_bytes({"empty": b"", "cut short": whole[: len(whole) // 2], "noise": noise}[damage])
        with pytest.raises(ModelFolderError, match="its digest is not that of its content"):
            model.load(tmp_path / "model")
        resealed(tmp_path / "model")
    with pytest.raises(ModelFolderError, match="Train it again"):
        model.load(tmp_path / "model")


def test_a_pickle_in_the_place_of_the_arrays_is_refused_and_not_run(trained: TrainedModel, tmp_path: Path) -> None:
    import pickle

    class Trap:
        def __reduce__(self):  # type: ignore[no-untyped-def]
            return (Path.touch, (tmp_path / "trapped",))

    model.save(trained, tmp_path / "model")
    path = tmp_path / "model" / "arrays.npz"
    with np.load(path) as arrays:
        trapped = dict(arrays) | {"fitted.part.bias_p": np.array([Trap()], dtype=object)}
    np.savez(path, **trapped)
    with pytest.raises(ModelFolderError, match="Train it again"):
        model.load(resealed(tmp_path / "model"))
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ModelFolderError, match="Train it again"):
        model.load(resealed(tmp_path / "model"))
    assert not (tmp_path / "trapped").exists()


def test_a_newer_format_is_named_and_not_guessed(trained: TrainedModel, tmp_path: Path) -> None:
    model.save(trained, tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 4}))
    with pytest.raises(ModelFolderError, match=r"found format 4, expected .* of format 2 or 3\. Upgrade crossperf"):
        model.load(tmp_path / "model")


def test_a_place_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFolderError, match="no such folder"):
        model.load(tmp_path / "nowhere")


def test_the_times_of_the_training_workloads_come_back_to_the_last_digit(tmp_path: Path) -> None:
    table = toy.make_table(apps=4, inputs=3, repeats=2, seed=1).frame
    gappy = dataset.build(table.filter(~((pl.col("input") == "n0") & (pl.col("platform") == "gpu-a"))))
    assert np.isnan(gappy.log_time_wp).any()
    training = gappy.take(np.flatnonzero(gappy.app_n != 0))
    model.save(TrainedModel.of(model.make("ridge").learn(training), training), tmp_path / "model")
    loaded = model.load(tmp_path / "model")
    assert loaded.workloads == tuple(workload for workload in gappy.workloads if workload[0] != gappy.apps[0])
    truth_wp = gappy.log_time_wp[[gappy.workloads.index(workload) for workload in loaded.workloads]]
    np.testing.assert_array_equal(loaded.cells.log_time_wp, truth_wp)
    np.testing.assert_array_equal(loaded.features.values_nf, training.X.values_nf)
    np.testing.assert_array_equal(loaded.cells.source_n, training.source_n)
    assert [loaded.workloads[w] for w in loaded.cells.workload_n] == [gappy.workloads[w] for w in training.workload_n]


def test_a_format_before_the_last_is_refused_with_what_to_do(trained: TrainedModel, tmp_path: Path) -> None:
    model.save(trained, tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 1}))
    with pytest.raises(ModelFolderError, match=r"found format 1, expected .* of format 2 or 3\. Train the") as caught:
        model.load(tmp_path / "model")
    assert (caught.value.facts["found"], caught.value.facts["expected"]) == (1, store.FORMAT)


@pytest.mark.parametrize("workloads", [None, [], [["a", "b"]]])
def test_workloads_that_do_not_fit_their_times_are_refused_in_a_clear_sentence(
    trained: TrainedModel, tmp_path: Path, workloads: object
) -> None:
    model.save(trained, tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"workloads": workloads}))
    with pytest.raises(ModelFolderError, match=r"Train (it|the model) again"):
        model.load(resealed(tmp_path / "model"))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 3}'])
def test_a_damaged_description_is_refused_in_a_clear_sentence(trained: TrainedModel, tmp_path: Path, text: str) -> None:
    model.save(trained, tmp_path / "model")
    (tmp_path / "model" / "model.json").write_text(text)
    with pytest.raises(ModelFolderError, match=r"Train (it|the model) again"):
        model.load(tmp_path / "model")


#: Loads a model, predicts a run, and fails where a library that only learning needs was imported.
LEAN = """
import sys
from crossperf import load
from crossperf.records import Run

answer = load(sys.argv[1]).predict([Run("a", "1", "cpu-a", 1.0, counters={"instructions": 1e9})])
assert answer.predictions[0].low and answer.predictions[0].familiarity
heavy = {"torch", "sklearn", "scipy", "pandas"} & set(sys.modules)
assert not heavy, f"imported {heavy}"
"""


def test_a_saved_default_model_answers_without_the_libraries_that_learn(toy_data: Dataset, tmp_path: Path) -> None:
    model.train(toy_data, **QUICK["crossperf"]).save(tmp_path / "model")
    done = subprocess.run(
        [sys.executable, "-c", LEAN, str(tmp_path / "model")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_folder_whose_arrays_are_wide_is_read_as_well(trained: TrainedModel, tmp_path: Path) -> None:
    """As every folder of this format was before arrays were stored in the narrowest type that holds them."""
    model.save(trained, tmp_path / "model")
    np.savez(tmp_path / "model" / "arrays.npz", **store.arrays_of(trained))  # type: ignore[arg-type]
    back = model.load(resealed(tmp_path / "model"))
    np.testing.assert_array_equal(back.fitted.predict(back.features), trained.fitted.predict(trained.features))


def test_what_is_stored_narrowly_comes_back_in_the_type_that_is_meant(trained: TrainedModel, tmp_path: Path) -> None:
    model.save(trained, tmp_path / "model")
    before, after = store.arrays_of(trained), store.arrays_of(model.load(tmp_path / "model"))
    assert {name: array.dtype for name, array in before.items()} == {name: array.dtype for name, array in after.items()}


@pytest.mark.parametrize("file", ["model.json", "arrays.npz"])
def test_a_changed_byte_anywhere_in_a_folder_is_noticed(trained: TrainedModel, tmp_path: Path, file: str) -> None:
    model.save(trained, tmp_path / "model")
    path = tmp_path / "model" / file
    whole = path.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 40)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            model.load(tmp_path / "model")
        except ModelFolderError:
            continue
        # A blank between two values says nothing.
        assert json.loads(path.read_bytes()) == json.loads(whole)


def test_two_changed_bytes_in_native_boosters_are_refused_before_their_library_sees_them(
    toy_data: Dataset, tmp_path: Path
) -> None:
    pytest.importorskip("xgboost")
    fitted = model.make("xgboost", **QUICK["xgboost"]).learn(toy_data)
    model.save(TrainedModel.of(fitted, toy_data), tmp_path / "model")
    path = tmp_path / "model" / "arrays.npz"
    with np.load(path) as arrays:
        state = dict(arrays)
    raw = state["fitted.part.raw.0"]
    raw[len(raw) // 2 : len(raw) // 2 + 2] ^= 0xFF
    np.savez(path, **state)
    seen: list[bytes] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boosters.XGBoosters, "_parse", staticmethod(seen.append))
        with pytest.raises(ModelFolderError, match="its digest is not that of its content"):
            model.load(tmp_path / "model")
        with pytest.raises(ModelFolderError, match=r"found no digest in model\.json"):
            model.load(FORMAT_2 / "xgboost")
    assert not seen


def test_a_folder_without_a_digest_is_read_only_where_it_is_trusted(trained: TrainedModel, tmp_path: Path) -> None:
    model.save(trained, tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    facts = json.loads(path.read_text())
    del facts["digest"]
    path.write_text(json.dumps(facts))
    with pytest.raises(ModelFolderError, match=r"found no digest .* 'crossperf convert' reads it"):
        model.load(tmp_path / "model")
    model.load(tmp_path / "model", trust=True).save(tmp_path / "again")
    assert model.load(tmp_path / "again").platforms == trained.platforms
    path.write_text(json.dumps({**facts, "digest": "0" * 64}))
    with pytest.raises(ModelFolderError, match="its digest is not that of its content"):
        model.load(tmp_path / "model", trust=True)


def test_a_cycle_in_a_tree_is_refused_and_not_followed(toy_data: Dataset, tmp_path: Path) -> None:
    fitted = model.make("random-forest", **QUICK["random-forest"]).learn(toy_data)
    model.save(TrainedModel.of(fitted, toy_data), tmp_path / "model")
    arrays = packing.read((tmp_path / "model" / "arrays.npz").read_bytes())
    arrays["fitted.part.forest.right_m"][5] = arrays["fitted.part.forest.root_t"][0]
    packing.write(tmp_path / "model" / "arrays.npz", arrays)
    with pytest.raises(ModelFolderError, match="holds a tree that does not end"):
        model.load(resealed(tmp_path / "model"))


def test_a_tree_that_is_a_chain_of_a_million_nodes_is_refused(toy_data: Dataset, tmp_path: Path) -> None:
    fitted = model.make("random-forest", **QUICK["random-forest"]).learn(toy_data)
    model.save(TrainedModel.of(fitted, toy_data), tmp_path / "model")
    arrays = packing.read((tmp_path / "model" / "arrays.npz").read_bytes())
    own_m = np.arange(1_000_000, dtype=np.int32)
    chain = {"left_m": np.minimum(own_m + 1, own_m[-1]), "feature_m": 0 * own_m, "value_row_m": 0 * own_m}
    chain |= {"right_m": chain["left_m"], "threshold_m": 0.0 * own_m, "missing_left_m": own_m < 0}
    arrays |= {f"fitted.part.forest.{name}": array for name, array in chain.items()}
    arrays["fitted.part.forest.root_t"] = np.zeros(1, np.int32)
    packing.write(tmp_path / "model" / "arrays.npz", arrays)
    with pytest.raises(ModelFolderError, match="holds a tree of more than 2,000 levels"):
        model.load(resealed(tmp_path / "model"))


@pytest.mark.parametrize("name", QUICK)
def test_every_model_passes_its_own_checks(name: str, toy_data: Dataset, tmp_path: Path) -> None:
    model.save(TrainedModel.of(model.make(name, **QUICK[name]).learn(toy_data), toy_data), tmp_path / "model")
    assert model.load(tmp_path / "model").name == name
