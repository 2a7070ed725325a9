"""The known workloads that lie nearest to a run in a latent space, with what they truly took."""

# N training cells, K latent dimensions, W workloads, P platforms

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from crossperf.arrays import Floats, Integers
from crossperf.dataset.cells import Cells


@dataclass(frozen=True)
class Neighbour:
    """One known workload: how far away its nearest cell lies, and its true relative times.

    ``relative_time[p]`` is time on p over time on `relative_to`; ``None`` where it never ran.
    """

    app: str
    input: str
    distance: float
    relative_to: str
    relative_time: Mapping[str, float | None]

    def to_json(self) -> dict[str, Any]:
        """Return the neighbour as JSON's own types."""
        return asdict(self)


def nearest(
    latent_k: Floats, known_latent_bk: Floats, known_workload_b: Integers, cells: Cells, *, source: int, count: int = 5
) -> tuple[Neighbour, ...]:
    """Return the workloads with the nearest known cells, nearest first, each once.

    Parameters
    ----------
    known_latent_bk, known_workload_b
        Where known cells lie, and the number of each one's workload.
    cells
        The workloads and their true log times; NaN where one never ran.
    source
        The platform that relative times refer to; for a workload that never ran there, its fastest one.

    >>> times = np.log([[1.0, 2.0], [3.0, 3.0]])
    >>> known = Cells(("p", "q"), ("cpu", "cpu"), (("a", "1"), ("b", "1")), times, np.array([0]), np.array([0]))
    >>> nearest(np.array([4.0]), np.array([[0.0], [5.0], [1.0]]), np.array([0, 0, 1]), known, source=0)[0]
    Neighbour(app='a', input='1', distance=1.0, relative_to='p', relative_time={'p': 1.0, 'q': 2.0})
    """
    distance_b = np.linalg.norm(known_latent_bk - latent_k, axis=1)
    distance_w = np.full(len(cells.workloads), np.inf)
    np.minimum.at(distance_w, known_workload_b, distance_b)
    known_w = np.isfinite(distance_w) & ~np.isnan(cells.log_time_wp).all(axis=1)
    order_w = np.argsort(distance_w, kind="stable")
    return tuple(
        _neighbour(cells, number, float(distance_w[number]), source)
        for number in order_w[known_w[order_w]][:count].tolist()
    )


def _neighbour(cells: Cells, number: int, distance: float, source: int) -> Neighbour:
    log_time_p = cells.log_time_wp[number]
    reference = source if not np.isnan(log_time_p[source]) else int(np.nanargmin(log_time_p))
    relative_p = np.exp(log_time_p - log_time_p[reference]).tolist()
    times = {name: None if np.isnan(time) else time for name, time in zip(cells.platforms, relative_p, strict=True)}
    return Neighbour(*cells.workloads[number], distance, cells.platforms[reference], times)
