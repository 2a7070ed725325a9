"""Jobs that follow others: beside a slow simulation that looks at every second, and what must hold for all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossperf.schedule.jobs import Jobs, TraceError
from crossperf.schedule.machines import Machines
from crossperf.schedule.rules import Rules
from crossperf.schedule.simulate import simulate
from tests.schedule import naive
from tests.schedule.worlds import jobs, times

ONE, TRUTH = Machines.of({"m": 6}), times(["m"], [1.0])
RULES = {"none": "fcfs", "easy": "easy", "shortest": "shortest", "conservative": "conservative"}


def following(seed: int, count: int = 30, size: int = 6) -> Jobs:
    """Jobs of which about half follow an earlier one, some after a time of thought."""
    rng = np.random.default_rng(seed)
    run_s = rng.integers(1, 40, count).astype(float)
    submit_s, nodes = np.sort(rng.integers(0, 300, count)), rng.integers(1, size + 1, count)
    work = jobs(*((s, n, r, 2 * r) for s, n, r in zip(submit_s, nodes, run_s, strict=True)))
    follows = np.array([int(rng.integers(j)) if j and rng.random() < 0.5 else -1 for j in range(count)])
    think_s = np.where(rng.random(count) < 0.5, rng.integers(0, 30, count).astype(float), np.nan)
    return replace(work, follows=follows, think_s=think_s)


def second_by_second(work: Jobs, size: int, rule: str) -> tuple[list[float], list[float]]:
    """Return when each job arrives and starts, with a calendar that knows of ends only when they are there."""
    calendar = naive.Calendar(size, rule)
    rows = zip(work.submit_s.tolist(), work.nodes.tolist(), work.run_s.tolist(), work.requested_s.tolist(), strict=True)
    made = [naive.Job(s, n, r, q, expected_s=r) for s, n, r, q in rows]
    assert work.follows is not None
    assert work.think_s is not None
    follows, think_s = work.follows.tolist(), work.think_s.tolist()
    due: dict[int, float] = {j: job.submit_s for j, job in enumerate(made) if follows[j] < 0}
    arrived: dict[int, float] = {}
    now = 0
    while len(arrived) < len(made) or calendar.queue or calendar.running:
        ended = [job for job in calendar.running if naive.end(job) == now]
        calendar.running = [job for job in calendar.running if job not in ended]
        if ended:
            calendar.look(now)
        for j in range(len(made)):
            if j not in due and made[follows[j]] in ended:
                due[j] = max(now, made[j].submit_s) if np.isnan(think_s[j]) else now + think_s[j]
        while waiting := [j for j in sorted(due) if j not in arrived and due[j] == now]:
            arrived[waiting[0]] = now
            made[waiting[0]].submit_s = now
            calendar.enqueue(made[waiting[0]])
            calendar.look(now)
        now += 1
    return [arrived[j] for j in range(len(made))], [float(job.start_s or 0.0) for job in made]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(6))
def test_arrivals_and_starts_are_those_worked_out_second_by_second(seed: int, rule: str) -> None:
    work = following(seed)
    outcome = simulate(work, ONE, TRUTH, TRUTH, "fastest", rules=Rules(backfill=rule))
    arrivals, starts = second_by_second(work, 6, RULES[rule])
    assert outcome.arrival_s.tolist() == arrivals
    assert outcome.start_s.tolist() == starts


def test_a_job_comes_after_the_end_of_another_and_its_users_thought() -> None:
    work = jobs((0, 6, 100, 100), (10, 6, 50, 50), (20, 1, 5, 5), (500, 1, 5, 5))
    work = replace(work, follows=np.array([-1, -1, 0, 0]), think_s=np.array([np.nan, np.nan, 30.0, np.nan]))
    outcome = simulate(work, ONE, TRUTH, TRUTH, "fastest")
    assert outcome.arrival_s.tolist() == [0, 10, 130, 500]  # 30 s after 100; and no earlier than in the trace
    assert outcome.start_s.tolist() == [0, 100, 150, 500]
    assert outcome.wait_s.tolist() == [0, 90, 20, 0]  # waiting counts from the arrival


def test_who_follows_a_job_that_can_go_nowhere_comes_at_its_own_time() -> None:
    work = replace(jobs((0, 99, 10, 10), (7, 1, 10, 10)), follows=np.array([-1, 0]), think_s=np.array([0.0, 5.0]))
    outcome = simulate(work, ONE, TRUTH, TRUTH, "fastest")
    assert outcome.placed.tolist() == [False, True]
    assert outcome.start_s[1] == 7


def test_a_job_cannot_follow_one_that_comes_later() -> None:
    with pytest.raises(TraceError, match="follows one which arrives later"):
        replace(jobs((0, 1, 1, 1), (1, 1, 1, 1)), follows=np.array([1, -1]))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), backfill=st.sampled_from(sorted(RULES)), failing=st.booleans())
def test_every_job_comes_once_and_none_before_the_one_that_it_follows_has_ended(
    seed: int, backfill: str, failing: bool
) -> None:
    work, machines = following(seed, 60), Machines.of({"m": 6, "n": 3})
    rules = Rules(backfill=backfill, node_mtbf_s=2000.0 if failing else None, repair_s=50.0)
    truth = times(["m", "n"], [1.0, 2.0])
    outcome = simulate(work, machines, truth, truth, "turnaround", rules=rules, seed=seed)
    assert outcome.placed.all()
    assert np.isfinite(outcome.start_s).all()
    assert (outcome.start_s >= outcome.arrival_s).all()
    assert work.follows is not None
    behind = work.follows >= 0
    assert (outcome.arrival_s[behind] >= outcome.end_s[work.follows[behind]]).all()
    np.testing.assert_array_equal(outcome.arrival_s[~behind], work.submit_s[~behind])
