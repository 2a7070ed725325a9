"""Facts of a machine, from what Linux tells in /proc and /sys.

A fact that cannot be known is left out. Sizes are in bytes, clocks in GHz.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from crossperf.platforms.gpus import gpus_of

#: The makers and the parts of ARM processors by the codes of /proc/cpuinfo, from ARM's registry of
#: implementers and the makers' manuals. Makers other than ARM itself implement the same architecture.
_ARM_MAKERS = {
    0x41: "ARM",
    0x42: "Broadcom",
    0x43: "Cavium",
    0x46: "Fujitsu",
    0x48: "HiSilicon",
    0x4E: "NVIDIA",
    0x50: "APM",
    0x51: "Qualcomm",
    0x53: "Samsung",
    0x61: "Apple",
    0x6D: "Microsoft",
    0x70: "Phytium",
    0xC0: "Ampere",
}
_ARM_PARTS = {
    (0x41, 0xD03): "Cortex-A53",
    (0x41, 0xD04): "Cortex-A35",
    (0x41, 0xD05): "Cortex-A55",
    (0x41, 0xD07): "Cortex-A57",
    (0x41, 0xD08): "Cortex-A72",
    (0x41, 0xD09): "Cortex-A73",
    (0x41, 0xD0A): "Cortex-A75",
    (0x41, 0xD0B): "Cortex-A76",
    (0x41, 0xD0C): "Neoverse-N1",
    (0x41, 0xD40): "Neoverse-V1",
    (0x41, 0xD41): "Cortex-A78",
    (0x41, 0xD44): "Cortex-X1",
    (0x41, 0xD46): "Cortex-A510",
    (0x41, 0xD47): "Cortex-A710",
    (0x41, 0xD48): "Cortex-X2",
    (0x41, 0xD49): "Neoverse-N2",
    (0x41, 0xD4A): "Neoverse-E1",
    (0x41, 0xD4D): "Cortex-A715",
    (0x41, 0xD4E): "Cortex-X3",
    (0x41, 0xD4F): "Neoverse-V2",
    (0x41, 0xD80): "Cortex-A520",
    (0x41, 0xD81): "Cortex-A720",
    (0x41, 0xD82): "Cortex-X4",
    (0x41, 0xD84): "Neoverse-V3",
    (0x41, 0xD8E): "Neoverse-N3",
    (0x42, 0x516): "ThunderX2",
    (0x43, 0x0A1): "ThunderX",
    (0x43, 0x0AF): "ThunderX2",
    (0x46, 0x001): "A64FX",
    (0x48, 0xD01): "Kunpeng-920",
    (0x4E, 0x004): "Carmel",
    (0x50, 0x000): "X-Gene",
    (0x61, 0x022): "M1",
    (0x61, 0x023): "M1",
    (0xC0, 0xAC3): "AmpereOne",
    (0xC0, 0xAC4): "AmpereOne",
}
_X86_VENDORS = {"GenuineIntel": "Intel", "AuthenticAMD": "AMD", "HygonGenuine": "Hygon"}
_KINDS = {"data": "data", "instruction": "instruction", "unified": "unified"}


def facts_of_this_machine(root: Path = Path("/")) -> dict[str, Any]:
    """Return what can be known about this machine without rights and without a package.

    Parameters
    ----------
    root
        Where ``proc``, ``sys`` and ``etc`` lie. With another root than ``/`` the facts are those of that
        tree, and no program of this machine is asked about its GPUs.
    """
    tree = _Tree(root)
    blocks = _cpuinfo(tree)
    facts: dict[str, Any] = {
        **_processor(tree, blocks),
        **_topology(tree, blocks),
        "cpu_quota": _cpu_quota(tree),
        **_clock(tree, blocks),
        "caches": _caches(tree, blocks),
        **_memory(tree),
        **_pages(tree, blocks),
        **_system(tree, blocks),
        "gpus": gpus_of(root, ask_programs=tree.here),
    }
    return {name: value for name, value in facts.items() if value is not None}


class _Tree:
    """The files of a machine; what is not there reads as ``None``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.here = root.resolve() == Path("/")

    def text(self, path: str) -> str | None:
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return None

    def number(self, path: str) -> int | None:
        text = self.text(path)
        try:
            return int(text) if text else None
        except ValueError:
            return None

    def numbered(self, folder: str, prefix: str) -> list[str]:
        """Return the entries ``prefix0, prefix1, ...`` of a folder, in the order of their numbers."""
        try:
            names = [entry.name for entry in (self.root / folder).iterdir()]
        except OSError:
            return []
        numbers = sorted(int(name[len(prefix) :]) for name in names if re.fullmatch(rf"{prefix}\d+", name))
        return [f"{folder}/{prefix}{number}" for number in numbers]


def _cpuinfo(tree: _Tree) -> list[dict[str, str]]:
    """Return the paragraphs of /proc/cpuinfo: one per hardware thread, and on some machines one for the whole."""
    blocks = []
    for paragraph in re.split(r"\n\s*\n", tree.text("proc/cpuinfo") or ""):
        pairs = (line.split(":", 1) for line in paragraph.splitlines() if ":" in line)
        blocks.append({name.strip().lower(): value.strip() for name, value in pairs})
    return [block for block in blocks if block]


def _of_any(blocks: list[dict[str, str]], *names: str) -> str | None:
    for name in names:
        for block in blocks:
            if block.get(name):
                return block[name]
    return None


def _flags(blocks: list[dict[str, str]]) -> set[str]:
    return set((_of_any(blocks, "flags") or "").split())


# --- processor --------------------------------------------------------------------------------------------


def _processor(tree: _Tree, blocks: list[dict[str, str]]) -> dict[str, Any]:
    if _of_any(blocks, "cpu implementer"):
        return _arm_processor(blocks)
    power = _of_any(blocks, "cpu")
    if power and power.upper().startswith("POWER"):
        model = re.split(r"[\s,(]", power)[0]
        return {"cpu_vendor": "IBM", "cpu_model": model, "architecture": _architecture(tree) or "ppc64le"}
    vendor = _of_any(blocks, "vendor_id")
    architecture = "x86_64" if "lm" in _flags(blocks) else None
    model_name = _of_any(blocks, "model name", "uarch", "isa")
    return {
        "cpu_vendor": _X86_VENDORS.get(vendor or "", vendor),
        "cpu_model": " ".join(model_name.split()) if model_name else None,
        "architecture": _architecture(tree) or architecture,
    }


def _arm_processor(blocks: list[dict[str, str]]) -> dict[str, Any]:
    """Return what an ARM processor is called; it has codes in place of a name, and may hold several kinds of core."""
    models: dict[str, None] = {}
    maker = None
    for block in blocks:
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


def _architecture(tree: _Tree) -> str | None:
    return os.uname().machine if tree.here else tree.text("proc/sys/kernel/arch")


def _topology(tree: _Tree, blocks: list[dict[str, str]]) -> dict[str, Any]:
    cpus = _online(tree)
    sockets, cores = set(), set()
    for cpu in cpus:
        folder = f"sys/devices/system/cpu/cpu{cpu}/topology"
        siblings = tree.text(f"{folder}/core_cpus_list") or tree.text(f"{folder}/thread_siblings_list")
        if siblings:
            cores.add(siblings)
            sockets.add(tree.text(f"{folder}/physical_package_id"))
    if not cores:
        return _topology_of_cpuinfo(blocks) | {"hardware_threads": _usable(tree, blocks)}
    return {
        "sockets": len(sockets),
        "cores": len(cores),
        "threads_per_core": max(len(_cpu_list(siblings)) for siblings in cores),
        "hardware_threads_online": len(cpus),
        "hardware_threads": _usable(tree, blocks),
    }


def _topology_of_cpuinfo(blocks: list[dict[str, str]]) -> dict[str, Any]:
    threads = [block for block in blocks if "processor" in block]
    if not threads:
        return {}
    cores = {(block.get("physical id"), block["core id"]) for block in threads if "core id" in block}
    return {
        "sockets": len({block.get("physical id") for block in threads}),
        "cores": len(cores) or len(threads),
        "threads_per_core": max(1, len(threads) // (len(cores) or len(threads))),
        "hardware_threads_online": len(threads),
    }


def _online(tree: _Tree) -> list[int]:
    listed = _cpu_list(tree.text("sys/devices/system/cpu/online") or "")
    return listed or [int(path.rsplit("cpu", 1)[1]) for path in tree.numbered("sys/devices/system/cpu", "cpu")]


def _usable(tree: _Tree, blocks: list[dict[str, str]]) -> int | None:
    """Return the hardware threads that this process may use."""
    if tree.here:
        return len(os.sched_getaffinity(0))
    return len(_online(tree)) or sum("processor" in block for block in blocks) or None


def _cpu_list(text: str) -> list[int]:
    """Return the numbers of a list as Linux writes it: ``0-3,8``."""
    numbers: list[int] = []
    for part in text.split(","):
        with contextlib.suppress(ValueError):
            first, _, last = part.partition("-")
            numbers += range(int(first), int(last or first) + 1)
    return numbers


def _cpu_quota(tree: _Tree) -> float | None:
    """Return how many processors' time the container may use, or ``None`` without such a limit."""
    words = (tree.text("sys/fs/cgroup/cpu.max") or "").split()
    if len(words) == 2 and words[0].isdigit() and int(words[1]):
        return int(words[0]) / int(words[1])
    return None


def _clock(tree: _Tree, blocks: list[dict[str, str]]) -> dict[str, Any]:
    cpu = "sys/devices/system/cpu"
    base_khz = tree.number(f"{cpu}/cpu0/cpufreq/base_frequency")
    nominal_mhz = tree.number(f"{cpu}/cpu0/acpi_cppc/nominal_freq")
    named = re.search(r"@\s*([\d.]+)\s*GHz", _of_any(blocks, "model name") or "")
    now = re.match(r"[\d.]+", _of_any(blocks, "cpu mhz", "clock") or "")
    found = (
        (base_khz and base_khz / 1e6, "cpufreq"),
        (nominal_mhz and nominal_mhz / 1e3, "ACPI"),
        (named and float(named[1]), "model name"),
        (now and float(now[0]) / 1e3, "the clock of the moment"),
    )
    base_ghz, source = next(((ghz, source) for ghz, source in found if ghz), (None, None))
    most = [tree.number(f"{path}/cpufreq/cpuinfo_max_freq") for path in tree.numbered(cpu, "cpu")]
    max_khz = max((khz for khz in most if khz), default=None)
    return {
        "base_ghz": None if base_ghz is None else round(base_ghz, 3),
        "base_ghz_from": source,
        "max_ghz": None if max_khz is None else round(max_khz / 1e6, 3),
    }


# --- caches -----------------------------------------------------------------------------------------------


def _caches(tree: _Tree, blocks: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Return the caches that the first hardware thread sees, with how many there are of each."""
    cpus = _online(tree)
    folder = f"sys/devices/system/cpu/cpu{cpus[0]}/cache" if cpus else ""
    caches = [cache for path in tree.numbered(folder, "index") if (cache := _cache(tree, path))]
    for cache in caches:
        shared = {_shared_list(tree, cpu, cache) for cpu in cpus} - {None}
        cache["instances"] = len(shared) or 1
    return sorted(caches or _cache_of_cpuinfo(blocks), key=lambda cache: (cache["level"], cache["kind"]))


def _cache(tree: _Tree, path: str) -> dict[str, Any] | None:
    level = tree.number(f"{path}/level")
    kind = _KINDS.get((tree.text(f"{path}/type") or "").lower())
    if not level or kind is None:
        return None
    ways, line, sets = (
        tree.number(f"{path}/{name}") or None
        for name in ("ways_of_associativity", "coherency_line_size", "number_of_sets")
    )
    size = _size(tree.text(f"{path}/size"))
    if size is None and ways and line and sets:
        size = ways * line * sets
    # Some virtual machines report ways as 0, or so many that a set would be larger than the cache.
    if size and line and ways and ways * line > size:
        ways = None
    if ways is None and size and line and sets:
        ways = size // (line * sets) or None
    shared = _cpu_list(tree.text(f"{path}/shared_cpu_list") or "")
    facts = {
        "level": level,
        "kind": kind,
        "size_bytes": size,
        "ways": ways,
        "line_bytes": line,
        "shared_by": len(shared) or None,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _shared_list(tree: _Tree, cpu: int, cache: Mapping[str, Any]) -> str | None:
    for path in tree.numbered(f"sys/devices/system/cpu/cpu{cpu}/cache", "index"):
        kind = _KINDS.get((tree.text(f"{path}/type") or "").lower())
        if tree.number(f"{path}/level") == cache["level"] and kind == cache["kind"]:
            return tree.text(f"{path}/shared_cpu_list")
    return None


def _cache_of_cpuinfo(blocks: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Return the one cache of x86's /proc/cpuinfo: the last level on Intel, the second on AMD."""
    size = _size(_of_any(blocks, "cache size"))
    if size is None:
        return []
    level = 2 if _of_any(blocks, "vendor_id") == "AuthenticAMD" else 3
    return [{"level": level, "kind": "unified", "size_bytes": size}]


def _size(text: str | None) -> int | None:
    found = re.match(r"(\d+)\s*([KMG]?)", text or "", re.IGNORECASE)
    if not found or not int(found[1]):
        return None
    return int(found[1]) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[found[2].upper()]


# --- memory and system ------------------------------------------------------------------------------------


def _meminfo(tree: _Tree, name: str) -> int | None:
    found = re.search(rf"^{name}:\s*(\d+)", tree.text("proc/meminfo") or "", re.MULTILINE)
    return int(found[1]) if found else None


def _memory(tree: _Tree) -> dict[str, Any]:
    node = "sys/devices/system/node"
    # The memory of some GPUs is a node of its own, without processors.
    nodes = _cpu_list(tree.text(f"{node}/has_cpu") or tree.text(f"{node}/online") or "")
    limit = tree.number("sys/fs/cgroup/memory.max")
    total_kb = _meminfo(tree, "MemTotal")
    return {
        "memory_bytes": None if total_kb is None else total_kb * 1024,
        "memory_limit_bytes": limit,
        "numa_nodes": len(nodes) or None,
    }


def _pages(tree: _Tree, blocks: list[dict[str, str]]) -> dict[str, Any]:
    huge_kb = _meminfo(tree, "Hugepagesize")
    chosen = re.search(r"\[(\w+)\]", tree.text("sys/kernel/mm/transparent_hugepage/enabled") or "")
    page_bytes = os.sysconf("SC_PAGESIZE") if tree.here else _page_bytes(tree)
    return {
        "page_bytes": page_bytes,
        "page_levels": _page_levels(tree, blocks, page_bytes),
        "huge_page_bytes": huge_kb * 1024 if huge_kb else None,
        "huge_pages_reserved": _meminfo(tree, "HugePages_Total"),
        "transparent_huge_pages": chosen[1] if chosen else None,
    }


def _page_bytes(tree: _Tree) -> int | None:
    found = re.search(r"^KernelPageSize:\s*(\d+) kB", tree.text("proc/self/smaps") or "", re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _page_levels(tree: _Tree, blocks: list[dict[str, str]], page_bytes: int | None) -> int | None:
    """Return the levels of the page table in use, where that can be known."""
    flags = _flags(blocks)
    if "lm" in flags:  # x86 in 64-bit mode; Linux hides the flag where it does not use the fifth level
        return 5 if "la57" in flags else 4
    mmu = _of_any(blocks, "mmu")
    if mmu:  # POWER: a tree of four levels, or a hash table without any
        return 4 if mmu.lower() == "radix" else None
    if _of_any(blocks, "cpu implementer") and page_bytes:
        # ARM: the stack lies at the top of what a process can address, and each level translates as many
        # bits as a page holds entries of 8 bytes.
        bits = max((int(end, 16).bit_length() for end in _map_ends(tree)), default=0)
        page_bits = page_bytes.bit_length() - 1
        return -(-(bits - page_bits) // (page_bits - 3)) if bits > page_bits else None
    return None


def _map_ends(tree: _Tree) -> Iterator[str]:
    for line in (tree.text("proc/self/maps") or "").splitlines():
        found = re.match(r"[0-9a-f]+-([0-9a-f]+) ", line)
        if found and "[vsyscall]" not in line:
            yield found[1]


def _system(tree: _Tree, blocks: list[dict[str, str]]) -> dict[str, Any]:
    release = re.search(r'^PRETTY_NAME="?([^"\n]+)', tree.text("etc/os-release") or "", re.MULTILINE)
    return {
        "kernel": tree.text("proc/sys/kernel/osrelease"),
        "os": release[1] if release else None,
        "hypervisor": _hypervisor(tree, blocks),
        "hypervisor_name": tree.text("sys/hypervisor/type") or _virtual_maker(tree),
    }


def _hypervisor(tree: _Tree, blocks: list[dict[str, str]]) -> bool | None:
    """Return whether the machine is a virtual one; ``None`` where it does not tell."""
    flags = _flags(blocks)
    if flags:
        return "hypervisor" in flags
    platform = (_of_any(blocks, "platform") or "").lower()
    if platform in ("powernv", "pseries"):
        return platform == "pseries"
    return True if tree.text("sys/hypervisor/type") or _virtual_maker(tree) else None


def _virtual_maker(tree: _Tree) -> str | None:
    maker = tree.text("sys/class/dmi/id/sys_vendor") or ""
    product = tree.text("sys/class/dmi/id/product_name") or ""
    known = ("QEMU", "KVM", "VMware", "Xen", "innotek", "Google Compute Engine", "Virtual Machine", "OpenStack")
    return f"{maker} {product}".strip() if any(word in f"{maker} {product}" for word in known) else None
