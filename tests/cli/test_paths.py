"""What a command writes is never what it reads, nor anything that crossperf did not write."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crossperf.runs.table import RunsTable
from tests.cli.test_cli import Crossperf, contents, crossperf, model_folder, new_file, runs_file
from tests.test_files import device_in

__all__ = ["crossperf", "model_folder", "new_file", "runs_file"]

PERF = Path(__file__).parents[1] / "data" / "perf" / "software.csv"
NAMES = ("--app", "ls", "--input", "root", "--platform", "vm")


@pytest.fixture
def table(tmp_path: Path, toy_table: RunsTable) -> Path:
    toy_table.write(tmp_path / "runs.csv")
    return tmp_path / "runs.csv"


@pytest.mark.parametrize("name", ["runs.csv", "./runs.csv", "link.csv", "hard.csv"])
@pytest.mark.parametrize(
    "command", [("runs", "check"), ("runs", "info"), ("evaluate", "--models", "median"), ("predict", "model")]
)
def test_facts_never_take_the_place_of_the_table_they_are_about(
    crossperf: Crossperf, tmp_path: Path, table: Path, model_folder: Path, command: tuple[str, ...], name: str
) -> None:
    (tmp_path / "link.csv").symlink_to("runs.csv")
    (tmp_path / "hard.csv").hardlink_to(table)
    before = contents(tmp_path)
    done = crossperf(*command, "runs.csv", "--json", name)
    assert done.status == 1
    assert f"--json: found {Path(name)}, which this command reads (" in done.stderr
    assert contents(tmp_path) == before
    assert (tmp_path / "link.csv").is_symlink()


def test_the_order_of_the_words_does_not_matter(crossperf: Crossperf, tmp_path: Path, table: Path) -> None:
    before = contents(tmp_path)
    assert "which this command reads (TABLE)" in crossperf("runs", "check", "--json", "runs.csv", "runs.csv").stderr
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["model/model.json", "model/arrays.npz"])
def test_a_file_of_the_model_that_is_asked_is_not_replaced(
    crossperf: Crossperf, tmp_path: Path, model_folder: Path, new_file: Path, name: str
) -> None:
    before = contents(model_folder)
    assert "which this command reads (MODEL)" in crossperf("predict", "model", new_file, "--json", name).stderr
    assert contents(model_folder) == before


def test_two_outputs_need_two_names(crossperf: Crossperf, tmp_path: Path) -> None:
    done = crossperf("import", "perf", PERF, *NAMES, "-o", "runs.jsonl", "--json", "runs.jsonl")
    assert "which this command writes too" in done.stderr
    assert not (tmp_path / "runs.jsonl").exists()


def test_an_import_is_not_added_to_what_it_reads(crossperf: Crossperf, tmp_path: Path) -> None:
    (tmp_path / "profile.jsonl").write_bytes(PERF.read_bytes())
    before = contents(tmp_path)
    assert "which this command reads" in crossperf("import", "perf", "profile.jsonl", "-o", "profile.jsonl").stderr
    assert contents(tmp_path) == before


@pytest.mark.parametrize("kind", ["csv", "parquet", "csv.gz", "jsonl.gz"])
def test_runs_are_added_to_lines_of_json_alone(
    crossperf: Crossperf, tmp_path: Path, toy_table: RunsTable, kind: str
) -> None:
    toy_table.write(tmp_path / f"runs.{kind}")
    (tmp_path / "runs.jsonl").write_bytes((tmp_path / f"runs.{kind}").read_bytes())
    before = contents(tmp_path)
    for name in (f"runs.{kind}", "runs.jsonl"):
        for command in (("import", "perf", PERF, *NAMES), ("profile", "--backend", "os", "--repeats", "1")):
            done = crossperf(*command, "-o", name, *(["true"] if command[0] == "profile" else []))
            assert done.status == 1
            assert "expected .jsonl" in done.stderr or "found something else than lines of JSON" in done.stderr
    assert contents(tmp_path) == before


def test_a_folder_with_anything_else_than_a_model_in_it_is_not_replaced(
    crossperf: Crossperf, tmp_path: Path, runs_file: Path, model_folder: Path
) -> None:
    (model_folder / "thesis.tex").write_text("years of work")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "model.json").write_text('{"name": "of another program"}')
    before = contents(tmp_path)
    for name in ("model", "site"):
        done = crossperf("train", runs_file, "-o", name, "--model", "median", "--overwrite")
        assert "found something that is not a crossperf model" in done.stderr
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["device", "stdout", "pipe", "folder"])
def test_facts_go_to_regular_files_alone(tmp_path: Path, table: Path, name: str) -> None:
    (tmp_path / "device").symlink_to(device_in(tmp_path))
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    command = [sys.executable, "-m", "crossperf", "runs", "check", "runs.csv", "--json", name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "expected a regular file" in done.stderr
    assert (tmp_path / "device").is_char_device()


def test_a_figure_takes_the_place_of_a_figure_alone(crossperf: Crossperf, tmp_path: Path, table: Path) -> None:
    assert crossperf("evaluate", table, "--models", "median", "--json", "evaluation.json").status == 0
    (tmp_path / "order.svg").write_text("years of work")
    refused = crossperf("plot", "order", "evaluation.json", "-o", "order.svg")
    assert "order.svg: found a file that crossperf did not write" in refused.stderr
    assert (tmp_path / "order.svg").read_text() == "years of work"
    for _ in range(2):
        assert crossperf("plot", "order", "evaluation.json", "-o", "new.svg").status == 0


SIMULATION = ("schedule", "simulate", "--truth", "missing", "--machines", "missing", "--jobs", "5")
#: Commands that work for long, up to the name of what they write; what they read is not there.
LONG: dict[str, tuple[str, ...]] = {
    "train": ("train", "missing", "-o"),
    "adapt": ("adapt", "missing", "missing", "-o"),
    "report": ("report", "missing", "-o"),
    "campaign": ("campaign", "missing", "-o"),
    "demo": ("demo", "-o"),
    "evaluate": ("evaluate", "missing", "--json"),
    "transfer": ("evaluate", "missing", "--split", "platform", "--json"),
    "predict": ("predict", "missing", "missing", "--json"),
    "plot": ("plot", "order", "missing", "-o"),
    "compare": ("runs", "compare", "missing", "missing", "--figure"),
    "schedule": (*SIMULATION, "--json"),
    "figure": (*SIMULATION, "--figure"),
    "table": ("slurm", "table", "--times", "missing", "--partitions", "a=b", "-o"),
    "learn": ("slurm", "learn", "--sacct-file", "missing", "--partitions", "a=b", "-o"),
    "profile": ("profile", "missing", "-o"),
}
FOLDERS = ("train", "adapt", "report", "campaign", "demo")


@pytest.mark.parametrize("command", LONG)
@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("loop", "Too many levels of symbolic links"),
        ("loop/new.svg", "Too many levels of symbolic links"),
        ("file/new.svg", "Not a directory"),
        ("n" * 300, "File name too long"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is_read(
    crossperf: Crossperf, tmp_path: Path, command: str, place: str, reason: str
) -> None:
    """A report worked for 30 s before it met a loop of links."""
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    words = LONG[command]
    split = words.index("missing") if command == "profile" else len(words)
    done = crossperf(*words[:split], *(words[split + 1 :]), place, *words[split : split + 1])
    assert done.status == 1
    assert f"error: {place}: cannot be written ({reason}). Choose another place." in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "loop"]


@pytest.mark.parametrize("command", [name for name in LONG if name not in FOLDERS])
def test_a_file_in_a_folder_that_is_absent_is_refused_before_anything_is_read(
    crossperf: Crossperf, command: str
) -> None:
    words = [word for word in LONG[command] if not (command == "profile" and word == "missing")]
    done = crossperf(*words, "absent/new.svg", *(["true"] if command == "profile" else []))
    assert done.status == 1
    assert "absent/new.svg: the folder absent does not exist. Make it, or choose another place." in done.stderr


@pytest.mark.parametrize("command", [name for name in LONG if name not in FOLDERS])
def test_a_folder_in_the_place_of_a_file_is_refused_before_anything_is_read(
    crossperf: Crossperf, tmp_path: Path, command: str
) -> None:
    (tmp_path / "new.svg").mkdir()
    words = [word for word in LONG[command] if not (command == "profile" and word == "missing")]
    done = crossperf(*words, "new.svg", *(["true"] if command == "profile" else []))
    assert (done.status, "new.svg: found a folder, expected a regular file" in done.stderr) == (1, True), done.stderr


@pytest.mark.parametrize("command", ["plot", "compare", "figure"])
def test_a_figure_that_would_replace_something_else_is_refused_before_anything_is_read(
    crossperf: Crossperf, tmp_path: Path, command: str
) -> None:
    (tmp_path / "new.svg").write_text("notes of mine")
    done = crossperf(*LONG[command], "new.svg")
    assert "new.svg: found a file that crossperf did not write" in done.stderr


def test_a_folder_of_somebody_else_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir(mode=0o555)
    if os.access(tmp_path / "theirs", os.W_OK):
        pytest.skip("root may write everywhere")
    command = [sys.executable, "-m", "crossperf", "train", "missing", "-o", "theirs/model"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "theirs/model: cannot be written (Permission denied)" in done.stderr
