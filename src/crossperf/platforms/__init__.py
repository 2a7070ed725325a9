"""The machines that applications run on: their facts, their names, and the file in which they are kept."""

from __future__ import annotations

from crossperf.platforms.caches import CacheGeometry, cache_geometry
from crossperf.platforms.compare import FactDifference, compare, describe
from crossperf.platforms.facts import CpuCache, Gpu, MachineFacts
from crossperf.platforms.machine import facts_of_this_machine
from crossperf.platforms.nearest import Match, nearest
from crossperf.platforms.order import Family, family_of, in_a_line, in_order
from crossperf.platforms.registry import Platform, add, find, matching, name_for, platform_of, read, set_fact, user_file

__all__ = [
    "CacheGeometry", "CpuCache", "FactDifference", "Family", "Gpu", "MachineFacts", "Match", "Platform", "add",
    "cache_geometry", "compare", "describe", "facts_of_this_machine", "family_of", "find", "in_a_line", "in_order",
    "matching", "name_for", "nearest", "platform_of", "read", "set_fact", "user_file",
]  # fmt: skip
