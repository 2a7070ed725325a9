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

#: What may be known of a node, by the name of the column and of the field.
FACTS = ("price_per_node_hour", "power_w", "idle_w", "memory_gb")


@dataclass(frozen=True)
class Machines:
    """Clusters by name, each with its nodes and facts of one of them, 0 where unknown.

    The facts are the price for an hour, the power in watts while a job runs and while none does, and the memory.
    """

    names: tuple[str, ...]
    nodes: tuple[int, ...]
    price_per_node_hour: tuple[float, ...]
    power_w: tuple[float, ...] = ()
    idle_w: tuple[float, ...] = ()
    memory_gb: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in FACTS:
            if not getattr(self, name):
                object.__setattr__(self, name, (0.0,) * len(self.names))

    @classmethod
    def of(
        cls,
        nodes: Mapping[str, int],
        price_per_node_hour: Mapping[str, float] | None = None,
        *,
        power_w: Mapping[str, float] | None = None,
        idle_w: Mapping[str, float] | None = None,
        memory_gb: Mapping[str, float] | None = None,
    ) -> Machines:
        """Return clusters from their nodes by name, and what is known of a node of each."""
        facts = (price_per_node_hour, power_w, idle_w, memory_gb)
        return cls(tuple(nodes), tuple(nodes.values()), *(tuple((f or {}).get(n, 0.0) for n in nodes) for f in facts))

    def shared(self, processors_per_node: int) -> Machines:
        """Return the clusters counted in processors, so that jobs share nodes.

        >>> Machines.of({"cpu": 4}, {"cpu": 3.2}).shared(32).price_per_node_hour
        (0.1,)
        """
        facts = (tuple(value / processors_per_node for value in getattr(self, name)) for name in FACTS)
        return Machines(self.names, tuple(nodes * processors_per_node for nodes in self.nodes), *facts)

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
    """Return a price per node-hour or another fact of a node, 0 where none is given; ``None`` for no such number.

    >>> price_of("1.5"), price_of(""), price_of("free")
    (1.5, 0.0, None)
    """
    try:
        price = float(value or 0.0)
    except (TypeError, ValueError, OverflowError):
        return None
    return price if 0.0 <= price < math.inf else None
