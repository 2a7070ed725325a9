"""The clusters that jobs can be placed on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from crossperf.arrays import Integers
from crossperf.errors import some_of
from crossperf.schedule.times import ScheduleTableError


@dataclass(frozen=True)
class Machines:
    """Clusters by name, each with its nodes and the price of one for an hour (0 where unknown)."""

    names: tuple[str, ...]
    nodes: tuple[int, ...]
    price_per_node_hour: tuple[float, ...]

    @classmethod
    def of(cls, nodes: Mapping[str, int], price_per_node_hour: Mapping[str, float] | None = None) -> Machines:
        """Return clusters from their nodes by name."""
        prices = price_per_node_hour or {}
        return cls(tuple(nodes), tuple(nodes.values()), tuple(prices.get(name, 0.0) for name in nodes))

    def cluster_of(self, mode: str) -> int | None:
        """Return the cluster that a mode runs on: of the same name, or with the longest name before a ``-``.

        >>> machines = Machines.of({"tioga": 30, "dane": 256})
        >>> machines.cluster_of("tioga-gpu"), machines.cluster_of("dane"), machines.cluster_of("h200")
        (0, 1, None)
        """
        fits = [name for name in self.names if mode == name or mode.startswith(f"{name}-")]
        return self.names.index(max(fits, key=len)) if fits else None

    def clusters_of(self, modes: Iterable[str], table: str = "the table") -> Integers:
        """Return the cluster of each mode, -1 where it has none; raise where no mode has one."""
        clusters = [self.cluster_of(mode) for mode in modes]
        if all(cluster is None for cluster in clusters):
            raise ScheduleTableError(
                f"{table}: found the columns {some_of(modes)}, expected at least one that is named as a machine or "
                f"MACHINE-MODE: {some_of(self.names)}."
            )
        return np.array([-1 if cluster is None else cluster for cluster in clusters])


def price_of(value: Any) -> float | None:
    """Return a price per node-hour, 0 where none is given; ``None`` for what is no number of 0 or more.

    >>> price_of("1.5"), price_of(""), price_of("free")
    (1.5, 0.0, None)
    """
    try:
        price = float(value or 0.0)
    except (TypeError, ValueError, OverflowError):
        return None
    return price if 0.0 <= price < math.inf else None
