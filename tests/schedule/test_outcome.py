from __future__ import annotations

import json

import numpy as np
import pytest

from crossperf.schedule.machines import Machines
from crossperf.schedule.outcome import Outcome
from crossperf.schedule.simulate import simulate
from tests.schedule.worlds import jobs, times

#: Four nodes and two; 2 an hour for one of the latter.
MACHINES = Machines.of({"big": 4, "small": 2}, {"small": 2.0})
TRUTH = times(["big", "small"], [1.0, 1.0])


@pytest.fixture
def outcome() -> Outcome:
    """The third waits for the first on `big`, the second has `small` for an hour, the fourth fits nowhere."""
    where = iter([0, 1, 0])
    work = jobs((0, 4, 100, 100), (0, 2, 3600, 3600), (50, 1, 2, 2), (60, 9, 1, 1))
    return simulate(work, MACHINES, TRUTH, TRUTH, lambda *_: next(where))


def test_metrics_are_those_worked_out_by_hand(outcome: Outcome) -> None:
    metrics = outcome.metrics()
    assert outcome.wait_s[:3].tolist() == [0, 0, 50]
    assert outcome.turnaround_s[:3].tolist() == [100, 3600, 52]
    assert outcome.bounded_slowdown[:3].tolist() == [1, 1, 5.2]  # 52 s for a run of 2 s, which counts as 10
    assert metrics.mean_turnaround_s == pytest.approx(3752 / 3)
    assert metrics.median_turnaround_s == 100
    assert metrics.p95_wait_s == pytest.approx(45)
    assert metrics.mean_bounded_slowdown == pytest.approx(7.2 / 3)
    assert metrics.mean_run_s == pytest.approx(3702 / 3)
    assert metrics.makespan_s == 3600
    assert metrics.cost == pytest.approx(4.0)  # two nodes for an hour
    assert outcome.utilisation.tolist() == [pytest.approx(402 / (4 * 3600)), 1.0]


def test_jobs_are_counted_and_none_is_lost(outcome: Outcome) -> None:
    counts = outcome.counts()
    assert (counts.jobs, counts.placed, counts.unplaceable) == (4, 3, 1)
    assert outcome.unplaceable() == {"larger than every cluster that can run it": 1}
    assert {name: use.jobs for name, use in outcome.clusters().items()} == {"big": 2, "small": 1}


def test_json_holds_the_metrics_and_what_became_of_every_job(outcome: Outcome) -> None:
    facts = json.loads(json.dumps(outcome.to_json(), allow_nan=False))
    assert facts["metrics"]["makespan_s"] == 3600
    fates = facts["jobs"]
    assert fates["platform"] == ["big", "small", "big", None]
    assert fates["start_s"] == [0, 0, 100, None]
    assert fates["why_not"] == [None, None, None, "larger than every cluster that can run it"]
    assert "jobs" not in outcome.to_json(with_jobs=False)


def test_an_outcome_prints_in_ten_lines_and_is_a_frame_of_its_jobs(outcome: Outcome) -> None:
    lines = repr(outcome).splitlines()
    assert lines[0] == "jobs on 2 clusters of 6 nodes"
    assert len(lines) <= 10
    assert "60.0 min" in lines[2]  # the makespan
    assert "100%, 1" in lines[4]  # `small` was in use all the time, by one job
    assert outcome._repr_html_().count("<table") == 2
    frame = outcome.to_frame()
    assert frame.shape[0] == 4
    assert list(frame["platform"][:3]) == ["big", "small", "big"]


def test_where_no_job_ran_there_are_no_metrics() -> None:
    nothing = simulate(jobs((0, 9, 1, 1)), MACHINES, TRUTH, TRUTH, "fastest")
    assert nothing.metrics().mean_wait_s is None
    assert nothing.makespan_s == 0.0
    assert np.all(nothing.utilisation == 0.0)
    json.dumps(nothing.to_json(), allow_nan=False)
