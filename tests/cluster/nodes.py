"""A real Slurm without plugin and without accounting, as fixtures for the tests of jobs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.collect.real import need
from tests.schedule.slurm.cluster import PROGRAMS, Cluster

#: A job that is cancelled is ended after a second, and starts again after six: Slurm takes no less.
QUICK = """KillWait=1
InactiveLimit=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=spare Nodes=big1 PriorityTier=1 PreemptMode=REQUEUE
PartitionName=urgent Nodes=big1 PriorityTier=9 PreemptMode=OFF
"""


@pytest.fixture(scope="session")
def nodes() -> Iterator[Cluster]:
    """The controller and its nodes; gone at the end of the session."""
    need(*PROGRAMS, "srun")
    with Cluster(more=QUICK, requeue_s=5) as started:
        yield started


@pytest.fixture
def slurm(nodes: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The same cluster for one test, spoken to by Slurm's commands here, empty afterwards."""
    monkeypatch.setenv("SLURM_CONF", nodes.environment["SLURM_CONF"])
    yield nodes
    nodes.cancel_all()
