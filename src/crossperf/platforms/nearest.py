"""Which known platform a machine is, or comes nearest to, and how they differ."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from crossperf.platforms.compare import in_words
from crossperf.platforms.facts import MachineFacts
from crossperf.platforms.registry import Platform, matching

#: What a fact that differs weighs, in doublings of a size: another instruction set is beyond any of them.
_ARCHITECTURE, _MAKER, _MODEL, _THREADS, _CACHE, _CORES = 16.0, 2.0, 0.5, 2.0, 0.5, 0.25


@dataclass(frozen=True)
class Match:
    """A known platform that stands for a machine; `differs` says in words how, the most important first."""

    platform: Platform
    differs: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether the facts are those of the platform."""
        return not self.differs


class _Difference(NamedTuple):
    weight: float
    words: str


def nearest(
    platforms: Sequence[Platform], facts: MachineFacts, platform_class: str = "cpu", threads: int | None = None
) -> Match | None:
    """Return the platform of a class that a machine is, or comes nearest to; ``None`` where the class has none.

    Parameters
    ----------
    threads
        How many threads a program uses there: one machine can be several platforms. ``None``: that does not count.

    >>> small, large = (Platform(f"{n}c", "cpu", MachineFacts(cpu_model="X", cores=n)) for n in (2, 64))
    >>> match = nearest([small, large], MachineFacts(cpu_model="X", cores=4))
    >>> match.platform.name, match.differs
    ('2c', ('4 cores instead of 2',))
    """
    of_class = [platform for platform in platforms if platform.platform_class == platform_class]
    judged = [(_differences(platform, facts, threads), platform) for platform in of_class]
    if not judged:
        return None
    differences, platform = min(judged, key=lambda pair: sum(own.weight for own in pair[0]))
    ordered = sorted(differences, key=lambda own: -own.weight)
    return Match(platform, tuple(own.words for own in ordered))


def _differences(platform: Platform, facts: MachineFacts, threads: int | None) -> list[_Difference]:
    """Return how a machine differs from a platform; nothing where the facts are those of one machine."""
    known = platform.facts
    same = matching([platform], facts) is not None
    differences = [] if same else [*_processor(known, facts), *_sizes(known, facts)]
    if not same and not differences:
        differences.append(_Difference(0.1, "another machine with the same processor"))
    usual = known.more.get("threads")
    if platform.platform_class == "cpu" and threads and isinstance(usual, int) and 0 < usual != threads:
        apart = _THREADS * _doublings(threads, usual)
        differences.append(_Difference(apart, f"{threads} thread{'s' * (threads > 1)} instead of {usual}"))
    return differences


def _processor(known: MachineFacts, facts: MachineFacts) -> Iterator[_Difference]:
    texts = (
        (_ARCHITECTURE, known.architecture, facts.architecture),
        (_MAKER, known.cpu_vendor, facts.cpu_vendor),
        (_MODEL, known.cpu_model, facts.cpu_model),
    )
    # Another maker has other models; only the first of these differences tells something.
    differ = (text for text in texts if text[1] and text[2] and text[1] != text[2])
    for weight, theirs, ours in itertools.islice(differ, 1):
        yield _Difference(weight, f"{ours} instead of {theirs}")
    models = [gpu.model for gpu in known.gpus], [gpu.model for gpu in facts.gpus]
    if all(models) and models[0] != models[1]:
        yield _Difference(_MODEL, f"{models[1][0]} instead of {models[0][0]}")


def _sizes(known: MachineFacts, facts: MachineFacts) -> Iterator[_Difference]:
    if known.cores and facts.cores and known.cores != facts.cores:
        apart = _CORES * _doublings(facts.cores, known.cores)
        yield _Difference(apart, f"{facts.cores} cores instead of {known.cores}")
    theirs = {(cache.level, cache.kind): cache.size_bytes for cache in known.caches}
    for cache in facts.caches:
        size = theirs.get((cache.level, cache.kind))
        if cache.kind != "instruction" and size and cache.size_bytes and size != cache.size_bytes:
            ours, other = in_words("_bytes", cache.size_bytes), in_words("_bytes", size)
            apart = _CACHE * _doublings(cache.size_bytes, size)
            yield _Difference(apart, f"{ours} of L{cache.level} cache instead of {other}")


def _doublings(a: float, b: float) -> float:
    return abs(math.log2(a / b))
