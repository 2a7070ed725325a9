from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from crossperf.cli import commands
from crossperf.errors import SettingsError
from crossperf.records import Run
from crossperf.runs import append, check, read, read_jsonl
from crossperf.runs.renaming import rename

RUNS = [
    Run(
        "mpirun",
        "lmp a=1",
        "amd-2c",
        1.0,
        repeat=0,
        counters={"instructions": 5.0},
        metadata={"tools": [{"tool": "os"}]},
    ),
    Run("mpirun", "lmp a=1", "amd-2c", 2.0, repeat=1),
    Run("mpirun", "lmp a=1", "epyc", 3.0, repeat=0),
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    append(tmp_path / "runs.jsonl", RUNS)
    return tmp_path / "runs.jsonl"


def test_names_change_and_everything_else_stays(table: Path) -> None:
    output = table.with_name("out.jsonl")
    names = {"platform": ["amd-2c=epyc-2"], "app": ["mpirun=lmp"], "input": ["lmp a=1=a=1"]}
    assert rename(table, output, names) == 3
    first, second, third = read_jsonl(output)
    assert (first.app, first.input, first.platform) == ("lmp", "a=1", "epyc-2")
    assert (first.counters, first.metadata) == (RUNS[0].counters, RUNS[0].metadata)
    assert (second.platform, third.platform) == ("epyc-2", "epyc")
    assert read_jsonl(table) == RUNS


def test_two_platforms_that_become_one_have_each_repeat_once(table: Path) -> None:
    output = table.with_name("out.jsonl")
    assert rename(table, output, {"platform": ["amd-2c=epyc"]}) == 2
    assert [run.repeat for run in read_jsonl(output)] == [0, 1, 2]
    assert check(output) == []


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl.gz", "csv.gz"])
def test_every_format_is_written_and_read(table: Path, ending: str) -> None:
    there_and = table.with_name(f"a.{ending}")
    back = table.with_name(f"b.{ending}")
    rename(table, there_and, {"platform": ["epyc=x"]})
    rename(there_and, back, {"platform": ["x=y"]})
    assert sorted(set(read(back).frame["platform"])) == ["amd-2c", "y"]


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ({"platform": ["amd-2=x"]}, r"platform: found 'amd-2' \(did you mean 'amd-2c'\?\)"),
        ({"app": ["mpirun"]}, "app: found 'mpirun', expected OLD=NEW"),
        ({"app": ["mpirun="]}, "app: found 'mpirun=', expected OLD=NEW"),
    ],
)
def test_a_wrong_name_is_named(table: Path, names: dict[str, list[str]], sentence: str) -> None:
    with pytest.raises(SettingsError, match=sentence):
        rename(table, table.with_name("out.jsonl"), names)
    assert not table.with_name("out.jsonl").exists()


@pytest.mark.parametrize(("name", "words"), [("runs.jsonl", "which this command reads"), ("other", "exists already")])
def test_no_file_is_replaced(table: Path, name: str, words: str) -> None:
    target = table.with_name(name)
    before = target.read_bytes() if target.exists() else b"kept"
    target.write_bytes(before)
    done = CliRunner().invoke(commands, ["runs", "rename", str(table), "--platform", "epyc=x", "-o", str(target)])
    assert words in str(done.exception)
    assert target.read_bytes() == before
    assert read_jsonl(table) == RUNS
