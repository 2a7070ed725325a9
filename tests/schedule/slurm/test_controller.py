"""The state of the queues as a real controller tells it."""

from __future__ import annotations

import pytest

from crossperf.schedule.slurm import controller
from crossperf.schedule.slurm.site import Site
from tests.schedule.slurm.cluster import Cluster, until

pytestmark = pytest.mark.slow


def fill(slurm: Cluster) -> None:
    """Occupy the one node of 'big', so that what comes after waits for its turn."""
    job = slurm.submit("-pbig", "-n2", wrap="sleep 60")
    until(lambda: slurm.facts(job)["JobState"] == "RUNNING", "a job to run")


def test_only_jobs_that_wait_for_their_turn_count_as_a_queue(slurm: Cluster) -> None:
    """Twenty held jobs moved others to a partition that was six times slower."""
    fill(slurm)
    for _ in range(3):
        slurm.submit("-pbig", "--hold")
    slurm.submit("-pbig", "--begin=now+1hour")
    after = slurm.submit("-pbig", "--hold")
    slurm.submit("-pbig", f"--dependency=afterok:{after}")
    waiting = slurm.submit("-pbig", "-n2")
    until(lambda: slurm.facts(waiting)["Reason"] in ("Resources", "Priority"), "a reason to wait")
    until(lambda: controller.queues()["big"].queued == 1, "one job in the queue")


def test_each_task_of_an_array_counts(slurm: Cluster) -> None:
    fill(slurm)
    slurm.submit("-pbig", "-n2", "-a1-1000")
    until(lambda: controller.queues()["big"].queued == 1000, "a thousand tasks in the queue")
    assert controller.queues()["cpu"].queued == 0


def test_limits_are_those_of_the_partition(slurm: Cluster) -> None:
    queues = controller.queues()
    assert (queues["cpu"].limit_s, queues["cpu"].default_s) == (None, 3600.0)
    assert (queues["big"].limit_s, queues["big"].default_s) == (86400.0, None)


def test_facts_hold_the_gres_that_jobs_get(slurm: Cluster) -> None:
    facts = controller.facts(Site.of("cpu=epyc-2,gpu=h200:gres/gpu:fake:1"))
    assert [(partition.adds, partition.qos, partition.closed) for partition in facts] == [
        ("", "", ""),
        ("gpu:fake:1", "", ""),
    ]
