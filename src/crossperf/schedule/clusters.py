"""The clusters of a simulation behind one set of verbs: the fast engine, or the timeline where rules ask for it."""

# J jobs, C clusters, M places

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from crossperf.arrays import Floats, Integers
from crossperf.errors import SettingsError, did_you_mean, some_of
from crossperf.schedule import engine, timeline
from crossperf.schedule.jobs import Jobs
from crossperf.schedule.machines import Machines
from crossperf.schedule.rules import BACKFILLS, Maintenance, Rules


class Placement(NamedTuple):
    """Where a job goes, what it takes there, and for how long: in truth, at most, and as predicted."""

    cluster: int
    nodes: int
    run_s: float
    limit_s: float
    expected_s: float


class Fates(NamedTuple):
    """What became of each job: its last start (NaN for none) and run time, and what failures did to it."""

    nodes: Integers
    start_s: Floats
    run_s: Floats
    limit_s: Floats
    expected_s: Floats
    failures: Integers
    lost_node_s: Floats
    given_up: Integers


class Clusters(Protocol):
    """What a simulation asks of its clusters; times never go back."""

    def advance(self, now: float) -> None:
        """Let everything happen until `now`, what happens exactly then included."""

    def submit(self, job: int, place: Placement, now: float) -> None:
        """Let a job arrive; the clusters have advanced to `now`."""

    def waits(self, cluster_m: Integers, limit_m: Floats, nodes_m: Integers, now: float) -> Floats:
        """Return the predicted wait in each of several places, in seconds."""

    def state_of(self, cluster_m: Integers, now: float) -> tuple[Integers, Integers]:
        """Return the free nodes and the queued jobs of each of several places."""

    def next_event(self) -> float:
        """Return when a job ends or something else happens; infinite where nothing will."""

    def end_of(self, jobs_j: Integers) -> Floats:
        """Return when jobs end or have ended by what is known now; NaN for those that have not started."""

    def fates(self) -> Fates:
        """Return what became of all jobs."""


class FastClusters:
    """Clusters with FCFS or EASY in order of arrival (`engine`)."""

    def __init__(self, machines: Machines, jobs: Jobs, rules: Rules) -> None:
        self._rule = BACKFILLS[rules.backfill]
        self._state = engine.empty(machines.nodes, jobs.nodes)

    def advance(self, now: float) -> None:
        """Let everything happen until `now`."""
        engine.advance(self._state, now, self._rule)

    def submit(self, job: int, place: Placement, now: float) -> None:
        """Let a job arrive."""
        self.write(job, place)
        if not engine.submit(self._state, place.cluster, job, now, self._rule):
            self._state = engine.tidied(self._state)

    def write(self, job: int, place: Placement) -> None:
        """Write down what a job takes."""
        state = self._state
        state.limit_j[job], state.run_j[job], state.expected_j[job] = place.limit_s, place.run_s, place.expected_s
        if state.nodes_j[job] != place.nodes:
            engine.resize(state, job, place.nodes)

    def replay(self, submit_j: Floats, cluster_j: Integers) -> None:
        """Let jobs arrive that are written down already, those of cluster -1 left out."""
        done = 0
        while done < len(submit_j):
            done = engine.replay(self._state, done, submit_j, cluster_j, self._rule)
            self._state = engine.tidied(self._state)

    def waits(self, cluster_m: Integers, limit_m: Floats, nodes_m: Integers, now: float) -> Floats:
        """Return the predicted wait in each of several places."""
        wait_m = np.empty(len(cluster_m))
        engine.predict_waits(self._state, cluster_m, limit_m, nodes_m, now, self._rule, wait_m)
        return wait_m

    def state_of(self, cluster_m: Integers, now: float) -> tuple[Integers, Integers]:
        """Return the free nodes and the queued jobs of each of several places."""
        return self._state.free_c[cluster_m], self._state.queued_c[cluster_m]

    def next_event(self) -> float:
        """Return when a job ends next."""
        state = self._state
        ends = [state.end_cr[c, count - 1] for c, count in enumerate(state.running_c.tolist()) if count]
        return float(min(ends, default=np.inf))

    def end_of(self, jobs_j: Integers) -> Floats:
        """Return when jobs end."""
        return np.asarray(self._state.start_j[jobs_j] + self._state.run_j[jobs_j])

    def fates(self) -> Fates:
        """Return what became of all jobs."""
        state, nothing = self._state, np.zeros(len(self._state.nodes_j), np.int64)
        times = (state.start_j, state.run_j, state.limit_j, state.expected_j)
        return Fates(state.nodes_j, *times, nothing, nothing.astype(np.float64), nothing)


class TimelineClusters:
    """Clusters with conservative backfilling, priorities, outages or failures (`timeline`)."""

    def __init__(self, machines: Machines, jobs: Jobs, rules: Rules, seed: int) -> None:
        self._rule, self._jobs, self._ageing_s = BACKFILLS[rules.backfill], jobs, rules.ageing_s
        begin_s = float(jobs.submit_s.min()) if len(jobs) else 0.0
        self._state = timeline.empty(
            machines.nodes,
            jobs.nodes,
            [_outage(window, machines, begin_s) for window in rules.maintenance],
            begin_s=begin_s,
            mtbf_s=rules.node_mtbf_s,
            repair_s=rules.repair_s,
            rng=np.random.default_rng([seed, 4]),
        )

    def advance(self, now: float) -> None:
        """Let everything happen until `now`."""
        timeline.advance(self._state, now, self._rule)

    def submit(self, job: int, place: Placement, now: float) -> None:
        """Let a job arrive; a unit of priority is worth as much as having arrived that much earlier."""
        state, priority = self._state, self._jobs.priority
        head_start_s = 0.0 if priority is None or not self._ageing_s else self._ageing_s * priority[job]
        state.nodes_j[job], state.limit_j[job], state.run_j[job] = place.nodes, place.limit_s, place.run_s
        state.expected_j[job], state.key_j[job] = place.expected_s, now - head_start_s
        timeline.submit(state, place.cluster, job, now, self._rule)

    def waits(self, cluster_m: Integers, limit_m: Floats, nodes_m: Integers, now: float) -> Floats:
        """Return the predicted wait in each of several places."""
        wait_m = np.empty(len(cluster_m))
        timeline.predict_waits(self._state, cluster_m, limit_m, nodes_m, now, self._rule, wait_m)
        return wait_m

    def state_of(self, cluster_m: Integers, now: float) -> tuple[Integers, Integers]:
        """Return the free nodes and the queued jobs of each of several places."""
        free = [timeline.free_nodes(self._state, c, now) for c in cluster_m.tolist()]
        return np.array(free, np.int64), self._state.queued_c[cluster_m]

    def next_event(self) -> float:
        """Return when something happens next on a cluster that has jobs."""
        return float(timeline.next_event(self._state))

    def end_of(self, jobs_j: Integers) -> Floats:
        """Return when jobs end."""
        return np.asarray(self._state.start_j[jobs_j] + self._state.run_j[jobs_j])

    def fates(self) -> Fates:
        """Return what became of all jobs."""
        state = self._state
        times = (state.start_j, state.run_j, state.limit_j, state.expected_j)
        return Fates(state.nodes_j, *times, state.hits_j, state.lost_j, state.given_up_j)


def _outage(window: Maintenance, machines: Machines, begin_s: float) -> timeline.Outage:
    if window.machine not in machines.names:
        hint = did_you_mean(window.machine, machines.names)
        raise SettingsError(
            f"maintenance: found the machine {window.machine!r}{hint}, expected one of {some_of(machines.names)}.",
            argument="maintenance",
        )
    if not 0 <= window.start_s < window.end_s < np.inf:
        expected = "a start of 0 or more and a later end"
        times = f"{window.start_s:g} s to {window.end_s:g} s"
        raise SettingsError(
            f"maintenance: found {window.machine} from {times}, expected {expected}.", argument="maintenance"
        )
    c = machines.names.index(window.machine)
    nodes = machines.nodes[c] if window.nodes is None else window.nodes
    return timeline.Outage(c, begin_s + window.start_s, begin_s + window.end_s, nodes)


def make(machines: Machines, jobs: Jobs, rules: Rules, seed: int) -> Clusters:
    """Return clusters that keep the rules, the faster ones where they can."""
    return (
        TimelineClusters(machines, jobs, rules, seed) if rules.needs_timeline else FastClusters(machines, jobs, rules)
    )
