"""Commands on workers: the same result, pieces beside the output, one sentence for what does not go together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from crossperf.cli import commands
from crossperf.errors import CrossperfError
from crossperf.workers import Kept


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    run("toy", "--apps", "5", "--inputs", "3", "--seed", "1", "-o", "runs.csv")
    return tmp_path / "runs.csv"


def run(*words: str) -> None:
    commands.main(words, standalone_mode=False)


def timeless(facts: Any) -> Any:
    """Return the facts of an evaluation without how long it took."""
    if isinstance(facts, dict):
        return {name: timeless(own) for name, own in facts.items() if name not in ("fit_s", "predict_s")}
    return [timeless(own) for own in facts] if isinstance(facts, list) else facts


def facts(path: str) -> Any:
    return timeless(json.loads(Path(path).read_text()))


@pytest.mark.slow
def test_evaluate_on_processes_writes_what_it_writes_without(table: Path, capsys: Any) -> None:
    run("evaluate", "runs.csv", "--models", "ridge,median", "--folds", "3", "--json", "alone.json")
    run("evaluate", "runs.csv", "--models", "ridge,median", "--folds", "3", "--jobs", "2", "--json", "two.json")
    assert facts("alone.json") == facts("two.json")
    assert sorted(path.name for path in table.parent.iterdir()) == ["alone.json", "runs.csv", "two.json"]
    assert "(about " in capsys.readouterr().err


def test_pieces_of_a_folder_are_taken_again_and_stay(table: Path) -> None:
    words = ("evaluate", "runs.csv", "--models", "ridge", "--folds", "3", "--pieces", "kept")
    run(*words, "--json", "first.json")
    pieces = {path: path.stat().st_mtime_ns for path in Path("kept").glob("*.npz")}
    assert len(pieces) == 3
    run(*words, "--json", "second.json")
    assert {path: path.stat().st_mtime_ns for path in Path("kept").glob("*.npz")} == pieces
    first, second = (json.loads(Path(name).read_text()) for name in ("first.json", "second.json"))
    assert first == second  # even how long each fit took: nothing was fitted again
    run(*words, "--no-resume")
    again = {path: path.stat().st_mtime_ns for path in Path("kept").glob("*.npz")}
    assert set(again) == set(pieces) and again != pieces


def test_transfer_and_seeds_go_through_the_same_folder(table: Path) -> None:
    words = ("--models", "ridge", "--folds", "3", "--scored-folds", "1", "--pieces", "kept")
    run("evaluate", "runs.csv", *words, "--split", "platform", "--shots", "3", "--json", "kept.json")
    run("evaluate", "runs.csv", *words[:-2], "--split", "platform", "--shots", "3", "--json", "plain.json")
    assert facts("kept.json") == facts("plain.json")
    run("evaluate", "runs.csv", *words, "--seeds", "3", "--json", "seeds.json")
    run("evaluate", "runs.csv", *words, "--seed", "2", "--json", "third.json")  # one of the three
    assert len(list(Path("kept").glob("*.npz"))) == 4 + 3
    seeds, third = (json.loads(Path(name).read_text()) for name in ("seeds.json", "third.json"))
    assert seeds["seeds"] == [0, 1, 2]
    assert seeds["evaluations"][2]["scores"] == third["scores"]
    factors = [own["scores"]["models"]["ridge"]["mean"]["typical_factor"] for own in seeds["evaluations"]]
    assert seeds["means"]["ridge"]["typical_factor"][0] == pytest.approx(sum(factors) / 3)


@pytest.mark.slow
def test_a_killed_command_leaves_its_pieces_and_goes_on_from_them(table: Path) -> None:
    words = ["evaluate", "runs.csv", "--models", "extra-trees", "--folds", "8", "--jobs", "1", "--json", "e.json"]
    first = subprocess.Popen([sys.executable, "-m", "crossperf", *words], stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while len(list(Path().glob("e.json.pieces/*.npz"))) < 2:
        assert time.monotonic() < end and first.poll() is None
        time.sleep(0.02)
    os.kill(first.pid, signal.SIGINT)
    assert first.wait(timeout=30) == 130
    left = {path.name for path in Path().glob("e.json.pieces/*.npz")}
    assert len(left) >= 2 and not Path("e.json").exists()
    second = subprocess.run([sys.executable, "-m", "crossperf", *words], capture_output=True, text=True, check=True)
    assert f": {len(left)}/8" in second.stderr.splitlines()[0]
    assert Path("e.json").exists() and not Path("e.json.pieces").exists()


def test_a_second_command_on_the_same_output_is_refused(table: Path) -> None:
    with Kept("e.json.pieces"), pytest.raises(CrossperfError, match=r"process \d+ on .* works in this folder"):
        run("evaluate", "runs.csv", "--models", "ridge", "--json", "e.json")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--jobs", "2", "--dask", "tcp://127.0.0.1:1"], "jobs and dask: found both, expected one kind of workers"),
        (["--site", "site.toml"], "--site: found without a folder, expected --pieces DIR or --json FILE"),
        (["--threads", "2"], "--threads: found without workers, expected --jobs, --dask or --site"),
        (["--jobs", "1", "--tls-ca", "runs.csv"], "--tls-ca, --tls-cert and --tls-key: found some, expected all three"),
        (["--seeds", "2", "--split", "platform"], "--seeds: found with --split platform, expected another split"),
        (["--pieces", "runs.csv"], "runs.csv: cannot be written"),
        (["--pieces", ""], ".: found 'runs.csv' and no pieces.json, expected a new folder"),
    ],
)
def test_what_does_not_go_together_is_one_sentence(words: list[str], sentence: str, table: Path) -> None:
    with pytest.raises(CrossperfError) as raised:
        run("evaluate", "runs.csv", "--models", "ridge", *words)
    assert sentence in str(raised.value)


def test_an_object_as_a_model_does_not_travel(table: Path) -> None:
    from sklearn.neighbors import KNeighborsRegressor

    from crossperf import evaluate
    from crossperf.workers import Here

    with pytest.raises(CrossperfError, match=r"models: found an object for mine, expected names, or FILE.py:NAME"):
        evaluate(table, {"mine": KNeighborsRegressor()}, workers=Here())


def test_a_model_of_ones_own_travels_by_its_file(table: Path) -> None:
    Path("mine.py").write_text("from sklearn.neighbors import KNeighborsRegressor\nmake = KNeighborsRegressor\n")
    words = ("evaluate", "runs.csv", "--models", "mine.py:make", "--folds", "2", "--pieces", "kept")
    run(*words)
    assert len(list(Path("kept").glob("*.npz"))) == 2
    Path("mine.py").write_text("from sklearn.linear_model import Ridge\nmake = Ridge\n")
    run(*words)  # another model: other pieces
    assert len(list(Path("kept").glob("*.npz"))) == 4


def test_simulations_are_compared_the_same_from_kept_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("times.csv").write_text("app,input,cpu,gpu\nlu,a,1,4\nfft,b,1,0.5\n")
    Path("machines.csv").write_text("machine,size\ncpu,8\ngpu,2\n")
    words = ("schedule", "simulate", "--truth", "times.csv", "--cells", "speedup", "--machines", "machines.csv")
    study = ("--jobs", "40", "--policy", "random,turnaround", "--compare", "--seeds", "3")
    run(*words, *study, "--json", "plain.json")
    for _ in range(2):
        run(*words, *study, "--json", "kept.json", "--pieces", "kept")
        assert facts("kept.json") == facts("plain.json")
    assert len(list(Path("kept").glob("*.npz"))) == 6
    with pytest.raises(CrossperfError, match=r"--processes: found without --compare, expected both"):
        run(*words, "--jobs", "40", "--processes", "2")
