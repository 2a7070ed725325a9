"""The known workloads that lie nearest to a run in a latent space, with what they truly took."""

# N training cells, K latent dimensions, W workloads, P platforms

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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
    latent_k: Floats,
    training_latent_nk: Floats,
    workload_n: Integers,
    workloads: Sequence[tuple[str, str]],
    log_time_wp: Floats,
    platforms: Sequence[str],
    *,
    source: int,
    count: int = 5,
) -> tuple[Neighbour, ...]:
    """Return the workloads with the nearest cells, nearest first, each once.

    Parameters
    ----------
    log_time_wp
        True log times; NaN where a workload never ran.
    source
        The platform that relative times refer to; for a workload that never ran there, its fastest one.

    >>> log_time_wp = np.log([[1.0, 2.0], [3.0, 3.0]])
    >>> cells_nk, names = np.array([[0.0], [5.0], [1.0]]), [("a", "1"), ("b", "1")]
    >>> nearest(np.array([4.0]), cells_nk, np.array([0, 0, 1]), names, log_time_wp, ["p", "q"], source=0)[0]
    Neighbour(app='a', input='1', distance=1.0, relative_to='p', relative_time={'p': 1.0, 'q': 2.0})
    """
    distance_n = np.linalg.norm(training_latent_nk - latent_k, axis=1)
    distance_w = np.full(len(workloads), np.inf)
    np.minimum.at(distance_w, workload_n, distance_n)
    known_w = np.isfinite(distance_w) & ~np.isnan(log_time_wp).all(axis=1)
    order_w = np.argsort(distance_w, kind="stable")
    found = []
    for number in order_w[known_w[order_w]][:count].tolist():
        log_time_p = log_time_wp[number]
        reference = source if not np.isnan(log_time_p[source]) else int(np.nanargmin(log_time_p))
        relative_p = np.exp(log_time_p - log_time_p[reference]).tolist()
        times = {name: None if np.isnan(time) else time for name, time in zip(platforms, relative_p, strict=True)}
        app, input_ = workloads[number]
        found.append(Neighbour(app, input_, float(distance_w[number]), platforms[reference], times))
    return tuple(found)
