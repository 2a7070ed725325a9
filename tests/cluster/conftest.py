from __future__ import annotations

from tests.cluster.nodes import nodes, slurm

__all__ = ["nodes", "slurm"]
