"""What became of every job of a simulation: its start, its run time, and the metrics over all of them."""

# J jobs, C clusters

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from crossperf.arrays import Floats, Integers, Mask
from crossperf.display import CellView, ColumnView, RowView, TableView, number, numbers, to_html, to_text, words
from crossperf.plain import to_json
from crossperf.runs.frames import to_frame
from crossperf.schedule.jobs import Jobs
from crossperf.schedule.machines import Machines

#: Why a job could go nowhere; `Outcome.why_not` holds indices into this.
UNPLACEABLE = (
    "larger than every cluster that can run it",
    "longer than the wall-time limit",
    "in need of more memory than a node has",
)
#: The bound of the bounded slowdown: a shorter run counts as one of this length (Feitelson et al., 1997).
SHORT_S = 10.0
#: The columns of `metrics_table`.
_COLUMNS = (
    ColumnView("turnaround", "from a job's arrival to its end, in the mean"),
    ColumnView("turnaround p95", "its 95th percentile"),
    ColumnView("wait", "in the mean"),
    ColumnView("wait p95", "its 95th percentile"),
    ColumnView("slowdown", "turnaround over run, a run of less than 10 s counted as 10 s, in the mean"),
    ColumnView("slowdown p95", "its 95th percentile"),
    ColumnView("run", "in the mean"),
    ColumnView("makespan", "from the first arrival to the last end"),
    ColumnView("limits", "jobs whose limit was too short"),
)


@dataclass(frozen=True)
class JobMetrics:
    """The usual metrics of a schedule over the jobs that ran; ``None`` where no job ran.

    Turnaround is wait and run together; the bounded slowdown is turnaround over run time.
    """

    mean_wait_s: float | None
    median_wait_s: float | None
    p95_wait_s: float | None
    mean_turnaround_s: float | None
    median_turnaround_s: float | None
    p95_turnaround_s: float | None
    mean_bounded_slowdown: float | None
    median_bounded_slowdown: float | None
    p95_bounded_slowdown: float | None
    mean_run_s: float | None
    makespan_s: float
    cost: float
    energy_kwh: float = 0.0


@dataclass(frozen=True)
class JobCounts:
    """How many jobs there were of each kind; those of several simulations add up."""

    jobs: int = 0
    placed: int = 0
    unplaceable: int = 0
    limit_violations: int = 0
    limit_doublings: int = 0
    killed: int = 0
    deadlines_missed: int = 0
    failures: int = 0
    given_up: int = 0

    def __add__(self, other: JobCounts) -> JobCounts:
        return JobCounts(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True)
class ClusterUse:
    """What a cluster did: its nodes, the jobs that ran there, and the share of its node-seconds that they took."""

    nodes: int
    jobs: int
    utilisation: float


@dataclass(frozen=True, repr=False)
class Outcome:
    """What became of every job, in arrays over the jobs.

    It prints as its metrics and the use of the clusters; `to_frame` has a row for each job. `cluster` and `mode` are
    where a job ran: indices into the machines and `modes`, -1 for one that could go nowhere, whose times are NaN.
    `expected_run_s` is what was predicted, doubled as often as the limit that the prediction gave (`doublings`).
    `killed` jobs were ended at their limit. `deadline_s` is infinite where a job has no deadline. `nodes` are those
    that a job took where it ran. `arrival_s` is when it came, which differs from the trace where it followed the end of
    another. Nodes that failed under a job (`failures`) cost it `lost_node_s` node-seconds besides its last attempt,
    which counts as run even where it was `given_up` then.
    """

    jobs: Jobs
    machines: Machines
    modes: tuple[str, ...]
    workload: Integers
    cluster: Integers
    mode: Integers
    start_s: Floats
    run_s: Floats
    expected_run_s: Floats
    limit_s: Floats
    doublings: Integers
    killed: Mask
    deadline_s: Floats
    why_not: Integers
    policy: str
    predictor: str
    seed: int
    nodes: Integers
    arrival_s: Floats
    failures: Integers
    lost_node_s: Floats
    given_up: Mask

    @property
    def about(self) -> str:
        """The jobs and the clusters in words."""
        return f"{self.jobs.name} on {len(self.machines.names)} clusters of {sum(self.machines.nodes):,} nodes"

    def __repr__(self) -> str:
        return "\n".join([self.about, *map(to_text, self._views())])

    def _repr_html_(self) -> str:
        return "".join(map(to_html, self._views()))

    def _views(self) -> tuple[TableView, TableView]:
        use = use_table([self], "share of each cluster in use, and jobs that ran there")
        return metrics_table([self], self.about), use

    def to_frame(self) -> Any:
        """Return a data frame with a row for each job: pandas, or Polars where pandas is not installed."""
        return to_frame(self._columns())

    @property
    def placed(self) -> Mask:
        """Which jobs ran."""
        return self.cluster >= 0

    @property
    def end_s(self) -> Floats:
        """When each job ended."""
        return self.start_s + self.run_s

    @property
    def wait_s(self) -> Floats:
        """How long each job waited."""
        return self.start_s - self.arrival_s

    @property
    def turnaround_s(self) -> Floats:
        """How long each job took from its arrival to its end."""
        return self.end_s - self.arrival_s

    @property
    def bounded_slowdown(self) -> Floats:
        """Turnaround over run time, a run of less than 10 s counted as one of 10 s, and at least 1."""
        return np.maximum(1.0, self.turnaround_s / np.maximum(self.run_s, SHORT_S))

    @property
    def makespan_s(self) -> float:
        """Time from the first arrival to the last end; 0 where no job ran."""
        return float(np.nanmax(self.end_s) - self.jobs.submit_s.min()) if self.placed.any() else 0.0

    @property
    def utilisation(self) -> Floats:
        """Share of each cluster's node-seconds over the makespan that jobs ran on, lost attempts included."""
        return self._node_seconds() / (np.array(self.machines.nodes) * max(self.makespan_s, 1e-9))

    @property
    def cost(self) -> float:
        """Price of all node-hours that jobs ran for."""
        return float((self._node_seconds() * np.array(self.machines.price_per_node_hour)).sum() / 3600.0)

    @property
    def energy_kwh(self) -> float:
        """Energy of all nodes over the makespan, with and without a job; 0 where no power is known."""
        busy_c, machines = self._node_seconds(), self.machines
        idle_c = np.maximum(np.array(machines.nodes) * self.makespan_s - busy_c, 0.0)
        joules = (busy_c * np.array(machines.power_w)).sum() + (idle_c * np.array(machines.idle_w)).sum()
        return float(joules / 3.6e6)

    def _node_seconds(self) -> Floats:
        ran, busy_j = self.placed, self.nodes * self.run_s + self.lost_node_s
        sums_c = np.bincount(self.cluster[ran], weights=busy_j[ran], minlength=len(self.machines.names))
        return np.asarray(sums_c, np.float64)

    def metrics(self) -> JobMetrics:
        """Return the metrics over the jobs that ran."""
        waits, turnarounds, slowdowns = map(self._summary, (self.wait_s, self.turnaround_s, self.bounded_slowdown))
        sums = (self.makespan_s, self.cost, self.energy_kwh)
        return JobMetrics(*waits, *turnarounds, *slowdowns, self._summary(self.run_s)[0], *sums)

    def _summary(self, value_j: Floats) -> tuple[float | None, float | None, float | None]:
        """Return mean, median and 95th percentile over the jobs that ran."""
        ran_j = value_j[self.placed]
        if not len(ran_j):
            return None, None, None
        return float(ran_j.mean()), float(np.median(ran_j)), float(np.quantile(ran_j, 0.95))

    def counts(self) -> JobCounts:
        """Return how many jobs there were of each kind."""
        late = self.end_s[self.placed] > self.deadline_s[self.placed]
        violated = (self.doublings > 0) | self.killed
        limits = (violated, self.doublings, self.killed, late)
        sums = (self.placed, ~self.placed, *limits, self.failures, self.given_up)
        return JobCounts(len(self.jobs), *(int(kind.sum()) for kind in sums))

    def unplaceable(self) -> dict[str, int]:
        """Return how many jobs could go nowhere, by reason."""
        counts = {reason: int((self.why_not == i).sum()) for i, reason in enumerate(UNPLACEABLE)}
        return {reason: count for reason, count in counts.items() if count}

    def clusters(self) -> dict[str, ClusterUse]:
        """Return what each cluster did, by name."""
        jobs_c = np.bincount(self.cluster[self.placed], minlength=len(self.machines.names))
        uses = map(ClusterUse, self.machines.nodes, jobs_c.tolist(), self.utilisation.tolist())
        return dict(zip(self.machines.names, uses, strict=True))

    def to_json(self, *, with_jobs: bool = True) -> dict[str, Any]:
        """Return all of it as JSON's own types: the metrics, and what became of each job unless that is left out."""
        facts: dict[str, Any] = {
            "policy": self.policy,
            "predictor": self.predictor,
            "seed": self.seed,
            "counts": to_json(self.counts()),
            "unplaceable": self.unplaceable(),
            "left_out_of_trace": dict(self.jobs.left_out),
            "metrics": to_json(self.metrics()),
            "clusters": to_json(self.clusters()),
        }
        return facts | {"jobs": to_json(self._columns())} if with_jobs else facts

    def _columns(self) -> dict[str, Any]:
        """Return what became of the jobs by column, null where a job could go nowhere."""
        return {
            "submit_s": self.arrival_s,
            "nodes": self.nodes,
            "platform": [None if mode < 0 else self.modes[mode] for mode in self.mode],
            "start_s": self.start_s,
            "run_s": self.run_s,
            "expected_run_s": self.expected_run_s,
            "limit_s": self.limit_s,
            "limit_doublings": self.doublings,
            "killed": self.killed,
            "failures": self.failures,
            "why_not": [None if reason < 0 else UNPLACEABLE[reason] for reason in self.why_not],
        }


def metrics_table(outcomes: Sequence[Outcome], caption: str = "") -> TableView:
    """Return the metrics of simulations of the same jobs, a row for each."""
    priced, powered = (any(getattr(outcomes[0].machines, name)) for name in ("price_per_node_hour", "power_w"))
    rows: list[RowView] = []
    for outcome in outcomes:
        values = outcome.metrics()
        times = (values.mean_turnaround_s, values.p95_turnaround_s, values.mean_wait_s, values.p95_wait_s)
        slowdowns = (values.mean_bounded_slowdown, values.p95_bounded_slowdown)
        cells = [*map(_duration, times), *(number(slowdown, 2) for slowdown in slowdowns)]
        cells += map(_duration, (values.mean_run_s, values.makespan_s))
        cells += [number(outcome.counts().limit_violations, 0), *([number(values.cost, 2)] if priced else [])]
        cells += [number(values.energy_kwh, 1)] if powered else []
        rows.append((outcome.policy, outcome.predictor, *cells))
    more = numbers(*(["cost"] if priced else []), *(["kWh"] if powered else []))
    return TableView(caption, (*words("policy", "predictor"), *_COLUMNS, *more), tuple(rows))


def use_table(outcomes: Sequence[Outcome], caption: str = "") -> TableView:
    """Return the share of each cluster in use, and the jobs that ran there."""
    rows: list[RowView] = []
    for outcome in outcomes:
        clusters = outcome.clusters().values()
        cells = [CellView(f"{use.utilisation:.0%}, {use.jobs:,}", use.utilisation) for use in clusters]
        rows.append((outcome.policy, outcome.predictor, *cells))
    return TableView(caption, (*words("policy", "predictor"), *numbers(*outcomes[0].machines.names)), tuple(rows))


def _duration(seconds: float | None) -> CellView:
    if seconds is not None:
        for unit, length in (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
            if seconds >= 2 * length:
                return CellView(f"{seconds / length:,.1f} {unit}", seconds)
    return number(seconds, 1, unit=" s")
