"""Policies and predictors side by side over several seeds, and which of their differences are real."""

# S seeds

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

from crossperf.arrays import Floats
from crossperf.display import CellView, RowView, TableView, numbers, to_html, to_text, words
from crossperf.errors import SettingsError
from crossperf.plain import to_json
from crossperf.runs.frames import to_frame
from crossperf.schedule.jobs import Jobs
from crossperf.schedule.machines import Machines
from crossperf.schedule.outcome import JobCounts, JobMetrics
from crossperf.schedule.pieces import STUDY, questions, scores_of, simulated
from crossperf.schedule.rules import Rules
from crossperf.schedule.times import RelativeTimes
from crossperf.workers import Here, Kept, Progress, Workers

#: Chance of calling any difference real that is none.
_ALPHA = 0.05
#: What is compared: the mean over the jobs of the time from arrival to end.
METRIC = "mean_turnaround_s"
#: The metrics that a table shows, where any of them is not zero.
_SHOWN = ("mean_turnaround_s", "mean_wait_s", "mean_bounded_slowdown", "mean_run_s", "makespan_s", "cost", "energy_kwh")


@dataclass(frozen=True)
class PolicyScores:
    """The metrics of one policy with one predictor, each an array over the seeds; `counts` are sums over them."""

    policy: str
    predictor: str
    metrics: Mapping[str, Floats]
    counts: JobCounts = field(default_factory=JobCounts)

    @property
    def name(self) -> str:
        """The policy and the predictor in words."""
        return f"{self.policy} with {self.predictor}"

    def interval(self, metric: str) -> tuple[float, float | None]:
        """Return the mean over the seeds and half the width of its 95 % interval; ``None`` with a single seed."""
        value_s = self.metrics[metric]
        if len(value_s) < 2:
            return float(value_s.mean()), None
        return float(value_s.mean()), float(_student(len(value_s)) * value_s.std(ddof=1) / np.sqrt(len(value_s)))

    def to_json(self) -> dict[str, Any]:
        """Return the metrics of each seed, their means and intervals as JSON's own types."""
        intervals = {name: self.interval(name) for name in self.metrics}
        means = {name: mean for name, (mean, _) in intervals.items()}
        halves = {name: half for name, (_, half) in intervals.items()}
        return {**to_json(self), "mean": means, "half_width": halves}


@dataclass(frozen=True)
class TurnaroundDifference:
    """How the mean turnaround of two combinations of policy and predictor differs over the same seeds.

    `factor` is the turnaround of the first over that of the second, the geometric mean over the seeds, with its 95 %
    interval. `p` is the chance of a difference this large where there is none (paired t-test on logs), corrected after
    Holm for the number of differences that are looked at.
    """

    first: PolicyScores
    second: PolicyScores
    factor: float
    low: float
    high: float
    p: float

    @property
    def real(self) -> bool:
        """Whether it is more than chance."""
        return self.p < _ALPHA

    def to_json(self) -> dict[str, Any]:
        """Return the difference as JSON's own types."""
        first, second = ({"policy": side.policy, "predictor": side.predictor} for side in (self.first, self.second))
        return {**to_json(self), "first": first, "second": second, "real": self.real}


@dataclass(frozen=True, repr=False)
class Comparison:
    """Every policy with every predictor over the same seeds; `to_frame` has a row for each combination."""

    seeds: tuple[int, ...]
    scores: tuple[PolicyScores, ...]
    differences: tuple[TurnaroundDifference, ...]

    @property
    def about(self) -> str:
        """What the numbers of the table are."""
        return f"mean over {len(self.seeds)} seeds ({self.seeds[0]} to {self.seeds[-1]}) ± half of its 95 % interval"

    def __repr__(self) -> str:
        real = sum(difference.real for difference in self.differences)
        last = f"{real} of {len(self.differences)} differences in mean turnaround are real"
        return "\n".join([self.about, to_text(self.table()), last])

    def _repr_html_(self) -> str:
        return to_html(self.table(self.about))

    def table(self, caption: str = "") -> TableView:
        """Return the mean metrics over the seeds, with half of their 95 % intervals, as a table for people."""
        shown = [name for name in _SHOWN if any(scores.metrics[name].any() for scores in self.scores)]
        rows: list[RowView] = []
        for scores in self.scores:
            rows.append((scores.policy, scores.predictor, *(_cell(*scores.interval(name)) for name in shown)))
        return TableView(caption, (*words("policy", "predictor"), *numbers(*shown)), tuple(rows))

    def to_frame(self) -> Any:
        """Return the mean of each metric over the seeds and half of its 95 % interval as a data frame."""
        columns: dict[str, Sequence[Any]] = {
            name: [getattr(scores, name) for scores in self.scores] for name in ("policy", "predictor")
        }
        for name in self.scores[0].metrics:
            columns[name], columns[f"{name}_half_width"] = zip(*(s.interval(name) for s in self.scores), strict=True)
        return to_frame(columns)

    @property
    def counts(self) -> JobCounts:
        """The jobs of all simulations."""
        return sum((scores.counts for scores in self.scores), JobCounts())

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON's own types."""
        return {
            "format": 1,
            "seeds": list(self.seeds),
            "counts": to_json(self.counts),
            "cells": [scores.to_json() for scores in self.scores],
            "compared": METRIC,
            "differences": [difference.to_json() for difference in self.differences],
        }


def compare(
    jobs_of: Callable[[int], Jobs],
    machines: Machines,
    truth: RelativeTimes,
    predictors: Sequence[RelativeTimes],
    policies: Sequence[str],
    seeds: Sequence[int],
    *,
    rules: Rules | None = None,
    progress: Progress | None = None,
    workers: Workers | None = None,
    kept: Kept | None = None,
) -> Comparison:
    """Return what becomes of the jobs under each policy with each predictor, on the same jobs for each seed.

    Parameters
    ----------
    jobs_of
        The jobs of a seed; a trace is the same for all, and its workloads are drawn by the seed.
    predictors
        What the policies see, each aligned with the truth (`times.aligned`) and of its own name.
    rules
        What holds for all jobs; ``None`` takes the defaults of `Rules`.
    progress
        Called after each simulation.
    workers, kept
        What simulates (``crossperf.workers.processes(4)``), and a folder of finished simulations
        (``crossperf.workers.Kept``); ``None`` is this process, which keeps none. Policies of your own are then
        ``FILE.py:FUNCTION``.

    Returns
    -------
    Comparison
        The metrics of each combination, and which differences in mean turnaround are more than chance.

    >>> from crossperf.schedule.synthetic import draw
    >>> machines = Machines.of({"cpu": 64, "gpu": 8})
    >>> truth = RelativeTimes.of([("lu", "n=64")], ["cpu", "gpu"], np.array([[1.0, 0.25]]))
    >>> drawn = lambda seed: draw(100, machines, truth, seed=seed)
    >>> result = compare(drawn, machines, truth, [truth], ["random", "turnaround"], seeds=[0, 1, 2])
    >>> [scores.name for scores in result.scores], len(result.differences)
    (['random with times', 'turnaround with times'], 1)
    """
    if len(set(seeds)) < len(seeds) or not seeds:
        raise SettingsError(f"seeds: found {list(seeds)}, expected at least one, each once.", argument="seeds")
    pairs = [(policy, table) for policy in policies for table in predictors]
    if len({(policy, table.name) for policy, table in pairs}) < len(pairs):
        raise SettingsError("policies and predictors: found a name twice, expected each once.")
    if workers is None and kept is None:
        outcomes = _simulated_here(jobs_of, machines, truth, pairs, seeds, rules, progress)
    else:
        chosen = rules or Rules()
        asked = [
            question for seed in seeds for question in questions(jobs_of(seed), machines, truth, pairs, chosen, seed)
        ]
        by_place = dict(STUDY.answers(asked, workers or Here(), kept, progress))
        rows_of = [[by_place[i * len(pairs) + j] for i in range(len(seeds))] for j in range(len(pairs))]
        outcomes = [[scores_of(answer) for answer in rows] for rows in rows_of]
    scores = []
    for (policy, table), rows in zip(pairs, outcomes, strict=True):
        metrics = {part.name: np.array([getattr(row, part.name) for row, _ in rows]) for part in fields(JobMetrics)}
        scores.append(PolicyScores(policy, table.name, metrics, sum((counts for _, counts in rows), JobCounts())))
    return Comparison(tuple(seeds), tuple(scores), tuple(differences(scores)))


def _simulated_here(
    jobs_of: Callable[[int], Jobs],
    machines: Machines,
    truth: RelativeTimes,
    pairs: Sequence[tuple[str, RelativeTimes]],
    seeds: Sequence[int],
    rules: Rules | None,
    progress: Progress | None,
) -> list[list[tuple[JobMetrics, JobCounts]]]:
    """Return what becomes of the jobs with each pair, seed by seed, in this process."""
    outcomes: list[list[tuple[JobMetrics, JobCounts]]] = [[] for _ in pairs]
    for i, seed in enumerate(seeds):
        jobs = jobs_of(seed)
        for j, (policy, table) in enumerate(pairs):
            outcomes[j].append(simulated(jobs, machines, truth, table, policy, rules, seed))
            if progress:
                progress(f"{policy} with {table.name}, seed {seed}", i * len(pairs) + j + 1, len(seeds) * len(pairs))
    return outcomes


def differences(scores: Sequence[PolicyScores]) -> list[TurnaroundDifference]:
    """Return how combinations differ that share a policy or a predictor; none with a single seed."""
    pairs = [(a, b) for a, b in combinations(scores, 2) if a.policy == b.policy or a.predictor == b.predictor]
    if not pairs or len(pairs[0][0].metrics[METRIC]) < 2:
        return []
    tests = [_paired(first.metrics[METRIC], second.metrics[METRIC]) for first, second in pairs]
    corrected = holm([p for *_, p in tests])
    return [
        TurnaroundDifference(first, second, factor, low, high, p)
        for (first, second), (factor, low, high, _), p in zip(pairs, tests, corrected, strict=True)
    ]


def _paired(first_s: Floats, second_s: Floats) -> tuple[float, float, float, float]:
    """Return the factor between two rows over the same seeds, its 95 % interval, and the chance of it by luck."""
    log_s = np.log(first_s / second_s)
    mean, error = log_s.mean(), log_s.std(ddof=1) / np.sqrt(len(log_s))
    half = _student(len(log_s)) * error
    certain = np.inf if mean else 0.0
    p = 2.0 * float(stats.t.sf(abs(mean) / error if error else certain, len(log_s) - 1))
    return float(np.exp(mean)), float(np.exp(mean - half)), float(np.exp(mean + half)), p


def _cell(mean: float, half: float | None) -> CellView:
    return CellView(f"{mean:,.1f}" + ("" if half is None else f" ± {half:,.1f}"), mean)


def _student(count: int) -> float:
    return float(stats.t.ppf(0.975, count - 1))


def holm(p: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number, so that all that stay below a level are real with that level.

    >>> [round(value, 3) for value in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p)
    scaled = np.array(p)[order] * np.arange(len(p), 0, -1)
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return corrected.tolist()
