"""What a live Slurm controller says: its partitions, its nodes, its queues, and when a job would start."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crossperf.errors import CrossperfError
from crossperf.schedule.slurm.site import Site
from crossperf.schedule.slurm.submission import seconds_of
from crossperf.schedule.slurm.table import Facts

#: A controller that does not answer within this time counts as unreachable.
_PATIENCE_S = 10.0
_PING_PATIENCE_S = 3.0
_NODE_FORMAT = "%R|%N|%c|%m|%f|%G|%T|%l"


class ControllerError(CrossperfError):
    """The controller cannot be reached, or one of Slurm's commands is not there."""


@dataclass(frozen=True)
class Queue:
    """The state of a partition: its nodes, those that are idle, the jobs that wait, and its limit if it has one."""

    nodes: int
    free_nodes: int
    queued: int
    limit_s: float | None = None


@dataclass(frozen=True)
class Start:
    """When a job would start in a partition, or the reason why it cannot run there."""

    wait_s: float = 0.0
    refused: str | None = None


def ask(*command: str, env: Mapping[str, str] | None = None, patience_s: float = _PATIENCE_S) -> str:
    """Return what one of Slurm's commands prints; raise where it fails."""
    done = _run(command, None, env, patience_s)
    if done.returncode:
        reason = _last_line(done.stderr or done.stdout)
        raise ControllerError(f"{command[0]} failed ({reason}).", command=command, status=done.returncode)
    return done.stdout.decode(errors="replace")


def _run(
    command: Sequence[str],
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
    patience_s: float = _PATIENCE_S,
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            command,
            input=stdin or b"",
            env={**os.environ, **(env or {})},
            capture_output=True,
            check=False,
            timeout=patience_s,
        )
    except OSError as error:
        raise ControllerError(
            f"{command[0]} cannot be run ({error.strerror}). Install Slurm's commands, or add them to PATH.",
            command=command,
        ) from error
    except subprocess.TimeoutExpired as error:
        raise ControllerError(f"{command[0]} gave no answer within {patience_s:g} s.", command=command) from error


def _last_line(text: bytes) -> str:
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[-1].strip().rstrip(".") if lines else "it said nothing"


def refuse_unless_up() -> None:
    """Raise where the controller cannot be reached."""
    # ping alone answers at once: every other command tries again for half a minute before it gives up.
    done = _run(("scontrol", "ping"), patience_s=_PING_PATIENCE_S)
    said = done.stdout.decode(errors="replace")
    if " UP" not in said:
        reason = (
            _last_line(done.stderr) if done.stderr.strip() else said.strip().splitlines()[0] if said.strip() else ""
        )
        raise ControllerError(f"the Slurm controller cannot be reached ({reason.rstrip('.') or 'no answer'}).")


def partitions() -> dict[str, bool]:
    """Return the partitions of the controller, and whether each is the default one."""
    refuse_unless_up()
    names: dict[str, bool] = {}
    for line in ask("scontrol", "--oneliner", "show", "partition").splitlines():
        words = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if "PartitionName" in words:
            names[words["PartitionName"]] = words.get("Default") == "YES"
    return names


def _nodes() -> dict[str, list[list[str]]]:
    """Return the nodes of each partition, each as the fields of its line."""
    found: dict[str, list[list[str]]] = {}
    for line in ask("sinfo", "--noheader", "--Node", f"--format={_NODE_FORMAT}").splitlines():
        fields = line.strip().split("|")
        if len(fields) == _NODE_FORMAT.count("|") + 1:
            found.setdefault(fields[0], []).append(fields)
    return found


def facts(site: Site) -> tuple[Facts, ...]:
    """Return what the nodes of each partition of a site all have; partitions that do not exist are left bare."""
    refuse_unless_up()
    nodes = _nodes()
    return tuple(
        _facts(place.partition, place.platform, place.price_per_node_hour, nodes.get(place.partition, []))
        for place in site.places
    )


def bare_facts(site: Site) -> tuple[Facts, ...]:
    """Return the partitions of a site with nothing known of their nodes."""
    return tuple(_facts(place.partition, place.platform, place.price_per_node_hour, []) for place in site.places)


def _facts(partition: str, platform: str, price: float, nodes: Sequence[Sequence[str]]) -> Facts:
    if not nodes:
        return Facts(partition, platform, price_per_node_hour=price)
    features = set.intersection(*(set(_listed(node[4])) for node in nodes))
    offers = [gres_of(node[5]) for node in nodes]
    shared = set.intersection(*(set(offer) for offer in offers))
    return Facts(
        partition,
        platform,
        len(nodes),
        min(int(node[2]) for node in nodes),
        min(int(node[3].rstrip("+")) for node in nodes),
        tuple(sorted(features)),
        {name: min(offer[name] for offer in offers) for name in sorted(shared)},
        price,
    )


def _listed(text: str) -> list[str]:
    return [] if text in ("", "(null)") else text.split(",")


def gres_of(text: str) -> dict[str, int]:
    """Return the generic resources of a node, under their name and under name and type.

    >>> gres_of("gpu:a100:4(S:0-1),nvme:1")
    {'gpu': 4, 'gpu:a100': 4, 'nvme': 1}
    """
    found: Counter[str] = Counter()
    for one in _listed(re.sub(r"\([^)]*\)", "", text) if text != "(null)" else ""):
        *names, count = one.split(":")
        if not count.isdecimal():
            names, count = [*names, count], "1"
        found[names[0]] += int(count)
        if len(names) > 1:
            found[":".join(names[:2])] += int(count)
    return dict(found)


def queues() -> dict[str, Queue]:
    """Return the state of every partition."""
    refuse_unless_up()
    waiting: Counter[str] = Counter()
    for line in ask("squeue", "--noheader", "--states=PENDING", "--format=%P").splitlines():
        waiting.update(line.strip().split(","))
    return {
        name: Queue(len(nodes), sum(map(_idle, nodes)), waiting[name], seconds_of(nodes[0][7]))
        for name, nodes in _nodes().items()
    }


def _idle(node: Sequence[str]) -> bool:
    # Marks after the state, such as in idle~, tell of power saving and lost contact.
    return node[6].rstrip("*~#!%$@^-") == "idle"


def start(partition: str, arguments: Sequence[str], stdin: bytes | None = None, sbatch: str = "sbatch") -> Start:
    """Return when the controller would start a submission in a partition; nothing is submitted."""
    command = (sbatch, "--test-only", f"--partition={partition}", *arguments)
    done = _run(command, stdin, {"SLURM_TIME_FORMAT": "%s"})
    said = done.stderr.decode(errors="replace")
    found = re.search(r"to start at (\d+)", said)
    if done.returncode or found is None:
        return Start(refused=_last_line(done.stderr).removeprefix("sbatch: error: "))
    return Start(max(0.0, int(found[1]) - time.time()))
