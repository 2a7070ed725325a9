from __future__ import annotations

import gzip
import math
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossperf import dataset
from crossperf.datasets import toy
from crossperf.errors import RunsTableError
from crossperf.records import Run
from crossperf.runs import rules, summary, table
from crossperf.runs.rules import Problem

FORMATS = ("csv", "csv.gz", "jsonl", "jsonl.gz", "parquet")
Csv = Callable[..., Path]


def places(problems: list[Problem]) -> list[tuple[int | None, str | None]]:
    return [(problem.row, problem.column) for problem in problems]


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
    one, other = table.read(every_format["parquet"]), table.read(every_format[kind])
    assert other.fingerprint == one.fingerprint
    facts, other_facts = summary.info(one), summary.info(other)
    assert replace(other_facts, path="") == replace(facts, path="")
    data, other_data = dataset.build(one), dataset.build(other)
    assert (other_data.features, other_data.workloads) == (data.features, data.workloads)
    np.testing.assert_array_equal(other_data.features_nf, data.features_nf)
    np.testing.assert_array_equal(other_data.log_relative_time_np, data.log_relative_time_np)
    assert table.check(every_format[kind]) == []


def test_the_formats_are_what_their_endings_say(every_format: dict[str, Path]) -> None:
    assert every_format["parquet"].read_bytes()[:4] == b"PAR1"
    assert gzip.decompress(every_format["csv.gz"].read_bytes()) == every_format["csv"].read_bytes()
    assert gzip.decompress(every_format["jsonl.gz"].read_bytes()) == every_format["jsonl"].read_bytes()


def test_a_fingerprint_changes_with_any_value_that_can_change_an_answer(csv: Csv) -> None:
    header = "app,input,platform,runtime_s,status,host,counter.x"
    lines = ["a,1,p,1.0,ok,h,5"]
    changes = ["b,1,p,1.0,ok,h,5", "a,1,p,1.1,ok,h,5", "a,1,p,1.0,oom,h,5", "a,1,p,1.0,ok,h,", "a,1,p,1.0,ok,h,0"]
    prints = [table.read(csv(line, header=header)).fingerprint for line in lines + changes]
    assert len(set(prints)) == 1 + len(changes)
    assert table.read(csv("a,1,p,1.0,ok,other,5", header=header)).fingerprint == prints[0]


def test_a_column_without_any_value_leaves_the_fingerprint_as_it_is(csv: Csv) -> None:
    plain = table.read(csv("a,1,p,1.0,5"))
    wide = table.read(
        csv("a,1,p,1.0,5,,", header="app,input,platform,runtime_s,counter.instructions,platform_class,repeat")
    )
    assert wide.fingerprint == plain.fingerprint


def test_every_problem_of_a_table_is_told_at_once_with_its_place_and_what_to_do(csv: Csv) -> None:
    path = csv(
        "a,1,p,-1,5,0,1",
        ",1,p,0,lots,0,2",
        "a,1,p,inf,inf,1.5,3",
        "a,1,,fast,-7,0,3",
        "a,1,p,,,-1,5",
        header="app,input,platform,runtime_s,counter.instructions,repeat,run_id",
    )
    problems = table.check(path)
    values = {(problem.row, problem.column): problem.value for problem in problems}
    assert values == {
        (1, "runtime_s"): "-1",
        (2, "app"): None,
        (2, "runtime_s"): "0",
        (2, "counter.instructions"): "lots",
        (3, "runtime_s"): "inf",
        (3, "counter.instructions"): "inf",
        (3, "repeat"): "1.5",
        (4, "platform"): None,
        (4, "runtime_s"): "fast",
        (4, "counter.instructions"): "-7",
        (4, "run_id"): "3",
        (5, "runtime_s"): None,
        (5, "repeat"): "-1",
    }
    assert all(problem.found and problem.expected and problem.advice.endswith(".") for problem in problems)
    with pytest.raises(RunsTableError) as caught:
        table.read(path)
    assert caught.value.facts["problems"] == problems
    assert "12 more: 'crossperf runs check' lists them all" in str(caught.value)


def test_missing_and_misspelt_columns_are_told_with_a_suggestion(csv: Csv) -> None:
    problems = table.check(csv("a,1,p,1,5", header="aplication,input,platfrom,runtime,counters.cycles"))
    told = {problem.column: str(problem) for problem in problems if problem.severity == "error"}
    assert set(told) == {"app", "platform", "runtime_s", None}
    assert "did you mean 'platfrom'?" in told["platform"]
    assert "did you mean 'runtime'?" in told["runtime_s"]
    (warning,) = [problem for problem in problems if problem.severity == "warning"]
    assert "did you mean 'counter.cycles'?" in warning.found


def test_a_second_run_with_the_same_id_is_an_error_and_a_second_repeat_a_warning(csv: Csv) -> None:
    path = csv("a,1,p,1,5,0,x", "a,1,p,1,5,0,x", header="app,input,platform,runtime_s,counter.i,repeat,run_id")
    problems = table.check(path)
    assert [(p.row, p.column, p.severity) for p in problems] == [(2, "run_id", "error"), (2, "repeat", "warning")]


def test_a_platform_of_two_classes_is_an_error(csv: Csv) -> None:
    header = "app,input,platform,runtime_s,counter.i,platform_class"
    (problem,) = table.check(csv("a,1,p,1,5,cpu", "a,2,p,1,5,gpu", "a,1,q,1,5,gpu", header=header))
    assert (problem.column, problem.found) == ("platform_class", "platform 'p' as cpu and gpu")


def test_a_share_above_one_is_kept_with_a_warning(csv: Csv) -> None:
    read = table.read(csv("a,1,p,1,1.5", header="app,input,platform,runtime_s,counter.int_ratio"))
    assert places(list(read.warnings)) == [(1, "counter.int_ratio")]
    assert read.frame["counter.int_ratio"].to_list() == [1.5]


def test_failed_runs_are_kept_and_counted_and_their_values_are_not_judged(csv: Csv) -> None:
    header = "app,input,platform,runtime_s,counter.instructions,status"
    read = table.read(csv("a,1,p,1,5,ok", "a,1,p,,,timeout", "a,1,p,-1,x,oom", "a,2,p,2,6,", header=header))
    assert (read.frame.height, read.n_failed, read.succeeded.height) == (4, 2, 2)
    assert read.frame["status"].to_list() == ["ok", "timeout", "oom", "ok"]


def test_missing_zero_and_negative_counters_are_three_things_in_every_format(tmp_path: Path) -> None:
    runs = [Run("a", str(i), "p", 1.0, counters={"x": x}) for i, x in enumerate((None, 0.0, -2.5))]
    for kind in FORMATS:
        path = tmp_path / f"runs.{kind}"
        table.from_runs(runs).write(path)
        assert table.read(path).frame["counter.x"].to_list() == [None, 0.0, -2.5]
        assert table.read(path).runs() == runs


@pytest.mark.parametrize("word", ["NA", "nan", "NULL", " none ", ""])
def test_words_for_not_measured_are_read_as_missing(csv: Csv, word: str) -> None:
    assert table.read(csv(f"a,1,p,1,{word}")).frame["counter.instructions"].to_list() == [None]


def test_spaces_around_a_number_do_not_lose_it(csv: Csv) -> None:
    read = table.read(csv("a,1,p, 1.5,5 "))
    assert read.frame.select("runtime_s", "counter.instructions").row(0) == (1.5, 5.0)


def test_what_else_a_file_holds_is_kept_and_is_no_counter(csv: Csv) -> None:
    read = table.read(csv("a,1,p,1,5,red", header="app,input,platform,runtime_s,counter.x,colour"))
    assert read.frame["colour"].to_list() == ["red"]
    assert read.counters == ["counter.x"]
    assert read.runs()[0].metadata == {"colour": "red"}


def test_runs_without_a_runtime_are_sound_for_predicting_alone(csv: Csv) -> None:
    path = csv("a,1,p,5", header="app,input,platform,counter.x")
    assert table.read(path, need_runtime=False).frame["runtime_s"].to_list() == [None]
    assert table.check(path, need_runtime=False) == []
    assert places(table.check(path)) == [(None, "runtime_s")]


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
def test_a_file_cut_short_is_told(tmp_path: Path, every_format: dict[str, Path], kind: str, share: float) -> None:
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


@pytest.mark.parametrize(("name", "found"), [("gone.csv", "no such file"), ("", "a folder")])
def test_a_path_without_a_file_is_told(tmp_path: Path, name: str, found: str) -> None:
    with pytest.raises(RunsTableError, match=f"found {found}, expected a runs table"):
        table.read(tmp_path / name)


@pytest.mark.parametrize(
    ("column", "values"), [("runtime_s", [[1.0]]), ("counter.x", [{"a": 1}]), ("app", [["a"]]), ("counter.x", [True])]
)
def test_a_parquet_column_of_another_kind_is_told(column: str, values: list[Any]) -> None:
    sound: dict[str, list[Any]] = {
        "app": ["a"],
        "input": ["1"],
        "platform": ["p"],
        "runtime_s": [1.0],
        "counter.x": [1],
    }
    with pytest.raises(RunsTableError) as caught:
        table.from_frame(pl.DataFrame(sound | {column: values}))
    assert [problem.column for problem in caught.value.facts["problems"]] == [column]


def test_a_column_full_of_bad_values_is_described_by_its_first_thousand(csv: Csv) -> None:
    problems = table.check(csv(*["a,1,p,-1,5"] * 1500))
    assert len(problems) == 1001
    assert problems[0].row == 1
    assert problems[-1].found == "further bad values"


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


CELLS = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.floats(allow_nan=True, allow_infinity=True).map(str),
    st.floats(-2.0, 2.0).map(str),
    st.sampled_from(
        ["", " ", "NA", "nan", "-nan", "None", "true", "0", "-0.0", "1.5", " 7 ", "+3", "1.", ".5", "1e400"]
    ),
    st.sampled_from(["1_000", "0x10", "1e", "1d5", "Infinity", "-inf", "1,5", "five", "५", "1e18", "9007199254740993"]),
    st.text(alphabet="0123456789.eE+-_ naif", max_size=6),
)
COLUMNS = st.sampled_from(
    ["runtime_s", "repeat", "threads", "app", "platform", "counter.instructions", "counter.int_ratio", "counter.new"]
)


@settings(max_examples=150, deadline=None)
@given(column=COLUMNS, cells=st.lists(CELLS, min_size=1, max_size=8))
def test_screening_a_column_finds_the_same_values_as_asking_the_rules_one_by_one(column: str, cells: list[str]) -> None:
    columns = {
        "app": ["a"] * len(cells),
        "input": [str(i) for i in range(len(cells))],
        "platform": ["p"] * len(cells),
        "runtime_s": ["1"] * len(cells),
        "counter.instructions": ["1"] * len(cells),
        column: cells,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.csv"
        pl.DataFrame(columns).write_csv(path, quote_style="always")
        reported = table.check(path)
        expected = {row for row, cell in enumerate(cells, start=1) if rules.check_value(column, cell) is not None}
        assert {problem.row for problem in reported if problem.column == column} == expected
        if column not in rules.TEXTS and not any(problem.severity == "error" for problem in reported):
            # A second promise: a value that nobody complained about is neither lost nor changed.
            numbers = [None if rules.is_missing(cell) else rules.as_number(cell) for cell in cells]
            assert table.read(path).frame[column].to_list() == numbers


def test_lines_that_are_no_json_and_bad_values_of_the_others_are_told_together(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    sound = '{"app": "a", "input": "1", "platform": "p", "runtime_s": %s, "counters": {"c": 1}}'
    path.write_text("\n".join([sound % 1.0, "{torn", sound % -1.0]) + "\n")
    assert [(problem.row, problem.column) for problem in table.check(path)] == [(2, None), (3, "runtime_s")]
