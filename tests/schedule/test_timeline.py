"""The timeline beside a calendar that is worked out second by second, and what must hold whatever happens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossperf.schedule import timeline
from crossperf.schedule.jobs import Jobs
from tests.schedule import naive
from tests.schedule.worlds import interpreted, jobs, one_cluster, random_jobs

RULES = {"fcfs": 0, "easy": 1, "shortest": 2, "conservative": 3}


@dataclass
class Case:
    """Jobs in whole seconds with guesses and priorities, outages, and failures as they will strike."""

    work: Jobs
    expected_s: np.ndarray
    priority: np.ndarray
    outages: list[naive.Outage]
    failures: list[tuple[int, float]]


def a_case(
    seed: int, size: int, count: int = 30, *, outages: int = 0, failures: int = 0, priorities: bool = False
) -> Case:
    rng = np.random.default_rng(seed)
    nodes, run_s = rng.integers(1, size + 1, count), rng.integers(1, 40, count).astype(float)
    limit_s = run_s * rng.integers(1, 4, count)
    span = max(1, int((nodes * run_s).sum() / size / rng.choice([0.7, 1.2, 3.0])))
    submit_s = np.sort(rng.integers(0, span, count)).astype(float)
    work = Jobs(submit_s, nodes, run_s, limit_s, np.full(count, -1), np.full(count, -1))
    windows = []
    for _ in range(outages):
        begin = int(rng.integers(1, span))
        windows.append(naive.Outage(begin, begin + int(rng.integers(1, 60)), int(rng.integers(1, size + 1))))
    seconds = np.sort(rng.choice(np.arange(1, 4 * span + 10), failures, replace=False)) if failures else []
    strikes = [(int(second), float(rng.random())) for second in seconds]
    priority = rng.integers(0, 3, count).astype(float) if priorities else np.zeros(count)
    return Case(work, np.round(run_s * rng.uniform(0.5, 1.5, count)), priority, windows, strikes)


def by_calendar(case: Case, size: int, rule: str, ageing_s: float, repair_s: int) -> list[naive.Job]:
    work = case.work
    columns = (work.submit_s, work.nodes, work.run_s, work.requested_s, case.expected_s, case.priority)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    made = [naive.Job(s, n, r, q, expected_s=e, priority=p) for s, n, r, q, e, p in rows]
    naive.Calendar(size, rule, ageing_s=ageing_s, repair_s=repair_s).simulate(made, case.outages, case.failures)
    return made


def state_of(case: Case, size: int, repair_s: float) -> timeline.Timeline:
    windows = [timeline.Outage(0, w.start_s, w.end_s, w.nodes) for w in case.outages]
    count = len(case.failures)
    state = timeline.empty([size], case.work.nodes, windows, mtbf_s=1.0 if count else None, repair_s=repair_s)
    if count:  # the failures of the case, and none after the last
        seconds = [float(second) for second, _ in case.failures]
        state.fails_at_c[0] = seconds[0]
        state.gap_cf[0, :count] = [*np.diff(seconds), np.inf]
        state.strikes_cf[0, :count] = [share for _, share in case.failures]
    return state


def by_timeline(
    case: Case, size: int, rule: str, ageing_s: float = 0.0, repair_s: float = 0.0, module: Any = timeline
) -> timeline.Timeline:
    state, work = state_of(case, size, repair_s), case.work
    state.limit_j[:], state.run_j[:], state.expected_j[:] = work.requested_s, work.run_s, case.expected_s
    state.key_j[:] = work.submit_s - ageing_s * case.priority
    for job, now in enumerate(work.submit_s.tolist()):
        module.advance(state, now, RULES[rule])
        module.submit(state, 0, job, now, RULES[rule])
    module.advance(state, np.inf, RULES[rule])
    return state


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(12))
def test_starts_are_those_of_the_calendar(seed: int, rule: str) -> None:
    size = 3 + seed % 6
    case = a_case(seed, size, outages=seed % 3, priorities=seed % 2 == 0)
    expected = [job.start_s for job in by_calendar(case, size, rule, 15.0, 0)]
    assert by_timeline(case, size, rule, 15.0).start_j.tolist() == expected


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(6))
def test_jobs_that_failures_strike_start_again_as_in_the_calendar(seed: int, rule: str) -> None:
    size = 4 + seed % 4
    case = a_case(seed, size, 20, failures=12, outages=seed % 2)
    expected = by_calendar(case, size, rule, 0.0, 25)
    state = by_timeline(case, size, rule, 0.0, 25.0)
    assert state.start_j.tolist() == [job.start_s for job in expected]
    assert state.hits_j.tolist() == [job.hits for job in expected]
    assert state.lost_j.tolist() == [job.lost_node_s for job in expected]


def test_the_cases_strike_jobs_and_make_them_wait_for_outages() -> None:
    struck = [
        by_timeline(a_case(seed, 4 + seed % 4, 20, failures=12), 4 + seed % 4, "easy", 0, 25) for seed in range(6)
    ]
    assert sum(int(state.hits_j.sum()) for state in struck) > 10
    for rule in RULES:
        with_outages, without = (a_case(5, 8, outages=count) for count in (2, 0))
        assert (by_timeline(with_outages, 8, rule).start_j != by_timeline(without, 8, rule).start_j).any()


@pytest.mark.parametrize("rule", ["fcfs", "easy", "shortest"])
@pytest.mark.parametrize("seed", range(10))
def test_without_its_own_options_it_starts_every_job_when_the_fast_engine_does(seed: int, rule: str) -> None:
    size = 5 + seed
    work = random_jobs(seed, 150, size, load=(0.7, 1.0, 2.0)[seed % 3])
    case = Case(work, work.run_s, np.zeros(len(work)), [], [])
    fast = one_cluster(work, size, backfill=RULES[rule], places=256)
    assert by_timeline(case, size, rule).start_j.tolist() == fast.tolist()


def test_conservative_backfilling_by_hand() -> None:
    # Four nodes. The first takes three until 10. The second wants all: promised 10. The third (one node, 20 s) would
    # delay it and is promised 15. The fourth (two nodes, 5 s) fits beside the third: promised 15. The fifth (one node,
    # 3 s) ends before the second starts, and goes at once.
    work = jobs((0, 3, 10, 10), (0, 4, 5, 5), (0, 1, 20, 20), (0, 2, 5, 5), (0, 1, 3, 3))
    case = Case(work, work.run_s, np.zeros(5), [], [])
    assert by_timeline(case, 4, "conservative").start_j.tolist() == [0, 10, 15, 15, 0]


def test_conservative_backfilling_keeps_the_second_in_the_queue_from_being_put_off_as_easy_does() -> None:
    # Ten nodes, six of them taken for 10 s. The first in the queue wants five: promised 10, and five are spare then.
    # The second wants all ten, so it must wait for the first. Under EASY the last takes four spare nodes for 50 s.
    work = jobs((0, 6, 10, 10), (0, 5, 10, 10), (0, 10, 10, 10), (0, 4, 50, 50))
    case = Case(work, work.run_s, np.zeros(4), [], [])
    assert by_timeline(case, 10, "easy").start_j.tolist() == [0, 10, 50, 0]
    assert by_timeline(case, 10, "conservative").start_j.tolist() == [0, 10, 20, 30]


def test_no_job_runs_into_maintenance_that_was_known() -> None:
    work = jobs((0, 2, 10, 10), (0, 2, 10, 30), (5, 1, 4, 4))
    case = Case(work, work.run_s, np.zeros(3), [naive.Outage(20, 50, 4)], [])
    # The second would end at 10, but its limit says 30, so it waits until the maintenance is over.
    assert by_timeline(case, 4, "easy").start_j.tolist() == [0, 50, 5]


def test_a_job_of_higher_priority_goes_first_until_the_others_have_waited_long_enough() -> None:
    work = jobs((0, 4, 100, 100), (1, 4, 10, 10), (50, 4, 10, 10))
    urgent = np.array([0.0, 0.0, 1.0])
    case = Case(work, work.run_s, urgent, [], [])
    assert by_timeline(case, 4, "easy", ageing_s=60.0).start_j.tolist() == [0, 110, 100]  # 49 s later, worth 60
    assert by_timeline(case, 4, "easy", ageing_s=40.0).start_j.tolist() == [0, 100, 110]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    size=st.integers(1, 24),
    rule=st.sampled_from(sorted(RULES)),
    outages=st.integers(0, 3),
    failures=st.integers(0, 30),
    priorities=st.booleans(),
)
def test_nodes_are_never_used_twice_nor_in_an_outage_and_every_job_ends(
    seed: int, size: int, rule: str, outages: int, failures: int, priorities: bool
) -> None:
    case = a_case(seed, size, 60, outages=outages, failures=failures, priorities=priorities)
    state, work = by_timeline(case, size, rule, 30.0, 20.0), case.work
    start_s, end_s = state.start_j, state.start_j + state.run_j
    assert (start_s >= work.submit_s).all()
    assert (state.run_j == work.run_s)[state.given_up_j == 0].all()
    for now in start_s:
        busy = work.nodes[(start_s <= now) & (now < end_s)].sum()
        down = sum(w.nodes for w in case.outages if w.start_s <= now < w.end_s)
        # Two outages may overlap and say more than there is.
        assert busy + down <= size or down > size
    for window in case.outages:
        known = (start_s <= window.start_s) & (window.start_s < start_s + work.requested_s) & (state.hits_j == 0)
        assert work.nodes[known].sum() + window.nodes <= size or failures or outages > 1


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(2, 24), outages=st.integers(0, 2))
def test_conservative_promises_are_kept_and_never_put_off(seed: int, size: int, outages: int) -> None:
    case = a_case(seed, size, 60, outages=outages)
    state, work = state_of(case, size, 0.0), case.work
    state.limit_j[:], state.run_j[:], state.expected_j[:] = work.requested_s, work.run_s, case.expected_s
    state.key_j[:] = work.submit_s
    promised = np.full(len(work), np.inf)
    for job, now in enumerate(work.submit_s.tolist()):
        timeline.advance(state, now, timeline.CONSERVATIVE)
        timeline.submit(state, 0, job, now, timeline.CONSERVATIVE)
        assert (state.promise_j[: job + 1] <= promised[: job + 1]).all()
        promised[: job + 1] = state.promise_j[: job + 1]
        assert np.isfinite(promised[: job + 1]).all()
    timeline.advance(state, np.inf, timeline.CONSERVATIVE)
    assert (state.start_j <= promised).all()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(2, 24), ageing_s=st.floats(1.0, 300.0))
def test_without_backfilling_jobs_start_in_order_of_arrival_and_priority(seed: int, size: int, ageing_s: float) -> None:
    case = a_case(seed, size, 60, priorities=True)
    state = by_timeline(case, size, "fcfs", ageing_s)
    key, start_s, submit_s = case.work.submit_s - ageing_s * case.priority, state.start_j, case.work.submit_s
    for job in range(len(key)):
        waiting = (submit_s < start_s[job]) & (start_s > start_s[job])  # those that stood in the queue and stayed
        assert (key[waiting] >= key[job]).all()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(2, 24), rule=st.sampled_from(["easy", "shortest"]))
def test_the_first_in_the_queue_is_never_put_off_by_those_that_pass_it(seed: int, size: int, rule: str) -> None:
    case = a_case(seed, size, 60)
    state, work = state_of(case, size, 0.0), case.work
    state.limit_j[:], state.run_j[:], state.expected_j[:] = work.requested_s, work.run_s, case.expected_s
    state.key_j[:] = work.submit_s
    promised: dict[int, float] = {}
    for job, now in enumerate(work.submit_s.tolist()):
        timeline.advance(state, now, RULES[rule])
        timeline.submit(state, 0, job, now, RULES[rule])
        if state.queued_c[0]:
            first = int(state.queue_cq[0, 0])
            promised[first] = min(promised.get(first, np.inf), float(state.promise_j[first]))
    timeline.advance(state, np.inf, RULES[rule])
    assert all(state.start_j[first] <= then for first, then in promised.items())


def test_a_job_that_failures_strike_again_and_again_is_given_up_at_last() -> None:
    work = jobs((0, 1, 100, 100))
    case = Case(work, work.run_s, np.zeros(1), [], [(10 * (i + 1), 0.0) for i in range(20)])
    state = by_timeline(case, 1, "easy", 0.0, 5.0)
    assert (state.hits_j[0], state.given_up_j[0]) == (timeline.MOST_HITS, 1)
    assert (state.start_j[0], state.run_j[0]) == (95, 5)  # repaired at 95, struck at 100
    assert state.lost_j[0] == 10 + 8 * 5


def test_failures_come_at_random_once_in_the_mean_time_for_each_node() -> None:
    work = jobs(*((1000.0 * i, 1, 900, 900) for i in range(400)))
    state = timeline.empty([10], work.nodes, mtbf_s=50_000.0, repair_s=100.0, rng=np.random.default_rng(3))
    state.limit_j[:] = state.run_j[:] = state.expected_j[:] = 900.0
    for job, now in enumerate(work.submit_s.tolist()):
        timeline.advance(state, now, 1)
        timeline.submit(state, 0, job, now, 1)
    timeline.advance(state, np.inf, 1)
    assert state.failed_c[0] == pytest.approx(400_000 / 5_000, rel=0.3)
    # A tenth of the nodes is in use for nine tenths of the time.
    assert state.hits_j.sum() == pytest.approx(state.failed_c[0] * 0.09, abs=8)


def waits(state: timeline.Timeline, nodes: int, now: float, limit_s: float, rule: int = 1) -> float:
    wait_m = np.empty(1)
    timeline.predict_waits(state, np.array([0]), np.array([limit_s]), np.array([nodes]), now, rule, wait_m)
    return float(wait_m[0])


def test_a_predicted_wait_sees_the_queue_and_the_maintenance() -> None:
    state = timeline.empty([4], np.array([4, 2]), [timeline.Outage(0, 100.0, 200.0, 4)])
    state.run_j[:] = state.limit_j[:] = state.expected_j[:] = [10.0, 6.0]
    timeline.submit(state, 0, 0, 0.0, 1)
    assert waits(state, 1, 4.0, 5.0) == 6.0
    timeline.submit(state, 0, 1, 4.0, 1)
    assert waits(state, 4, 4.0, 5.0) == 12.0
    assert waits(state, 2, 4.0, 5.0) == 6.0  # beside the second
    assert waits(state, 2, 4.0, 95.0) == 196.0


@pytest.mark.parametrize("rule", RULES)
def test_compiled_or_not_the_answers_are_the_same(rule: str) -> None:
    if not hasattr(timeline.submit, "py_func"):
        pytest.skip("numba is not installed, so there is one road only")
    plain = interpreted(timeline)
    assert not hasattr(plain.submit, "py_func")
    case = a_case(3, 6, 30, outages=2, priorities=True, failures=8)
    compiled, slow = (by_timeline(case, 6, rule, 15.0, 20.0, module) for module in (timeline, plain))
    for mine, other in zip(compiled, slow, strict=True):
        np.testing.assert_array_equal(mine, other)
