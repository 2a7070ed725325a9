from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crossperf.schedule.mapping import mapped, read_map
from crossperf.schedule.synthetic import workloads_of
from crossperf.schedule.times import ScheduleTableError
from tests.schedule.worlds import random_jobs, times

TRUTH = times(["a"], [1.0], [1.0], [1.0], apps=["lu", "lu", "cg"])  # lu n0, lu n1, cg n2


def a_map(folder: Path, text: str) -> Path:
    (folder / "map.csv").write_text(text)
    return folder / "map.csv"


def test_jobs_are_the_workloads_that_the_first_row_which_fits_says(tmp_path: Path) -> None:
    jobs = replace(random_jobs(1, 400, 8), queue=np.arange(400) % 2)
    rows = read_map(
        a_map(tmp_path, "executable,user,queue,app,input,priority\n1,,,cg,,\n2,3,,lu,n1,\n2,,,lu,n0,\n,,1,,,5\n")
    )
    known = mapped(jobs, rows)
    workload_j = workloads_of(known, TRUTH, seed=1)
    assert set(workload_j[jobs.executable == 1]) == {2}
    assert set(workload_j[(jobs.executable == 2) & (jobs.user == 3)]) == {1}
    assert set(workload_j[(jobs.executable == 2) & (jobs.user != 3)]) == {0}
    drawn, others = (workloads_of(each, TRUTH, seed=1)[jobs.executable > 2] for each in (known, jobs))
    np.testing.assert_array_equal(drawn, others)
    assert known.priority is not None
    np.testing.assert_array_equal(known.priority, 5.0 * (jobs.queue == 1))
    unknown = int((jobs.executable > 2).sum())
    assert f"no row says what {unknown:,} of 400 jobs are" in known.notes[-1]


def test_an_application_without_an_input_is_any_of_its_inputs(tmp_path: Path) -> None:
    jobs = mapped(random_jobs(1, 300, 8), read_map(a_map(tmp_path, "user,app\n,lu\n")))
    assert set(workloads_of(jobs, TRUTH)) == {0, 1}


def test_a_map_of_priorities_alone_leaves_the_workloads_to_chance(tmp_path: Path) -> None:
    jobs = random_jobs(1, 300, 8)
    with_priorities = mapped(jobs, read_map(a_map(tmp_path, "user,priority\n1,2\n")))
    assert with_priorities.kind is None
    np.testing.assert_array_equal(workloads_of(jobs, TRUTH), workloads_of(with_priorities, TRUTH))


def test_names_are_those_of_the_trace(tmp_path: Path) -> None:
    jobs = replace(random_jobs(1, 50, 8), labels={"executable": ("none", "bert", "gpt", "nmt", "ctr")})
    known = mapped(jobs, read_map(a_map(tmp_path, "executable,app\nbert,cg\n")))
    assert known.kind is not None
    np.testing.assert_array_equal(known.kind >= 0, jobs.executable == 1)


def test_an_application_that_the_truth_does_not_have_is_named(tmp_path: Path) -> None:
    jobs = random_jobs(1, 50, 8)
    with pytest.raises(ScheduleTableError, match=r"the application 'lus' \(did you mean 'lu'\?\)"):
        workloads_of(mapped(jobs, read_map(a_map(tmp_path, "user,app\n,lus\n"))), TRUTH)
    with pytest.raises(ScheduleTableError, match=r"'lu' with the input 'n7'.*expected one of times: n0, n1"):
        workloads_of(mapped(jobs, read_map(a_map(tmp_path, "user,app,input\n,lu,n7\n"))), TRUTH)


BAD = {
    "app,input\nlu,n0\n": "expected at least one of executable, user, queue",
    "user\n1\n": "and 'app' \\(with 'input'\\) or 'priority'",
    "user,app\n": "found no rows",
    "user,priority\n1,high\n": "row 2: found a priority of 'high'",
}


@pytest.mark.parametrize("text", BAD)
def test_a_map_that_cannot_be_used_raises_one_sentence(text: str, tmp_path: Path) -> None:
    with pytest.raises(ScheduleTableError, match=BAD[text]):
        read_map(a_map(tmp_path, text))
    with pytest.raises(ScheduleTableError, match="no such file"):
        read_map(tmp_path / "gone.csv")
