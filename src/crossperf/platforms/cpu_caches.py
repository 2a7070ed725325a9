"""The caches of a machine's processor, as Linux describes them in /sys."""

from __future__ import annotations

import re
from dataclasses import replace

from crossperf.platforms.facts import CpuCache
from crossperf.platforms.tree import Tree, cpu_list

_KINDS = ("data", "instruction", "unified")


def caches(tree: Tree) -> tuple[CpuCache, ...]:
    """Return the caches that the first hardware thread sees, with how many there are of each."""
    cpus = tree.online
    first = [_cache(tree, path) for path in _folders(tree, cpus[0])] if cpus else []
    counted = [replace(cache, instances=_instances(tree, cache)) for cache in first if cache]
    return tuple(sorted(counted or _cache_of_cpuinfo(tree), key=lambda cache: (cache.level, cache.kind)))


def _folders(tree: Tree, cpu: int) -> list[str]:
    return tree.numbered(f"sys/devices/system/cpu/cpu{cpu}/cache", "index")


def _kind(tree: Tree, path: str) -> tuple[int | None, str]:
    return tree.number(f"{path}/level"), (tree.text(f"{path}/type") or "").lower()


def _cache(tree: Tree, path: str) -> CpuCache | None:
    level, kind = _kind(tree, path)
    if not level or kind not in _KINDS:
        return None
    ways, line, sets = (
        tree.number(f"{path}/{name}") or None
        for name in ("ways_of_associativity", "coherency_line_size", "number_of_sets")
    )
    size = _size(tree.text(f"{path}/size"))
    if size is None and ways and line and sets:
        size = ways * line * sets
    # Some virtual machines report ways as 0, or more of them than the cache has room for.
    if size and line and ways and ways * line > size:
        ways = None
    if ways is None and size and line and sets:
        ways = size // (line * sets) or None
    shared = cpu_list(tree.text(f"{path}/shared_cpu_list"))
    return CpuCache(level, kind, size, ways, line, shared_by=len(shared) or None)


def _instances(tree: Tree, cache: CpuCache) -> int:
    folders = [path for cpu in tree.online for path in _folders(tree, cpu)]
    same = [path for path in folders if _kind(tree, path) == (cache.level, cache.kind)]
    return len({tree.text(f"{path}/shared_cpu_list") for path in same} - {None}) or 1


def _cache_of_cpuinfo(tree: Tree) -> list[CpuCache]:
    """Return the one cache of x86's /proc/cpuinfo: the last level on Intel, the second on AMD."""
    size = _size(tree.cpu("cache size"))
    level = 2 if tree.cpu("vendor_id") == "AuthenticAMD" else 3
    return [] if size is None else [CpuCache(level, "unified", size)]


def _size(text: str | None) -> int | None:
    match = re.match(r"(\d+)\s*([KMG]?)", text or "", re.IGNORECASE)
    if not match or not int(match[1]):
        return None
    return int(match[1]) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[match[2].upper()]
