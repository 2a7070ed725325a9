"""A model's latent space on a plane: where each run lies, and which counters it lies there for."""

# N cells, K latent units, C counters

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from crossperf.dataset.build import RUNTIME, Dataset

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Cells on a map; of more, so many are drawn at random.
MOST = 3000
#: A counter with fewer measured values than this has no rank correlation to speak of.
_ENOUGH = 10


@dataclass(frozen=True)
class Driver:
    """A counter, and its rank correlations with the two axes of a map: near 1 or -1 it says where a run lies."""

    counter: str
    x: float
    y: float

    @property
    def strength(self) -> float:
        """How much of the counter the map shows: the length of its arrow, up to about 1."""
        return float(np.hypot(self.x, self.y))


@dataclass(frozen=True, eq=False)
class LatentMap:
    """Cells on the two directions in which a latent space varies most.

    ``explained`` is the share of the latent variance along each; ``unseen_n`` tells which cells were held out, and
    ``fastest_w`` which platform runs each workload fastest.
    """

    model: str
    cells: int
    workloads: tuple[tuple[str, str], ...]
    fastest_w: Integers
    workload_n: Integers
    source_n: Integers
    unseen_n: NDArray[np.bool_]
    xy_n2: Floats
    explained: tuple[float, float]
    drivers: tuple[Driver, ...]

    def __len__(self) -> int:
        return len(self.workload_n)

    @classmethod
    def of(
        cls,
        name: str,
        latent: Callable[[Floats], Floats],
        data: Dataset,
        unseen: Integers | None = None,
        seed: int = 0,
    ) -> LatentMap:
        """Return the map of a fitted model, with at most `MOST` cells of a dataset.

        Parameters
        ----------
        latent
            From the features of cells to their latent places.
        unseen
            Rows that were held out from the model.
        """
        rows = np.arange(len(data))
        if len(rows) > MOST:
            rows = np.sort(np.random.default_rng(seed).choice(rows, MOST, replace=False))
        drawn = data.take(rows)
        xy_n2, explained = _plane(latent(drawn.features_nf))
        there_w, workload_n = np.unique(drawn.workload_n, return_inverse=True)
        return cls(
            model=name,
            cells=len(data),
            workloads=tuple(data.workloads[w] for w in there_w),
            fastest_w=np.nanargmin(data.log_time_wp[there_w], axis=1),
            workload_n=workload_n.astype(np.int64),
            source_n=drawn.source_n,
            unseen_n=np.isin(rows, unseen if unseen is not None else []),
            xy_n2=xy_n2,
            explained=explained,
            drivers=_drivers(drawn, xy_n2),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the map as JSON's own types."""
        return {
            "model": self.model,
            "cells": self.cells,
            "workloads": [list(workload) for workload in self.workloads],
            "fastest": self.fastest_w.tolist(),
            "workload": self.workload_n.tolist(),
            "source": self.source_n.tolist(),
            "unseen": self.unseen_n.astype(int).tolist(),
            "xy": np.round(self.xy_n2, 4).tolist(),
            "explained": list(self.explained),
            "drivers": [[one.counter, round(one.x, 4), round(one.y, 4)] for one in self.drivers],
        }

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> LatentMap:
        """Return the map that `to_json` wrote."""
        return cls(
            model=facts["model"],
            cells=facts["cells"],
            workloads=tuple((str(app), str(input_)) for app, input_ in facts["workloads"]),
            fastest_w=np.array(facts["fastest"], dtype=np.int64),
            workload_n=np.array(facts["workload"], dtype=np.int64),
            source_n=np.array(facts["source"], dtype=np.int64),
            unseen_n=np.array(facts["unseen"], dtype=bool),
            xy_n2=np.array(facts["xy"], dtype=np.float64).reshape(-1, 2),
            explained=(facts["explained"][0], facts["explained"][1]),
            drivers=tuple(Driver(*one) for one in facts["drivers"]),
        )


def _plane(latent_nk: Floats) -> tuple[Floats, tuple[float, float]]:
    """Return the cells along the two principal directions, and each one's share of the variance.

    >>> _plane(np.array([[0.0, 0.0, 5.0], [2.0, 0.0, 5.0], [4.0, 0.0, 5.0]]))[1]
    (1.0, 0.0)
    """
    centred_nk = latent_nk - latent_nk.mean(axis=0)
    _, size_k, direction_kk = np.linalg.svd(centred_nk, full_matrices=False)
    variance_k = np.pad(size_k**2, (0, 2))
    direction_2k = np.pad(direction_kk, ((0, 2), (0, 0)))[:2]
    # A direction has no sign of its own: the largest weight is made positive, so that a map looks the same again.
    sign_2 = np.sign(direction_2k[np.arange(2), np.abs(direction_2k).argmax(axis=1)])
    total = max(float(variance_k.sum()), 1e-12)
    first, second = (float(variance / total) for variance in variance_k[:2])
    return centred_nk @ (direction_2k * np.where(sign_2 == 0, 1.0, sign_2)[:, None]).T, (first, second)


def _drivers(data: Dataset, xy_n2: Floats) -> tuple[Driver, ...]:
    """Return the counters, and the runtime, by how much of them shows on the map."""
    found = []
    for counter, values_n in zip((*data.counters, RUNTIME), (*data.counters_nc.T, data.runtime_s_n), strict=True):
        there_n = ~np.isnan(values_n)
        if there_n.sum() < _ENOUGH or values_n[there_n].min() == values_n[there_n].max():
            continue
        x, y = (_rank_correlation(values_n[there_n], axis_n[there_n]) for axis_n in xy_n2.T)
        found.append(Driver(counter, x, y))
    return tuple(sorted(found, key=lambda one: -one.strength))


def _rank_correlation(one_n: Floats, other_n: Floats) -> float:
    ranks = np.stack([rankdata(one_n), rankdata(other_n)])
    if (ranks == ranks[:, :1]).all(axis=1).any():
        return 0.0
    return float(np.corrcoef(ranks)[0, 1])
