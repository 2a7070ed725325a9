"""The facts of platforms in words and side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from crossperf.platforms.registry import Platform

_SHORT_KINDS = {"data": "d", "instruction": "i", "unified": ""}
_SIZES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


@dataclass(frozen=True)
class Difference:
    """One fact of two platforms; `ratio` is that of the second to that of the first, ``None`` for texts.

    >>> row = Difference("memory_bytes", 2**34, 2**35, 2.0)
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

    @property
    def differs(self) -> bool:
        """Whether the two platforms differ in this fact."""
        return bool(self.a != self.b)

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON's own types."""
        return {"fact": self.fact, "a": self.a, "b": self.b, "ratio": self.ratio}


def compare(a: Platform, b: Platform) -> list[Difference]:
    """Return the facts of two platforms row by row, those first that the first one has."""
    of_a, of_b = flat(a), flat(b)
    return [
        Difference(fact, of_a.get(fact), of_b.get(fact), _ratio(of_a.get(fact), of_b.get(fact)))
        for fact in dict.fromkeys([*of_a, *of_b])
    ]


def describe(platform: Platform) -> list[tuple[str, str]]:
    """Return the facts of a platform as rows of name and text, units included."""
    return [(fact, in_words(fact, value)) for fact, value in flat(platform).items()]


def flat(platform: Platform) -> dict[str, Any]:
    """Return the facts of a platform with its caches and GPUs as facts of their own.

    >>> flat(Platform("a", "cpu", {"caches": [{"level": 1, "kind": "data", "size_bytes": 32768}]}))
    {'class': 'cpu', 'l1d_bytes': 32768}
    """
    facts: dict[str, Any] = {"class": platform.platform_class}
    for name, value in platform.facts.items():
        if name == "caches":
            facts |= _flat_caches(value)
        elif name == "gpus":
            facts |= _flat_gpus(value)
        else:
            facts[name] = value
    return facts


def _flat_caches(caches: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for cache in caches if isinstance(caches, list) else []:
        label = f"l{cache.get('level')}{_SHORT_KINDS.get(cache.get('kind'), '')}"
        told = {"bytes": cache.get("size_bytes"), "ways": cache.get("ways"), "line_bytes": cache.get("line_bytes")}
        told["instances"] = cache.get("instances")
        facts |= {f"{label}_{name}": value for name, value in told.items() if value is not None}
    return facts


def _flat_gpus(gpus: Any) -> dict[str, Any]:
    if not isinstance(gpus, list) or not gpus:
        return {}
    first = {name: value for name, value in gpus[0].items() if not isinstance(value, dict | list)}
    return {"gpus": len(gpus)} | {f"gpu_{name}": value for name, value in first.items()}


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
