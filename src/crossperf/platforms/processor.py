"""A machine's processor: its maker and model, its cores, its clock, its caches."""

from __future__ import annotations

import contextlib
import os
import re
import tomllib
from dataclasses import replace
from importlib.resources import files
from typing import Any

from crossperf.platforms.facts import CpuCache
from crossperf.platforms.tree import Tree, cpu_list

_X86_VENDORS = {"GenuineIntel": "Intel", "AuthenticAMD": "AMD", "HygonGenuine": "Hygon"}
_CACHE_KINDS = ("data", "instruction", "unified")


def processor(tree: Tree) -> dict[str, Any]:
    """Return who made the processor, its model and its architecture."""
    if tree.cpu("cpu implementer"):
        return _arm_processor(tree)
    power = tree.cpu("cpu")
    if power and power.upper().startswith("POWER"):
        model = re.split(r"[\s,(]", power)[0]
        return {"cpu_vendor": "IBM", "cpu_model": model, "architecture": _architecture(tree) or "ppc64le"}
    vendor = tree.cpu("vendor_id")
    model_name = tree.cpu("model name", "uarch", "isa")
    return {
        "cpu_vendor": _X86_VENDORS.get(vendor or "", vendor),
        "cpu_model": " ".join(model_name.split()) if model_name else None,
        "architecture": _architecture(tree) or ("x86_64" if "lm" in tree.flags else None),
    }


def _arm_processor(tree: Tree) -> dict[str, Any]:
    """Return what an ARM processor is called; it has codes in place of a name, and may hold several kinds of core."""
    known = tomllib.loads((files("crossperf.platforms") / "arm.toml").read_text("utf-8"))
    makers, parts = known["makers"], known["parts"]
    models: dict[str, None] = {}
    maker = None
    for block in tree.cpuinfo:
        with contextlib.suppress(KeyError, ValueError):
            code, part = int(block["cpu implementer"], 16), int(block["cpu part"], 16)
            key = f"0x{code:02X}"
            maker = maker or makers.get(key, f"implementer {code:#x}")
            unknown = f"{makers.get(key, hex(code))} part {part:#x}"
            models[parts.get(key, {}).get(f"0x{part:03X}", unknown)] = None
    model = " + ".join(models) or None
    return {"cpu_vendor": "ARM", "cpu_implementer": maker, "cpu_model": model, "architecture": "aarch64"}


def _architecture(tree: Tree) -> str | None:
    return os.uname().machine if tree.here else tree.text("proc/sys/kernel/arch")


def topology(tree: Tree) -> dict[str, Any]:
    """Return the numbers of sockets, cores and hardware threads."""
    cpus = tree.online
    sockets, cores = set(), set()
    for cpu in cpus:
        folder = f"sys/devices/system/cpu/cpu{cpu}/topology"
        siblings = tree.text(f"{folder}/core_cpus_list") or tree.text(f"{folder}/thread_siblings_list")
        if siblings:
            cores.add(siblings)
            sockets.add(tree.text(f"{folder}/physical_package_id"))
    if not cores:
        return _topology_of_cpuinfo(tree) | {"hardware_threads": _usable(tree)}
    return {
        "sockets": len(sockets),
        "cores": len(cores),
        "threads_per_core": max(len(cpu_list(siblings)) for siblings in cores),
        "hardware_threads_online": len(cpus),
        "hardware_threads": _usable(tree),
    }


def _topology_of_cpuinfo(tree: Tree) -> dict[str, Any]:
    threads = [block for block in tree.cpuinfo if "processor" in block]
    if not threads:
        return {}
    cores = {(block.get("physical id"), block["core id"]) for block in threads if "core id" in block}
    return {
        "sockets": len({block.get("physical id") for block in threads}),
        "cores": len(cores) or len(threads),
        "threads_per_core": max(1, len(threads) // (len(cores) or len(threads))),
        "hardware_threads_online": len(threads),
    }


def _usable(tree: Tree) -> int | None:
    """Return the hardware threads that this process may use."""
    if tree.here:
        return len(os.sched_getaffinity(0))
    return len(tree.online) or sum("processor" in block for block in tree.cpuinfo) or None


def cpu_quota(tree: Tree) -> float | None:
    """Return how many processors' time the container may use, or ``None`` without such a limit."""
    words = (tree.text("sys/fs/cgroup/cpu.max") or "").split()
    if len(words) == 2 and words[0].isdigit() and int(words[1]):
        return int(words[0]) / int(words[1])
    return None


def clock(tree: Tree) -> dict[str, Any]:
    """Return the base clock with where it was read, and the highest clock."""
    cpu = "sys/devices/system/cpu"
    base_khz = tree.number(f"{cpu}/cpu0/cpufreq/base_frequency")
    nominal_mhz = tree.number(f"{cpu}/cpu0/acpi_cppc/nominal_freq")
    named = re.search(r"@\s*([\d.]+)\s*GHz", tree.cpu("model name") or "")
    now = re.match(r"[\d.]+", tree.cpu("cpu mhz", "clock") or "")
    sources = (
        (base_khz and base_khz / 1e6, "cpufreq"),
        (nominal_mhz and nominal_mhz / 1e3, "ACPI"),
        (named and float(named[1]), "model name"),
        (now and float(now[0]) / 1e3, "the clock of the moment"),
    )
    base_ghz, source = next(((ghz, source) for ghz, source in sources if ghz), (None, None))
    most = [tree.number(f"{path}/cpufreq/cpuinfo_max_freq") for path in tree.numbered(cpu, "cpu")]
    max_khz = max((khz for khz in most if khz), default=None)
    return {
        "base_ghz": None if base_ghz is None else round(base_ghz, 3),
        "base_ghz_from": source,
        "max_ghz": None if max_khz is None else round(max_khz / 1e6, 3),
    }


def caches(tree: Tree) -> tuple[CpuCache, ...]:
    """Return the caches that the first hardware thread sees in /sys, with how many there are of each."""
    first = [_cache(tree, path) for cpu in tree.online[:1] for path in _cache_folders(tree, cpu)]
    counted = [replace(cache, instances=_instances(tree, cache)) for cache in first if cache]
    size = _size(tree.cpu("cache size"))
    if not counted and size is not None:
        # The one cache of x86's /proc/cpuinfo is the last level on Intel, the second on AMD.
        counted = [CpuCache(2 if tree.cpu("vendor_id") == "AuthenticAMD" else 3, "unified", size)]
    return tuple(sorted(counted, key=lambda cache: (cache.level, cache.kind)))


def _cache_folders(tree: Tree, cpu: int) -> list[str]:
    return tree.numbered(f"sys/devices/system/cpu/cpu{cpu}/cache", "index")


def _cache_kind(tree: Tree, path: str) -> tuple[int | None, str]:
    return tree.number(f"{path}/level"), (tree.text(f"{path}/type") or "").lower()


def _cache(tree: Tree, path: str) -> CpuCache | None:
    level, kind = _cache_kind(tree, path)
    if not level or kind not in _CACHE_KINDS:
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
    folders = [path for cpu in tree.online for path in _cache_folders(tree, cpu)]
    same = [path for path in folders if _cache_kind(tree, path) == (cache.level, cache.kind)]
    return len({tree.text(f"{path}/shared_cpu_list") for path in same} - {None}) or 1


def _size(text: str | None) -> int | None:
    match = re.match(r"(\d+)\s*([KMG]?)", text or "", re.IGNORECASE)
    if not match or not int(match[1]):
        return None
    return int(match[1]) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[match[2].upper()]
