from __future__ import annotations

import json
import math
from typing import Any

import pytest

from crossperf.runs import rules
from crossperf.runs.rules import Problem, check_columns, check_value

SOUND = ["app", "input", "platform", "runtime_s", "counter.instructions"]


@pytest.mark.parametrize("value", [-1.0, 0, 0.0, math.inf, -math.inf, "fast", True, [1.0], "1_000", "١٢"])
def test_a_runtime_is_a_finite_number_above_zero(value: Any) -> None:
    problem = check_value("runtime_s", value, row=3)
    assert problem is not None
    assert (problem.row, problem.column, problem.value, problem.severity) == (3, "runtime_s", value, "error")
    assert problem.expected == "seconds above 0"


@pytest.mark.parametrize("value", [1e-18, 1, 1.5, "1.5", " 2e3 ", 1e18])
def test_a_runtime_may_be_any_time_of_a_clock_or_text_that_reads_as_one(value: Any) -> None:
    assert check_value("runtime_s", value) is None


@pytest.mark.parametrize("value", [5e-324, "1e-19", 1.1e18, "1e308"])
def test_a_runtime_that_no_clock_shows_is_refused(value: Any) -> None:
    """Of such times a model could be trained, and not be read again: logarithms beyond 100 are none of times."""
    problem = check_value("runtime_s", value)
    assert problem is not None
    assert problem.expected == "seconds from 1e-18 to 1e+18"


@pytest.mark.parametrize("nothing", [None, "", "NA", " nan ", "null", "None", math.nan])
def test_a_missing_runtime_is_a_problem_for_learning_and_none_for_predicting(nothing: Any) -> None:
    problem = check_value("runtime_s", nothing)
    assert problem is not None
    assert problem.actual == "nothing"
    assert check_value("runtime_s", nothing, need_runtime=False) is None
    assert check_value("counter.instructions", nothing) is None


@pytest.mark.parametrize("value", [0, 0.0, 1e18, "12"])
def test_zero_is_a_sound_count(value: Any) -> None:
    assert check_value("counter.instructions", value) is None


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("counter.instructions", -1, "a number of 0 or more"),
        ("counter.instructions", "many", "a number, or nothing where it was not measured"),
        ("counter.instructions", math.inf, "a finite number"),
        ("counter.home_made", math.inf, "a finite number"),
        ("counter.home_made", True, "a number, or nothing where it was not measured"),
        ("repeat", 1.5, "a whole number of 0 or more"),
        ("repeat", -1, "a whole number of 0 or more"),
        ("threads", 1e300, "a whole number of 0 or more"),
        ("app", " ", "the name of the app"),
        ("platform", None, "the name of the platform"),
    ],
)
def test_a_value_that_does_not_fit_is_an_error_with_what_was_expected(column: str, value: Any, expected: str) -> None:
    problem = check_value(column, value)
    assert problem is not None
    assert (problem.expected, problem.severity) == (expected, "error")
    assert problem.advice.endswith(".")


def test_a_counter_that_the_catalog_does_not_know_may_be_negative() -> None:
    assert check_value("counter.home_made", -3.5) is None


def test_a_share_above_one_is_a_warning() -> None:
    problem = check_value("counter.int_ratio", 1.01)
    assert problem is not None
    assert (problem.severity, problem.expected) == ("warning", "a ratio of at most 1")
    assert check_value("counter.int_ratio", 1.0) is None
    assert check_value("counter.cache_miss_ratio", 40.0) is None


@pytest.mark.parametrize(("column", "value"), [("input", None), ("host", 7), ("colour", object())])
def test_free_text_and_metadata_may_hold_anything(column: str, value: Any) -> None:
    assert check_value(column, value) is None


def test_a_sound_set_of_columns_has_no_problem() -> None:
    assert check_columns([*SOUND, "repeat", "colour"]) == []
    assert check_columns([*SOUND, "measured_by", "tools", "events", "missing"]) == []


def test_each_missing_column_is_named_with_the_column_that_may_hold_it() -> None:
    problems = check_columns(["application", "platfrom", "Input", "counter.x"])
    assert [problem.column for problem in problems] == ["app", "input", "platform", "runtime_s"]
    assert all(problem.severity == "error" for problem in problems)
    hints = {problem.column: problem.advice for problem in problems}
    assert "(did you mean 'platfrom'?)" in hints["platform"]
    assert "(did you mean 'Input'?)" in hints["input"]
    assert "did you mean" not in hints["runtime_s"]


@pytest.mark.parametrize(
    ("name", "hint"), [("counters.cycles", "counter.cycles"), ("Threads", "threads"), ("repeats", "repeat")]
)
def test_a_column_that_is_nearly_a_known_one_is_a_warning(name: str, hint: str) -> None:
    (problem,) = check_columns([*SOUND, name])
    assert (problem.column, problem.severity) == (name, "warning")
    assert f"(did you mean '{hint}'?)" in problem.actual


@pytest.mark.parametrize("columns", [SOUND[:4], [*SOUND[:4], "counter."], [*SOUND[:4], "instructions"]])
def test_a_table_without_counters_is_an_error(columns: list[str]) -> None:
    (problem,) = check_columns(columns)
    assert (problem.actual, problem.severity) == ("no counter", "error")


def test_a_problem_reads_as_place_found_expected_advice() -> None:
    problem = Problem("-1", "seconds above 0", "Measure again.", row=1234, column="runtime_s", value=-1)
    assert str(problem) == "row 1,234, column 'runtime_s': found -1, expected seconds above 0. Measure again."
    assert str(Problem("no runs", "one row", "Collect.")) == "found no runs, expected one row. Collect."


@pytest.mark.parametrize(("value", "written"), [(math.inf, "inf"), (2.5, 2.5), (None, None), ([1], "[1]")])
def test_a_problem_is_valid_json_whatever_value_it_is_about(value: Any, written: Any) -> None:
    facts = json.loads(json.dumps(Problem("x", "y", "z", 1, "c", value).to_json(), allow_nan=False))
    assert facts["value"] == written
    assert set(facts) == {"found", "expected", "advice", "row", "column", "value", "severity", "file", "message"}


@pytest.mark.parametrize(
    ("status", "failed"), [("ok", False), (None, False), ("", False), ("timeout", True), ("OOM", True)]
)
def test_a_run_failed_when_its_status_says_why(status: str | None, failed: bool) -> None:
    assert rules.failed(status) is failed
