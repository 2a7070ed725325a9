from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossperf.errors import RunsTableError
from crossperf.runs import rules, table
from crossperf.runs.rules import Problem

Csv = Callable[..., Path]


def places(problems: list[Problem]) -> list[tuple[int | None, str | None]]:
    return [(problem.row, problem.column) for problem in problems]


def test_every_problem_of_a_table_is_reported_at_once_with_its_place_and_what_to_do(csv: Csv) -> None:
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
    assert all(problem.actual and problem.expected and problem.advice.endswith(".") for problem in problems)
    with pytest.raises(RunsTableError) as caught:
        table.read(path)
    assert caught.value.facts["problems"] == problems
    assert "12 more: 'crossperf runs check' lists them all" in str(caught.value)


def test_missing_and_misspelt_columns_are_reported_with_a_suggestion(csv: Csv) -> None:
    problems = table.check(csv("a,1,p,1,5", header="aplication,input,platfrom,runtime,counters.cycles"))
    errors = {problem.column: str(problem) for problem in problems if problem.severity == "error"}
    assert set(errors) == {"app", "platform", "runtime_s", None}
    assert "did you mean 'platfrom'?" in errors["platform"]
    assert "did you mean 'runtime'?" in errors["runtime_s"]
    (warning,) = [problem for problem in problems if problem.severity == "warning"]
    assert "did you mean 'counter.cycles'?" in warning.actual


def test_a_second_run_with_the_same_id_is_an_error_and_a_second_repeat_a_warning(csv: Csv) -> None:
    path = csv("a,1,p,1,5,0,x", "a,1,p,1,5,0,x", header="app,input,platform,runtime_s,counter.i,repeat,run_id")
    problems = table.check(path)
    assert [(p.row, p.column, p.severity) for p in problems] == [(2, "run_id", "error"), (2, "repeat", "warning")]


def test_a_platform_of_two_classes_is_an_error(csv: Csv) -> None:
    header = "app,input,platform,runtime_s,counter.i,platform_class"
    (problem,) = table.check(csv("a,1,p,1,5,cpu", "a,2,p,1,5,gpu", "a,1,q,1,5,gpu", header=header))
    assert (problem.column, problem.actual) == ("platform_class", "platform 'p' as cpu and gpu")


def test_a_share_above_one_is_kept_with_a_warning(csv: Csv) -> None:
    read = table.read(csv("a,1,p,1,1.5", header="app,input,platform,runtime_s,counter.int_ratio"))
    assert places(list(read.warnings)) == [(1, "counter.int_ratio")]
    assert read.frame["counter.int_ratio"].to_list() == [1.5]


@pytest.mark.parametrize("word", ["NA", "nan", "NULL", " none ", ""])
def test_words_for_not_measured_are_read_as_missing(csv: Csv, word: str) -> None:
    assert table.read(csv(f"a,1,p,1,{word}")).frame["counter.instructions"].to_list() == [None]


def test_spaces_around_a_number_do_not_lose_it(csv: Csv) -> None:
    read = table.read(csv("a,1,p, 1.5,5 "))
    assert read.frame.select("runtime_s", "counter.instructions").row(0) == (1.5, 5.0)


@pytest.mark.parametrize(
    ("column", "values"), [("runtime_s", [[1.0]]), ("counter.x", [{"a": 1}]), ("app", [["a"]]), ("counter.x", [True])]
)
def test_a_parquet_column_of_another_kind_is_refused(column: str, values: list[Any]) -> None:
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
    assert problems[-1].actual == "further bad values"


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
