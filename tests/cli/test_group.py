"""The outer form of the command line: sections, lazy loading, flags in errors, JSON on stdout."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from crossperf import cli
from crossperf.cli.group import in_flags
from crossperf.errors import CrossperfError, SettingsError
from crossperf.runs.table import RunsTable, from_frame
from tests.cli.test_cli import Crossperf, assert_one_sentence, crossperf, model_folder, new_file, runs_file

__all__ = ["crossperf", "model_folder", "new_file", "runs_file"]

CONTEXT = click.Context(cli.commands)
NAMES = cli.commands.list_commands(CONTEXT)


def imported_by(*arguments: str) -> set[str]:
    """Run the command line in a process of its own, and return the modules it has loaded at the end."""
    script = (
        "import sys\nfrom crossperf import cli\n"
        f"try: cli.main({list(arguments)!r})\n"
        "except SystemExit: print('\\n' + ' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_the_help_lists_every_command_under_its_heading(crossperf: Crossperf) -> None:
    shown = crossperf("--help").stdout
    headings = [line.rstrip(":") for line in shown.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Options", "Start here", "Measure", "Learn", "Show", "Place"]
    for name in NAMES:
        assert f"\n  {name} " in shown


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_a_help_that_prints_clean(crossperf: Crossperf, name: str) -> None:
    done = crossperf(name, "--help")
    assert done.status == 0
    assert done.stdout.startswith(f"Usage: crossperf {name}")
    assert "\b" not in done.stdout
    assert "\\b" not in done.stdout


def test_the_help_imports_no_command() -> None:
    loaded = imported_by("--help")
    assert {name for name in loaded if name.startswith("crossperf.cli.")} == {
        "crossperf.cli.group",
        "crossperf.cli.interrupts",
    }
    assert not loaded & {"polars", "numpy", "sklearn", "torch", "rich"}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("plot", "slurm", "schedule")])
def test_a_command_imports_no_other_command_and_its_help_no_library(name: str) -> None:
    loaded = imported_by(name, "--help")
    modules = {command: f"crossperf.cli.{'import_' if command == 'import' else command}" for command in NAMES}
    assert modules[name] in loaded
    assert not loaded & {module for command, module in modules.items() if command != name}
    assert not loaded & {"polars", "sklearn", "torch"}


def test_predicting_from_lines_of_json_loads_no_query_engine_and_no_learner(new_file: Path) -> None:
    model = Path(__file__).parents[1] / "data" / "formats" / "2" / "crossperf"
    loaded = imported_by("predict", str(model), str(new_file))
    assert "crossperf.prediction.answer" in loaded
    assert not loaded & {"polars", "sklearn", "torch", "scipy", "matplotlib", "pandas"}


def test_what_a_seed_seeds_is_named_by_each_command(crossperf: Crossperf) -> None:
    shown = {name: " ".join(crossperf(name, "--help").stdout.split()) for name in ("evaluate", "predict", "toy")}
    assert "Seed of folds and models." in shown["evaluate"]
    assert "Seed of the draws of --explain" in shown["predict"]
    assert "Seed of applications, inputs and noise" in shown["toy"]


@pytest.mark.parametrize(
    ("argument", "sentence", "expected"),
    [
        ("level", "level: found 2.", "--level: found 2."),
        ("scored_folds", "scored_folds: found 9.", "--scored-folds: found 9."),
        ("folds", "folds: found 9.", "--folds: found 9."),
        ("source", "source: found 7.", "TABLE: found 7."),
        ("other", "other: found 7.", "other: found 7."),
        ("level", "runs.csv: 2 is no level.", "runs.csv: 2 is no level (--level)."),
        (None, "level: found 2.", "level: found 2."),
        (None, "m: replace it with overwrite=True.", "m: replace it with --overwrite."),
        (None, "m: pass seed=True or level=True.", "m: pass seed=True or level=True."),
    ],
)
def test_an_argument_of_python_is_named_as_the_flag_of_the_command(
    argument: str | None, sentence: str, expected: str
) -> None:
    parameters: list[click.Parameter] = [
        click.Option(["--level"]),
        click.Option(["--scored-folds"]),
        click.Option(["--folds", "n_folds"]),
        click.Option(["--overwrite"], is_flag=True),
        click.Argument(["source"], metavar="TABLE"),
    ]
    facts = {} if argument is None else {"argument": argument}
    assert in_flags(CrossperfError(sentence, **facts), parameters) == expected


def test_the_commands_below_a_group_translate_as_well(
    crossperf: Crossperf, runs_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **others: object) -> None:
        raise SettingsError("json_file: found nothing.", argument="json_file")

    monkeypatch.setattr("crossperf.runs.table.check", refuse)
    assert_one_sentence(crossperf("runs", "check", runs_file), "error: --json: found nothing.")


@pytest.mark.parametrize(
    "command", [("runs", "info"), ("runs", "check"), ("evaluate", "--models", "median", "--folds", "2")]
)
def test_json_goes_to_stdout_alone_and_the_tables_to_stderr(
    crossperf: Crossperf, runs_file: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    to_file = crossperf(*command, runs_file, "--json", "facts.json")
    facts = json.loads(Path("facts.json").read_text())
    Path("facts.json").unlink()
    done = crossperf(*command, runs_file, "--json", "-")
    assert done.status == to_file.status
    shown = json.loads(done.stdout)
    assert set(shown) == set(facts)
    assert shown["format"] == facts["format"]
    assert to_file.stdout.splitlines()[0] in done.stderr
    assert "wrote" not in done.stderr
    assert list(tmp_path.iterdir()) == []
    assert crossperf("runs", "check", runs_file).stdout  # stdout is stdout again


def test_predictions_as_json_can_be_piped(crossperf: Crossperf, model_folder: Path, new_file: Path) -> None:
    done = crossperf("predict", model_folder, new_file, "--json", "-")
    assert len(json.loads(done.stdout)["predictions"]) == 8
    assert "cpu-a" in done.stderr


def test_a_command_that_fails_writes_no_json_to_stdout(crossperf: Crossperf) -> None:
    assert_one_sentence(crossperf("runs", "info", "gone.csv", "--json", "-"), "no such file")


def test_a_single_workload_is_not_trained_on(crossperf: Crossperf, toy_table: RunsTable, tmp_path: Path) -> None:
    frame = toy_table.frame
    first = frame.filter((frame["app"] == frame["app"][0]) & (frame["input"] == frame["input"][0]))
    from_frame(first).write("one.csv")
    done = crossperf("train", "one.csv", "-o", "model", "--model", "ridge")
    assert_one_sentence(done, "one.csv: found a single workload, expected at least 2")
    assert not Path("model").exists()
