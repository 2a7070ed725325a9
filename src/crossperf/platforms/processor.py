"""A machine's processor: its maker and model, its cores, its clock."""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any

from crossperf.platforms.tree import Tree, cpu_list

#: The makers and the parts of ARM processors by the codes of /proc/cpuinfo, from ARM's registry of
#: implementers and the makers' manuals. Makers other than ARM itself implement the same architecture.
_ARM_MAKERS = {
    0x41: "ARM", 0x42: "Broadcom", 0x43: "Cavium", 0x46: "Fujitsu", 0x48: "HiSilicon", 0x4E: "NVIDIA", 0x50: "APM",
    0x51: "Qualcomm", 0x53: "Samsung", 0x61: "Apple", 0x6D: "Microsoft", 0x70: "Phytium", 0xC0: "Ampere",
}  # fmt: skip
_ARM_PARTS = {
    (0x41, 0xD03): "Cortex-A53", (0x41, 0xD04): "Cortex-A35", (0x41, 0xD05): "Cortex-A55",
    (0x41, 0xD07): "Cortex-A57", (0x41, 0xD08): "Cortex-A72", (0x41, 0xD09): "Cortex-A73",
    (0x41, 0xD0A): "Cortex-A75", (0x41, 0xD0B): "Cortex-A76", (0x41, 0xD0C): "Neoverse-N1",
    (0x41, 0xD40): "Neoverse-V1", (0x41, 0xD41): "Cortex-A78", (0x41, 0xD44): "Cortex-X1",
    (0x41, 0xD46): "Cortex-A510", (0x41, 0xD47): "Cortex-A710", (0x41, 0xD48): "Cortex-X2",
    (0x41, 0xD49): "Neoverse-N2", (0x41, 0xD4A): "Neoverse-E1", (0x41, 0xD4D): "Cortex-A715",
    (0x41, 0xD4E): "Cortex-X3", (0x41, 0xD4F): "Neoverse-V2", (0x41, 0xD80): "Cortex-A520",
    (0x41, 0xD81): "Cortex-A720", (0x41, 0xD82): "Cortex-X4", (0x41, 0xD84): "Neoverse-V3",
    (0x41, 0xD8E): "Neoverse-N3", (0x42, 0x516): "ThunderX2", (0x43, 0x0A1): "ThunderX", (0x43, 0x0AF): "ThunderX2",
    (0x46, 0x001): "A64FX", (0x48, 0xD01): "Kunpeng-920", (0x4E, 0x004): "Carmel", (0x50, 0x000): "X-Gene",
    (0x61, 0x022): "M1", (0x61, 0x023): "M1", (0xC0, 0xAC3): "AmpereOne", (0xC0, 0xAC4): "AmpereOne",
}  # fmt: skip
_X86_VENDORS = {"GenuineIntel": "Intel", "AuthenticAMD": "AMD", "HygonGenuine": "Hygon"}


def processor(tree: Tree) -> dict[str, Any]:
    """Return who made the processor, its model and its architecture."""
    if tree.cpu("cpu implementer"):
        return _arm_processor(tree)
    power = tree.cpu("cpu")
    if power and power.upper().startswith("POWER"):
        model = re.split(r"[\s,(]", power)[0]
        return {"cpu_vendor": "IBM", "cpu_model": model, "architecture": _architecture(tree) or "ppc64le"}
    vendor = tree.cpu("vendor_id")
    architecture = "x86_64" if "lm" in tree.flags else None
    model_name = tree.cpu("model name", "uarch", "isa")
    return {
        "cpu_vendor": _X86_VENDORS.get(vendor or "", vendor),
        "cpu_model": " ".join(model_name.split()) if model_name else None,
        "architecture": _architecture(tree) or architecture,
    }


def _arm_processor(tree: Tree) -> dict[str, Any]:
    """Return what an ARM processor is called; it has codes in place of a name, and may hold several kinds of core."""
    models: dict[str, None] = {}
    maker = None
    for block in tree.cpuinfo:
        with contextlib.suppress(KeyError, ValueError):
            code, part = int(block["cpu implementer"], 16), int(block["cpu part"], 16)
            maker = maker or _ARM_MAKERS.get(code, f"implementer {code:#x}")
            models[_ARM_PARTS.get((code, part), f"{_ARM_MAKERS.get(code, hex(code))} part {part:#x}")] = None
    return {
        "cpu_vendor": "ARM",
        "cpu_implementer": maker,
        "cpu_model": " + ".join(models) or None,
        "architecture": "aarch64",
    }


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
