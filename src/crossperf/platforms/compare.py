"""The facts of platforms in words and side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from crossperf.platforms.facts import CpuCache
from crossperf.platforms.registry import Platform

_SHORT_KINDS = {"data": "d", "instruction": "i", "unified": ""}
_SIZES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


@dataclass(frozen=True)
class FactDifference:
    """One fact of two platforms; `ratio` is that of the second to that of the first, ``None`` for texts.

    >>> row = FactDifference("memory_bytes", 2**34, 2**35, 2.0)
    >>> row.texts
    ('16 GiB', '32 GiB')
    """

    fact: str
    a: Any
    b: Any
    ratio: float | None = None

    @property
    def texts(self) -> tuple[str, str]:
        """Both values with their unit, ``-`` where a fact is not known."""
        return in_words(self.fact, self.a), in_words(self.fact, self.b)


def compare(a: Platform, b: Platform) -> list[FactDifference]:
    """Return the facts of two platforms row by row, those first that the first one has."""
    of_a, of_b = flat(a), flat(b)
    return [
        FactDifference(fact, of_a.get(fact), of_b.get(fact), _ratio(of_a.get(fact), of_b.get(fact)))
        for fact in dict.fromkeys([*of_a, *of_b])
    ]


def describe(platform: Platform) -> list[tuple[str, str]]:
    """Return the facts of a platform as rows of name and text, units included."""
    return [(fact, in_words(fact, value)) for fact, value in flat(platform).items()]


def flat(platform: Platform) -> dict[str, Any]:
    """Return the facts of a platform with its caches and GPUs as facts of their own.

    >>> from crossperf.platforms import MachineFacts
    >>> flat(Platform("a", "cpu", MachineFacts(caches=(CpuCache(1, "data", 32768),))))
    {'class': 'cpu', 'l1d_bytes': 32768}
    """
    flattened: dict[str, Any] = {"class": platform.platform_class}
    for name, value in platform.facts.to_json().items():
        if name == "caches":
            flattened |= _flat_caches(platform.facts.caches)
        elif name == "gpus":
            first = asdict(platform.facts.gpus[0])
            flattened |= {"gpus": len(value)} | {
                f"gpu_{fact}": of_gpu for fact, of_gpu in first.items() if of_gpu is not None
            }
        else:
            flattened[name] = value
    return flattened


def _flat_caches(caches: Sequence[CpuCache]) -> dict[str, Any]:
    flattened: dict[str, Any] = {}
    for cache in caches:
        label = f"l{cache.level}{_SHORT_KINDS.get(cache.kind, '')}"
        facts = {"bytes": cache.size_bytes, "ways": cache.ways, "line_bytes": cache.line_bytes}
        facts["instances"] = cache.instances
        flattened |= {f"{label}_{name}": value for name, value in facts.items() if value is not None}
    return flattened


def _ratio(a: Any, b: Any) -> float | None:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (a, b))
    return b / a if numbers and a else None


def in_words(fact: str, value: Any) -> str:
    """Return a fact's value with its unit, read off the fact's name.

    >>> in_words("l1d_bytes", 49152), in_words("base_ghz", 2.4), in_words("os", None)
    ('48 KiB', '2.4 GHz', '-')
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value)
    if fact.endswith("_bytes"):
        unit, name = next((size for size in _SIZES if value >= size[0]), (1, "B"))
        return f"{value / unit:.4g} {name}"
    for suffix, unit_name in (("_ghz", "GHz"), ("_gb_s", "GB/s"), ("_s", "s"), ("_w", "W")):
        if fact.endswith(suffix):
            return f"{value:g} {unit_name}"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
