"""What became of every job of a simulation, and the figures that sum it up."""

# J jobs, C clusters

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossperf.schedule.jobs import Jobs
from crossperf.schedule.tables import Machines

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Why a job could go nowhere; `Outcome.why_not` holds indices into this.
UNPLACEABLE = ("no platform can run it", "larger than every cluster that can run it", "longer than the wall-time limit")
#: A job's slowdown counts as if it ran for at least so long, as is usual.
SHORT_S = 10.0


@dataclass(frozen=True)
class Outcome:
    """What became of every job, in arrays over the jobs.

    Parameters
    ----------
    cluster, mode
        Where a job ran: indices into the machines and `modes`, -1 for a job that could go nowhere.
    start_s, run_s
        NaN for a job that could go nowhere.
    expected_run_s
        What was predicted, doubled as often as the limit.
    doublings
        How often the limit that the prediction gave had to be doubled.
    killed
        Jobs that were ended at their limit.
    deadline_s
        Until when a job should have ended, infinite where it has no deadline.
    """

    jobs: Jobs
    machines: Machines
    modes: tuple[str, ...]
    workload: Ints
    cluster: Ints
    mode: Ints
    start_s: Floats
    run_s: Floats
    expected_run_s: Floats
    limit_s: Floats
    doublings: Ints
    killed: NDArray[np.bool_]
    deadline_s: Floats
    why_not: Ints
    policy: str
    predictor: str
    seed: int

    @property
    def placed(self) -> NDArray[np.bool_]:
        """Which jobs ran."""
        return self.cluster >= 0

    @property
    def end_s(self) -> Floats:
        """When each job ended."""
        return self.start_s + self.run_s

    @property
    def wait_s(self) -> Floats:
        """How long each job waited."""
        return self.start_s - self.jobs.submit_s

    @property
    def turnaround_s(self) -> Floats:
        """How long each job took from its arrival to its end."""
        return self.end_s - self.jobs.submit_s

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
        """Share of each cluster's node-seconds over the makespan that jobs ran on."""
        busy_c = self._by_cluster(self.jobs.nodes * self.run_s)
        return busy_c / (np.array(self.machines.nodes) * max(self.makespan_s, 1e-9))

    @property
    def cost(self) -> float:
        """Price of all node-hours that jobs ran for."""
        busy_c = self._by_cluster(self.jobs.nodes * self.run_s)
        return float((busy_c * np.array(self.machines.price_per_node_hour)).sum() / 3600.0)

    def _by_cluster(self, value_j: Floats) -> Floats:
        ran = self.placed
        sums_c = np.bincount(self.cluster[ran], weights=value_j[ran], minlength=len(self.machines.names))
        return np.asarray(sums_c, np.float64)

    def metrics(self) -> dict[str, float | None]:
        """Return the figures over the jobs that ran, by name; ``None`` where no job ran."""
        found: dict[str, float | None] = {}
        for name, value_j in (
            ("wait_s", self.wait_s),
            ("turnaround_s", self.turnaround_s),
            ("bounded_slowdown", self.bounded_slowdown),
        ):
            there = value_j[self.placed]
            found[f"mean_{name}"] = float(there.mean()) if len(there) else None
            found[f"median_{name}"] = float(np.median(there)) if len(there) else None
            found[f"p95_{name}"] = float(np.quantile(there, 0.95)) if len(there) else None
        found["mean_run_s"] = float(self.run_s[self.placed].mean()) if self.placed.any() else None
        return found | {"makespan_s": self.makespan_s, "cost": self.cost}

    def counts(self) -> dict[str, int]:
        """Return how many jobs there were of each kind."""
        return {
            "jobs": len(self.jobs),
            "placed": int(self.placed.sum()),
            "unplaceable": int((~self.placed).sum()),
            "limit_violations": int(((self.doublings > 0) | self.killed).sum()),
            "limit_doublings": int(self.doublings.sum()),
            "killed": int(self.killed.sum()),
            "deadlines_missed": int((self.end_s[self.placed] > self.deadline_s[self.placed]).sum()),
        }

    def unplaceable(self) -> dict[str, int]:
        """Return how many jobs could go nowhere, by reason."""
        counts = {reason: int((self.why_not == i).sum()) for i, reason in enumerate(UNPLACEABLE)}
        return {reason: count for reason, count in counts.items() if count}

    def clusters(self) -> dict[str, dict[str, float]]:
        """Return nodes, jobs and utilisation of each cluster, by name."""
        jobs_c = np.bincount(self.cluster[self.placed], minlength=len(self.machines.names))
        rows = zip(self.machines.names, self.machines.nodes, jobs_c.tolist(), self.utilisation.tolist(), strict=True)
        return {name: {"nodes": nodes, "jobs": jobs, "utilisation": share} for name, nodes, jobs, share in rows}

    def to_json(self, *, with_jobs: bool = True) -> dict[str, Any]:
        """Return all of it as JSON's own types: the figures, and the fate of each job unless told otherwise."""
        facts: dict[str, Any] = {
            "policy": self.policy,
            "predictor": self.predictor,
            "seed": self.seed,
            "counts": self.counts(),
            "unplaceable": self.unplaceable(),
            "left_out_of_trace": dict(self.jobs.left_out),
            "metrics": self.metrics(),
            "clusters": self.clusters(),
        }
        return facts | {"jobs": self._fates()} if with_jobs else facts

    def _fates(self) -> dict[str, list[Any]]:
        """Return the fate of the jobs by column, ``None`` where a job could go nowhere."""
        found: dict[str, list[Any]] = {"submit_s": self.jobs.submit_s.tolist(), "nodes": self.jobs.nodes.tolist()}
        found["platform"] = [None if mode < 0 else self.modes[mode] for mode in self.mode.tolist()]
        for name in ("start_s", "run_s", "expected_run_s", "limit_s"):
            values = getattr(self, name).tolist()
            found[name] = [None if math.isnan(value) else value for value in values]
        found["limit_doublings"], found["killed"] = self.doublings.tolist(), self.killed.tolist()
        found["why_not"] = [None if reason < 0 else UNPLACEABLE[reason] for reason in self.why_not.tolist()]
        return found
