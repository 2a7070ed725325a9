"""The state of a live Slurm controller: its partitions, nodes and queues, and when a job would start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from crossperf.cluster.commands import ControllerError, Start, ask, gres_of, listed, refuse_unless_up, seconds_of, start
from crossperf.schedule.slurm.site import Place, Site
from crossperf.schedule.slurm.table import PartitionFacts

__all__ = ["ControllerError", "Queue", "Start", "ask", "gres_of", "refuse_unless_up", "seconds_of", "start"]

#: How sinfo prints the fields of `_Node`.
_NODE_FORMAT = "%R|%c|%m|%f|%G|%T|%l|%L"
#: Why a job waits for its turn; other reasons, such as a hold or a later start, keep nobody behind it waiting.
WAITS_FOR_ITS_TURN = ("None", "Priority", "Resources")
#: Limits of a QOS. MinTRES comes first: a job that gets a GPU there may satisfy it.
_QOS_LIMITS = (
    "MinTRES",
    *("MaxTRES", "MaxTRESPerNode", "MaxTRESMins", "MaxWall"),
    *("MaxTRESPerUser", "MaxJobsPerUser", "MaxSubmitJobsPerUser"),
    *("MaxTRESPerAccount", "MaxJobsPerAccount", "MaxSubmitJobsPerAccount"),
    *("GrpTRES", "GrpTRESMins", "GrpJobs", "GrpSubmitJobs", "GrpWall"),
)


@dataclass(frozen=True)
class Queue:
    """The state of a partition: its nodes, those that are idle, and the jobs that wait for their turn.

    `limit_s` is its longest time limit, `default_s` the one of a job that asks for none; ``None`` where there is none.
    """

    nodes: int
    free_nodes: int
    queued: int
    limit_s: float | None = None
    default_s: float | None = None


class _Node(NamedTuple):
    """A node of a partition as sinfo prints it."""

    partition: str
    cpus: str
    memory_mb: str
    features: str
    gres: str
    state: str
    limit: str
    default: str


def partitions() -> dict[str, bool]:
    """Return the partitions of the controller, and whether each is the default one."""
    refuse_unless_up()
    return {name: words.get("Default") == "YES" for name, words in _partition_words().items()}


def _partition_words() -> dict[str, dict[str, str]]:
    """Return what is set for each partition, as scontrol names it."""
    lines = ask("scontrol", "--oneliner", "show", "partition").splitlines()
    several = (dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines)
    return {words["PartitionName"]: words for words in several if "PartitionName" in words}


class _Rules:
    """What the configuration and the accounting database say of who may go where."""

    def __init__(self) -> None:
        self.partitions = _partition_words()
        self._default = next((words for words in self.partitions.values() if words.get("Default") == "YES"), {})
        pairs = (line.partition("=") for line in ask("scontrol", "show", "config").splitlines())
        config = {name.strip(): value.strip() for name, _, value in pairs}
        self._preempts = config.get("PreemptType", "preempt/none") != "preempt/none"
        self._accounting = config.get("AccountingStorageType", "").endswith("slurmdbd")
        self._qos: dict[str, dict[str, str]] | None = None
        self._by_partition = self._accounting and self._associations_name_partitions()

    def _associations_name_partitions(self) -> bool:
        try:
            return bool(
                ask("sacctmgr", "--noheader", "--parsable2", "show", "associations", "format=Partition").strip()
            )
        except ControllerError:
            return False  # an ordinary user may not ask; a job is checked by the controller all the same

    def _limits_of(self, qos: str) -> dict[str, str] | None:
        """Return the limits of a QOS that are set, ``None`` where they cannot be read."""
        if self._qos is None:
            self._qos = {}
            columns = ("Name", *_QOS_LIMITS)
            try:
                text = ask("sacctmgr", "--noheader", "--parsable2", "show", "qos", f"format={','.join(columns)}")
            except ControllerError:
                text = ""
            for line in text.splitlines():
                name, *limits = line.split("|")
                self._qos[name] = {what: limit for what, limit in zip(_QOS_LIMITS, limits, strict=False) if limit}
        return self._qos.get(qos)

    def of(self, place: Place) -> tuple[str, str]:
        """Return the QOS of a partition if it lets every job in, and why no job is sent to the partition, if any."""
        words = self.partitions.get(place.partition)
        if words is None:
            return "", ""
        qos = words.get("QoS", "N/A")
        if words is not self._default:
            if self._by_partition:
                return "", "associations name partitions, so that not everybody may run there"
            tier, own = (int(each.get("PriorityTier", "1")) for each in (words, self._default))
            if self._preempts and words.get("PreemptMode") != "OFF" and tier < own:
                return "", "its jobs can be preempted"
        if qos == "N/A":
            return "", ""
        limits = self._limits_of(qos)
        if limits is None:
            return "", f"the limits of its QOS {qos} cannot be read"
        given = {f"gres/{name}": count for name, count in gres_of(place.gres).items()}
        if "MinTRES" in limits and all(
            given.get(name, 0) >= int(count)
            for name, _, count in (w.partition("=") for w in limits["MinTRES"].split(","))
        ):
            del limits["MinTRES"]
        return (qos, "") if not limits else ("", f"its QOS {qos} sets {', '.join(limits)}")


def _nodes() -> dict[str, list[_Node]]:
    nodes: dict[str, list[_Node]] = {}
    for line in ask("sinfo", "--noheader", "--Node", f"--format={_NODE_FORMAT}").splitlines():
        fields = line.strip().split("|")
        if len(fields) == len(_Node._fields):
            nodes.setdefault(fields[0], []).append(_Node(*fields))
    return nodes


def facts(site: Site) -> tuple[PartitionFacts, ...]:
    """Return what the nodes of each partition of a site all have; partitions that do not exist are left bare."""
    refuse_unless_up()
    nodes, rules = _nodes(), _Rules()
    return tuple(_facts(place, nodes.get(place.partition, []), *rules.of(place)) for place in site.places)


def bare_facts(site: Site) -> tuple[PartitionFacts, ...]:
    """Return the partitions of a site with nothing known of their nodes."""
    return tuple(_facts(place, []) for place in site.places)


def _facts(place: Place, nodes: Sequence[_Node], qos: str = "", closed: str = "") -> PartitionFacts:
    names, price = (place.partition, place.platform), place.price_per_node_hour
    if not nodes:
        return PartitionFacts(*names, price_per_node_hour=price, adds=place.gres, qos=qos, closed=closed)
    cpus, memory_mb = min(int(node.cpus) for node in nodes), min(int(node.memory_mb.rstrip("+")) for node in nodes)
    features = set.intersection(*(set(listed(node.features)) for node in nodes))
    offers = [gres_of(node.gres) for node in nodes]
    gres = {name: min(offer[name] for offer in offers) for name in sorted(set.intersection(*map(set, offers)))}
    have = PartitionFacts(*names, len(nodes), cpus, memory_mb, tuple(sorted(features)), gres, price)
    return replace(have, adds=place.gres, qos=qos, closed=closed)


def queues() -> dict[str, Queue]:
    """Return the state of every partition."""
    refuse_unless_up()
    waiting: Counter[str] = Counter()
    # Each task of an array has a line of its own, and so do the partitions of a list.
    for line in ask("squeue", "--noheader", "--array", "--states=PENDING", "--format=%r|%P").splitlines():
        reason, _, names = line.strip().partition("|")
        if reason in WAITS_FOR_ITS_TURN:
            waiting.update(names.split(","))
    states = {}
    for name, nodes in _nodes().items():
        # Marks after the state, such as in idle~, stand for power saving and lost contact.
        idle = sum(node.state.rstrip("*~#!%$@^-") == "idle" for node in nodes)
        states[name] = Queue(len(nodes), idle, waiting[name], *map(seconds_of, (nodes[0].limit, nodes[0].default)))
    return states
