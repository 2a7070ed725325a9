from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossperf.errors import RunsTableError
from crossperf.records import Run
from crossperf.runs import checking, jsonl, table
from crossperf.runs.checking import check_runs, checked

SOUND = Run("a", "1", "p", 2.0, counters={"instructions": 5.0})

NUMBERS = st.one_of(
    st.none(),
    st.integers(-3, 10),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.booleans(),
    st.sampled_from(["", "nan", "1.5", " 7 ", "1_000", "five", "-inf", "1e400", "2", "null"]),
)
WORDS = st.one_of(st.none(), st.sampled_from(["", " ", "a", "b", "NA", "none"]), st.integers(0, 2))
RUNS = st.builds(
    Run,
    app=WORDS,
    input=WORDS,
    platform=WORDS,
    runtime_s=NUMBERS,
    platform_class=st.sampled_from([None, "cpu", "gpu", ""]),
    repeat=NUMBERS,
    status=st.sampled_from([None, "", "ok", "NA", "oom", " ok"]),
    run_id=st.sampled_from([None, "x", "y", 1]),
    threads=NUMBERS,
    counters=st.dictionaries(st.sampled_from(["instructions", "int_ratio", "mine"]), NUMBERS),
    metadata=st.dictionaries(st.sampled_from(["job", "runtime", "counters.cycles", "Host"]), NUMBERS),
)


def problems_of_a_table(runs: list[Run], need_runtime: bool) -> list[Any]:
    try:
        return list(table.from_runs(runs, need_runtime=need_runtime).warnings)
    except RunsTableError as error:
        return list(error.facts["problems"])


@settings(max_examples=400, deadline=None)
@given(runs=st.lists(RUNS, max_size=5), need_runtime=st.booleans())
def test_a_few_runs_have_the_problems_that_a_table_of_them_has(runs: list[Run], need_runtime: bool) -> None:
    problems = check_runs(runs, need_runtime=need_runtime)
    errors = [problem for problem in problems if problem.severity == "error"]
    # A table raises with its errors alone, and keeps the warnings where it has none. Text form, as NaN is no equal.
    assert list(map(repr, errors or problems)) == list(map(repr, problems_of_a_table(runs, need_runtime)))


@settings(max_examples=200, deadline=None)
@given(runs=st.lists(RUNS, min_size=1, max_size=4))
def test_checked_runs_hold_what_a_table_of_them_holds(runs: list[Run]) -> None:
    if any(problem.severity == "error" for problem in check_runs(runs, need_runtime=False)):
        with pytest.raises(RunsTableError) as caught:
            checked(runs, need_runtime=False)
        assert "found" in str(caught.value)
        return
    assert [known(run) for run in checked(runs, need_runtime=False)] == [
        known(run) for run in table.from_runs(runs, need_runtime=False).runs()
    ]


def known(run: Run) -> dict[str, Any]:
    """A run's columns and counters that hold something; a table has a cell for every counter of any run."""
    facts = jsonl.columns_of(run.to_json(), 1)
    return {name: value for name, value in facts.items() if value is not None and name not in run.metadata}


def test_one_run_may_be_a_record_or_the_object_of_a_line() -> None:
    assert checked(SOUND) == checked(SOUND.to_json()) == checked([SOUND]) == checked([SOUND.to_json()]) == [SOUND]


def test_an_object_without_names_and_one_with_a_list_of_counters_are_described() -> None:
    problems = check_runs([{"input": "1", "runtime_s": 1.0, "counters": {"c": 1}}, {"app": "a", "counters": [1]}, 7])  # type: ignore[list-item]
    assert [(problem.row, problem.column) for problem in problems] == [
        (2, None),
        (3, None),
        (None, "app"),
        (None, "platform"),
    ]
    with pytest.raises(RunsTableError, match=r"mine: row 2: found a list under 'counters'.*3 more"):
        checked([{"input": "1", "runtime_s": 1.0, "counters": {"c": 1}}, {"app": "a", "counters": [1]}, 7], name="mine")  # type: ignore[list-item]


def test_numbers_of_numpy_and_missing_values_are_read_as_a_table_reads_them() -> None:
    run = Run("a", "1", "p", np.float32(0.5), threads=np.int64(3), counters={"x": np.int32(7), "y": math.nan})  # type: ignore[arg-type]
    assert checked(run) == [Run("a", "1", "p", 0.5, threads=3, counters={"x": 7.0, "y": None})]
    assert table.from_runs([run]).runs() == checked(run)


def test_small_sources_are_read_without_columns_and_large_ones_are_left_to_them(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    jsonl.append(path, [SOUND, SOUND])
    assert checking.few(path) == checking.few(str(path)) == [SOUND, SOUND]
    assert checking.few(SOUND) == checking.few([SOUND]) == [SOUND]
    assert checking.few([SOUND] * 1000) is None
    assert checking.few(tmp_path / "runs.csv") is None
    assert checking.few(table.from_runs([SOUND])) is None
    path.write_text("{torn\n")
    with pytest.raises(RunsTableError) as caught:
        checking.few(path)
    assert caught.value.facts["problems"] == table.check(path)


def test_checking_a_run_imports_nothing_beyond_the_standard_library() -> None:
    script = """
import sys
from crossperf.runs import checked, check_runs
(run,) = checked({"app": "a", "input": "1", "platform": "p", "runtime_s": 1, "counters": {"x": 2}})
assert run.counters == {"x": 2.0}
print(sorted({"polars", "numpy", "pandas", "click", "rich"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.replace("'", '"')) == []
