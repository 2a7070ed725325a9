from __future__ import annotations

import contextlib
import gzip
import math
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from crossperf import dataset
from crossperf.datasets import toy
from crossperf.errors import RunsTableError
from crossperf.records import Run
from crossperf.runs import formats, jsonl, summary, table

FORMATS = ("csv", "csv.gz", "jsonl", "jsonl.gz", "parquet")


@pytest.fixture(scope="module")
def every_format(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same runs in each format, with a failed one, a run without a counter and an awkward name."""
    folder = tmp_path_factory.mktemp("formats")
    runs = toy.make_runs(apps=2, inputs=2, repeats=2, seed=3)
    runs.append(Run('we"ird, ünï\ncode', "", "cpu-a", 0.1 + 0.2, counters={"instructions": 0.0}, metadata={"job": 7}))
    runs.append(Run("app0", "n0", "cpu-a", None, status="timeout", counters={}))
    paths = {kind: folder / f"runs.{kind}" for kind in FORMATS}
    for path in paths.values():
        table.from_runs(runs).write(path)
    return paths


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_of_the_same_runs_is_the_same_table(every_format: dict[str, Path], kind: str) -> None:
    first, other = table.read(every_format["parquet"]), table.read(every_format[kind])
    assert other.fingerprint == first.fingerprint
    facts, other_facts = summary.info(first), summary.info(other)
    assert replace(other_facts, path="") == replace(facts, path="")
    data, other_data = dataset.build(first), dataset.build(other)
    assert (other_data.features.columns, other_data.workloads) == (data.features.columns, data.workloads)
    np.testing.assert_array_equal(other_data.features.values_nf, data.features.values_nf)
    np.testing.assert_array_equal(other_data.log_relative_time_np, data.log_relative_time_np)
    assert table.check(every_format[kind]) == []


def test_the_formats_are_what_their_endings_say(every_format: dict[str, Path]) -> None:
    assert every_format["parquet"].read_bytes()[:4] == b"PAR1"
    assert gzip.decompress(every_format["csv.gz"].read_bytes()) == every_format["csv"].read_bytes()
    assert gzip.decompress(every_format["jsonl.gz"].read_bytes()) == every_format["jsonl"].read_bytes()


def test_missing_zero_and_negative_counters_are_three_things_in_every_format(tmp_path: Path) -> None:
    runs = [Run("a", str(i), "p", 1.0, counters={"x": x}) for i, x in enumerate((None, 0.0, -2.5))]
    for kind in FORMATS:
        path = tmp_path / f"runs.{kind}"
        table.from_runs(runs).write(path)
        assert table.read(path).frame["counter.x"].to_list() == [None, 0.0, -2.5]
        assert table.read(path).runs() == runs


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("empty.csv", b"", "no runs"),
        ("empty.jsonl", b"", "no runs"),
        ("empty.parquet", b"", "no runs"),
        ("blank.jsonl", b"\n\n", "no runs"),
        ("header.csv", b"app,input,platform,runtime_s,counter.x\n", "no runs"),
        ("latin.csv", b"app,input,platform,runtime_s,counter.x\ncaf\xe9,1,p,1,2\n", "does not read as csv"),
        ("latin.jsonl", b'{"app": "caf\xe9"}\n', "not UTF-8"),
        ("text.parquet", b"app,input,platform", "does not read as parquet"),
        ("text.csv.gz", b"app,input,platform", "expected"),
        ("text.jsonl.gz", b"app,input,platform", "does not read as jsonl.gz"),
        ("wide.csv", b"app,input,platform,runtime_s,counter.x\na,1,p,1,2,3\n", "does not read as csv"),
        ("twice.csv", b"app,input,platform,runtime_s,counter.x,counter.x\na,1,p,1,2,3\n", "'counter.x' more than once"),
        ("runs.txt", b"app", "a name that ends in '.txt'"),
    ],
)
def test_a_file_that_holds_no_table_is_one_problem(tmp_path: Path, name: str, content: bytes, found: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(RunsTableError) as caught:
        table.read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert found in str(caught.value)
    assert "\n" not in str(caught.value)
    assert table.check(path) == caught.value.facts["problems"]


@pytest.mark.parametrize("kind", ["parquet", "csv.gz", "jsonl.gz"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_file_cut_short_is_refused(tmp_path: Path, every_format: dict[str, Path], kind: str, share: float) -> None:
    whole = every_format[kind].read_bytes()
    path = tmp_path / f"cut.{kind}"
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(RunsTableError, match=f"does not read as {kind} .* It may be cut short"):
        table.read(path)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "jsonl", "parquet"])
def test_brackets_in_a_file_name_stand_for_themselves(tmp_path: Path, kind: str) -> None:
    for name in ("runs1", "runs[1]"):
        table.from_runs([Run(name, "1", "p", 1.0, counters={"x": 1.0})]).write(tmp_path / f"{name}.{kind}")
    assert table.read(tmp_path / f"runs[1].{kind}").frame["app"].to_list() == ["runs[1]"]


@pytest.mark.parametrize(("name", "found"), [("gone.csv", "no such file"), ("", "an empty folder")])
def test_a_path_without_a_file_is_refused(tmp_path: Path, name: str, found: str) -> None:
    with pytest.raises(RunsTableError, match=f"found {found}, expected a "):
        table.read(tmp_path / name)


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    sound = table.from_runs([Run("a", "1", "p", 1.0, counters={"x": 1.0})])
    sound.write(path)
    before = path.read_bytes()
    failed = table.from_runs([Run("a", "1", "p", math.inf, status="hung", counters={"x": 1.0})])
    with pytest.raises(RunsTableError, match="not finite"):
        failed.write(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_lines_that_are_no_json_and_bad_values_of_the_others_are_reported_together(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    sound = '{"app": "a", "input": "1", "platform": "p", "runtime_s": %s, "counters": {"c": 1}}'
    path.write_text("\n".join([sound % 1.0, "{torn", sound % -1.0]) + "\n")
    assert [(problem.row, problem.column) for problem in table.check(path)] == [(2, None), (3, "runtime_s")]


def test_lines_are_read_some_at_a_time_with_the_same_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.jsonl"
    more: list[dict[str, Any]] = [{"job": 7}, {"job": "x", "queue": "a"}, {}, {"events": {"perf": {"cycles": 1}}}, {}]
    counters: list[dict[str, float | None]] = [{"x": 1.0}, {"x": None}, {"y": 2.0}, {"x": 3.5, "y": 0.0}, {}]
    runs = [Run("a", str(i), "p", 1.0 + i, counters=counters[i], metadata=more[i]) for i in range(5)]
    jsonl.append(path, runs)
    whole = table.read(path)
    monkeypatch.setattr(formats, "_LINES_AT_ONCE", 2)
    parts = table.read(path)
    assert parts.fingerprint == whole.fingerprint
    assert (
        parts.frame.select(sorted(parts.frame.columns))
        .drop("job")
        .equals(whole.frame.select(sorted(whole.frame.columns)).drop("job"))
    )
    assert [run.counters for run in parts.runs()] == [run.counters for run in whole.runs()]
    with path.open("a") as lines:
        lines.write("{\n")
    assert [problem.row for problem in table.check(path) if problem.severity == "error"] == [6]


def test_columns_of_types_that_no_other_format_has_become_texts(tmp_path: Path) -> None:
    columns: dict[str, Any] = {"app": ["a"], "input": ["1"], "platform": ["p"], "runtime_s": [1.0], "counter.x": [2.0]}
    columns |= {"took": [timedelta(seconds=90)], "tags": [["a", "b"]], "events": [{"perf": {"cycles": 5}}]}
    pl.DataFrame(columns, strict=False).write_parquet(tmp_path / "runs.parquet")
    read = table.read(tmp_path / "runs.parquet")
    assert read.frame.select("took", "tags").row(0) == ("0:01:30", '["a", "b"]')
    assert read.events["event.perf.cycles"].to_list() == [5.0]
    for kind in FORMATS:
        read.write(tmp_path / f"again.{kind}")
        assert table.read(tmp_path / f"again.{kind}").fingerprint == read.fingerprint


def test_a_csv_whose_last_line_has_no_end_is_read_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("app,input,platform,runtime_s,counter.x\na,1,p,1,2")
    assert [str(warning) for warning in table.read(path).warnings] == [
        "row 1: found a last line without an end, expected a line break behind it. It may be cut short: copy or write "
        "the file again, or end the last line."
    ]


def test_a_panic_of_the_parquet_reader_says_nothing_but_its_sentence(
    tmp_path: Path, every_format: dict[str, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    """Whether polars panics or raises depends on the byte: over many, some panic."""
    whole = every_format["parquet"].read_bytes()
    path = tmp_path / "runs.parquet"
    for place in range(4, len(whole) - 8, max(1, len(whole) // 150)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with contextlib.suppress(RunsTableError):
            table.read(path)
    assert capfd.readouterr().err == ""
