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
from crossperf.schedule import engine, policies
from crossperf.schedule.jobs import Jobs
from crossperf.schedule.machines import Machines
from crossperf.schedule.outcome import Outcome
from crossperf.schedule.policies import Ask, Options, Policy
from crossperf.schedule.synthetic import homes_of, workloads_of
from crossperf.schedule.times import RelativeTimes, ScheduleTableError

#: What happens to a job whose limit, scaled by the prediction, is shorter than it runs.
LIMITS = ("double", "strict")


@dataclass(frozen=True)
class Rules:
    """What holds for all jobs of a simulation.

    With `limits` ``double`` a limit that is too short is doubled before the job is submitted, as often as it takes, and
    counted; with ``strict`` the job is ended at its limit. `wall_limit_s` is the longest limit that the clusters grant.
    `backfill` is EASY backfilling; without it, first come, first served alone. A job should have ended `deadline` times
    its requested time after its arrival. ``None`` stands for no limit and no deadlines.
    """

    limits: str = "double"
    wall_limit_s: float | None = None
    backfill: bool = True
    deadline: float | None = None

    def __post_init__(self) -> None:
        if self.limits not in LIMITS:
            raise SettingsError(f"limits: found {self.limits!r}, expected {' or '.join(LIMITS)}.", argument="limits")
        for name, expected in (("wall_limit_s", "seconds above 0"), ("deadline", "a factor above 0, such as 4")):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise SettingsError(f"{name}: found {value:g}, expected {expected}.", argument=name)


class _Places(NamedTuple):
    """Where a workload of a certain size can go, with what is true and predicted there."""

    platforms: tuple[str, ...]
    clusters: tuple[str, ...]
    mode_m: Integers
    cluster_m: Integers
    nodes_m: Integers
    price_m: Floats
    true_m: Floats
    relative_m: Floats
    low_m: Floats
    high_m: Floats

    def options(self, state: engine.State, ask: Ask, run_s: float, now: float, backfill: bool) -> Options:
        """Return what a policy may know of the places when a job arrives."""

        def waits() -> Floats:
            wait_m = np.empty(len(self.platforms))
            limit_m = ask.requested_s * self.relative_m
            engine.predict_waits(state, self.cluster_m, limit_m, ask.nodes, now, backfill, wait_m)
            return wait_m

        times = (run_s * self.relative_m, run_s * self.low_m, run_s * self.high_m)
        nodes = (self.nodes_m, state.free_c[self.cluster_m], state.queued_c[self.cluster_m])
        return Options(self.platforms, self.clusters, *times, *nodes, self.price_m, waits)


class _Atlas:
    """Finds where a job can go: what runs its workload, is large enough, and ends within the wall-time limit."""

    def __init__(self, machines: Machines, truth: RelativeTimes, predictions: RelativeTimes, rules: Rules) -> None:
        self._machines, self._truth, self._predictions, self._rules = machines, truth, predictions, rules
        self._cluster_m = machines.clusters_of(truth.modes, truth.name)
        self._nodes_m = np.where(self._cluster_m >= 0, np.array(machines.nodes)[self._cluster_m], 0)
        self._levels = sorted(set(machines.nodes))
        self._known: dict[tuple[int, int], _Places | int] = {}
        self._runs_wm = ~np.isnan(truth.relative_wm + predictions.relative_wm) & (self._cluster_m >= 0)
        self._refuse_homeless()
        self.leaves_a_choice = (self._cluster_m >= 0).sum() > 1

    def places(self, workload: int, nodes: int, run_s: float) -> _Places | int:
        """Return where a job can go, or the number of the reason in `outcome.UNPLACEABLE`."""
        key = (workload, bisect_left(self._levels, nodes))
        places = self._known.get(key)
        if places is None:
            places = self._known[key] = self._look_up(workload, nodes)
        wall_limit_s = self._rules.wall_limit_s
        if isinstance(places, int) or wall_limit_s is None:
            return places
        # The users are taken to know what a job cannot do in time; with strict limits it is the prediction that tells.
        short_m = run_s * (places.relative_m if self._rules.limits == "strict" else places.true_m) <= wall_limit_s
        return places if short_m.all() else self._of(workload, places.mode_m[short_m]) if short_m.any() else 1

    def _look_up(self, workload: int, nodes: int) -> _Places | int:
        fits_m = self._runs_wm[workload] & (self._nodes_m >= nodes)
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
        price_m = np.array(self._machines.price_per_node_hour)[cluster_m]
        tables = (self._truth.relative_wm, seen.relative_wm, seen.low_wm, seen.high_wm)
        times = (cells_wm[workload, mode_m] for cells_wm in tables)
        return _Places(platforms, clusters, mode_m, cluster_m, self._nodes_m[mode_m], price_m, *times)


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
        Jobs in order of arrival: drawn (`synthetic.draw`) or from a trace (`jobs.read_swf`).
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
        self._state = engine.empty(self.machines.nodes, self.jobs.nodes)
        self._workload_j = workloads_of(self.jobs, self.truth, self.seed)
        self._cluster_j, self._mode_j, self._why_not_j = (np.full(count, -1) for _ in range(3))
        self._doublings_j, self._killed_j = np.zeros(count, np.int64), np.zeros(count, np.bool_)

    def run(self) -> Outcome:
        """Let all jobs arrive and end."""
        if self._atlas.leaves_a_choice:
            self._choose_for_each()
        else:
            self._place_all()
        engine.advance(self._state, np.inf, self.rules.backfill)
        return self._outcome()

    def _choose_for_each(self) -> None:
        """Let the jobs arrive one by one, and ask the policy where each should go."""
        rng = np.random.default_rng([self.seed, 3])
        home_j = homes_of(self.jobs, self.machines, self.seed)
        jobs, backfill = self.jobs, self.rules.backfill
        columns = (jobs.submit_s, jobs.nodes, jobs.run_s, jobs.requested_s, self._workload_j, home_j, jobs.user)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for job, (now, nodes, run_s, requested_s, workload, home, user) in enumerate(rows):
            places = self._atlas.places(workload, nodes, run_s)
            if isinstance(places, int):
                self._why_not_j[job] = places
                continue
            engine.advance(self._state, now, backfill)
            app, input_ = self.truth.workloads[workload]
            deadline_s = self.rules.deadline and self.rules.deadline * requested_s
            ask = Ask(nodes, requested_s, app, input_, str(user), self.machines.names[home], deadline_s)
            m = self._choose(ask, places.options(self._state, ask, run_s, now, backfill), rng)
            if not (isinstance(m, int | np.integer) and 0 <= m < len(places.platforms)):
                expected = f"an index below {len(places.platforms)}"
                raise SettingsError(f"policy: {self._policy} answered {m}, expected {expected}.", argument="policy")
            self._place(job, places, m, run_s, requested_s)
            if not engine.submit(self._state, places.cluster_m[m], job, now, backfill):
                self._state = engine.tidied(self._state)

    def _place_all(self) -> None:
        """Place the jobs where there is one place to go, without asking."""
        jobs = self.jobs
        columns = (self._workload_j, jobs.nodes, jobs.run_s, jobs.requested_s)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for job, (workload, nodes, run_s, requested_s) in enumerate(rows):
            places = self._atlas.places(workload, nodes, run_s)
            if isinstance(places, int):
                self._why_not_j[job] = places
            else:
                self._place(job, places, 0, run_s, requested_s)
        done = 0
        while done < len(jobs):
            done = engine.replay(self._state, done, jobs.submit_s, self._cluster_j, self.rules.backfill)
            self._state = engine.tidied(self._state)

    def _place(self, job: int, places: _Places, m: int, run_s: float, requested_s: float) -> None:
        """Write down where a job goes, how long it will run there, and its limit."""
        relative, wall_limit_s = float(places.relative_m[m]), self.rules.wall_limit_s or math.inf
        true_s, limit_s = run_s * float(places.true_m[m]), min(requested_s * relative, wall_limit_s)
        if self.rules.limits == "double":
            while limit_s < true_s:
                limit_s = min(2.0 * limit_s, wall_limit_s)
                self._doublings_j[job] += 1
        else:
            self._killed_j[job] = true_s > limit_s
            true_s = min(true_s, limit_s)
        self._mode_j[job], self._cluster_j[job] = places.mode_m[m], places.cluster_m[m]
        self._state.limit_j[job], self._state.run_j[job] = limit_s, true_s
        # Who knows that a limit must be doubled knows that the prediction was as much too short.
        self._state.expected_j[job] = run_s * relative * 2.0 ** self._doublings_j[job]

    def _outcome(self) -> Outcome:
        ran_j, state = self._cluster_j >= 0, self._state
        run_j, expected_j, limit_j = (
            np.where(ran_j, seconds_j, np.nan) for seconds_j in (state.run_j, state.expected_j, state.limit_j)
        )
        where = (self._workload_j, self._cluster_j, self._mode_j)
        times = (state.start_j, run_j, expected_j, limit_j)
        deadline_j = self.jobs.submit_s + (self.rules.deadline or np.inf) * self.jobs.requested_s
        limits = (self._doublings_j, self._killed_j, deadline_j)
        names = (self._policy, self.predictions.name, self.seed)
        return Outcome(self.jobs, self.machines, self.truth.modes, *where, *times, *limits, self._why_not_j, *names)
