from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossperf.errors import SettingsError
from crossperf.report.figures.jobs import nodes_of
from crossperf.schedule.jobs import Jobs, TraceError
from crossperf.schedule.machines import Machines
from crossperf.schedule.policies import POLICIES, Ask, Options
from crossperf.schedule.predictors import app_average
from crossperf.schedule.readers import read_machines, read_times
from crossperf.schedule.rules import Maintenance, Rules
from crossperf.schedule.simulate import prepare, simulate
from crossperf.schedule.synthetic import draw
from crossperf.schedule.times import RelativeTimes, ScheduleTableError
from tests.schedule.worlds import TWO, jobs, need_dr_evt, one_cluster, random_jobs, times

NAN = float("nan")
#: Half the time on `fast`; as predicted, the other way round.
TRUTH = times(["slow", "fast"], [1.0, 0.5])
WRONG = times(["slow", "fast"], [0.5, 1.0])


def test_the_prediction_places_a_job_and_the_truth_runs_it() -> None:
    job = jobs((0, 1, 100, 400))
    right = simulate(job, TWO, TRUTH, TRUTH, "fastest")
    assert (right.modes[right.mode[0]], right.run_s[0], right.limit_s[0]) == ("fast", 50, 200)
    wrong = simulate(job, TWO, TRUTH, WRONG, "fastest")
    assert (wrong.modes[wrong.mode[0]], wrong.run_s[0], wrong.expected_run_s[0]) == ("slow", 100, 50)
    assert (wrong.limit_s[0], wrong.doublings[0]) == (200, 0)


def test_a_limit_that_is_too_short_is_doubled_until_it_fits_and_counted() -> None:
    bold = times(["slow", "fast"], [0.1, 1.0])
    outcome = simulate(jobs((0, 1, 100, 150)), TWO, TRUTH, bold, "fastest")
    assert (outcome.limit_s[0], outcome.doublings[0], outcome.run_s[0]) == (120, 3, 100)  # 15, 30, 60, 120
    assert outcome.counts().limit_violations == 1
    assert outcome.counts().limit_doublings == 3


def test_a_strict_limit_ends_the_job() -> None:
    bold = times(["slow", "fast"], [0.1, 1.0])
    outcome = simulate(jobs((0, 1, 100, 150)), TWO, TRUTH, bold, "fastest", rules=Rules(limits="strict"))
    assert (outcome.limit_s[0], outcome.run_s[0], outcome.killed[0]) == (15, 15, True)
    assert outcome.counts().limit_violations == outcome.counts().killed == 1


def test_a_placement_where_a_job_cannot_end_within_the_wall_time_limit_is_not_offered() -> None:
    both, single, none = ((0, 1, run, run) for run in (50, 80, 200))
    outcome = simulate(jobs(both, single, none), TWO, TRUTH, WRONG, "fastest", rules=Rules(wall_limit_s=60.0))
    assert outcome.cluster.tolist() == [0, 1, -1]
    assert outcome.unplaceable() == {"longer than the wall-time limit": 1}
    assert (outcome.limit_s[:2] <= 60.0).all()


def test_a_doubled_limit_stops_at_the_wall_time_limit() -> None:
    bold = times(["slow", "fast"], [0.4, 9.0])
    outcome = simulate(jobs((0, 1, 50, 100)), TWO, TRUTH, bold, "fastest", rules=Rules(wall_limit_s=60.0))
    assert (outcome.limit_s[0], outcome.doublings[0]) == (60, 1)


def test_what_cannot_run_in_truth_is_not_offered_even_where_it_is_predicted() -> None:
    truth, predicted = times(["slow", "fast"], [1.0, NAN]), times(["slow", "fast"], [1.0, 0.01])
    assert simulate(jobs((0, 1, 9, 9)), TWO, truth, predicted, "fastest").cluster[0] == 0
    assert simulate(jobs((0, 1, 9, 9)), TWO, predicted, truth, "fastest").cluster[0] == 0  # nor what has no prediction


def test_jobs_that_can_go_nowhere_are_counted_by_reason_and_the_others_run() -> None:
    truth = times(["slow", "fast"], [NAN, 1.0], [1.0, 1.0], apps=["a", "c"])
    work = random_jobs(3, 400, 10, load=0.8)
    outcome = simulate(work, TWO, truth, truth, "turnaround")
    reasons = outcome.unplaceable()
    assert set(reasons) == {"larger than every cluster that can run it"}
    assert sum(reasons.values()) + outcome.placed.sum() == len(work)
    assert np.isfinite(outcome.start_s[outcome.placed]).all()
    assert np.isnan(outcome.start_s[~outcome.placed]).all()


def test_a_workload_that_no_machine_can_run_is_one_clear_error() -> None:
    truth = times(["slow", "fast"], [NAN, 1.0], [NAN, NAN], apps=["a", "b"])
    with pytest.raises(ScheduleTableError, match=r"none of the machines can run \(b n1\)") as caught:
        simulate(jobs((0, 1, 9, 9)), TWO, truth, truth, "turnaround")
    assert caught.value.facts["workloads"] == [("b", "n1")]


def test_modes_of_a_cluster_share_its_nodes() -> None:
    machines, truth = Machines.of({"m": 4}), times(["m-cpu", "m-gpu"], [1.0, 0.5])
    other = iter([0, 1])
    outcome = simulate(jobs((0, 3, 10, 10), (1, 3, 10, 10)), machines, truth, truth, lambda *_: next(other))
    assert outcome.mode.tolist() == [0, 1]
    assert outcome.start_s.tolist() == [0, 10]


def test_where_there_is_one_place_to_go_the_policy_makes_no_difference() -> None:
    work = random_jobs(2, 300, 9, load=1.5)
    lone, truth = Machines.of({"m": 8}), times(["m", "elsewhere"], [1.5, 0.1])
    outcome = simulate(work, lone, truth, truth, "turnaround")
    fits = work.nodes <= 8
    assert (outcome.placed == fits).all()
    rows = zip(work.submit_s[fits], work.nodes[fits], 1.5 * work.run_s[fits], 1.5 * work.requested_s[fits], strict=True)
    alone = jobs(*((float(s), int(n), float(r), float(q)) for s, n, r, q in rows))
    assert outcome.start_s[fits].tolist() == one_cluster(alone, 8).tolist()


def test_a_policy_sees_predictions_queues_and_the_users_wish_but_not_the_truth() -> None:
    seen: list[tuple[Ask, dict[str, list[float]]]] = []

    def watch(ask: Ask, options: Options, rng: np.random.Generator) -> int:
        names = ("run_s", "low_s", "high_s", "nodes", "free_nodes", "queued", "price_per_node_hour")
        facts = {name: getattr(options, name).tolist() for name in names}
        seen.append((ask, facts | {"wait_s": options.wait_s().tolist()}))
        assert (tuple(options.platforms), tuple(options.clusters)) == (("slow", "fast"), ("slow", "fast"))
        return 1

    predicted = RelativeTimes.of(
        TRUTH.workloads, TRUTH.modes, np.array([[2.0, 3.0]]), np.array([[1.0, 2.5]]), np.array([[4.0, 3.5]])
    )
    work = jobs((0, 4, 100, 100), (1, 4, 100, 100), (2, 1, 100, 100))
    simulate(work, TWO, TRUTH, predicted, watch, rules=Rules(deadline=3.0))
    ask, facts = seen[2]
    assert (ask.nodes, ask.requested_s, ask.app, ask.input, ask.deadline_s) == (1, 100, "app0", "n0", 300)
    assert ask.pinned in ("slow", "fast")
    assert facts["run_s"] == [200, 300]
    assert (facts["low_s"], facts["high_s"]) == ([100, 250], [400, 350])
    assert (facts["nodes"], facts["free_nodes"], facts["queued"]) == ([8, 4], [8, 0], [0, 1])
    assert facts["price_per_node_hour"] == [1.0, 3.0]
    # Predicted to run for 300 s; the first has 298 to go, then the second takes all four nodes for 300.
    assert facts["wait_s"] == [0.0, 298 + 300]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), policy=st.sampled_from(sorted(POLICIES)), load=st.floats(0.3, 4.0))
def test_whatever_the_policy_no_node_is_used_twice_and_no_job_is_lost(seed: int, policy: str, load: float) -> None:
    rng = np.random.default_rng(seed)
    machines = Machines.of({"a": 12, "b": 5, "c": 3})
    cells = rng.lognormal(0, 1, (6, 4))
    cells[rng.random((6, 4)) < 0.2] = NAN
    cells[np.isnan(cells).all(axis=1), 0] = 1.0  # what runs nowhere is refused
    truth = times(["a", "b-cpu", "b-gpu", "c"], *cells)
    predicted = times(["a", "b-cpu", "b-gpu", "c"], *(cells * rng.lognormal(0, 1, (6, 4))))
    work = random_jobs(seed, 150, 14, load)
    outcome = simulate(work, machines, truth, predicted, policy, seed=seed)
    assert outcome.placed.sum() + sum(outcome.unplaceable().values()) == len(work)
    assert (outcome.start_s[outcome.placed] >= work.submit_s[outcome.placed]).all()
    assert (outcome.run_s[outcome.placed] <= outcome.limit_s[outcome.placed]).all()
    for c in range(3):
        here = np.flatnonzero(outcome.cluster == c)
        # Nodes are handed out only where they are free: a job that got fewer would share one with another.
        assert [len(nodes) for nodes in nodes_of(outcome, c)] == work.nodes[here].tolist()


def test_the_same_seed_gives_the_same_outcome_and_draws_differ_by_seed() -> None:
    truth = times(["slow", "fast"], [1.0, 0.5], [1.0, 2.0], apps=["a", "b"])
    work = random_jobs(1, 300, 4)
    first, again, other = (simulate(work, TWO, truth, truth, "random", seed=seed) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first.start_s, again.start_s)
    assert (first.workload != other.workload).any()


def test_a_deadline_that_is_missed_is_counted() -> None:
    outcome = simulate(
        jobs((0, 8, 100, 100), (0, 8, 100, 100)), TWO, TRUTH, TRUTH, "fastest", rules=Rules(deadline=1.5)
    )
    assert outcome.deadline_s.tolist() == [150, 150]
    assert outcome.counts().deadlines_missed == 1


def test_settings_that_make_no_sense_raise_one_sentence() -> None:
    with pytest.raises(SettingsError, match="limits: found 'soft', expected double or strict"):
        Rules(limits="soft")
    with pytest.raises(
        SettingsError, match=r"backfill: found 'shortes' \(did you mean 'shortest'\?\), expected none, easy"
    ):
        Rules(backfill="shortes")
    for name in ("ageing_s", "node_mtbf_s", "repair_s"):
        with pytest.raises(SettingsError, match=f"{name}: found 0, expected seconds above 0"):
            Rules(**{name: 0.0})
    with pytest.raises(SettingsError, match="wall_limit_s: found 0, expected seconds above 0"):
        Rules(wall_limit_s=0.0)
    with pytest.raises(SettingsError, match="deadline: found -1, expected a factor above 0"):
        Rules(deadline=-1.0)
    with pytest.raises(SettingsError, match="answered 7, expected an index below 2"):
        simulate(jobs((0, 1, 1, 1)), TWO, TRUTH, TRUTH, lambda *_: 7)
    with pytest.raises(ScheduleTableError, match="align them first"):
        simulate(jobs((0, 1, 1, 1)), TWO, TRUTH, times(["slow"], [1.0]), "fastest")


@pytest.mark.slow
def test_on_the_authors_tables_considerate_is_ahead_of_turnaround_and_knowledge_pays() -> None:
    folder = need_dr_evt()
    machines, truth = read_machines(folder / "machines.csv"), read_times(folder / "ground_truth.csv")
    logs = []
    for seed in (50, 51, 52, 53):
        work = draw(10_000, machines, truth, utilisation=1.1, seed=seed)
        means = [
            simulate(work, machines, truth, table, policy, rules=Rules(wall_limit_s=43_200.0), seed=seed).metrics()
            for table in (truth, app_average(truth))
            for policy in ("turnaround", "considerate", "random")
        ]
        logs.append(np.log([metrics.mean_turnaround_s or 0.0 for metrics in means]))
    ideal, ours_ideal, random, average, ours_average, _ = np.mean(logs, axis=0)
    assert ours_ideal < ideal
    assert ours_average < average
    assert ideal < average < random


@pytest.mark.parametrize("cell", [5e-324, 0.0, -1.0, math.inf, 1e300])
def test_a_truth_that_no_machine_can_have_is_refused_instead_of_simulated(cell: float) -> None:
    """A limit scaled by 5e-324 is 0 s, which no number of doublings makes longer."""
    with pytest.raises(
        ScheduleTableError, match=r"found a relative time of .* for 'x n' in 'a', expected a number from"
    ):
        RelativeTimes.of([("x", "n")], ["a"], np.array([[cell]]))


@pytest.mark.parametrize("seconds", [0.0, -1.0, 1e-300, math.nan, math.inf])
def test_jobs_run_for_some_time_and_ask_for_some_time(seconds: float) -> None:
    one = np.ones(1)
    for run_s, requested_s in ((seconds, 1.0), (1.0, seconds)):
        with pytest.raises(TraceError, match=r"expected 1e-09 to 1e\+12"):
            Jobs(one, one.astype(int), one * run_s, one * requested_s, one.astype(int), one.astype(int))


def test_a_job_takes_other_numbers_of_nodes_on_other_platforms() -> None:
    """Eight nodes without GPUs, or one with: a column of the truth."""
    machines = Machines.of({"cpu": 16, "gpu": 2}, {"cpu": 1.0, "gpu": 4.0})
    truth = RelativeTimes.of([("x", "n")], ["cpu", "gpu"], np.array([[1.0, 0.5]]), nodes_wm=np.array([[1.0, 0.125]]))
    where = iter([0, 1, 1, 1])
    work = jobs((0, 8, 100, 100), (0, 8, 100, 100), (0, 9, 100, 100), (0, 1, 100, 100))
    outcome = simulate(work, machines, truth, truth, lambda *_: next(where))
    assert outcome.nodes.tolist() == [8, 1, 2, 1]
    assert outcome.start_s.tolist() == [0, 0, 50, 0]  # the third wants both GPU nodes, and the fourth jumps
    assert outcome.cost == pytest.approx((8 * 100 * 1 + (1 + 2 + 1) * 50 * 4) / 3600)
    large = simulate(jobs((0, 16, 10, 10), (0, 17, 10, 10)), machines, truth, truth, "cheapest")
    assert large.modes[large.mode[0]] == "gpu"  # two nodes for half the time at four times the price: half the cost
    assert large.placed.tolist() == [True, False]  # three GPU nodes, and seventeen others, are nowhere


def test_policies_see_the_nodes_that_a_job_takes_in_each_place() -> None:
    truth = RelativeTimes.of([("x", "n")], ["slow", "fast"], np.array([[1.0, 1.0]]), nodes_wm=np.array([[1.0, 0.25]]))
    seen: list[list[int]] = []

    def watch(ask: Ask, options: Options, rng: np.random.Generator) -> int:
        seen.append(options.nodes_of(ask).tolist())
        return 0

    simulate(jobs((0, 6, 10, 10)), TWO, truth, truth, watch)
    assert seen == [[6, 2]]


def test_no_job_goes_where_a_node_has_too_little_memory() -> None:
    machines = Machines.of({"slow": 8, "fast": 4}, memory_gb={"slow": 64.0, "fast": 16.0})
    work = replace(jobs(*[(0, 1, 10, 10)] * 4), memory_gb=np.array([8.0, 32.0, np.nan, 128.0]))
    outcome = simulate(work, machines, TRUTH, TRUTH, "fastest")
    assert [None if m < 0 else outcome.modes[m] for m in outcome.mode] == ["fast", "slow", "fast", None]
    assert outcome.unplaceable() == {"in need of more memory than a node has": 1}


def test_energy_is_that_of_all_nodes_with_and_without_a_job() -> None:
    machines = Machines.of({"a": 2}, power_w={"a": 1000.0}, idle_w={"a": 100.0})
    outcome = simulate(
        jobs((0, 1, 3600, 3600), (0, 1, 1800, 1800)), machines, times(["a"], [1.0]), times(["a"], [1.0]), "fastest"
    )
    assert outcome.metrics().energy_kwh == pytest.approx(1.0 + 0.5 + 0.05)  # the second node idles for half an hour
    assert "kWh" in repr(outcome)


def test_the_greenest_place_takes_the_least_energy_that_keeps_the_deadline() -> None:
    machines = Machines.of({"slow": 8, "fast": 4}, power_w={"slow": 100.0, "fast": 300.0})
    truth = times(["slow", "fast"], [1.0, 0.5])
    work = jobs((0, 1, 100, 100))
    calm, hurried = (
        simulate(work, machines, truth, truth, "greenest", rules=Rules(deadline=deadline)) for deadline in (2.0, 0.6)
    )
    assert [calm.modes[calm.mode[0]], hurried.modes[hurried.mode[0]]] == ["slow", "fast"]


def test_maintenance_and_failures_are_rules_of_a_simulation() -> None:
    work = jobs((1000, 8, 100, 100), (1000, 8, 100, 100), (1000, 8, 100, 100))
    lone, truth = Machines.of({"m": 8}), times(["m"], [1.0])
    window = Maintenance("m", 150.0, 500.0)
    outcome = simulate(work, lone, truth, truth, "fastest", rules=Rules(maintenance=(window,)))
    assert outcome.start_s.tolist() == [
        1000,
        1500,
        1600,
    ]  # seconds from the first arrival; the second would run into it
    with pytest.raises(SettingsError, match=r"maintenance: found the machine 'n'.*expected one of m"):
        simulate(work, lone, truth, truth, "fastest", rules=Rules(maintenance=(Maintenance("n", 0.0, 1.0),)))
    with pytest.raises(SettingsError, match=r"from 9 s to 1 s, expected a start of 0 or more and a later end"):
        simulate(work, lone, truth, truth, "fastest", rules=Rules(maintenance=(Maintenance("m", 9.0, 1.0),)))
    many = random_jobs(3, 300, 8, load=0.8)
    broken = simulate(many, lone, truth, truth, "fastest", rules=Rules(node_mtbf_s=5000.0, repair_s=60.0), seed=2)
    assert broken.counts().failures == broken.failures.sum() > 10
    assert broken.lost_node_s.sum() > 0
    whole = simulate(many, lone, truth, truth, "fastest")
    assert broken.metrics().mean_turnaround_s > (whole.metrics().mean_turnaround_s or 0.0)  # type: ignore[operator]
    busy = (broken.nodes * broken.run_s + broken.lost_node_s).sum()
    assert broken.utilisation[0] == pytest.approx(busy / (8 * broken.makespan_s))


def test_priorities_count_only_where_ageing_says_what_they_are_worth() -> None:
    work = replace(jobs((0, 8, 100, 100), (1, 8, 10, 10), (2, 8, 10, 10)), priority=np.array([0.0, 0.0, 3.0]))
    lone, truth = Machines.of({"m": 8}), times(["m"], [1.0])
    without, with_ageing = (
        simulate(work, lone, truth, truth, "fastest", rules=Rules(ageing_s=ageing_s)) for ageing_s in (None, 60.0)
    )
    assert without.start_s.tolist() == [0, 100, 110]
    assert with_ageing.start_s.tolist() == [0, 110, 100]


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    policy=st.sampled_from(sorted(POLICIES)),
    backfill=st.sampled_from(["none", "easy", "shortest", "conservative"]),
    troubled=st.booleans(),
)
def test_whatever_the_rules_no_node_is_used_twice_and_no_job_is_lost(
    seed: int, policy: str, backfill: str, troubled: bool
) -> None:
    rng = np.random.default_rng(seed)
    machines = Machines.of({"a": 12, "b": 5}, {"a": 1.0, "b": 2.0}, power_w={"a": 1.0, "b": 2.0})
    nodes_wm = rng.choice([0.25, 1.0, 2.0], (3, 2))
    truth = replace(times(["a", "b"], *rng.lognormal(0, 1, (3, 2))), nodes_wm=nodes_wm)
    windows = (Maintenance("a", 300.0, 900.0, 6),) if troubled else ()
    rules = Rules(
        backfill=backfill, maintenance=windows, node_mtbf_s=30_000.0 if troubled else None, ageing_s=100.0, deadline=2.0
    )
    work = replace(random_jobs(seed, 120, 10, 1.2), priority=rng.integers(0, 3, 120).astype(float))
    outcome = simulate(work, machines, truth, truth, policy, rules=rules, seed=seed)
    assert outcome.placed.sum() + sum(outcome.unplaceable().values()) == len(work)
    ran = outcome.placed
    assert np.isfinite(outcome.start_s[ran]).all()
    assert (outcome.start_s[ran] >= work.submit_s[ran]).all()
    for c, size in enumerate(machines.nodes):
        here = outcome.cluster == c
        for now in outcome.start_s[here]:
            under_way = here & (outcome.start_s <= now) & (now < outcome.end_s)
            assert outcome.nodes[under_way].sum() <= size


def test_compiling_is_done_once_for_all_rules_of_a_kind() -> None:
    for rules in (None, Rules(backfill="shortest"), Rules(backfill="conservative", node_mtbf_s=1e6)):
        prepare(rules)


def test_nodes_that_fail_all_the_time_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"node_mtbf_s: found .*, expected seconds of 60 or more"):
        Rules(node_mtbf_s=1e-320)
