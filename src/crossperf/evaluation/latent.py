"""A model's latent space on its two principal components, and the counters that correlate with them."""

# N cells, K latent units, C counters

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.stats import rankdata

from crossperf import plain
from crossperf.arrays import Floats, Integers, Mask, axes_of, refuse_outside
from crossperf.dataset.features import MEASURED, RUN_TIME, Features
from crossperf.dataset.pairing import Dataset
from crossperf.model.fitted.model import LatentSpace

#: Cells on a map; of more, a random sample of this size.
MOST = 3000
_ENOUGH = 10  # a counter with fewer measured values than this has no rank correlation to speak of


@dataclass(frozen=True)
class Driver:
    """A counter, and its rank correlations with the two axes of a map; near 1 or -1 it determines the place."""

    counter: str
    x: float
    y: float

    @property
    def strength(self) -> float:
        """How much of the counter the map shows: the length of its arrow, up to about 1."""
        return float(np.hypot(self.x, self.y))


@dataclass(frozen=True, eq=False, repr=False)
class LatentMap:
    """Cells on the first two principal components of a latent space.

    ``explained`` is the share of the latent variance along each; ``unseen_n`` marks the held-out cells, and
    ``fastest_w`` is the platform that runs each workload fastest.
    """

    model: str
    cells: int
    workloads: tuple[tuple[str, str], ...]
    fastest_w: Integers = field(metadata={"json": "fastest"})
    workload_n: Integers = field(metadata={"json": "workload"})
    source_n: Integers = field(metadata={"json": "source"})
    unseen_n: Mask = field(metadata={"json": "unseen"})
    xy_n2: Floats = field(metadata={"json": "xy"})
    explained: tuple[float, float]
    drivers: tuple[Driver, ...]

    def __post_init__(self) -> None:
        axes, number = axes_of(self), len(self)
        if axes.get("n", 0) != number or axes.get("w", 0) != len(self.workloads) or self.xy_n2.size != 2 * number:
            raise ValueError("the columns of the latent map do not fit together")
        refuse_outside("workload", self.workload_n, len(self.workloads))
        if np.isnan(self.xy_n2).any() or (self.fastest_w < 0).any() or (self.source_n < 0).any():
            raise ValueError("the latent map holds places or platforms that are none")

    def __len__(self) -> int:
        return len(self.workload_n)

    def __repr__(self) -> str:
        shares = " and ".join(f"{share:.0%}" for share in self.explained)
        return f"Latent space of {self.model}: {len(self):,} of {self.cells:,} cells; components explain {shares}"

    @classmethod
    def of(
        cls, name: str, space: LatentSpace, data: Dataset, unseen: Integers | None = None, seed: int = 0
    ) -> LatentMap:
        """Return the map of a fitted model, with at most `MOST` cells of a dataset.

        Parameters
        ----------
        space
            What places features in a latent space.
        unseen
            Rows that were held out from the model.
        """
        rows = sample(len(data), MOST, seed)
        drawn = data.take(rows)
        xy_n2, explained = _plane(space.latent(drawn.features))
        own = drawn.compact()
        return cls(
            model=name,
            cells=len(data),
            workloads=own.workloads,
            fastest_w=np.nanargmin(own.log_time_wp, axis=1),
            workload_n=own.workload_n,
            source_n=own.source_n,
            unseen_n=np.isin(rows, unseen if unseen is not None else []),
            xy_n2=xy_n2,
            explained=explained,
            drivers=_drivers(drawn.features, xy_n2),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the map as JSON's own types, its places rounded."""
        facts: dict[str, Any] = plain.to_json(replace(self, xy_n2=np.round(self.xy_n2, 4)))
        return facts


def sample(number: int, most: int, seed: int) -> Integers:
    """Return the indices that are drawn: all, or the same random sample each time."""
    if number <= most:
        return np.arange(number)
    return np.sort(np.random.default_rng(seed).choice(number, most, replace=False))


def _plane(latent_nk: Floats) -> tuple[Floats, tuple[float, float]]:
    """Return the cells on the first two principal components, and the share of the variance of each."""
    centred_nk = latent_nk - latent_nk.mean(axis=0)
    _, size_k, direction_kk = np.linalg.svd(centred_nk, full_matrices=False)
    variance_k = np.pad(size_k**2, (0, 2))
    direction_2k = np.pad(direction_kk, ((0, 2), (0, 0)))[:2]
    # A direction has no sign of its own: the largest weight is made positive, so that a map looks the same again.
    sign_2 = np.sign(direction_2k[np.arange(2), np.abs(direction_2k).argmax(axis=1)])
    total = max(float(variance_k.sum()), 1e-12)
    first, second = (float(variance / total) for variance in variance_k[:2])
    return centred_nk @ (direction_2k * np.where(sign_2 == 0, 1.0, sign_2)[:, None]).T, (first, second)


def _drivers(features: Features, xy_n2: Floats) -> tuple[Driver, ...]:
    """Return the counters and events, and the runtime, by how much of them shows on the map."""
    drivers = []
    for column in np.flatnonzero(features.columns.mask(*MEASURED, RUN_TIME)):
        values_n = features.values_nf[:, column]
        known_n = ~np.isnan(values_n)
        if known_n.sum() >= _ENOUGH and np.ptp(values_n[known_n]) > 0:
            x, y = (_rank_correlation(values_n[known_n], axis_n[known_n]) for axis_n in xy_n2.T)
            drivers.append(Driver(features.columns.names[column], x, y))
    return tuple(sorted(drivers, key=lambda driver: -driver.strength))


def _rank_correlation(first_n: Floats, second_n: Floats) -> float:
    ranks = np.stack([rankdata(first_n), rankdata(second_n)])
    if (ranks == ranks[:, :1]).all(axis=1).any():
        return 0.0
    return float(np.corrcoef(ranks)[0, 1])
