"""Jobs drawn from a seed: arrivals with a daily cycle, sizes, run times and the limits that users ask for.

The shapes are those that logs of real machines share: most jobs are small and short, sizes are mostly powers of two,
run times spread over four orders of magnitude, and users ask for a round limit that is well above what they need.
"""

# J jobs

from __future__ import annotations

import numpy as np

from crossperf.arrays import Floats, Integers
from crossperf.errors import SettingsError
from crossperf.schedule.jobs import Jobs
from crossperf.schedule.machines import Machines
from crossperf.schedule.times import RelativeTimes

#: The longest time that a user may ask for on the reference platform: 12 hours, as in the authors' study.
LONGEST_S = 43_200.0
_SHORTEST_S = 60.0
_MEDIAN_S = 1_200.0
#: Spread of run times, on a log scale.
_SIGMA = 1.6
#: Limits that users ask for, up to `LONGEST_S`.
_ROUND_LIMITS_S = np.array([0.25, 0.5, 1, 2, 3, 4, 6, 8, 10, 12]) * 3600.0
#: Users ask for between one time and ten times what they need, most for little more.
_MOST_ASKED_FOR = 10.0
#: Submissions at the busiest hour (14 h) over those at the quietest (2 h): 1 + swing over 1 - swing.
_DAILY_SWING = 0.6
_DAY_S = 86_400.0
_POWER_OF_TWO = 0.75
_USERS = 64
_MOST_JOBS = 100_000_000
_PROGRAMS = 48


def draw(n_jobs: int, machines: Machines, truth: RelativeTimes, *, utilisation: float = 0.9, seed: int = 0) -> Jobs:
    """Return jobs that arrive over as long as it takes for the load to be `utilisation`.

    Parameters
    ----------
    machines, truth
        What the load is reckoned from: the nodes, and the mean relative time of a workload on them.
    utilisation
        Share of all nodes that would be busy if each job ran anywhere, on clusters in proportion to their nodes. A good
        placement needs less; above 1 the queues grow for as long as jobs arrive.

    >>> truth = RelativeTimes.of([("lu", "n=64")], ["cpu"], np.array([[1.0]]))
    >>> jobs = draw(3, Machines.of({"cpu": 8}), truth, seed=1)
    >>> len(jobs), bool((jobs.requested_s >= jobs.run_s).all())
    (3, True)
    """
    if not 1 <= n_jobs <= _MOST_JOBS:
        raise SettingsError(f"n_jobs: found {n_jobs}, expected 1 to {_MOST_JOBS:,}.", argument="n_jobs")
    if not 1e-6 <= utilisation <= 10.0:
        expected = "a share above 0 and up to 10, such as 0.9"
        raise SettingsError(f"utilisation: found {utilisation:g}, expected {expected}.", argument="utilisation")
    rng = np.random.default_rng([seed, 0])
    nodes = _sizes(rng, n_jobs, max(machines.nodes))
    run_s = np.round(np.exp(rng.normal(np.log(_MEDIAN_S), _SIGMA, n_jobs)).clip(_SHORTEST_S, LONGEST_S))
    work_node_s = float((nodes * run_s).sum()) * _mean_relative_time(truth, machines)
    span_s = work_node_s / (utilisation * sum(machines.nodes))
    submit_s = np.round(_arrivals(rng, n_jobs, span_s))
    asked_s = run_s * _MOST_ASKED_FOR ** rng.beta(1.0, 2.0, n_jobs)
    limit_s = _ROUND_LIMITS_S[np.searchsorted(_ROUND_LIMITS_S, asked_s.clip(max=LONGEST_S))]
    user, program = rng.integers(1, _USERS + 1, n_jobs), rng.integers(1, _PROGRAMS + 1, n_jobs)
    return Jobs(submit_s, nodes, run_s, limit_s, user, program, f"{n_jobs:,} jobs drawn with seed {seed}")


def _sizes(rng: np.random.Generator, n_jobs: int, largest: int) -> Integers:
    """Return numbers of nodes: half as many jobs for twice the nodes, three of four a power of two."""
    log2_j = -np.log2(1.0 - rng.random(n_jobs) * (1.0 - 1.0 / (largest + 1)))
    exact_j = rng.random(n_jobs) < _POWER_OF_TWO
    return np.exp2(np.where(exact_j, np.floor(log2_j), log2_j)).astype(np.int64).clip(1, largest)


def _arrivals(rng: np.random.Generator, n_jobs: int, span_s: float) -> Floats:
    """Return sorted times in [0, span) of a process whose rate swings with the hour of the day."""
    grid_s = np.linspace(0.0, span_s, max(1_000, int(span_s / 900.0)) + 1)
    rate = 1.0 + _DAILY_SWING * np.cos(2.0 * np.pi * (grid_s / _DAY_S - 14.0 / 24.0))
    so_far = np.concatenate([[0.0], np.cumsum((rate[1:] + rate[:-1]) / 2.0)])
    return np.asarray(np.interp(np.sort(rng.random(n_jobs)) * so_far[-1], so_far, grid_s))


def _mean_relative_time(truth: RelativeTimes, machines: Machines) -> float:
    """Return the relative time of a job that runs anywhere: the mean over applications, and over nodes that run it."""
    cluster_m = machines.clusters_of(truth.modes, truth.name)
    possible_wm = np.where(np.isnan(truth.relative_wm), np.inf, truth.relative_wm)
    total_w, nodes_w = np.zeros(len(truth.workloads)), np.zeros(len(truth.workloads))
    for c, nodes in enumerate(machines.nodes):
        best_w = possible_wm[:, cluster_m == c].min(axis=1, initial=np.inf)
        total_w += np.where(np.isinf(best_w), 0.0, best_w * nodes)
        nodes_w += np.where(np.isinf(best_w), 0.0, nodes)
    if not nodes_w.any():
        problem = "no workload can run on any of the machines. Check the names of both tables."
        raise SettingsError(f"{truth.name}: {problem}")
    apps = np.array([app for app, _ in truth.workloads])
    anywhere_w = total_w[nodes_w > 0] / nodes_w[nodes_w > 0]
    return float(np.mean([anywhere_w[apps[nodes_w > 0] == app].mean() for app in np.unique(apps[nodes_w > 0])]))


def workloads_of(jobs: Jobs, truth: RelativeTimes, seed: int = 0) -> Integers:
    """Return a workload for each job: an application, all with the same chance, then one of its inputs.

    Jobs of one executable are of one application where the trace tells them apart.
    """
    rng = np.random.default_rng([seed, 1])
    apps, app_w = np.unique(np.array([app for app, _ in truth.workloads]), return_inverse=True)
    inputs = [np.flatnonzero(app_w == a) for a in range(len(apps))]
    programs, program_j = np.unique(jobs.executable, return_inverse=True)
    app_of_program = rng.integers(len(apps), size=len(programs))
    any_app_j = rng.integers(len(apps), size=len(jobs))
    app_j = np.where(jobs.executable >= 0, app_of_program[program_j], any_app_j)
    share_j = rng.random(len(jobs))
    counts = np.array([len(rows) for rows in inputs])
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return np.asarray(np.concatenate(inputs)[starts[app_j] + (share_j * counts[app_j]).astype(np.int64)])


def homes_of(jobs: Jobs, machines: Machines, seed: int = 0) -> Integers:
    """Return the cluster that each job's user would choose: one for each user, larger clusters having more of them."""
    rng = np.random.default_rng([seed, 2])
    users, user_j = np.unique(jobs.user, return_inverse=True)
    share_c = np.array(machines.nodes) / sum(machines.nodes)
    return np.asarray(rng.choice(len(share_c), size=len(users), p=share_c)[user_j])
