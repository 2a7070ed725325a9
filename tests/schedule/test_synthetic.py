from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crossperf.errors import SettingsError
from crossperf.schedule.machines import Machines
from crossperf.schedule.synthetic import LONGEST_S, draw, homes_of, load_of, with_load, workloads_of
from tests.schedule.worlds import times

MACHINES = Machines.of({"a": 192, "b": 64})
TRUTH = times(["a", "b"], [1.0, 3.0], [2.0, np.nan], [2.0, np.nan], apps=["x", "y", "y"])


def test_the_same_seed_draws_the_same_jobs_and_another_draws_others() -> None:
    first, again, other = (draw(500, MACHINES, TRUTH, seed=seed) for seed in (1, 1, 2))
    for column in ("submit_s", "nodes", "run_s", "requested_s", "user", "executable"):
        np.testing.assert_array_equal(getattr(first, column), getattr(again, column))
    assert (first.run_s != other.run_s).any()


def test_jobs_fit_the_machines_and_the_limits_that_their_users_ask_for() -> None:
    jobs = draw(20_000, MACHINES, TRUTH)
    assert (np.diff(jobs.submit_s) >= 0).all()
    assert (jobs.nodes.min(), jobs.nodes.max()) == (1, 192)
    assert (jobs.run_s >= 60).all()
    assert (jobs.run_s <= jobs.requested_s).all()
    assert jobs.requested_s.max() == LONGEST_S
    # Half as many jobs for twice the nodes.
    per_octave = np.bincount(np.log2(jobs.nodes).astype(int))[:4]
    np.testing.assert_allclose(per_octave[1:] / per_octave[:-1], 0.5, rtol=0.12)
    assert np.isin(jobs.nodes, 2 ** np.arange(8)).mean() > 0.75


@pytest.mark.parametrize("utilisation", [0.5, 1.5])
def test_the_load_is_what_was_asked_for(utilisation: float) -> None:
    jobs = draw(50_000, MACHINES, TRUTH, utilisation=utilisation)
    # x takes 1 on three quarters of the nodes and 3 on the rest, 1.5 anywhere; y takes 2 where it runs: 1.75 together.
    work = (jobs.nodes * jobs.run_s).sum() * 1.75
    assert work / (jobs.submit_s.max() * 256) == pytest.approx(utilisation, rel=0.01)


def test_more_jobs_arrive_by_day_than_by_night() -> None:
    jobs = draw(50_000, MACHINES, TRUTH)
    whole_days = jobs.submit_s[jobs.submit_s < 86_400 * (jobs.submit_s.max() // 86_400)]
    hour = (whole_days % 86_400) / 3600
    day, night = ((hour >= 12) & (hour < 16)).sum(), (hour < 4).sum()
    assert day / night == pytest.approx(1.6 / 0.4, rel=0.15)  # a little less than at the very peaks


def test_applications_are_drawn_alike_and_a_program_is_of_one_application() -> None:
    jobs = draw(4_000, MACHINES, TRUTH)
    workload_j = workloads_of(jobs, TRUTH)
    for program in np.unique(jobs.executable):
        apps = {TRUTH.workloads[w][0] for w in workload_j[jobs.executable == program]}
        assert len(apps) == 1
    unknown = np.full(4_000, -1)
    free = type(jobs)(jobs.submit_s, jobs.nodes, jobs.run_s, jobs.requested_s, unknown, unknown)
    counts = np.bincount(workloads_of(free, TRUTH))
    np.testing.assert_allclose(counts / 4_000, [0.5, 0.25, 0.25], atol=0.03)


def test_a_user_has_one_home_and_larger_clusters_have_more_users() -> None:
    jobs = draw(20_000, MACHINES, TRUTH)
    home_j = homes_of(jobs, MACHINES)
    homes = {user: set(home_j[jobs.user == user]) for user in np.unique(jobs.user)}
    assert all(len(clusters) == 1 for clusters in homes.values())
    assert sum(clusters == {0} for clusters in homes.values()) > len(homes) / 2


def test_what_cannot_be_drawn_raises_one_sentence() -> None:
    with pytest.raises(SettingsError, match="n_jobs: found 0"):
        draw(0, MACHINES, TRUTH)
    with pytest.raises(SettingsError, match="utilisation: found -1"):
        draw(5, MACHINES, TRUTH, utilisation=-1)
    with pytest.raises(SettingsError, match="no workload can run on any"):
        draw(5, MACHINES, times(["a"], [np.nan]))


def test_the_arrivals_of_a_trace_are_stretched_until_its_load_is_as_asked() -> None:
    jobs = draw(2_000, MACHINES, TRUTH, utilisation=0.4, seed=3)
    before = load_of(jobs, MACHINES, TRUTH, seed=5)
    busy = with_load(jobs, MACHINES, TRUTH, 1.2, seed=5)
    assert load_of(busy, MACHINES, TRUTH, seed=5) == pytest.approx(1.2)
    stretch = (busy.submit_s - busy.submit_s[0])[1:] / (jobs.submit_s - jobs.submit_s[0])[1:].clip(1e-9)
    np.testing.assert_allclose(stretch[10:], before / 1.2)
    assert f"for a load of 1.2 instead of {before:.3g}" in busy.notes[-1]
    # By hand: every job would take 1.75 or so of its time anywhere, as in the test above, by the workloads it is.
    x_j = workloads_of(jobs, TRUTH, 5) == 0
    work = (jobs.nodes * jobs.run_s * np.where(x_j, 1.5, 2.0)).sum()
    assert before == pytest.approx(work / (256 * (jobs.submit_s.max() - jobs.submit_s.min())))


def test_a_load_that_cannot_be_reached_is_one_sentence() -> None:
    jobs = draw(20, MACHINES, TRUTH, seed=3)
    with pytest.raises(SettingsError, match="utilisation: found 0, expected a share above 0"):
        with_load(jobs, MACHINES, TRUTH, 0.0)
    with pytest.raises(SettingsError, match="arrive at once"):
        with_load(replace(jobs, submit_s=np.zeros(20)), MACHINES, TRUTH, 1.0)


def test_nodes_that_differ_by_platform_count_in_the_load() -> None:
    eight = replace(TRUTH, nodes_wm=np.full_like(TRUTH.relative_wm, 0.5))
    jobs = draw(500, MACHINES, TRUTH, seed=3)
    assert load_of(jobs, MACHINES, eight) == pytest.approx(load_of(jobs, MACHINES, TRUTH) / 2)
