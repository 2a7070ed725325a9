"""Jobs drawn from a seed: arrivals with a daily cycle, sizes, run times and the limits that users ask for.

The shapes are those that logs of real machines share: most jobs are small and short, sizes are mostly powers of two,
run times spread over four orders of magnitude, and users ask for a round limit that is well above what they need.
"""

# J jobs

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crossperf.arrays import Floats, Integers
from crossperf.errors import SettingsError, did_you_mean, some_of
from crossperf.schedule.jobs import Jobs
from crossperf.schedule.machines import Machines
from crossperf.schedule.times import RelativeTimes, ScheduleTableError

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
MOST_JOBS = 100_000_000
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
    if not 1 <= n_jobs <= MOST_JOBS:
        raise SettingsError(f"n_jobs: found {n_jobs}, expected 1 to {MOST_JOBS:,}.", argument="n_jobs")
    _check_utilisation(utilisation)
    rng = np.random.default_rng([seed, 0])
    nodes = _sizes(rng, n_jobs, max(machines.nodes))
    run_s = np.round(np.exp(rng.normal(np.log(_MEDIAN_S), _SIGMA, n_jobs)).clip(_SHORTEST_S, LONGEST_S))
    anywhere_w = _anywhere(truth, machines)
    work_node_s = float((nodes * run_s).sum()) * _mean_over_apps(truth, anywhere_w)
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


def _check_utilisation(utilisation: float) -> None:
    if not 1e-6 <= utilisation <= 10.0:
        expected = "a share above 0 and up to 10, such as 0.9"
        raise SettingsError(f"utilisation: found {utilisation:g}, expected {expected}.", argument="utilisation")


def _anywhere(truth: RelativeTimes, machines: Machines) -> Floats:
    """Return the node-time of each workload that runs anywhere over that on the reference: the mean over nodes.

    NaN where no machine can run it.
    """
    cluster_m = machines.clusters_of(truth.modes, truth.name)
    taken_wm = truth.relative_wm if truth.nodes_wm is None else truth.relative_wm * truth.nodes_wm
    possible_wm = np.where(np.isnan(taken_wm), np.inf, taken_wm)
    total_w, nodes_w = np.zeros(len(truth.workloads)), np.zeros(len(truth.workloads))
    for c, nodes in enumerate(machines.nodes):
        best_w = possible_wm[:, cluster_m == c].min(axis=1, initial=np.inf)
        total_w += np.where(np.isinf(best_w), 0.0, best_w * nodes)
        nodes_w += np.where(np.isinf(best_w), 0.0, nodes)
    if not nodes_w.any():
        problem = "no workload can run on any of the machines. Check the names of both tables."
        raise SettingsError(f"{truth.name}: {problem}")
    return np.divide(total_w, nodes_w, out=np.full_like(total_w, np.nan), where=nodes_w > 0)


def _mean_over_apps(truth: RelativeTimes, anywhere_w: Floats) -> float:
    """Return the mean over applications of what their workloads take."""
    runs_w = ~np.isnan(anywhere_w)
    apps = np.array([app for app, _ in truth.workloads])[runs_w]
    return float(np.mean([anywhere_w[runs_w][apps == app].mean() for app in np.unique(apps)]))


def load_of(jobs: Jobs, machines: Machines, truth: RelativeTimes, *, seed: int = 0) -> float:
    """Return the share of all nodes that would be busy while jobs arrive, if each job ran anywhere.

    The workloads of the jobs are those that `simulate` gives them with this seed.
    """
    anywhere_j = _anywhere(truth, machines)[workloads_of(jobs, truth, seed)]
    work_node_s = float(np.nansum(jobs.nodes * jobs.run_s * anywhere_j))
    span_s = float(jobs.submit_s.max() - jobs.submit_s.min())
    return work_node_s / (sum(machines.nodes) * span_s) if span_s > 0 else np.inf


def with_load(jobs: Jobs, machines: Machines, truth: RelativeTimes, utilisation: float, *, seed: int = 0) -> Jobs:
    """Return the jobs of a trace with arrivals stretched or drawn together until the load is `utilisation`.

    The order and the pattern of arrivals stay; think times are those of people, and stay as well.
    """
    _check_utilisation(utilisation)
    load = load_of(jobs, machines, truth, seed=seed)
    if not np.isfinite(load):
        raise SettingsError(f"utilisation: all jobs of {jobs.name} arrive at once, so nothing can be stretched.")
    first_s, stretch = jobs.submit_s.min(), load / utilisation
    note = f"{jobs.name}: arrivals stretched by {stretch:.3g}, for a load of {utilisation:g} instead of {load:.3g}."
    return replace(jobs, submit_s=first_s + (jobs.submit_s - first_s) * stretch, notes=(*jobs.notes, note))


def workloads_of(jobs: Jobs, truth: RelativeTimes, seed: int = 0) -> Integers:
    """Return a workload for each job: an application, all with the same chance, then one of its inputs.

    Jobs of one executable are of one application where the trace tells them apart. Jobs of a known kind are that
    application, and that input where it is named.
    """
    rng = np.random.default_rng([seed, 1])
    apps, app_w = np.unique(np.array([app for app, _ in truth.workloads]), return_inverse=True)
    inputs = [np.flatnonzero(app_w == a) for a in range(len(apps))]
    programs, program_j = np.unique(jobs.executable, return_inverse=True)
    app_of_program = rng.integers(len(apps), size=len(programs))
    any_app_j = rng.integers(len(apps), size=len(jobs))
    app_j = np.where(jobs.executable >= 0, app_of_program[program_j], any_app_j)
    share_j = rng.random(len(jobs))
    if jobs.kind is not None:
        rows = [_rows_of(kind, truth, jobs.name) for kind in jobs.kinds]
        inputs += rows
        app_j = np.where(jobs.kind >= 0, len(apps) + jobs.kind, app_j)
    counts = np.array([len(rows) for rows in inputs])
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return np.asarray(np.concatenate(inputs)[starts[app_j] + (share_j * counts[app_j]).astype(np.int64)])


def _rows_of(kind: tuple[str, str], truth: RelativeTimes, name: str) -> Integers:
    """Return the rows of the truth that are of an application, and of an input where one is named."""
    app, input_ = kind
    rows = [w for w, workload in enumerate(truth.workloads) if workload[0] == app and input_ in ("", workload[1])]
    if not rows:
        known = sorted({a for a, _ in truth.workloads} if not input_ else {i for a, i in truth.workloads if a == app})
        wanted = f"the application {app!r}" + (f" with the input {input_!r}" if input_ else "")
        nearest = did_you_mean(input_ or app, known)
        expected = f"one of {truth.name}{f': {some_of(known, 4)}' if known else ''}"
        raise ScheduleTableError(f"{name}: found jobs of {wanted}{nearest}, expected {expected}.")
    return np.array(rows)


def homes_of(jobs: Jobs, machines: Machines, seed: int = 0) -> Integers:
    """Return the cluster that each job's user would choose: one for each user, larger clusters having more of them."""
    rng = np.random.default_rng([seed, 2])
    users, user_j = np.unique(jobs.user, return_inverse=True)
    share_c = np.array(machines.nodes) / sum(machines.nodes)
    return np.asarray(rng.choice(len(share_c), size=len(users), p=share_c)[user_j])
