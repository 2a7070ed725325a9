"""The geometry of a machine's caches as valgrind can simulate them."""

from __future__ import annotations

import math
from typing import NamedTuple

from crossperf.platforms.facts import CpuCache, MachineFacts

#: (bytes, ways, bytes of a line) where nothing is known: what most x86 servers had around 2020.
_ASSUMED = {"I1": (32 * 2**10, 8, 64), "D1": (32 * 2**10, 8, 64), "LL": (32 * 2**20, 16, 64)}
#: What a cache of each kind can plausibly hold.
_PLAUSIBLE = {"I1": (2**10, 2**22), "D1": (2**10, 2**22), "LL": (2**16, 2**31 - 1)}
#: Valgrind takes lines from its widest register on, which is 32 bytes with AVX.
_SHORTEST_LINE = 32
#: No last-level cache of this size or more has been built with one way; virtual machines report it.
_DIRECT_MAPPED_UP_TO = 2**20


class CacheGeometry(NamedTuple):
    """The caches ``I1``, ``D1`` and ``LL`` as (bytes, ways, bytes of a line), and what was changed or assumed."""

    caches: dict[str, tuple[int, int, int]]
    notes: tuple[str, ...] = ()

    def options(self) -> list[str]:
        """Return valgrind's options.

        >>> cache_geometry(MachineFacts()).options()
        ['--I1=32768,8,64', '--D1=32768,8,64', '--LL=33554432,16,64']
        """
        return [f"--{name}={size},{ways},{line}" for name, (size, ways, line) in self.caches.items()]


def cache_geometry(facts: MachineFacts) -> CacheGeometry:
    """Return the geometry nearest to a machine's caches that valgrind accepts.

    Valgrind wants a number of sets that is a power of two; caches of 33 MiB in 11 ways have none.
    """
    caches: dict[str, tuple[int, int, int]] = {}
    notes: list[str] = []
    # A second level without a line is that of AMD's /proc/cpuinfo, where nothing else is known: not the last one.
    shared = [cache for cache in facts.caches if cache.level > (2 if cache.line_bytes is None else 1)]
    last_level = max(shared, key=lambda cache: cache.level, default=None)
    instructions, data = _first_level(facts, "instruction"), _first_level(facts, "data")
    for name, cache in (("I1", instructions), ("D1", data), ("LL", last_level)):
        asked, assumed = _filled(name, cache)
        caches[name] = _accepted(name, *asked)
        if assumed:
            notes.append(f"{name}: {' and '.join(assumed)} not known, {_words(caches[name])} assumed")
        elif caches[name] != asked:
            notes.append(f"{name}: {_words(asked)} simulated as {_words(caches[name])}, which valgrind accepts")
    return CacheGeometry(caches, tuple(notes))


def _first_level(facts: MachineFacts, kind: str) -> CpuCache | None:
    return next((cache for cache in facts.caches if cache.level == 1 and cache.kind in (kind, "unified")), None)


def _filled(name: str, cache: CpuCache | None) -> tuple[tuple[int, int, int], list[str]]:
    """Return size, ways and line with the gaps filled, and what was filled."""
    size, ways, line = (cache.size_bytes, cache.ways, cache.line_bytes) if cache else (None, None, None)
    assumed_size, assumed_ways, assumed_line = _ASSUMED[name]
    assumed = []
    low, high = _PLAUSIBLE[name]
    if not size or not low <= size <= high:
        assumed.append("size")
        size, ways = assumed_size, assumed_ways
    if not ways or (ways == 1 and size > _DIRECT_MAPPED_UP_TO):
        assumed.append("ways")
        ways = assumed_ways
    return (int(size), int(ways), int(line or assumed_line)), assumed


def _accepted(name: str, size: int, ways: int, line: int) -> tuple[int, int, int]:
    """Return the nearest size, ways and line whose number of sets is a power of two."""
    line = max(_SHORTEST_LINE, 2 ** round(math.log2(line)))
    sets, rest = divmod(size, ways * line)
    if not rest and sets.bit_count() == 1:
        return size, ways, line
    lines = size / line
    choices = []
    for exponent in range(max(1, int(math.log2(lines)) + 1)):
        sets = 2**exponent
        for near in {math.floor(lines / sets), math.ceil(lines / sets)} - {0}:
            if sets * near * line <= _PLAUSIBLE[name][1]:
                # What a cache holds matters more than its ways: 1 % of size weighs as much as 7 % of ways.
                off = abs(math.log(sets * near / lines)) + 0.15 * abs(math.log(near / ways))
                choices.append((off, sets * near * line, near))
    _, size, ways = min(choices)
    return size, ways, line


def _words(cache: tuple[int, int, int]) -> str:
    size, ways, line = cache
    unit, name = (2**20, "MiB") if size >= 2**20 else (2**10, "KiB")
    return f"{size / unit:g} {name} in {ways} ways of {line} B"
