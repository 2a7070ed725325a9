from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossperf.schedule import engine
from tests.schedule import naive
from tests.schedule.worlds import interpreted, jobs, one_cluster, random_jobs

#: Five jobs on four nodes: submit, nodes, run, limit.
FIVE = jobs((0, 2, 10, 10), (1, 4, 5, 5), (2, 2, 4, 8), (3, 1, 3, 3), (4, 1, 2, 6))


RULES = {"easy": engine.EASY, "fcfs": engine.FCFS, "shortest": engine.SHORTEST}


def test_five_jobs_start_as_worked_out_by_hand() -> None:
    # The second needs all four nodes: not before 10, when the first ends. The third takes two until 10 at the latest,
    # so it may jump. The fourth finds no node until the third ends at 6, and then ends at 9. The fifth could last
    # from 6 to 12, past 10, and the second leaves no node over: it waits until that ends at 15.
    assert one_cluster(FIVE, 4).tolist() == [0, 10, 2, 6, 15]


def test_without_backfilling_the_same_five_keep_their_order() -> None:
    assert one_cluster(FIVE, 4, backfill=engine.FCFS).tolist() == [0, 10, 15, 15, 15]


def test_a_long_job_jumps_on_nodes_that_the_first_in_the_queue_leaves_over() -> None:
    # Four nodes, three taken until 10. The second wants two, so that one is over then: the third may have it for long,
    # the fourth would be one too many for as long, and starts when the second has gone.
    work = jobs((0, 3, 10, 10), (1, 2, 5, 5), (2, 1, 99, 99), (3, 1, 99, 99))
    assert one_cluster(work, 4).tolist() == [0, 10, 2, 10]


def test_a_job_that_ends_exactly_when_the_first_may_start_jumps_and_a_second_later_it_does_not() -> None:
    rest = ((0, 2, 10, 10), (1, 4, 5, 5))
    assert one_cluster(jobs(*rest, (2, 2, 8, 8)), 4).tolist() == [0, 10, 2]
    assert one_cluster(jobs(*rest, (2, 2, 8, 9)), 4).tolist() == [0, 10, 15]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(40))
def test_starts_are_those_of_a_naive_simulator(seed: int, rule: str) -> None:
    size = 3 + seed % 17
    work = random_jobs(seed, 60, size, load=(0.7, 1.0, 1.4)[seed % 3])
    rows = zip(work.submit_s, work.nodes, work.run_s, work.requested_s, strict=True)
    by_hand = [naive.Job(float(s), int(n), float(r), float(q), expected_s=float(r)) for s, n, r, q in rows]
    expected = naive.schedule(by_hand, size, rule)
    assert one_cluster(work, size, backfill=RULES[rule]).tolist() == expected


def test_the_random_cases_are_full_of_jumps() -> None:
    overtaken = [
        (np.diff(one_cluster(random_jobs(seed, 60, 3 + seed % 17), 3 + seed % 17)) < 0).sum() for seed in range(40)
    ]
    assert sum(overtaken) > 200


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 40), load=st.floats(0.3, 3.0))
def test_nodes_are_never_promised_twice_and_every_job_runs_once(seed: int, size: int, load: float) -> None:
    work = random_jobs(seed, 120, size, load)
    start_s = one_cluster(work, size)
    assert (start_s >= work.submit_s).all()
    for now in start_s:
        under_way = (start_s <= now) & (now < start_s + work.run_s)
        assert work.nodes[under_way].sum() <= size


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 40), load=st.floats(0.3, 3.0))
def test_without_backfilling_jobs_start_in_order_of_arrival(seed: int, size: int, load: float) -> None:
    start_s = one_cluster(random_jobs(seed, 120, size, load), size, backfill=engine.FCFS)
    assert (np.diff(start_s) >= 0).all()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(2, 40), load=st.floats(0.8, 3.0))
def test_the_first_in_the_queue_starts_no_later_than_was_promised(seed: int, size: int, load: float) -> None:
    work = random_jobs(seed, 120, size, load)
    state = engine.empty([size], work.nodes, 256)
    state.limit_j[:], state.run_j[:], state.expected_j[:] = work.requested_s, work.run_s, work.run_s
    promised: dict[int, float] = {}
    for job, now in enumerate(work.submit_s):
        engine.advance(state, now, engine.EASY)
        engine.submit(state, 0, job, now, engine.EASY)
        if state.queued_c[0]:
            first = int(state.queue_cq[0, state.head_c[0]])
            promised[first] = min(promised.get(first, np.inf), float(state.shadow_c[0]))
    engine.advance(state, np.inf, engine.EASY)
    assert all(state.start_j[first] <= then for first, then in promised.items())


def test_a_whole_queue_drains_and_leaves_the_clusters_empty() -> None:
    work = random_jobs(5, 400, 16, load=5.0)
    state = engine.empty([16], work.nodes, 512)
    state.limit_j[:], state.run_j[:], state.expected_j[:] = work.requested_s, work.run_s, work.run_s
    assert engine.replay(state, 0, work.submit_s, np.zeros(400, np.int64), engine.EASY) == 400
    engine.advance(state, np.inf, engine.EASY)
    assert (state.free_c[0], state.running_c[0], state.queued_c[0], state.work_c[0]) == (16, 0, 0, 0.0)
    assert np.isinf(state.shortest_ctk).all()


def test_clusters_do_not_disturb_each_other() -> None:
    work = random_jobs(8, 200, 8, load=2.0)
    state = engine.empty([8, 8], work.nodes)
    state.limit_j[:], state.run_j[:], state.expected_j[:] = work.requested_s, work.run_s, work.run_s
    cluster_j = np.arange(200) % 2
    engine.replay(state, 0, work.submit_s, cluster_j, engine.EASY)
    engine.advance(state, np.inf, engine.EASY)
    for c in (0, 1):
        half = cluster_j == c
        rows = zip(work.submit_s[half], work.nodes[half], work.run_s[half], work.requested_s[half], strict=True)
        alone = jobs(*((float(s), int(n), float(r), float(q)) for s, n, r, q in rows))
        assert state.start_j[half].tolist() == one_cluster(alone, 8).tolist()


def test_a_predicted_wait_is_that_until_the_work_before_it_is_done() -> None:
    state = engine.empty([4], np.array([4, 2, 1]))
    state.run_j[:] = state.limit_j[:] = state.expected_j[:] = [10.0, 6.0, 1.0]
    engine.submit(state, 0, 0, 0.0, engine.EASY)
    assert waits(state, nodes=1, now=4.0) == 6.0  # all four nodes come free at 10
    engine.submit(state, 0, 1, 4.0, engine.EASY)
    assert waits(state, nodes=1, now=4.0) == 6.0 + 2 * 6 / 4  # then the queue's 12 node-seconds, on four nodes


def test_a_job_that_could_start_or_jump_now_is_predicted_to_wait_not_at_all() -> None:
    state = engine.empty([4], np.array([3, 4]))
    state.run_j[:] = state.limit_j[:] = state.expected_j[:] = [10.0, 5.0]
    engine.submit(state, 0, 0, 0.0, engine.EASY)
    assert waits(state, nodes=1, now=0.0) == 0.0
    engine.submit(state, 0, 1, 0.0, engine.EASY)
    assert waits(state, nodes=1, now=0.0, limit_s=10.0) == 0.0
    assert waits(state, nodes=1, now=0.0, limit_s=11.0) > 0.0
    assert waits(state, nodes=1, now=0.0, limit_s=10.0, backfill=engine.FCFS) > 0.0


def test_predicted_waits_learn_from_what_jobs_of_the_same_kind_have_waited() -> None:
    work = random_jobs(2, 4000, 16, load=1.0)
    state = engine.empty([16], work.nodes, 4096)
    state.limit_j[:], state.run_j[:], state.expected_j[:] = work.requested_s, work.run_s, work.run_s
    foreseen = []
    for job, now in enumerate(work.submit_s):
        engine.advance(state, now, engine.EASY)
        foreseen.append(waits(state, int(work.nodes[job]), now, work.requested_s[job]))
        engine.submit(state, 0, job, now, engine.EASY)
    engine.advance(state, np.inf, engine.EASY)
    late = slice(1000, None)
    waited = (state.start_j - work.submit_s)[late]
    corrected, uncorrected = np.array(foreseen)[late], state.foreseen_j[late]
    assert np.abs(corrected - waited).mean() < 0.8 * np.abs(uncorrected - waited).mean()
    assert np.corrcoef(corrected, waited)[0, 1] > np.corrcoef(uncorrected, waited)[0, 1] + 0.05


def waits(state: engine.State, nodes: int, now: float, limit_s: float = 1e9, backfill: int = engine.EASY) -> float:
    wait_m = np.empty(1)
    engine.predict_waits(state, np.array([0]), np.array([limit_s]), np.array([nodes]), now, backfill, wait_m)
    return float(wait_m[0])


def test_compiled_or_not_the_answers_are_the_same() -> None:
    if not hasattr(engine.submit, "py_func"):
        pytest.skip("numba is not installed, so there is one road only")
    plain = interpreted(engine)
    assert not hasattr(plain.submit, "py_func")
    work = random_jobs(4, 300, 12, load=1.5)
    answers = []
    for module in (engine, plain):
        state = module.empty([12, 5], work.nodes, 512)
        state.limit_j[:], state.run_j[:], state.expected_j[:] = work.requested_s, work.run_s, 0.9 * work.run_s
        wait_jm = np.empty((300, 2))
        for job, now in enumerate(work.submit_s):
            module.advance(state, now, engine.EASY)
            module.predict_waits(
                state, np.array([0, 1]), np.full(2, work.requested_s[job]), np.array([2, 2]), now, 1, wait_jm[job]
            )
            module.submit(state, 0 if work.nodes[job] > 5 else job % 2, job, now, engine.EASY)
        module.advance(state, np.inf, engine.EASY)
        answers.append((state.start_j, wait_jm))
    np.testing.assert_array_equal(answers[0][0], answers[1][0])
    np.testing.assert_array_equal(answers[0][1], answers[1][1])
