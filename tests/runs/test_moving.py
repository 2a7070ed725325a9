"""Tables in other formats and runs that are added: the same runs, by several writers at a time."""

from __future__ import annotations

import errno
import multiprocessing
import os
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from crossperf import runs
from crossperf.cli import commands
from crossperf.datasets import toy
from crossperf.errors import RunsTableError, SettingsError
from crossperf.records import Run
from crossperf.runs import formats, moving, raw
from crossperf.runs.table import RunsTable


@pytest.fixture(scope="module")
def table() -> RunsTable:
    return toy.make_table(apps=3, inputs=2, seed=1)


@pytest.fixture(params=["held", "large"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Convert tables in memory, and tables that are read some rows at a time."""
    if request.param == "large":
        monkeypatch.setattr(raw, "HELD_BYTES", 0)
        monkeypatch.setattr(formats, "HELD_BYTES", 0)
        monkeypatch.setattr(moving, "_AT_ONCE", 17)
        monkeypatch.setattr(moving, "_RECORDS_AT_ONCE", 11)
    return str(request.param)


@pytest.mark.usefixtures("size")
@pytest.mark.parametrize("first", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("second", ["jsonl", "csv", "parquet", "jsonl.gz", "csv.gz"])
def test_a_converted_table_holds_the_same_runs(tmp_path: Path, table: RunsTable, first: str, second: str) -> None:
    table.write(tmp_path / f"a.{first}")
    assert len(runs.convert(tmp_path / f"a.{first}", tmp_path / f"b.{second}")) == len(table)
    assert runs.read(tmp_path / f"b.{second}").fingerprint == table.fingerprint
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([f"a.{first}", f"b.{second}"])


@pytest.mark.usefixtures("size")
def test_a_divided_table_has_a_folder_for_each_value_and_the_same_cells(tmp_path: Path, table: RunsTable) -> None:
    table.write(tmp_path / "a.jsonl")
    runs.convert(tmp_path / "a.jsonl", tmp_path / "b", by="platform")
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == [f"platform={name}" for name in table.platforms]
    read = runs.read(tmp_path / "b")
    key = ["app", "input", "platform", "repeat"]
    assert read.frame.select(table.frame.columns).sort(key).equals(table.frame.sort(key))


def test_an_unsound_table_is_not_converted_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("app,input,platform,runtime_s,counter.x\na,1,p,-1,2\n")
    for output in ("b.parquet", "c"):
        with pytest.raises(RunsTableError, match=r"row 1, column 'runtime_s': found '-1'"):
            runs.convert(tmp_path / "a.csv", tmp_path / output, by="platform" if output == "c" else None)
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_a_table_is_divided_by_a_column_that_it_has(tmp_path: Path, table: RunsTable) -> None:
    table.write(tmp_path / "a.csv")
    with pytest.raises(SettingsError, match=r"by: found 'plaform' \(did you mean 'platform'\?\), expected a column of"):
        runs.convert(tmp_path / "a.csv", tmp_path / "b", by="plaform")


@pytest.mark.usefixtures("size")
@pytest.mark.parametrize("output", ["all.jsonl", "all", "divided"])
def test_runs_are_added_to_lines_and_to_folders(tmp_path: Path, table: RunsTable, output: str) -> None:
    table.write(tmp_path / "a.csv")
    if output == "divided":
        runs.convert(tmp_path / "a.csv", tmp_path / "divided", by="platform")
    else:
        assert runs.add(tmp_path / "a.csv", tmp_path / output) == len(table)
    assert runs.add(tmp_path / "a.csv", tmp_path / output) == len(table)
    both = runs.read(tmp_path / output)
    assert len(both) == 2 * len(table)
    assert runs.info(both).cells == runs.info(table).cells
    if output == "divided":
        assert all(path.name.startswith("platform=") for path in (tmp_path / output).iterdir())


def test_runs_are_not_added_to_a_folder_of_something_else(tmp_path: Path, table: RunsTable) -> None:
    table.write(tmp_path / "a.csv")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.json").write_text("{}")
    with pytest.raises(RunsTableError, match=r"found a folder with 'model\.json' in it"):
        runs.add(tmp_path / "a.csv", tmp_path / "model")
    assert [path.name for path in (tmp_path / "model").iterdir()] == ["model.json"]


@pytest.mark.parametrize("output", ["all.parquet", "all.csv", "all.jsonl.gz"])
def test_other_formats_cannot_be_added_to(tmp_path: Path, table: RunsTable, output: str) -> None:
    table.write(tmp_path / "a.csv")
    with pytest.raises(RunsTableError, match=r"expected \.jsonl or a folder of Parquet"):
        runs.add(tmp_path / "a.csv", tmp_path / output)


def _add_often(source: Path, output: Path, times: int) -> None:
    for _ in range(times):
        runs.add(source, output)


@pytest.mark.slow
@pytest.mark.parametrize("output", ["all.jsonl", "all"])
def test_several_writers_lose_no_run_and_a_reader_sees_whole_ones_alone(
    tmp_path: Path, table: RunsTable, output: str
) -> None:
    table.write(tmp_path / "a.parquet")
    context = multiprocessing.get_context("spawn")
    arguments = (tmp_path / "a.parquet", tmp_path / output, 10)
    writers = [context.Process(target=_add_often, args=arguments) for _ in range(3)]
    for writer in writers:
        writer.start()
    seen = set()
    while any(writer.is_alive() for writer in writers):
        if (tmp_path / output).exists() and (output == "all.jsonl" or any((tmp_path / output).glob("[!.]*.parquet"))):
            seen.add(len(runs.read(tmp_path / output)))
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert all(count % len(table) == 0 for count in seen)
    everything = runs.read(tmp_path / output)
    assert len(everything) == 30 * len(table)
    assert everything.frame.group_by("app", "input", "platform", "repeat").agg(pl.len())["len"].unique().to_list() == [
        30
    ]


@pytest.mark.parametrize(("room", "sentence"), [(0, r"device\)\. Make room"), (2, r"after 22 of \d+ runs were added")])
def test_a_disk_that_fills_up_is_told_with_what_was_added(
    tmp_path: Path, table: RunsTable, monkeypatch: pytest.MonkeyPatch, room: int, sentence: str
) -> None:
    """Who begins again would have added runs twice."""
    calls: list[int] = []

    def append(path: Path, runs_of_it: list[Run]) -> None:
        if len(calls) == room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        calls.append(len(runs_of_it))

    table.write(tmp_path / "a.csv")
    monkeypatch.setattr(raw, "HELD_BYTES", 0)
    monkeypatch.setattr(moving, "_RECORDS_AT_ONCE", 11)
    monkeypatch.setattr(moving.jsonl, "append", append)
    with pytest.raises(RunsTableError, match=rf"all\.jsonl: cannot be written .*{sentence}"):
        moving.add(tmp_path / "a.csv", tmp_path / "all.jsonl")


def test_the_commands_convert_and_append(tmp_path: Path, table: RunsTable) -> None:
    table.write(tmp_path / "a.jsonl")
    invoke = CliRunner().invoke
    result = invoke(
        commands, ["runs", "convert", str(tmp_path / "*.jsonl"), "-o", str(tmp_path / "b"), "--by", "platform"]
    )
    assert result.exit_code == 0, result.output
    assert f"converted {len(table)} runs" in result.output
    again = invoke(commands, ["runs", "convert", str(tmp_path / "a.jsonl"), "-o", str(tmp_path / "b")])
    assert "exists already and was left as it is" in str(again.exception)
    added = invoke(commands, ["runs", "append", str(tmp_path / "a.jsonl"), "-o", str(tmp_path / "b")])
    assert f"added {len(table)} runs" in added.output
    assert len(runs.read(tmp_path / "b")) == 2 * len(table)
