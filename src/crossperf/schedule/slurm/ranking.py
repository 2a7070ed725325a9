"""The order in which a policy takes the partitions, for each key of the table that the controller reads."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crossperf.schedule.policies import Ask, Options, Policy
from crossperf.schedule.slurm.controller import Queue
from crossperf.schedule.slurm.site import Site
from crossperf.schedule.slurm.table import Key, KeyRow, PartitionChoice, PartitionFacts, PlacementTable
from crossperf.schedule.slurm.workloads import WorkloadTimes, with_apps

#: Where nobody knows how long a job takes, waits are weighed as for one of an hour.
UNKNOWN_S = 3600.0


@dataclass(frozen=True)
class LiveQueues:
    """The queues of a controller, and what predicts the wait in one from the nodes of a job."""

    queues: Mapping[str, Queue]
    wait_s: Callable[[str, int], float]


def options(
    choices: Sequence[PartitionChoice],
    seconds: float,
    facts: Mapping[str, PartitionFacts],
    nodes: int,
    live: LiveQueues | None = None,
) -> Options:
    """Return choices as a policy sees them; without a live state every queue is idle."""
    names = [choice.partition for choice in choices]
    sizes = [facts[name].nodes or nodes for name in names]
    queues = [live.queues.get(name) for name in names] if live else [None] * len(names)
    return Options.of(
        names,
        run_s=[choice.relative * seconds for choice in choices],
        low_s=[choice.low * seconds for choice in choices],
        high_s=[choice.high * seconds for choice in choices],
        nodes=[queue.nodes if queue else size for queue, size in zip(queues, sizes, strict=True)],
        free_nodes=[queue.free_nodes if queue else size for queue, size in zip(queues, sizes, strict=True)],
        queued=[queue.queued if queue else 0 for queue in queues],
        price_per_node_hour=[facts[name].price_per_node_hour for name in names],
        wait_s=(lambda: np.array([live.wait_s(name, nodes) for name in names])) if live else None,
    )


def table(
    known: Mapping[Key, WorkloadTimes],
    site: Site,
    facts: Sequence[PartitionFacts],
    policy: Policy,
    policy_name: str,
    *,
    seed: int = 0,
    live: LiveQueues | None = None,
    good_for_s: int = 0,
) -> tuple[PlacementTable, int]:
    """Return the table, and how many keys were left out because fewer than two partitions can be compared for them."""
    rng = np.random.default_rng(seed)
    by_name = {partition.partition: partition for partition in facts}
    rows: dict[Key, KeyRow] = {}
    workloads = with_apps(known)
    for key, times in workloads.items():
        choices = [
            PartitionChoice(place.partition, span.relative, span.low, span.high, span.runs)
            for place in site.places
            if (span := times.spans.get(place.platform)) is not None
        ]
        if len(choices) > 1:
            app, user, input_ = key
            seconds = times.seconds or UNKNOWN_S
            ask = Ask(times.nodes, seconds, app, input_, user)
            ranked: list[PartitionChoice] = []  # what the policy takes, then what it takes of the rest, and so on
            while choices:
                ranked.append(choices.pop(policy(ask, options(choices, seconds, by_name, ask.nodes, live), rng)))
            rows[key] = KeyRow(tuple(ranked), times.seconds)
    made = int(time.time())
    expires = made + good_for_s if good_for_s else 0
    return PlacementTable(site.default, policy_name, tuple(facts), rows, made, expires), len(workloads) - len(rows)
