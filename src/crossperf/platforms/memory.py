"""A machine's memory, and the pages that it is divided into."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from crossperf.platforms.tree import Tree, cpu_list


def memory(tree: Tree) -> dict[str, Any]:
    """Return how much memory there is, how much of it may be used, and over how many nodes it is spread."""
    node = "sys/devices/system/node"
    # The memory of some GPUs is a node of its own, without processors.
    nodes = cpu_list(tree.text(f"{node}/has_cpu") or tree.text(f"{node}/online"))
    limit = tree.number("sys/fs/cgroup/memory.max")
    total_kb = _meminfo(tree, "MemTotal")
    return {
        "memory_bytes": None if total_kb is None else total_kb * 1024,
        "memory_limit_bytes": limit,
        "numa_nodes": len(nodes) or None,
    }


def pages(tree: Tree) -> dict[str, Any]:
    """Return the sizes of pages, and the levels of the page table."""
    huge_kb = _meminfo(tree, "Hugepagesize")
    page_bytes = os.sysconf("SC_PAGESIZE") if tree.here else _page_bytes(tree)
    return {
        "page_bytes": page_bytes,
        "page_levels": _page_levels(tree, page_bytes),
        "huge_page_bytes": huge_kb * 1024 if huge_kb else None,
        "huge_pages_reserved": _meminfo(tree, "HugePages_Total"),
        "transparent_huge_pages": tree.match(r"\[(\w+)\]", "sys/kernel/mm/transparent_hugepage/enabled"),
    }


def _page_bytes(tree: Tree) -> int | None:
    kilobytes = tree.match(r"^KernelPageSize:\s*(\d+) kB", "proc/self/smaps")
    return int(kilobytes) * 1024 if kilobytes else None


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
        bits = max((int(end, 16).bit_length() for end in _map_ends(tree)), default=0)
        page_bits = page_bytes.bit_length() - 1
        return -(-(bits - page_bits) // (page_bits - 3)) if bits > page_bits else None
    return None


def _map_ends(tree: Tree) -> Iterator[str]:
    for line in (tree.text("proc/self/maps") or "").splitlines():
        match = re.match(r"[0-9a-f]+-([0-9a-f]+) ", line)
        if match and "[vsyscall]" not in line:
            yield match[1]


def _meminfo(tree: Tree, name: str) -> int | None:
    kilobytes = tree.match(rf"^{name}:\s*(\d+)", "proc/meminfo")
    return int(kilobytes) if kilobytes else None
