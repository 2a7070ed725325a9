"""Policies and predictors side by side over several seeds, and which of their differences are real."""

# S seeds

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from crossperf.errors import SettingsError
from crossperf.schedule.jobs import Jobs
from crossperf.schedule.simulate import Rules, simulate
from crossperf.schedule.tables import Machines, RelativeTimes

Floats = NDArray[np.float64]
#: Told after each simulation: what was simulated, how many are done, how many there are.
Progress = Callable[[str, int, int], None]
#: Chance of calling any difference real that is none.
_ALPHA = 0.05
#: What is compared: the mean over the jobs of the time from arrival to end.
METRIC = "mean_turnaround_s"


@dataclass(frozen=True)
class Cell:
    """The figures of one policy with one predictor, each an array over the seeds; `counts` are sums over them."""

    policy: str
    predictor: str
    metrics: Mapping[str, Floats]
    counts: Mapping[str, int] = field(default_factory=dict)

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


@dataclass(frozen=True)
class Difference:
    """How the turnaround of two cells differs over the same seeds.

    Parameters
    ----------
    factor, low, high
        Turnaround of the first over that of the second, the geometric mean over the seeds, and its 95 % interval.
    p
        Chance of a difference so large where there is none (paired t-test on logs), corrected after Holm for the number
        of differences that are looked at.
    """

    first: Cell
    second: Cell
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
        sides = {
            side: {"policy": cell.policy, "predictor": cell.predictor}
            for side, cell in (("first", self.first), ("second", self.second))
        }
        return {**sides, "factor": self.factor, "low": self.low, "high": self.high, "p": self.p, "real": self.real}


@dataclass(frozen=True)
class Comparison:
    """Every policy with every predictor over the same seeds."""

    seeds: tuple[int, ...]
    cells: tuple[Cell, ...]
    differences: tuple[Difference, ...]
    counts: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON's own types."""
        return {
            "format": 1,
            "seeds": list(self.seeds),
            "counts": dict(self.counts),
            "cells": [
                {
                    "policy": cell.policy,
                    "predictor": cell.predictor,
                    "metrics": {name: value_s.tolist() for name, value_s in cell.metrics.items()},
                    "mean": {name: cell.interval(name)[0] for name in cell.metrics},
                    "half_width": {name: cell.interval(name)[1] for name in cell.metrics},
                    "counts": dict(cell.counts),
                }
                for cell in self.cells
            ],
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
) -> Comparison:
    """Return what becomes of the jobs under each policy with each predictor, on the same jobs for each seed.

    Parameters
    ----------
    jobs_of
        The jobs of a seed; a trace is the same for all, and its workloads are drawn by the seed.
    """
    if len(set(seeds)) < len(seeds) or not seeds:
        raise SettingsError("--seeds: expected one seed or more, each once.")
    pairs = [(policy, table) for policy in policies for table in predictors]
    found: dict[tuple[str, str], list[dict[str, float]]] = {(policy, table.name): [] for policy, table in pairs}
    if len(found) < len(pairs):
        raise SettingsError("--policy and --predictions: found a name twice, expected each once.")
    counts: dict[tuple[str, str], Counter[str]] = {pair: Counter() for pair in found}
    for i, seed in enumerate(seeds):
        jobs = jobs_of(seed)
        for j, (policy, table) in enumerate(pairs):
            outcome = simulate(jobs, machines, truth, table, policy, rules=rules, seed=seed)
            found[policy, table.name].append({name: value or 0.0 for name, value in _figures(outcome.metrics())})
            counts[policy, table.name].update(outcome.counts())
            if progress:
                progress(f"{policy} with {table.name}, seed {seed}", i * len(pairs) + j + 1, len(seeds) * len(pairs))
    cells = [
        Cell(*pair, {metric: np.array([row[metric] for row in rows]) for metric in rows[0]}, counts[pair])
        for pair, rows in found.items()
    ]
    total: Counter[str] = Counter()
    for one in counts.values():
        total.update(one)
    return Comparison(tuple(seeds), tuple(cells), tuple(differences(cells)), total)


def _figures(metrics: Mapping[str, float | None]) -> Iterator[tuple[str, float | None]]:
    if metrics[METRIC] is None:
        raise SettingsError("no job can be placed, so there is nothing to compare. Check machines and times.")
    return iter(metrics.items())


def differences(cells: Sequence[Cell]) -> list[Difference]:
    """Return how cells differ that share a policy or a predictor; none with a single seed."""
    pairs = [
        (first, second)
        for first, second in combinations(cells, 2)
        if first.policy == second.policy or first.predictor == second.predictor
    ]
    if not pairs or len(pairs[0][0].metrics[METRIC]) < 2:
        return []
    tests = [_paired(first.metrics[METRIC], second.metrics[METRIC]) for first, second in pairs]
    corrected = holm([p for *_, p in tests])
    return [
        Difference(first, second, factor, low, high, p)
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
