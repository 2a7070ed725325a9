"""Tables of several files: folders, patterns, labels in folder names, and problems that name their file and row."""

from __future__ import annotations

import gc
import json
import tempfile
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from crossperf import runs
from crossperf.cli import commands
from crossperf.datasets import toy
from crossperf.errors import RunsTableError
from crossperf.records import Run
from crossperf.runs import formats, places, raw
from crossperf.runs.table import RunsTable, from_frame, from_runs


@pytest.fixture(scope="module")
def table() -> RunsTable:
    return toy.make_table(apps=3, inputs=2, seed=1)


def large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw, "HELD_BYTES", 0)
    monkeypatch.setattr(formats, "HELD_BYTES", 0)


def halves(table: RunsTable, folder: Path, *kinds: str) -> None:
    """Write a table as two files, in their order."""
    first = len(table) // 2
    for number, (part, kind) in enumerate(zip((table.frame[:first], table.frame[first:]), kinds, strict=True)):
        from_frame(part).write(folder / f"{number}.{kind}")


@pytest.mark.parametrize("kinds", [("parquet", "parquet"), ("csv", "csv"), ("jsonl", "jsonl"), ("parquet", "jsonl")])
@pytest.mark.parametrize("place", [".", "*.*", "[01].*"])
def test_a_folder_or_a_pattern_is_the_table_of_its_files(
    tmp_path: Path, table: RunsTable, kinds: tuple[str, str], place: str
) -> None:
    halves(table, tmp_path, *kinds)
    read = runs.read(tmp_path / place)
    assert read.fingerprint == table.fingerprint
    assert runs.info(read).cells == runs.info(table).cells


def test_names_of_folders_tell_columns(tmp_path: Path, table: RunsTable) -> None:
    for platform in table.platforms:
        folder = tmp_path / "runs" / f"platform={platform.replace('-', '%2D')}"
        folder.mkdir(parents=True)
        own = table.frame.filter(pl.col("platform") == platform).drop("platform")
        own.write_parquet(folder / "0.parquet")
    (tmp_path / "runs" / "_SUCCESS").touch()
    for place in ("runs", "runs/*/*.parquet", "runs/platform=*/0.parquet"):
        assert runs.read(tmp_path / place).platforms == table.platforms
    assert runs.read(tmp_path / "runs/platform=cpu*/0.parquet").platforms == ["cpu-a", "cpu-b"]


def test_a_pattern_leaves_out_files_that_are_not_complete_yet(tmp_path: Path, table: RunsTable) -> None:
    table.write(tmp_path / "a.parquet")
    (tmp_path / ".b.parquet").write_bytes(b"PAR1")
    for place in ("*.parquet", "."):
        assert len(runs.read(tmp_path / place)) == len(table)


def test_files_may_differ_in_their_columns_and_types(tmp_path: Path) -> None:
    frame = {"app": ["a"], "input": ["1"], "platform": ["p"], "runtime_s": [1], "counter.x": [5]}
    pl.DataFrame(frame).write_parquet(tmp_path / "0.parquet")
    pl.DataFrame(frame | {"runtime_s": [2.5], "counter.x": ["7"], "counter.y": [1.5]}).write_parquet(
        tmp_path / "1.parquet"
    )
    read = runs.read(tmp_path)
    assert read.column("runtime_s").to_list() == [1.0, 2.5]
    assert read.column("counter.x").to_list() == [5.0, 7.0]
    assert read.column("counter.y").to_list() == [None, 1.5]


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_a_problem_of_several_files_names_its_file_and_its_row_there(
    tmp_path: Path, kind: str, is_large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = [Run("a", str(i), "p", 1.0, repeat=0, run_id=f"r{i}", counters={"x": 1.0}) for i in range(3)]
    from_runs(sound).write(tmp_path / f"0.{kind}")
    bad = from_runs([Run("b", "1", "p", 1.0, counters={"x": 2.0}), *sound[1:2]]).frame
    wrong = bad.with_columns(pl.when(pl.col("app") == "b").then(-1.0).otherwise("runtime_s").alias("runtime_s"))
    if kind == "jsonl":  # its first line is empty: rows are lines
        lines = (json.dumps(row | {"counters": {"x": row.pop("counter.x")}}) for row in wrong.to_dicts())
        (tmp_path / "1.jsonl").write_text("\n" + "\n".join(lines) + "\n")
    else:
        getattr(wrong, f"write_{kind}")(tmp_path / f"1.{kind}")
    if is_large:
        large(monkeypatch)
    problems = runs.check(tmp_path)
    shift = kind == "jsonl"
    assert [(own.file, own.row, own.column) for own in problems] == [
        (f"1.{kind}", 1 + shift, "runtime_s"),
        (f"1.{kind}", 2 + shift, "run_id"),
        (f"1.{kind}", 2 + shift, "repeat"),
    ]
    assert f"1.{kind}, row {1 + shift}, column 'runtime_s': found" in str(problems[0])


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_a_large_table_has_the_problems_of_a_small_one(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pl.DataFrame(
        {
            "app": ["a", "a", None, "b", "a", "a"],
            "input": ["1", "1", "2", "3", "1", "1"],
            "platform": ["p", "p", "p", "q", "p", "p"],
            "platform_class": ["cpu", "cpu", "gpu", "gpu", None, "cpu"],
            "runnable": [None, "cpu", "cpu", "cqu", "gpu", None],
            "run_id": ["x", "x", None, None, "y", "x"],
            "repeat": ["0", "0", "1.5", "2", "0", "1"],
            "status": ["ok", None, "ok", "ok", "timeout", "NA"],
            "runtime_s": ["1", "fast", "2", "-1", "-1", "inf"],
            "counter.instructions": ["5", "", "x", "nan", "-7", "-7"],
        }
    )
    path = tmp_path / f"runs.{kind}"
    if kind == "jsonl":
        path.write_text("".join(f"{line}\n\n" for line in frame.write_ndjson().splitlines()))
    else:
        getattr(frame, f"write_{kind}")(path)
    small = runs.check(path)
    large(monkeypatch)
    assert runs.check(path) == small
    assert len(small) >= 9


def test_links_of_a_folder_are_followed_where_they_end(tmp_path: Path, table: RunsTable) -> None:
    """Two links to their own folder made a walk that never ended, and one read each run forty times."""
    for name in ("first", "second", "runs"):
        (tmp_path / name).mkdir()
    table.write(tmp_path / "first" / "0.csv")
    table.write(tmp_path / "second" / "0.csv")
    (tmp_path / "runs" / "a").symlink_to("../first")
    (tmp_path / "runs" / "b").symlink_to("../second")
    assert [part.address[-7:] for part in places.parts_of(tmp_path / "runs")] == ["a/0.csv", "b/0.csv"]
    (tmp_path / "first" / "back").symlink_to("../second")
    (tmp_path / "second" / "back").symlink_to("../first")
    with pytest.raises(RunsTableError, match=r"back/back', which leads back to a folder that it is in, expected a"):
        places.parts_of(tmp_path / "runs")


def test_a_folder_of_too_many_folders_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two links in each of twenty folders to the next one make a million names."""
    monkeypatch.setattr(places, "_MOST_FOLDERS", 1000)
    for number in range(20):
        (tmp_path / f"{number}").mkdir()
        for name in ("a", "b"):
            (tmp_path / f"{number}" / name).symlink_to(f"../{number + 1}")
    (tmp_path / "20").mkdir()
    with pytest.raises(RunsTableError, match="is one of more than 1,000 folders"):
        places.parts_of(tmp_path / "0")


def test_a_folder_with_other_files_is_refused_by_the_name_of_the_first(tmp_path: Path, table: RunsTable) -> None:
    table.write(tmp_path / "runs.csv")
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(
        RunsTableError, match=r"found a folder with 'notes.txt' in it, expected a folder of runs tables"
    ):
        runs.read(tmp_path)
    assert len(runs.read(tmp_path / "*.csv")) == len(table)
    with pytest.raises(RunsTableError, match="found no file of such a name, expected a runs table"):
        runs.read(tmp_path / "*.parquet")


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_long_text_becomes_parquet_in_a_temporary_folder_that_goes_with_the_table(
    tmp_path: Path, kind: str, table: RunsTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.write(tmp_path / f"runs.{kind}")
    large(monkeypatch)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    read = runs.read(tmp_path / f"runs.{kind}")
    assert list((tmp_path / "tmp").rglob("*.parquet")) or kind == "jsonl"
    assert read.fingerprint == table.fingerprint
    del read
    gc.collect()
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_damaged_file_of_several_is_named(tmp_path: Path, table: RunsTable) -> None:
    halves(table, tmp_path, "parquet", "parquet")
    data = (tmp_path / "1.parquet").read_bytes()
    (tmp_path / "1.parquet").write_bytes(data[: len(data) // 2])
    with pytest.raises(RunsTableError, match=r"1\.parquet: found a file that does not read as parquet"):
        runs.read(tmp_path)


def test_commands_take_a_folder_or_a_pattern_as_table(tmp_path: Path, table: RunsTable) -> None:
    halves(table, tmp_path, "parquet", "csv")
    pattern = str(tmp_path / "*.*")
    for arguments in (
        ["runs", "check", str(tmp_path)],
        ["runs", "info", pattern],
        ["evaluate", pattern, "--models", "median", "--folds", "2"],
        ["train", str(tmp_path), "--model", "ridge", "-o", str(tmp_path.with_name("model"))],
        ["predict", str(tmp_path.with_name("model")), pattern],
    ):
        result = CliRunner().invoke(commands, arguments)
        assert result.exit_code == 0, (arguments, result.output)
