"""A policy's choice for one job among queues: the functions that ``crossperf schedule`` and the Slurm tools use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from crossperf import plain
from crossperf.errors import SettingsError, did_you_mean
from crossperf.records import UNKNOWN, Prediction
from crossperf.schedule import policies
from crossperf.schedule.policies import Ask
from crossperf.schedule.slurm import ranking
from crossperf.schedule.slurm.controller import Queue
from crossperf.schedule.slurm.table import PartitionChoice, PartitionFacts

_Seconds = Annotated[float, plain.Between(0.0, 1e12)]
_Count = Annotated[int, plain.Between(0, 10**9)]
_Nodes = Annotated[int, plain.Between(1, 10**9)]


@dataclass(frozen=True)
class JobQueue:
    """A queue that a job could go to: its platform, its size, who waits, and how long a new job would wait.

    `free_nodes` of ``None`` are all of them; a price of ``None`` is that of the platform as the server knows it.
    """

    name: str
    platform: str
    nodes: _Nodes = 1
    free_nodes: _Count | None = None
    queued: _Count = 0
    wait_s: _Seconds = 0.0
    price_per_node_hour: Annotated[float, plain.Between(0.0)] | None = None


@dataclass(frozen=True)
class JobRequest:
    """What a job asks for; `requested_s` is its time limit, `pinned` the queue that its user would choose."""

    nodes: _Nodes = 1
    requested_s: _Seconds | None = None
    user: str = ""
    pinned: str | None = None
    deadline_s: _Seconds | None = None


@dataclass(frozen=True)
class QueueOption:
    """A queue as the policy saw it: predicted run time with its interval, wait and cost."""

    name: str
    platform: str
    run_s: float
    low_s: float
    high_s: float
    wait_s: float
    cost: float | None


@dataclass(frozen=True)
class QueueChoice:
    """A policy's choice: `choice` is ``None`` where the job should stay as it is, for the reason given.

    `cannot` names the queues that are not offered, with the reason.
    """

    choice: str | None
    reason: str
    policy: str
    options: tuple[QueueOption, ...]
    cannot: Mapping[str, str]


def place(
    prediction: Prediction,
    queues: Sequence[JobQueue],
    job: JobRequest | None = None,
    policy: str = "considerate",
    prices: Mapping[str, float] | None = None,
    seed: int = 0,
) -> QueueChoice:
    """Return which queue a policy chooses for a job whose run was predicted.

    Without a runtime in the run, the job's time limit stands for its time where it was profiled, and an hour without
    that. A run that looks unknown is left where it is: nothing should be changed by such a prediction.
    """
    job, prices = job or JobRequest(), prices or {}
    if policy not in policies.POLICIES:
        hint = did_you_mean(policy, policies.POLICIES)
        raise SettingsError(
            f"policy: found {policy!r}{hint}, expected one of {', '.join(policies.POLICIES)}.", argument="policy"
        )
    times = ranking.from_predictions([prediction], prediction.source)[prediction.app, "", prediction.input]
    cannot = {queue.name: _why_not(prediction, queue) for queue in queues if queue.platform not in times.spans}
    if prediction.is_unknown:
        word = f"the run looks {UNKNOWN} to the model, so nothing should be changed by its prediction"
        return QueueChoice(None, word, policy, (), cannot)
    offered = {queue.name: queue for queue in queues if queue.platform in times.spans}
    if not offered:
        return QueueChoice(
            None, "no queue is on a platform that the model knows and that can run it", policy, (), cannot
        )
    seconds = times.seconds or job.requested_s or ranking.UNKNOWN_S
    choices = [
        PartitionChoice(name, span.relative, span.low, span.high, span.runs)
        for name, queue in offered.items()
        for span in (times.spans[queue.platform],)
    ]
    facts = {name: _facts(queue, prices) for name, queue in offered.items()}
    live = ranking.LiveQueues(
        {name: _queue(queue) for name, queue in offered.items()}, lambda name, _: offered[name].wait_s
    )
    ask = Ask(
        job.nodes, job.requested_s or seconds, prediction.app, prediction.input, job.user, job.pinned, job.deadline_s
    )
    chosen = policies.make(policy)(
        ask, ranking.options(choices, seconds, facts, job.nodes, live), np.random.default_rng(seed)
    )
    options = tuple(_option(choice, offered, facts, seconds, job.nodes) for choice in choices)
    best = options[chosen]
    reason = f"{best.name} ({best.platform}): about {best.run_s:.3g} s to run after {best.wait_s:.3g} s of waiting"
    return QueueChoice(best.name, reason, policy, options, cannot)


def _why_not(prediction: Prediction, queue: JobQueue) -> str:
    known = queue.platform in prediction.relative_time
    return prediction.cannot.get(queue.platform, "not predicted") if known else "platform not known to the model"


def _facts(queue: JobQueue, prices: Mapping[str, float]) -> PartitionFacts:
    price = prices.get(queue.platform, 0.0) if queue.price_per_node_hour is None else queue.price_per_node_hour
    return PartitionFacts(queue.name, queue.platform, nodes=queue.nodes, price_per_node_hour=price)


def _queue(queue: JobQueue) -> Queue:
    free = queue.nodes if queue.free_nodes is None else queue.free_nodes
    return Queue(queue.nodes, free, queue.queued)


def _option(
    choice: PartitionChoice,
    queues: Mapping[str, JobQueue],
    facts: Mapping[str, PartitionFacts],
    seconds: float,
    nodes: int,
) -> QueueOption:
    queue, price = queues[choice.partition], facts[choice.partition].price_per_node_hour
    run_s, low_s, high_s = (seconds * own for own in (choice.relative, choice.low, choice.high))
    cost = price * nodes * run_s / 3600.0 if price else None
    return QueueOption(queue.name, queue.platform, run_s, low_s, high_s, queue.wait_s, cost)
