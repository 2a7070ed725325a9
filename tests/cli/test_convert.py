"""Rewriting models and results of earlier formats in today's."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from crossperf.dataset import Dataset
from crossperf.evaluation import run as evaluate
from crossperf.model import store
from crossperf.prediction.answer import predict
from crossperf.runs import read_jsonl
from tests.cli.test_cli import Crossperf, assert_one_sentence, contents, crossperf, model_folder, new_file, runs_file

FORMAT_2 = Path(__file__).parents[1] / "data" / "formats" / "2"
NEEDS = {"vae-dnn": "torch", "xgboost": "xgboost"}

__all__ = ["crossperf", "model_folder", "new_file", "runs_file"]


def test_a_converted_model_answers_as_before(crossperf: Crossperf, model_folder: Path, new_file: Path) -> None:
    before = contents(model_folder)
    done = crossperf("convert", model_folder, "-o", "new")
    assert done == (0, "", "wrote new\n")
    assert contents(model_folder) == before
    old, new = (predict(store.load(folder), new_file) for folder in (model_folder, Path("new")))
    for first, second in zip(old.predictions, new.predictions, strict=True):
        np.testing.assert_allclose(list(second.relative_time.values()), list(first.relative_time.values()))


def test_a_converted_evaluation_is_read_as_before(crossperf: Crossperf, toy_data: Dataset) -> None:
    result = evaluate.evaluate(toy_data, ["median", "ridge"], n_folds=2)
    result.write("old.json")
    assert crossperf("convert", "old.json", "-o", "new.json") == (0, "", "wrote new.json\n")
    assert json.loads(Path("new.json").read_text()) == json.loads(Path("old.json").read_text())


def test_a_result_about_new_platforms_is_converted(crossperf: Crossperf, runs_file: Path) -> None:
    command = ("evaluate", runs_file, "--split", "platform", "--models", "ridge", "--folds", "2", "--shots", "3")
    assert crossperf(*command, "--json", "old.json").status == 0
    assert crossperf("convert", "old.json", "-o", "new.json").status == 0
    assert json.loads(Path("new.json").read_text()) == json.loads(Path("old.json").read_text())


KINDS = sorted(path.parent.name for path in FORMAT_2.glob("*/model.json"))


def test_a_default_model_of_the_last_format_has_to_be_trained_again(crossperf: Crossperf) -> None:
    done = crossperf("convert", FORMAT_2 / "crossperf", "-o", "new")
    assert done.status == 1
    assert done.stderr.startswith("error: model: found a default model of format 2")
    assert done.stderr.endswith("Train it again.\n")
    assert not Path("new").exists()


@pytest.mark.parametrize("name", [name for name in KINDS if name != "crossperf"])
def test_a_model_of_the_last_format_answers_the_same_once_it_is_converted(
    crossperf: Crossperf, new_file: Path, name: str
) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    assert crossperf("convert", FORMAT_2 / name, "-o", "new").status == 0
    assert json.loads(Path("new/model.json").read_text())["format"] == store.FORMAT
    old, new = store.load(FORMAT_2 / name, trust=True), store.load("new")
    runs = [run for run in read_jsonl(new_file) if run.platform in old.sources]
    assert predict(new, runs).predictions == predict(old, runs).predictions


@pytest.mark.parametrize("name", ["evaluation", "transfer"])
def test_a_result_of_the_last_format_is_written_in_todays(crossperf: Crossperf, name: str) -> None:
    old = FORMAT_2 / f"{name}.json"
    assert crossperf("convert", old, "-o", "new.json").status == 0
    before, after = (json.loads(path.read_text()) for path in (old, Path("new.json")))
    assert after["format"] == before["format"] + 1
    assert crossperf("convert", "new.json", "-o", "again.json").status == 0
    assert json.loads(Path("again.json").read_text()) == after


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON (it is not UTF-8 text)"),
        (b"[1, 2]", "JSON of another program, or of another command"),
        (b"{}", "JSON of another program"),
        (b'{"format": 1, "problems": []}', "JSON of another program, or of another command"),
        (b'{"format": 99, "split": "platform"}', "format 99"),
        (b'{"format": 99, "split": "app"}', "format 99"),
    ],
)
def test_what_is_not_ours_is_refused_and_nothing_is_written(crossperf: Crossperf, content: bytes, words: str) -> None:
    Path("strange.json").write_bytes(content)
    assert_one_sentence(crossperf("convert", "strange.json", "-o", "new.json"), "strange.json", words)
    assert [path.name for path in Path().iterdir()] == ["strange.json"]


def test_a_missing_file_and_a_folder_without_a_model_are_one_sentence(crossperf: Crossperf) -> None:
    assert_one_sentence(crossperf("convert", "gone.json", "-o", "new"), "gone.json")
    Path("empty").mkdir()
    assert_one_sentence(crossperf("convert", "empty", "-o", "new"), "expected a model folder")
    assert not Path("new").exists()


def test_nothing_is_overwritten(crossperf: Crossperf, model_folder: Path) -> None:
    Path("mine").write_text("mine")
    assert_one_sentence(crossperf("convert", model_folder, "-o", "mine"), "exists already")
    assert_one_sentence(crossperf("convert", model_folder, "-o", model_folder), "exists already")
    assert Path("mine").read_text() == "mine"
