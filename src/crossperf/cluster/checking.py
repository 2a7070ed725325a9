"""Checks an allocation against the real cluster before anything is submitted: sinfo, then ``sbatch --test-only``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from crossperf.cluster.commands import ask, gres_of, listed, refuse_unless_up, seconds_of, start
from crossperf.cluster.site import Allocation
from crossperf.errors import did_you_mean, some_of
from crossperf.plain import whole

_FORMAT = "%R|%N|%c|%f|%G|%T|%l"
#: States, without the marks after them, in which a node takes no jobs until somebody has seen to it.
_OUT = ("down", "drained", "draining", "fail", "failing", "inval", "maint", "powered_down")


class _PartitionNode(NamedTuple):
    partition: str
    name: str
    cpus: str
    features: str
    gres: str
    state: str
    limit: str


@dataclass(frozen=True)
class AllocationCheck:
    """What the cluster says to the resources of a platform: problems, or when a job would start."""

    platform: str
    partition: str
    problems: tuple[str, ...] = ()
    wait_s: float = 0.0
    nodes: int = 0


def check(platform: str, allocation: Allocation) -> AllocationCheck:
    """Return whether the cluster would take the jobs of a platform; nothing is submitted."""
    refuse_unless_up()
    nodes = [node for node in _nodes() if node.partition == allocation.partition]
    problems = tuple(_problems(allocation, nodes))
    if problems:
        return AllocationCheck(platform, allocation.partition, problems, nodes=len(nodes))
    options = [f"--{name}" if value is True else f"--{name}={value}" for name, value in allocation.sbatch().items()]
    # Only one partition may be named, and `start` does.
    arguments = [option for option in options if not option.startswith("--partition=")]
    verdict = start(allocation.partition, [*arguments, "--wrap=true"])
    refused = (f"Slurm would refuse its jobs ({verdict.refused})",) if verdict.refused else ()
    return AllocationCheck(platform, allocation.partition, refused, verdict.wait_s, len(nodes))


def _nodes() -> list[_PartitionNode]:
    lines = ask("sinfo", "--noheader", "--Node", "--all", f"--format={_FORMAT}").splitlines()
    fields = (line.strip().split("|") for line in lines)
    return [_PartitionNode(*own) for own in fields if len(own) == len(_PartitionNode._fields)]


def _problems(allocation: Allocation, nodes: Sequence[_PartitionNode]) -> Iterator[str]:
    if not nodes:
        known = sorted({node.partition for node in _nodes()})
        name = allocation.partition
        yield f"no partition {name!r}{did_you_mean(name, known)}, expected one of {some_of(known, 20)}"
        return
    up = [node for node in nodes if node.state.rstrip("*~#!%$@^-+").lower() not in _OUT]
    if not up:
        states = sorted({node.state for node in nodes})
        yield f"none of the {len(nodes)} nodes of partition {allocation.partition} takes jobs ({', '.join(states)})"
    if allocation.nodes > len(nodes):
        yield f"nodes is {allocation.nodes}, and partition {allocation.partition} has {len(nodes)}"
    most = max(int(node.cpus.rstrip("+") or 0) for node in nodes)
    if (allocation.cpus or 0) > most:
        yield f"cpus is {allocation.cpus}, and the largest node of partition {allocation.partition} has {most}"
    yield from _missing(allocation, nodes)
    limits = [seconds_of(node.limit) for node in nodes]
    longest = None if None in limits else max(limit for limit in limits if limit is not None)
    if longest is not None and allocation.limit_s > longest:
        yield f"time is {allocation.time}, and partition {allocation.partition} allows {nodes[0].limit}"


def _missing(allocation: Allocation, nodes: Sequence[_PartitionNode]) -> Iterator[str]:
    """Yield the generic resources and features that no node has."""
    for wanted in (allocation.gres or "").split(",") if allocation.gres else ():
        name, count = _gres(wanted)
        offered = max((gres_of(node.gres).get(name, 0) for node in nodes), default=0)
        if offered < count:
            have = some_of(sorted({own for node in nodes for own in gres_of(node.gres)})) or "none"
            yield f"gres is {wanted}, and nodes of partition {allocation.partition} have {have}"
    features = {feature for node in nodes for feature in listed(node.features)}
    for word in re.findall(r"[\w.+-]+", re.sub(r"\*\d+", "", allocation.constraint or "")):
        if word not in features:
            have = some_of(sorted(features)) or "none"
            near = did_you_mean(word, features)
            yield f"constraint names {word!r}{near}, and nodes of partition {allocation.partition} have {have}"


def _gres(text: str) -> tuple[str, int]:
    """Return the name of a generic resource and how many are asked for.

    >>> _gres("gpu:a100:2"), _gres("gpu"), _gres("gres/gpu:1")
    (('gpu:a100', 2), ('gpu', 1), ('gpu', 1))
    """
    words = text.removeprefix("gres/").removeprefix("gres:").split(":")
    count = whole(words[-1]) if len(words) > 1 else None
    return ":".join(words if count is None else words[:-1]), 1 if count is None else count
