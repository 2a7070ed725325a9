"""Every option of every command, given what it does not expect: a result or one sentence, never a traceback.

By default each option meets a few of the odd values; with ``CROSSPERF_FAULTS=all`` all of them.
"""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from crossperf import cli
from crossperf.datasets import toy
from crossperf.text import is_safe
from tests.hostile.harness import Server, serving

pytestmark = pytest.mark.slow
ALL = os.environ.get("CROSSPERF_FAULTS") == "all"
DATA = Path(__file__).parents[1] / "data"
#: Numbers of too many digits, none at all, none that counts; no name; names that a terminal obeys or no encoder writes.
VALUES = (
    *("9" * 400, "9" * 5000, "-1", "0", "nan", "inf", "1e-320", "\u00b2", "", ".", "x" * 3000, "1,2,,3"),
    *("=", "a=", "=1", "a=nan", "a\x1b[31m\nb", "\udcff"),
)
#: A sound call of each command; what follows ``--`` stays last.
SOUND: dict[str, list[str]] = {
    "toy": ["-o", "new.csv"],
    "runs check": ["runs.csv"],
    "runs info": ["runs.csv"],
    "runs convert": ["runs.csv", "-o", "new.parquet"],
    "runs compare": ["runs.csv", "runs.csv"],
    "runs rename": ["runs.csv", "--app", "app-0=first", "-o", "new.csv"],
    "profile": ["-o", "new.jsonl", "--backend", "os", "--repeats", "1", "--", "true"],
    "import": ["perf-csv", str(DATA / "perf" / "software.csv"), "--app", "a", "--input", "1", "--platform", "p"],
    "platforms add": ["x"],
    "platforms show": [],
    "platforms compare": ["here", "here"],
    "evaluate": ["runs.csv", "--models", "median", "--folds", "2"],
    "train": ["runs.csv", "-o", "new", "--model", "median"],
    "predict": ["model", "runs.csv"],
    "adapt": ["model", "runs.csv", "-o", "new"],
    "report": ["evaluation.json", "-o", "new"],
    "plot": ["picks", "evaluation.json", "-o", "new.svg"],
    "schedule simulate": ["--truth", "runs.csv", "--machines", "machines.csv", "--jobs", "20"],
    "slurm table": ["--predictions", "predictions.json", "-o", "new.tsv"],
    "slurm setup": ["-o", "new"],
    "slurm advise": ["--table", "new.tsv", "--dry-run", "--", "job.sh"],
    "slurm learn": ["--sacct-file", "sacct.txt", "-o", "new.jsonl"],
    "slurm report": ["--sacct-file", "sacct.txt"],
    "campaign status": ["nothing"],
}
#: Those that measure for seconds, ask a cluster, or serve; their options are tried where their commands are tested.
ELSEWHERE = {"ask", "demo", "runs append", "campaign run", "campaign cancel", "include", "convert", "serve"}
ELSEWHERE |= {"slurm rebalance"}


def commands(group: click.Group = cli.commands, *before: str) -> Iterator[tuple[str, click.Command]]:
    """Yield each command with its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, *before, name)
        else:
            yield " ".join((*before, name)), command


COMMANDS = dict(commands())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="module")
def folder(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, a model, an evaluation and predictions."""
    place = tmp_path_factory.mktemp("options")
    table = toy.make_table(apps=4, inputs=2, platforms=3, repeats=2, seed=1)
    table.write(place / "runs.csv")
    (place / "machines.csv").write_text("machine,size\n" + "".join(f"{name},4\n" for name in table.platforms))
    (place / "job.sh").write_text("#!/bin/bash\n#SBATCH -n 1\n./a\n")
    for words in (
        ["train", "runs.csv", "-o", "model", "--model", "median"],
        ["evaluate", "runs.csv", "--models", "median", "--folds", "2", "--json", "evaluation.json"],
        ["predict", "model", "runs.csv", "--json", "predictions.json"],
    ):
        outcome = server.run(words, place)
        assert outcome.status == 0, outcome.stderr
    return place


def test_every_command_is_tried_here_or_named() -> None:
    assert SOUND.keys() | ELSEWHERE == set(COMMANDS)


def options_of(name: str) -> list[str]:
    """Return the options of a command that take a value."""
    return [
        own.opts[-1]
        for own in COMMANDS[name].params
        if isinstance(own, click.Option) and not (own.is_flag or own.count)
    ]


def values_for(name: str, option: str) -> list[str]:
    """Return the values that an option meets: three of all, others for each."""
    start = zlib.crc32(f"{name} {option}".encode())
    return list(VALUES) if ALL else [VALUES[(start + step) % len(VALUES)] for step in (0, 5, 11)]


def without_what_is_new(folder: Path) -> None:
    for path in folder.glob("new*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("name", SOUND)
def test_an_option_with_an_odd_value_ends_in_a_result_or_a_sentence(name: str, server: Server, folder: Path) -> None:
    words = SOUND[name]
    end = words.index("--") if "--" in words else len(words)
    for option in options_of(name):
        for value in values_for(name, option):
            without_what_is_new(folder)
            outcome = server.run([*name.split(), *words[:end], option, value, *words[end:]], folder)
            printed = outcome.stdout + outcome.stderr
            met = f"{name} {option} {value[:20]!r}: {printed[-600:]}"
            assert "Traceback" not in printed, met
            assert outcome.status in (0, 1, 2), met
            assert all(map(is_safe, printed.split("\n"))), met
