"""The order in which policies take the partitions, with idle queues and with live ones."""

from __future__ import annotations

import numpy as np
import pytest

from crossperf.schedule import policies
from crossperf.schedule.policies import Ask, Options
from crossperf.schedule.slurm import ranking
from crossperf.schedule.slurm.controller import Queue, bare_facts
from crossperf.schedule.slurm.ranking import LiveQueues, Span, WorkloadTimes
from tests.schedule.slurm.conftest import FACTS, SITE, order, table_of

KNOWN = {
    ("lmp", "", "melt"): WorkloadTimes(
        {"epyc-2": Span(1, 1, 1), "genoa": Span(0.5, 0.5, 0.5), "h200": Span(0.1, 0.1, 0.1)}, 100.0
    )
}


def busy(**waits: float) -> LiveQueues:
    queues = {
        partition.partition: Queue(partition.nodes or 1, 0 if waits.get(partition.partition) else 1, 5)
        for partition in FACTS
    }
    return LiveQueues(queues, lambda name, nodes: waits.get(name, 0.0))


def test_a_policy_sees_idle_queues_or_the_live_ones() -> None:
    key = ("lmp", "", "melt")
    assert order(table_of(KNOWN, "turnaround"), key) == ["gpu", "big", "cpu"]
    assert order(table_of(KNOWN, "turnaround", busy(gpu=200.0)), key) == ["big", "cpu", "gpu"]
    assert order(table_of(KNOWN, "fastest", busy(gpu=200.0)), key) == ["gpu", "big", "cpu"]
    assert order(table_of(KNOWN, "fastest-available", busy(gpu=200.0, big=9.0)), key) == ["cpu", "gpu", "big"]
    assert order(table_of(KNOWN, "wait-time", busy(cpu=1.0, gpu=200.0, big=9.0)), key) == ["cpu", "big", "gpu"]


@pytest.mark.parametrize("name", list(policies.POLICIES))
def test_every_policy_of_the_simulator_makes_a_table(name: str) -> None:
    for live in (None, busy(gpu=100.0)):
        assert sorted(order(table_of(KNOWN, name, live), ("lmp", "", "melt"))) == ["big", "cpu", "gpu"]


def test_the_very_function_that_the_simulator_calls_is_called_with_the_job() -> None:
    seen: list[tuple[Ask, list[str]]] = []

    def spy(ask: Ask, options: Options, rng: np.random.Generator) -> int:
        seen.append((ask, list(options.platforms)))
        return policies.fastest(ask, options, rng)

    ranking.table(KNOWN, SITE, bare_facts(SITE), spy, "spy")
    assert seen[0] == (Ask(1, 100.0, "lmp", "melt"), ["cpu", "big", "gpu"])
    assert [names for _, names in seen[:3]] == [["cpu", "big", "gpu"], ["cpu", "big"], ["cpu"]]
