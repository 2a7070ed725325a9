"""The order in which platforms are shown, by machine and then by threads, and each in a few words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from crossperf.platforms.compare import in_words
from crossperf.platforms.registry import Platform

#: A count at the end of a name: ``xeon-16t``, ``node_8cores``, ``h200-x4``.
_COUNT = re.compile(
    r"(?P<machine>.+)[-_. ](?:x(?P<times>\d{1,6})|(?P<count>\d{1,6})(?:t|c|threads?|cores?|cpus?))", re.I
)
#: The sizes of cloud machines below ``xlarge``, each twice the one before.
_SIZES = ("nano", "micro", "small", "medium", "large", "xlarge")
_CLOUD = re.compile(rf"(?P<machine>.+)\.(?:(?P<times>\d{{1,4}})?(?P<size>{'|'.join(_SIZES)})|(?P<whole>metal))", re.I)
#: Platforms of these classes come first and last; those of others stand between.
_CLASSES = {"cpu": 0, "gpu": 2}


class Family(NamedTuple):
    """The machine of a platform, and how much of it the platform uses."""

    machine: str
    size: float = 0.0


def family_of(name: str) -> Family:
    """Return the machine and the size that a platform's name tells: threads, cores, GPUs, or a cloud provider's word.

    >>> family_of("xeon-16t"), family_of("c4.2xlarge"), family_of("k20c")
    (Family(machine='xeon', size=16.0), Family(machine='c4', size=64.0), Family(machine='k20c', size=0.0))
    """
    if match := _COUNT.fullmatch(name):
        return Family(match["machine"], float(match["times"] or match["count"]))
    if match := _CLOUD.fullmatch(name):
        size = math.inf if match["whole"] else 2.0 ** _SIZES.index(match["size"].lower()) * int(match["times"] or 1)
        return Family(match["machine"], size)
    return Family(name)


def in_order(names: Iterable[str], classes: Mapping[str, str | None] | None = None) -> list[str]:
    """Return platforms in the order of every table and figure: CPUs first and GPUs last, by machine, then by size.

    >>> in_order(["h200", "xeon-16t", "xeon-4t", "epyc-2t"], {"h200": "gpu", "xeon-4t": "cpu", "xeon-16t": "cpu"})
    ['epyc-2t', 'xeon-4t', 'xeon-16t', 'h200']
    """
    kinds = classes or {}

    def place(name: str) -> tuple[object, ...]:
        family, kind = family_of(name), kinds.get(name) or "cpu"
        return _CLASSES.get(kind, 1), _natural(family.machine), family.size, _natural(name), name

    return sorted(names, key=place)


def _natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a name as a key that puts ``node9`` before ``node10``."""
    parts = re.split(r"(\d{1,18})", name.casefold())
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part)


def in_a_line(platform: Platform) -> str:
    """Return the facts that tell a platform from others in a few words; empty where none is known.

    >>> from crossperf.platforms import MachineFacts
    >>> facts = MachineFacts(cpu_model="AMD EPYC", cores=2, base_ghz=2.6, memory_bytes=24 * 2**30, more={"threads": 2})
    >>> in_a_line(Platform("epyc-2t", "cpu", facts))
    'AMD EPYC, 2 cores, 2.6 GHz, 24 GiB, 2 threads'
    """
    facts = platform.facts
    if platform.platform_class == "gpu" and facts.gpus:
        gpu = facts.gpus[0]
        count = f"{len(facts.gpus)} x " if len(facts.gpus) > 1 else ""
        clock = in_words("max_ghz", gpu.max_ghz) if gpu.max_ghz else ""
        return _joined([f"{count}{gpu.model or 'GPU'}", clock, _memory(gpu.memory_bytes)])
    model = " ".join(re.sub(r"\((R|TM|C)\)|@.*", " ", facts.cpu_model or "", flags=re.I).split())
    cores = f"{facts.cores} core{'s' * (facts.cores != 1)}" if facts.cores else ""
    clock = f"{facts.base_ghz:.1f} GHz" if facts.base_ghz else ""
    threads = facts.more.get("threads")
    used = f"{threads} thread{'s' * (threads != 1)}" if isinstance(threads, int) else ""
    return _joined([model, cores, clock, _memory(facts.memory_bytes), used])


def _memory(size: float | None) -> str:
    return f"{size / 2**30:.0f} GiB" if size else ""


def _joined(parts: Sequence[str]) -> str:
    return ", ".join(part for part in parts if part)
