"""The simulator: jobs arrive over time, a policy places each from predictions, the truth decides how long it runs."""

# J jobs, W workloads, M modes, C clusters

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from crossperf.arrays import Floats, Integers
from crossperf.errors import SettingsError, some_of
from crossperf.schedule import clusters, policies
from crossperf.schedule.arrivals import Arrivals
from crossperf.schedule.clusters import Clusters
from crossperf.schedule.jobs import MOST_NODES, Jobs
from crossperf.schedule.machines import Machines
from crossperf.schedule.outcome import Outcome
from crossperf.schedule.policies import Ask, Options, Policy
from crossperf.schedule.rules import Rules
from crossperf.schedule.synthetic import homes_of, workloads_of
from crossperf.schedule.times import RelativeTimes, ScheduleTableError

#: What rounding may add to a number of nodes that is a product.
_ROUNDING = 1e-9


class _Places(NamedTuple):
    """Where a workload of a certain size can go, with what is true and predicted there."""

    platforms: tuple[str, ...]
    clusters: tuple[str, ...]
    mode_m: Integers
    cluster_m: Integers
    nodes_m: Integers
    price_m: Floats
    power_m: Floats
    per_node_m: Floats
    true_m: Floats
    relative_m: Floats
    low_m: Floats
    high_m: Floats
    longest: float = math.inf

    def options(self, clusters: Clusters, ask: Ask, takes_m: Integers, run_s: float, now: float) -> Options:
        """Return what a policy may know of the places when a job arrives."""

        def waits() -> Floats:
            return clusters.waits(self.cluster_m, ask.requested_s * self.relative_m, takes_m, now)

        times = (run_s * self.relative_m, run_s * self.low_m, run_s * self.high_m)
        nodes = (self.nodes_m, *clusters.state_of(self.cluster_m, now))
        return Options(
            self.platforms, self.clusters, *times, *nodes, self.price_m, waits, takes=takes_m, power_w=self.power_m
        )


class _Atlas:
    """Finds where a job can go: what runs its workload, is large enough, and ends within the wall-time limit."""

    def __init__(self, machines: Machines, truth: RelativeTimes, predictions: RelativeTimes, rules: Rules) -> None:
        self._machines, self._truth, self._predictions, self._rules = machines, truth, predictions, rules
        self._cluster_m = machines.clusters_of(truth.modes, truth.name)
        self._nodes_m = np.where(self._cluster_m >= 0, np.array(machines.nodes)[self._cluster_m], 0)
        self._levels = sorted(set(machines.nodes))
        self._memory_m = np.where(self._cluster_m >= 0, np.array(machines.memory_gb)[self._cluster_m], 0.0)
        self.per_node_wm = np.ones_like(truth.relative_wm) if truth.nodes_wm is None else truth.nodes_wm
        self._known: dict[tuple[int, int], _Places | int] = {}
        self._takes: dict[tuple[int, int], Integers] = {}
        self._runs_wm = ~np.isnan(truth.relative_wm + predictions.relative_wm) & (self._cluster_m >= 0)
        self._refuse_homeless()
        self.leaves_a_choice = (self._cluster_m >= 0).sum() > 1

    def places(self, workload: int, nodes: int, run_s: float, memory_gb: float = math.nan) -> _Places | int:
        """Return where a job can go, or the number of the reason in `outcome.UNPLACEABLE`."""
        key = (workload, bisect_left(self._levels, nodes) if self._truth.nodes_wm is None else -nodes)
        places = self._known.get(key)
        if places is None:
            places = self._known[key] = self._look_up(workload, nodes)
        if memory_gb > 0 and not isinstance(places, int):
            memory_m = self._memory_m[places.mode_m]
            enough_m = (memory_m == 0) | (memory_m >= memory_gb)
            if not enough_m.all():
                places = self._of(workload, places.mode_m[enough_m]) if enough_m.any() else 2
        wall_limit_s = self._rules.wall_limit_s
        if isinstance(places, int) or wall_limit_s is None:
            return places
        if run_s * places.longest <= wall_limit_s:
            return places
        short_m = run_s * self._judged_by(places) <= wall_limit_s
        return self._of(workload, places.mode_m[short_m]) if short_m.any() else 1

    def _judged_by(self, places: _Places) -> Floats:
        """Return the relative times by which a job is too long for a place."""
        # The users are taken to know what a job cannot do in time; with strict limits it is the prediction that tells.
        return places.relative_m if self._rules.limits == "strict" else places.true_m

    def takes(self, places: _Places, nodes: int) -> Integers:
        """Return the nodes that a job takes in each place."""
        if self._truth.nodes_wm is not None:
            return np.ceil(nodes * places.per_node_m - _ROUNDING).clip(1, MOST_NODES).astype(np.int64)
        key = (len(places.platforms), nodes)
        takes_m = self._takes.get(key)
        if takes_m is None:
            takes_m = self._takes[key] = np.full(*key)
        return takes_m

    def _look_up(self, workload: int, nodes: int) -> _Places | int:
        takes_m = np.ceil(nodes * self.per_node_wm[workload] - _ROUNDING)
        fits_m = self._runs_wm[workload] & (self._nodes_m >= takes_m)
        return self._of(workload, np.flatnonzero(fits_m)) if fits_m.any() else 0

    def _refuse_homeless(self) -> None:
        """Raise where no machine can run a workload: no policy could place its jobs."""
        homeless = [self._truth.workloads[w] for w in np.flatnonzero(~self._runs_wm.any(axis=1))]
        if homeless:
            seen = "" if self._predictions.name == self._truth.name else f" and {self._predictions.name}"
            names = some_of([" ".join(workload) for workload in homeless], 3)
            raise ScheduleTableError(
                f"{self._truth.name}{seen}: found workloads that none of the machines can run ({names}), expected a "
                f"time on one of {some_of(self._machines.names)} for each. Add a machine that can, or take them out.",
                workloads=homeless,
            )

    def _of(self, workload: int, mode_m: Integers) -> _Places:
        cluster_m, seen = self._cluster_m[mode_m], self._predictions
        platforms = tuple(self._truth.modes[m] for m in mode_m)
        clusters = tuple(self._machines.names[c] for c in cluster_m)
        facts = (self._machines.price_per_node_hour, self._machines.power_w)
        facts_m = (*(np.array(fact)[cluster_m] for fact in facts), self.per_node_wm[workload, mode_m])
        tables = (self._truth.relative_wm, seen.relative_wm, seen.low_wm, seen.high_wm)
        times = (cells_wm[workload, mode_m] for cells_wm in tables)
        places = _Places(platforms, clusters, mode_m, cluster_m, self._nodes_m[mode_m], *facts_m, *times)
        return places._replace(longest=float(self._judged_by(places).max()))


def simulate(
    jobs: Jobs,
    machines: Machines,
    truth: RelativeTimes,
    predictions: RelativeTimes,
    policy: str | Policy,
    *,
    rules: Rules | None = None,
    seed: int = 0,
) -> Outcome:
    """Simulate the clusters and return what became of every job.

    Parameters
    ----------
    jobs
        Jobs in order of arrival: drawn (`synthetic.draw`) or from a trace (`traces.read_trace`).
    truth, predictions
        Relative times of the same workloads in the same modes (`times.aligned` sees to that): what decides how long a
        job runs, and what the policy sees.
    policy
        A name or ``FILE.py:FUNCTION`` for `policies.make`, or a function of (ask, options, rng).
    rules
        Limits, backfilling and deadlines; ``None`` takes the defaults of `Rules`.
    seed
        Decides which workload each job is, where its user would run it, and what a policy draws.

    Returns
    -------
    Outcome
        Arrays over the jobs, and metrics and counts over all of them.

    >>> from crossperf.schedule.synthetic import draw
    >>> machines = Machines.of({"cpu": 64, "gpu": 8})
    >>> truth = RelativeTimes.of([("lu", "n=64")], ["cpu", "gpu"], np.array([[1.0, 0.25]]))
    >>> outcome = simulate(draw(100, machines, truth), machines, truth, truth, "turnaround")
    >>> outcome.counts().placed, outcome.metrics().mean_turnaround_s >= outcome.metrics().mean_run_s
    (100, True)
    """
    if (truth.workloads, truth.modes) != (predictions.workloads, predictions.modes):
        raise ScheduleTableError(
            f"{predictions.name}: found other workloads or modes than in {truth.name}; align them first."
        )
    return _Simulation(jobs, machines, truth, predictions, policy, rules or Rules(), seed).run()


def prepare(rules: Rules | None = None) -> None:
    """Compile the simulator for these rules, or load what was compiled before: seconds the first time on a machine.

    numba keeps the result on disk: beside the package, or in the user's cache where that cannot be written, or where
    ``NUMBA_CACHE_DIR`` says.
    """
    machines, unknown = Machines.of({"a": 2, "b": 2}), np.full(4, -1)
    times_s, nodes = np.array([0.0, 1.0, 1.0, 2.0]), np.array([2, 1, 2, 1])
    jobs = Jobs(times_s, nodes, times_s + 5.0, times_s + 9.0, unknown, unknown)
    given = rules or Rules()
    small = Rules(backfill=given.backfill, ageing_s=1.0 if given.needs_timeline else None)
    for modes in (["a", "b"], ["a"]):  # with a choice, and without one
        truth = RelativeTimes.of([("x", "n")], modes, np.ones((1, len(modes))))
        simulate(jobs, machines, truth, truth, "turnaround", rules=small)


@dataclass
class _Simulation:
    """One run over all jobs: the clusters, and what is written down of each job."""

    jobs: Jobs
    machines: Machines
    truth: RelativeTimes
    predictions: RelativeTimes
    policy: str | Policy
    rules: Rules
    seed: int

    def __post_init__(self) -> None:
        policy, count = self.policy, len(self.jobs)
        self._choose = policies.make(policy) if isinstance(policy, str) else policy
        self._policy = policy if isinstance(policy, str) else getattr(policy, "__name__", type(policy).__name__)
        self._atlas = _Atlas(self.machines, self.truth, self.predictions, self.rules)
        self._clusters: Clusters = clusters.make(self.machines, self.jobs, self.rules, self.seed)
        self._workload_j = workloads_of(self.jobs, self.truth, self.seed)
        self._cluster_j, self._mode_j, self._why_not_j = (np.full(count, -1) for _ in range(3))
        self._doublings_j, self._killed_j = np.zeros(count, np.int64), np.zeros(count, np.bool_)
        self._arrival_j = self.jobs.submit_s.copy()

    def run(self) -> Outcome:
        """Let all jobs arrive and end."""
        if self._atlas.leaves_a_choice or self.jobs.follows is not None or self.rules.needs_timeline:
            self._choose_for_each()
        else:
            self._place_all()
        self._clusters.advance(np.inf)
        return self._outcome()

    def _choose_for_each(self) -> None:
        """Let the jobs arrive one by one, and ask the policy where each should go."""
        rng, jobs, deadline = np.random.default_rng([self.seed, 3]), self.jobs, self.rules.deadline
        home_j = homes_of(jobs, self.machines, self.seed)
        memory_j = np.full(len(jobs), np.nan) if jobs.memory_gb is None else jobs.memory_gb
        columns = (jobs.nodes, jobs.run_s, jobs.requested_s, memory_j, self._workload_j, home_j, jobs.user)
        lists = [column.tolist() for column in columns]
        arrivals = Arrivals(jobs, self._clusters) if jobs.follows is not None else None
        events = (
            zip(jobs.submit_s.tolist(), range(len(jobs)), *lists, strict=True)
            if arrivals is None
            else ((now, job, *(values[job] for values in lists)) for now, job in arrivals)
        )
        for now, job, nodes, run_s, requested_s, memory_gb, workload, home, user in events:
            places = self._atlas.places(workload, nodes, run_s, memory_gb)
            if isinstance(places, int):
                self._why_not_j[job] = places
                if arrivals:
                    arrivals.nowhere(job, now)
                continue
            if arrivals:
                self._arrival_j[job] = now
            else:
                self._clusters.advance(now)
            app, input_ = self.truth.workloads[workload]
            deadline_s = deadline and deadline * requested_s
            ask = Ask(nodes, requested_s, app, input_, str(user), self.machines.names[home], deadline_s)
            takes_m = self._atlas.takes(places, nodes)
            m = self._choose(ask, places.options(self._clusters, ask, takes_m, run_s, now), rng)
            if not (isinstance(m, int | np.integer) and 0 <= m < len(places.platforms)):
                expected = f"an index below {len(places.platforms)}"
                raise SettingsError(f"policy: {self._policy} answered {m}, expected {expected}.", argument="policy")
            self._clusters.submit(job, self._place(job, places, int(m), int(takes_m[m]), run_s, requested_s), now)

    def _place_all(self) -> None:
        """Place the jobs where there is one place to go, without asking."""
        jobs, fast = self.jobs, clusters.FastClusters(self.machines, self.jobs, self.rules)
        self._clusters = fast
        memory_j = np.full(len(jobs), np.nan) if jobs.memory_gb is None else jobs.memory_gb
        columns = (self._workload_j, jobs.nodes, jobs.run_s, jobs.requested_s, memory_j)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for job, (workload, nodes, run_s, requested_s, memory_gb) in enumerate(rows):
            places = self._atlas.places(workload, nodes, run_s, memory_gb)
            if isinstance(places, int):
                self._why_not_j[job] = places
            else:
                takes = int(self._atlas.takes(places, nodes)[0])
                fast.write(job, self._place(job, places, 0, takes, run_s, requested_s))
        fast.replay(jobs.submit_s, self._cluster_j)

    def _place(
        self, job: int, places: _Places, m: int, takes: int, run_s: float, requested_s: float
    ) -> clusters.Placement:
        """Write down where a job goes, and return how long it will run there, and its limit."""
        relative, wall_limit_s = float(places.relative_m[m]), self.rules.wall_limit_s or math.inf
        true_s, limit_s = run_s * float(places.true_m[m]), min(requested_s * relative, wall_limit_s)
        doublings = 0
        if self.rules.limits == "double":
            while limit_s < true_s:
                limit_s = min(2.0 * limit_s, wall_limit_s)
                doublings += 1
        else:
            self._killed_j[job] = true_s > limit_s
            true_s = min(true_s, limit_s)
        cluster = int(places.cluster_m[m])
        self._mode_j[job], self._cluster_j[job], self._doublings_j[job] = places.mode_m[m], cluster, doublings
        # Who knows that a limit must be doubled knows that the prediction was as much too short.
        return clusters.Placement(cluster, takes, true_s, limit_s, run_s * relative * 2.0**doublings)

    def _outcome(self) -> Outcome:
        ran_j, fates = self._cluster_j >= 0, self._clusters.fates()
        run_j, expected_j, limit_j = (
            np.where(ran_j, seconds_j, np.nan) for seconds_j in (fates.run_s, fates.expected_s, fates.limit_s)
        )
        where = (self._workload_j, self._cluster_j, self._mode_j)
        times = (fates.start_s, run_j, expected_j, limit_j)
        deadline_j = self._arrival_j + (self.rules.deadline or np.inf) * self.jobs.requested_s
        limits = (self._doublings_j, self._killed_j, deadline_j)
        return Outcome(
            self.jobs,
            self.machines,
            self.truth.modes,
            *where,
            *times,
            *limits,
            self._why_not_j,
            policy=self._policy,
            predictor=self.predictions.name,
            seed=self.seed,
            nodes=fates.nodes,
            arrival_s=self._arrival_j,
            failures=fates.failures,
            lost_node_s=fates.lost_node_s,
            given_up=fates.given_up.astype(np.bool_),
        )
