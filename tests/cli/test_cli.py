from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from crossperf import cli, model
from crossperf.cli import options
from crossperf.dataset import Dataset
from crossperf.datasets import toy
from crossperf.evaluation.scores import METRICS
from crossperf.runs.table import RunsTable

Csv = Callable[..., Path]
FOREST = ("--model", "random-forest", "--set", "n_estimators=5", "--set", "n_jobs=1")


class Done(NamedTuple):
    status: int
    stdout: str
    stderr: str


#: Runs the command line as a shell would, and returns what it left behind.
Crossperf = Callable[..., Done]


@pytest.fixture
def crossperf(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Crossperf:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str | Path) -> Done:
        capsys.readouterr()
        with pytest.raises(SystemExit) as leaving:
            cli.main([str(argument) for argument in arguments])
        code = leaving.value.code
        return Done(code if isinstance(code, int) else 0, *capsys.readouterr())

    return run


@pytest.fixture(scope="module")
def runs_file(tmp_path_factory: pytest.TempPathFactory, toy_table: RunsTable) -> Path:
    path = tmp_path_factory.mktemp("cli") / "runs.csv"
    toy_table.write(path)
    return path


@pytest.fixture(scope="module")
def new_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "new.jsonl"
    toy.make_table(apps=1, inputs=2, repeats=1, seed=9).write(path)
    return path


@pytest.fixture
def model_folder(tmp_path: Path, toy_data: Dataset) -> Path:
    model.train(toy_data, "ridge").save(tmp_path / "model")
    return tmp_path / "model"


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def assert_one_sentence(done: Done, *words: str) -> None:
    assert done.status == 1
    assert done.stdout == ""
    *talk, error = done.stderr.splitlines()
    assert all(line.startswith(("training ", "evaluating, ", "compiling ")) for line in talk)
    assert error.startswith("error: ")
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in error


# Tables that cannot be used: what is in the file, and what the sentence must name.
BAD_TABLES = {
    "empty.csv": (b"", "no runs"),
    "header.csv": (b"app,input,platform,runtime_s,counter.x\n", "no runs"),
    "negative.csv": (b"app,input,platform,runtime_s,counter.x\na,1,p,-2,5\n", "row 1, column 'runtime_s'"),
    "zero.csv": (b"app,input,platform,runtime_s,counter.x\na,1,p,0,5\n", "seconds above 0"),
    "infinite.csv": (b"app,input,platform,runtime_s,counter.x\na,1,p,inf,5\n", "found 'inf'"),
    "text.csv": (b"app,input,platform,runtime_s,counter.x\na,1,p,1,many\n", "column 'counter.x': found 'many'"),
    "infcounter.csv": (b"app,input,platform,runtime_s,counter.x\na,1,p,1,-inf\n", "a finite number"),
    "misspelt.csv": (b"app,input,platfrom,runtime_s,counter.x\na,1,p,1,5\n", "(did you mean 'platfrom'?)"),
    "nocounter.csv": (b"app,input,platform,runtime_s\na,1,p,1\n", "no counter"),
    "ids.csv": (b"app,input,platform,runtime_s,counter.x,run_id\na,1,p,1,5,i\na,2,p,1,5,i\n", "each run_id once"),
    "twice.csv": (b"app,input,platform,runtime_s,counter.x,counter.x\na,1,p,1,5,5\n", "more than once"),
    "latin.csv": (b"app,input,platform,runtime_s,counter.x\ncaf\xe9,1,p,1,5\n", "does not read as csv"),
    "cut.parquet": (b"PAR1\x15\x04", "does not read as parquet"),
    "cut.csv.gz": (b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03K,(", "does not read as csv.gz"),
    "cut.jsonl.gz": (b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03K,(", "does not read as jsonl.gz"),
    "torn.jsonl": (b'{"app": "a", "inp', "not JSON"),
    "runs.xlsx": (b"PK", "a name that ends in '.xlsx'"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_bad_table_is_one_sentence_from_every_command(
    crossperf: Crossperf, tmp_path: Path, model_folder: Path, name: str
) -> None:
    content, words = BAD_TABLES[name]
    path = tmp_path / name
    path.write_bytes(content)
    before = contents(tmp_path)
    assert_one_sentence(crossperf("evaluate", path, "--models", "median"), name, words)
    assert_one_sentence(crossperf("train", path, "-o", "new", "--model", "median"), name, words)
    assert_one_sentence(crossperf("predict", model_folder, path), name, words)
    assert_one_sentence(crossperf("runs", "info", path), name, words)
    assert contents(tmp_path) == before
    check = crossperf("runs", "check", path)
    assert (check.status, check.stderr) == (1, "")
    assert words in check.stdout


def test_tables_that_pair_nothing_are_one_sentence(crossperf: Crossperf, csv: Csv) -> None:
    assert_one_sentence(crossperf("evaluate", csv("a,1,p,1,5", "a,2,p,1,5")), "one platform only ('p')")
    assert_one_sentence(crossperf("evaluate", csv("a,1,p,1,5", "a,2,q,1,5")), "none of 2 workloads")
    assert_one_sentence(crossperf("evaluate", "gone.csv"), "gone.csv", "no such file")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--models", "rigde"), "did you mean 'ridge'?"),
        (("--models", ","), "--models"),
        (("--models", "median", "--platforms", "cpu-a,gpu_a"), "did you mean 'gpu-a'?"),
        (("--models", "median", "--folds", "5", "--split", "app"), "expected between 2 and 4"),
        (("--models", "median", "--folds", "0"), "expected between 2 and 12"),
    ],
)
def test_a_bad_request_to_evaluate_is_one_sentence(
    crossperf: Crossperf, runs_file: Path, arguments: tuple[str, ...], words: str
) -> None:
    assert_one_sentence(crossperf("evaluate", runs_file, *arguments), words)


def test_a_result_that_cannot_be_written_any_more_is_still_shown(
    crossperf: Crossperf, runs_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.setattr("crossperf.cli.output.refuse_unless_json", lambda path: path.parent.rmdir())
    done = crossperf("evaluate", runs_file, "--models", "median", "--json", "gone/e.json")
    assert done.status == 1
    assert "always taking" in done.stdout
    assert done.stderr.splitlines()[-1].startswith("error: gone/e.json: cannot be written")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--model", "forest"), "--model: found 'forest', expected FILE.py:NAME or one of crossperf"),
        (("--model", "ridge", "--set", "penalties"), "expected NAME=VALUE"),
        (("--model", "ridge", "--set", "=3"), "expected NAME=VALUE"),
        (("--model", "ridge", "--set", "penalty=3"), "did you mean 'penalties'?"),
        (("--model", "median", "--set", "x=3"), "has no setting 'x'"),
        (("--model", "random-forest", "--set", "n_estimators=-1"), "n_estimators=-1"),
        (("--model", "random-forest", "--set", "n_estimators=many"), "n_estimators=many"),
        (("--model", "ridge", "--platforms", "cpu-a"), "one platform only"),
    ],
)
def test_a_bad_request_to_train_is_one_sentence_and_makes_no_folder(
    crossperf: Crossperf, runs_file: Path, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    assert_one_sentence(crossperf("train", runs_file, "-o", "new", *arguments), words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [("evaluate", "--models", "ridge"), ("train", "-o", "m"), ("toy", "-o", "t.csv")])
def test_a_seed_out_of_range_is_refused_by_its_name(
    crossperf: Crossperf, runs_file: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    name, *rest = command
    done = crossperf(name, *([] if name == "toy" else [runs_file]), *rest, "--seed", "-1")
    assert done.status == 2
    assert "'--seed'" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (
            "model.json",
            b'{"format": 99}',
            "found format 99, expected a model's description of format 2 or 3. Upgrade",
        ),
        ("model.json", b'{"format": 1, "model": "rid', "is not JSON (Unterminated string"),
        ("model.json", b"\xff\xfe", "is not JSON (it is not UTF-8 text)"),
        ("model.json", b"[]", "found a list of 0, expected a model's description"),
        ("model.json", b'{"format": 2}', "found no 'model', expected one"),
        ("arrays.npz", b"PK\x03\x04", "its digest is not that of its content"),
        ("arrays.npz", b"", "its digest is not that of its content"),
    ],
)
def test_a_damaged_or_newer_model_folder_is_one_sentence(
    crossperf: Crossperf, model_folder: Path, new_file: Path, name: str, content: bytes, words: str
) -> None:
    (model_folder / name).write_bytes(content)
    assert_one_sentence(crossperf("predict", model_folder, new_file, "--json", "p.json"), words)
    assert not Path("p.json").exists()


def test_a_folder_without_a_model_is_one_sentence(crossperf: Crossperf, tmp_path: Path, new_file: Path) -> None:
    assert_one_sentence(crossperf("predict", tmp_path, new_file), "a folder without model.json")
    assert_one_sentence(crossperf("predict", "gone", new_file), "no such folder")


def test_an_output_that_exists_is_left_as_it_is(crossperf: Crossperf, runs_file: Path, model_folder: Path) -> None:
    before = contents(model_folder)
    done = crossperf("train", runs_file, "-o", model_folder, "--model", "median")
    assert_one_sentence(done, "replace it with --overwrite")
    Path("notes").mkdir()
    Path("notes/mine.txt").write_text("mine")
    for flag in ((), ("--overwrite",)):
        done = crossperf("train", runs_file, "-o", "notes", "--model", "median", *flag)
        assert_one_sentence(done, "not a crossperf model")
    Path("table.csv").write_text("mine")
    assert_one_sentence(crossperf("toy", "-o", "table.csv"), "exists already")
    assert contents(model_folder) == before
    assert (Path("notes/mine.txt").read_text(), Path("table.csv").read_text()) == ("mine", "mine")


def test_overwrite_replaces_a_model_with_a_model(crossperf: Crossperf, runs_file: Path, model_folder: Path) -> None:
    assert crossperf("train", runs_file, "-o", model_folder, "--model", "median", "--overwrite").status == 0
    assert json.loads((model_folder / "model.json").read_text())["model"] == "median"
    assert [path.name for path in Path().iterdir()] == ["model"]


def test_predict_refuses_what_the_model_cannot_answer(
    crossperf: Crossperf, model_folder: Path, new_file: Path, csv: Csv
) -> None:
    done = crossperf("predict", model_folder, new_file, "--relative-to", "gpu_a")
    assert_one_sentence(done, "did you mean 'gpu-a'?")
    assert_one_sentence(crossperf("predict", model_folder, csv("a,1,cpu_a,1,5")), "did you mean 'cpu-a'?")
    other = csv("a,1,cpu-a,1,5", header="app,input,platform,runtime_s,counter.other")
    assert_one_sentence(crossperf("predict", model_folder, other), "none of the 17 counters")


@pytest.mark.parametrize(("line", "status"), [("a,1,p,1,5", 0), ("a,1,p,-1,5", 1)])
def test_runs_check_says_by_its_exit_code_whether_a_table_can_be_used(
    crossperf: Crossperf, csv: Csv, line: str, status: int
) -> None:
    path = csv(line)
    done = crossperf("runs", "check", path, "--json", "check.json")
    assert done.status == status
    assert done.stdout.splitlines()[-1] == f"{path} can{'not' if status else ''} be used; errors: {status}, warnings: 0"
    assert done.stderr == "wrote check.json\n"
    facts = json.loads(Path("check.json").read_text())
    assert facts["format"] == 1
    assert [(problem["row"], problem["column"], problem["value"]) for problem in facts["problems"]] == (
        [(1, "runtime_s", "-1")] if status else []
    )


def test_runs_check_is_content_with_warnings(crossperf: Crossperf, csv: Csv) -> None:
    done = crossperf("runs", "check", csv("a,1,p,1,1.5", header="app,input,platform,runtime_s,counter.int_ratio"))
    assert done.status == 0
    assert done.stdout.startswith("warning: ")


def test_runs_info_has_the_result_on_stdout_and_the_same_facts_as_json(crossperf: Crossperf, runs_file: Path) -> None:
    done = crossperf("runs", "info", runs_file, "--json", "info.json")
    assert (done.status, done.stderr) == (0, "wrote info.json\n")
    facts = json.loads(Path("info.json").read_text())
    assert set(facts) == {
        "format",
        "path",
        "fingerprint",
        "runs",
        "failed",
        "apps",
        "workloads",
        "complete_workloads",
        "limited_workloads",
        "cells",
        "repeats",
        "noise",
        "noise_between_visits",
        "visits",
        "platforms",
        "counters",
        "missing_counters",
    }
    assert (facts["runs"], facts["apps"], facts["workloads"], facts["counters"]) == (144, 4, 12, 17)
    assert facts["fingerprint"] in done.stdout
    assert "144 runs (0 failed), 4 apps, 12 workloads (12 on every platform)" in done.stdout


def test_runs_info_describes_a_table_of_failed_runs_alone(crossperf: Crossperf, csv: Csv) -> None:
    done = crossperf("runs", "info", csv("a,1,p,,5,oom", header="app,input,platform,runtime_s,counter.x,status"))
    assert done.status == 0
    assert "failed with status 'oom': 1 runs" in done.stdout


@pytest.mark.parametrize("split", ["row", "workload", "app"])
def test_evaluate_prints_scores_and_writes_them_as_json(crossperf: Crossperf, runs_file: Path, split: str) -> None:
    done = crossperf(
        "evaluate", runs_file, "--models", "median,ridge", "--folds", "2", "--split", split, "--json", "e.json"
    )
    assert done.status == 0
    facts = json.loads(Path("e.json").read_text())
    assert set(facts) == {
        "format",
        "table",
        "split",
        "folds",
        "scored_folds",
        "seed",
        "scores",
        "constant",
        "caveats",
        "versions",
        "held_out",
    }
    assert (facts["format"], facts["split"], facts["folds"], facts["seed"]) == (3, split, 2, 0)
    models = facts["scores"]["models"]
    assert list(models) == ["median", "ridge"]
    for scores in models.values():
        assert set(METRICS) | {"fit_s", "predict_s"} <= set(scores["mean"])
        assert len(scores["folds"]) == 2
    assert f"{models['ridge']['mean']['r2_log']:.3f}".replace("-", "−") in done.stdout
    starts = {line.partition(" ")[0] for line in done.stderr.splitlines()}
    assert starts == {"evaluating,", "caveat:", "wrote"}


def test_evaluate_gives_the_same_scores_for_the_same_seed(crossperf: Crossperf, runs_file: Path) -> None:
    scores = []
    for seed in ("3", "3", "4"):
        crossperf("evaluate", runs_file, "--models", "ridge", "--folds", "3", "--seed", seed, "--json", "e.json")
        ridge = json.loads(Path("e.json").read_text())["scores"]["models"]["ridge"]["mean"]
        scores.append({name: ridge[name] for name in METRICS})
    assert scores[0] == scores[1] != scores[2]


def test_predict_offers_what_the_options_say_can_run_it(
    crossperf: Crossperf, model_folder: Path, new_file: Path
) -> None:
    for words in (["--no-gpu"], ["--can", "cpu"]):
        done = crossperf("predict", model_folder, new_file, *words, "--json", "-")
        predictions = json.loads(done.stdout)["predictions"]
        limited = [own for own in predictions if own["source"].startswith("cpu")]
        assert limited
        assert all(own["cannot"] == {"gpu-a": "cannot run", "gpu-b": "cannot run"} for own in limited)
        assert all(own["fastest"].startswith("cpu") for own in limited)
    both = crossperf("predict", model_folder, new_file, "--no-gpu", "--can", "gpu")
    assert_one_sentence(both, "--no-gpu: found with --can")
    assert_one_sentence(crossperf("predict", model_folder, new_file, "--can", "tpu"), "--can: found 'tpu'")


def test_train_then_predict_answers_for_new_runs(crossperf: Crossperf, runs_file: Path, new_file: Path) -> None:
    trained = crossperf("train", runs_file, "-o", "forest", *FOREST)
    assert trained.status == 0
    assert trained.stdout.startswith("trained random-forest on 48 cells: 12 workloads of 4 apps, 4 platforms")
    assert trained.stderr.endswith("wrote forest\n")
    done = crossperf("predict", "forest", new_file, "--relative-to", "fastest", "--json", "p.json")
    assert (done.status, done.stderr) == (0, "wrote p.json\n")
    assert "time relative to the fastest predicted" in done.stdout
    facts = json.loads(Path("p.json").read_text())
    assert set(facts) == {"format", "notes", "predictions"}
    assert len(facts["predictions"]) == 8
    keys = {"app", "input", "source", "relative_to", "fastest", "relative_time", "seconds", "notes"}
    keys |= {"level", "low", "high", "chance_fastest", "chance_faster", "familiarity", "cannot"}
    for prediction in facts["predictions"]:
        assert set(prediction) == keys
        assert set(prediction["relative_time"]) == set(prediction["seconds"]) == {"cpu-a", "cpu-b", "gpu-a", "gpu-b"}
        assert min(prediction["relative_time"].values()) == prediction["relative_time"][prediction["fastest"]] == 1.0


def test_the_default_model_gives_ranges_chances_and_reasons(
    crossperf: Crossperf, runs_file: Path, new_file: Path
) -> None:
    quick = ("trees=16", "members=4", "width=32", "steps=60", "vae_steps=40", "latent_dim=4")
    trained = crossperf("train", runs_file, "-o", "model", *(word for one in quick for word in ("--set", one)))
    assert trained.stdout.startswith("trained crossperf on 48 cells")
    done = crossperf("predict", "model", new_file, "--level", "0.9", "--explain", "--json", "p.json")
    assert done.status == 0
    assert "this run looks" not in done.stdout  # eight runs make one table
    one = Path("one.jsonl")
    one.write_text(new_file.read_text().splitlines()[0] + "\n")
    alone = crossperf("predict", "model", one, "--level", "0.9").stdout
    assert "interval, 90%" in alone
    assert "this run looks" in alone
    assert "known workloads nearest to" in done.stdout
    facts = json.loads(Path("p.json").read_text())
    assert len(facts["explanations"]) == 5
    for prediction in facts["predictions"]:
        assert prediction["level"] == 0.9
        assert prediction["low"][prediction["source"]] == prediction["high"][prediction["source"]] == 1.0
        assert sum(prediction["chance_fastest"].values()) == pytest.approx(1.0)
        assert prediction["familiarity"]["word"] in ("familiar", "unusual", "unknown")
    refused = crossperf("predict", "model", new_file, "--level", "80")
    assert (refused.status, refused.stdout) == (1, "")
    assert "--level: found 80, expected a share between 0 and 1, such as 0.8." in refused.stderr


def test_a_model_that_cannot_be_saved_is_refused_before_it_is_trained(crossperf: Crossperf, runs_file: Path) -> None:
    done = crossperf("train", runs_file, "-o", "model", "--model", "realmlp")
    assert (done.status, done.stdout) == (1, "")
    assert "The model 'realmlp' cannot be saved" in done.stderr
    assert "train another model to keep" in done.stderr
    assert not Path("model").exists()


def test_names_that_look_like_markup_are_shown_as_they_are(crossperf: Crossperf, model_folder: Path, csv: Csv) -> None:
    path = csv("[/data/x],[bold],cpu-a,1,5", name="new.csv")
    assert "[/data/x]" in crossperf("predict", model_folder, path).stdout
    assert "[bold]" in crossperf("predict", model_folder, path).stdout
    strange = csv("a,1,[/gpu],1,5,[/oom]", header="app,input,platform,runtime_s,counter.x,status", name="[b].csv")
    strange.write_text(strange.read_text() + "a,1,[/gpu],1,5,ok\n")
    shown = crossperf("runs", "info", strange.name).stdout
    assert "[/gpu]" in shown
    assert "'[/oom]'" in shown
    assert shown.startswith("[b].csv: 2 runs (1 failed)")


@pytest.mark.parametrize(
    ("arguments", "seed"),
    [((), 0), (("--seed", "4"), 4), (("--set", "seed=5"), 5), (("--seed", "4", "--set", "seed=5"), 5)],
)
def test_a_seed_given_as_a_setting_is_kept(
    crossperf: Crossperf, runs_file: Path, arguments: tuple[str, ...], seed: int
) -> None:
    assert crossperf("train", runs_file, "-o", "forest", *FOREST, *arguments).status == 0
    settings = json.loads(Path("forest/model.json").read_text())["settings"]
    assert (settings["seed"], settings["n_estimators"]) == (seed, 5)


@pytest.mark.parametrize(
    ("text", "value"), [("3", 3), ("3.5", 3.5), ("true", True), ("False", False), ("none", None), ("relu", "relu")]
)
def test_a_setting_is_read_as_the_kind_of_value_it_looks_like(text: str, value: object) -> None:
    (read,) = options.settings_of([f"name={text}"]).values()
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "csv", "csv.gz", "parquet"])
def test_toy_writes_a_table_that_can_be_used(crossperf: Crossperf, ending: str) -> None:
    made = crossperf("toy", "-o", f"t.{ending}", "--apps", "2", "--inputs", "2", "--repeats", "1")
    assert made == (0, "", f"wrote t.{ending}\n")
    assert crossperf("runs", "check", f"t.{ending}").stdout == f"t.{ending} can be used; errors: 0, warnings: 0\n"


def test_toy_refuses_what_it_cannot_make(crossperf: Crossperf, tmp_path: Path) -> None:
    assert_one_sentence(crossperf("toy", "-o", "t.csv", "--apps", "0"), "apps=0")
    assert_one_sentence(crossperf("toy", "-o", "t.xlsx"), "a name that ends in '.xlsx'")
    assert_one_sentence(crossperf("toy", "-o", "gone/t.csv"), "the folder gone does not exist")
    assert list(tmp_path.iterdir()) == []


def test_help_and_version_are_results(crossperf: Crossperf) -> None:
    assert crossperf("--version") == (0, "crossperf, version 0.1.0\n", "")
    assert crossperf("--help").stdout.startswith("Usage: crossperf")


def test_as_a_program_an_error_is_one_line_without_a_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "crossperf", "runs", "info", str(tmp_path / "gone.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert_one_sentence(Done(done.returncode, done.stdout, done.stderr), "no such file")
    assert done.stderr.count("\n") == 1


def test_an_interrupted_training_leaves_nothing_behind(runs_file: Path, tmp_path: Path) -> None:
    slow = ("--model", "random-forest", "--set", "n_estimators=50000", "--set", "n_jobs=1")
    command = [sys.executable, "-m", "crossperf", "train", str(runs_file), "-o", str(tmp_path / "model"), *slow]
    program = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    try:
        assert program.stderr is not None
        assert program.stderr.readline().startswith("training random-forest")
        time.sleep(0.5)
        program.send_signal(signal.SIGINT)
        stdout, stderr = program.communicate(timeout=120)
    finally:
        program.kill()
    # The line after the terminal's own ^C.
    assert (program.returncode, stdout, stderr.lstrip("\n")) == (
        130,
        "",
        "error: interrupted; no file was left half-written.\n",
    )
    assert list(tmp_path.iterdir()) == []
