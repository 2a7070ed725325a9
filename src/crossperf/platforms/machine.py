"""The facts of this machine, from what Linux tells in /proc and /sys."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from crossperf.platforms.facts import MachineFacts
from crossperf.platforms.gpus import gpus_of
from crossperf.platforms.processor import caches, clock, cpu_quota, processor, topology
from crossperf.platforms.tree import Tree, cpu_list


def facts_of_this_machine(root: Path = Path("/")) -> MachineFacts:
    """Return what can be known about this machine without rights and without a package.

    Parameters
    ----------
    root
        Where ``proc``, ``sys`` and ``etc`` lie. With another root than ``/`` the facts are those of that
        tree, and no program of this machine is asked about its GPUs.
    """
    tree = Tree(root)
    return MachineFacts(
        **processor(tree),
        **topology(tree),
        cpu_quota=cpu_quota(tree),
        **clock(tree),
        caches=caches(tree),
        **_memory(tree),
        **_pages(tree),
        **_system(tree),
        gpus=gpus_of(tree, ask_programs=tree.here),
    )


def _memory(tree: Tree) -> dict[str, Any]:
    node = "sys/devices/system/node"
    # The memory of some GPUs is a node of its own, without processors.
    nodes = cpu_list(tree.text(f"{node}/has_cpu") or tree.text(f"{node}/online"))
    total_kb = _meminfo(tree, "MemTotal")
    return {
        "memory_bytes": None if total_kb is None else total_kb * 1024,
        "memory_limit_bytes": tree.number("sys/fs/cgroup/memory.max"),
        "numa_nodes": len(nodes) or None,
    }


def _pages(tree: Tree) -> dict[str, Any]:
    huge_kb = _meminfo(tree, "Hugepagesize")
    page_kb = None if tree.here else tree.match(r"^KernelPageSize:\s*(\d+) kB", "proc/self/smaps")
    page_bytes = os.sysconf("SC_PAGESIZE") if tree.here else int(page_kb) * 1024 if page_kb else None
    return {
        "page_bytes": page_bytes,
        "page_levels": _page_levels(tree, page_bytes),
        "huge_page_bytes": huge_kb * 1024 if huge_kb else None,
        "huge_pages_reserved": _meminfo(tree, "HugePages_Total"),
        "transparent_huge_pages": tree.match(r"\[(\w+)\]", "sys/kernel/mm/transparent_hugepage/enabled"),
    }


def _page_levels(tree: Tree, page_bytes: int | None) -> int | None:
    """Return the levels of the page table in use, where that can be known."""
    if "lm" in tree.flags:  # x86 in 64-bit mode; Linux hides the flag where it does not use the fifth level
        return 5 if "la57" in tree.flags else 4
    mmu = tree.cpu("mmu")
    if mmu:  # POWER: a tree of four levels, or a hash table without any
        return 4 if mmu.lower() == "radix" else None
    if tree.cpu("cpu implementer") and page_bytes:
        # ARM: the stack lies at the top of what a process can address, and each level translates as many
        # bits as a page holds entries of 8 bytes.
        maps = re.findall(r"^[0-9a-f]+-([0-9a-f]+) (?!.*\[vsyscall\])", tree.text("proc/self/maps") or "", re.MULTILINE)
        bits = max((int(end, 16).bit_length() for end in maps), default=0)
        page_bits = page_bytes.bit_length() - 1
        return -(-(bits - page_bits) // (page_bits - 3)) if bits > page_bits else None
    return None


def _meminfo(tree: Tree, name: str) -> int | None:
    kilobytes = tree.match(rf"^{name}:\s*(\d+)", "proc/meminfo")
    return int(kilobytes) if kilobytes else None


def _system(tree: Tree) -> dict[str, Any]:
    return {
        "kernel": tree.text("proc/sys/kernel/osrelease"),
        "os": tree.match(r'^PRETTY_NAME="?([^"\n]+)', "etc/os-release"),
        "hypervisor": _hypervisor(tree),
        "hypervisor_name": tree.text("sys/hypervisor/type") or _virtual_maker(tree),
    }


def _hypervisor(tree: Tree) -> bool | None:
    """Return whether the machine is a virtual one; ``None`` where it does not tell."""
    if tree.flags:
        return "hypervisor" in tree.flags
    platform = (tree.cpu("platform") or "").lower()
    if platform in ("powernv", "pseries"):
        return platform == "pseries"
    return True if tree.text("sys/hypervisor/type") or _virtual_maker(tree) else None


def _virtual_maker(tree: Tree) -> str | None:
    maker = tree.text("sys/class/dmi/id/sys_vendor") or ""
    product = tree.text("sys/class/dmi/id/product_name") or ""
    known = ("QEMU", "KVM", "VMware", "Xen", "innotek", "Google Compute Engine", "Virtual Machine", "OpenStack")
    return f"{maker} {product}".strip() if any(word in f"{maker} {product}" for word in known) else None
