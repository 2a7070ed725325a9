"""Where workloads can run, in tables: read from every format, checked across rows, apart from what is missing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.limited import limited_runs

from crossperf import runs
from crossperf.errors import RunsTableError
from crossperf.records import Run
from crossperf.runs.rules import Problem


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet", "jsonl.gz", "csv.gz"])
def test_runnable_survives_every_format(ending: str, tmp_path: Path) -> None:
    table = runs.from_runs([replace(run, runnable=None) if run.app == "app5" else run for run in limited_runs()])
    path = tmp_path / f"runs.{ending}"
    table.write(path)
    again = runs.read(path)
    assert again.frame["runnable"].to_list() == table.frame["runnable"].to_list()
    assert {run.runnable for run in again.runs()} == {"cpu", "cpu gpu", None}
    assert again.fingerprint == table.fingerprint


def test_runnable_changes_the_fingerprint() -> None:
    table, other = limited_runs(), [replace(run, runnable=None) for run in limited_runs()]
    assert runs.from_runs(table).fingerprint != runs.from_runs(other).fingerprint


def _run(platform: str, runnable: str | None, kind: str | None = "cpu") -> Run:
    return Run("a", "1", platform, 1.0, platform_class=kind, runnable=runnable, counters={"instructions": 1.0})


def _both_roads(table: list[Run], tmp_path: Path) -> list[Problem]:
    """Return the problems of a few runs, which must be those of the same table as columns."""
    problems = runs.check_runs(table)
    path = tmp_path / "runs.jsonl"
    runs.append(path, table)
    assert list(map(str, runs.check(path))) == list(map(str, problems))
    return problems


def test_rows_of_a_workload_that_disagree_are_one_problem(tmp_path: Path) -> None:
    table = [_run("p", "cpu"), _run("q", "cpu gpu"), _run("r", None)]
    (problem,) = _both_roads(table, tmp_path)
    assert str(problem) == (
        "row 2, column 'runnable': found 'cpu' and 'cpu gpu' for (a, 1), expected the same in each of its rows. "
        "Correct it in one of them."
    )
    with pytest.raises(RunsTableError, match="expected the same in each of its rows"):
        runs.read_runs(table)


def test_the_order_of_names_does_not_matter(tmp_path: Path) -> None:
    assert not _both_roads([_run("p", "cpu gpu"), _run("q", "gpu cpu")], tmp_path)


def test_a_run_where_none_can_be_is_a_problem(tmp_path: Path) -> None:
    (problem,) = _both_roads([_run("p", "cpu"), _run("h200", "cpu", "gpu")], tmp_path)
    assert "found 'cpu' for (a, 1), which ran on h200" in str(problem)
    assert problem.severity == "error"


def test_a_name_that_the_table_does_not_know_is_a_warning(tmp_path: Path) -> None:
    (problem,) = _both_roads([_run("epyc", "cpu epcy"), _run("xeon", "cpu epcy")], tmp_path)
    assert "found 'epcy' (did you mean 'epyc'?), expected classes or platforms of the table" in str(problem)
    assert problem.severity == "warning"


@pytest.mark.parametrize("text", ["gpu cpu", "none", "", "cpu p"])
def test_a_table_of_one_platform_may_name_the_usual_classes_or_nothing(text: str, tmp_path: Path) -> None:
    assert not _both_roads([_run("p", text)], tmp_path)
