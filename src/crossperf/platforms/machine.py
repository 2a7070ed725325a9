"""The facts of this machine, from what Linux tells in /proc and /sys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crossperf.platforms.cpu_caches import caches
from crossperf.platforms.facts import MachineFacts
from crossperf.platforms.gpus import gpus_of
from crossperf.platforms.memory import memory, pages
from crossperf.platforms.processor import clock, cpu_quota, processor, topology
from crossperf.platforms.tree import Tree


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
        **memory(tree),
        **pages(tree),
        **_system(tree),
        gpus=gpus_of(root, ask_programs=tree.here),
    )


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
