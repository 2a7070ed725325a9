"""Every counter by one name: its unit, group and meaning, and how each tool and vendor spells it.

Both tables are data: ``counters.toml`` has the counters, ``formulas.toml`` the formulas in their order of belief.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from crossperf.catalog.formula import Derived, Events, Formula, derive
from crossperf.catalog.names import canonical

Group = Literal["memory and locality", "control flow and parallelism", "I/O"]


@dataclass(frozen=True)
class Counter:
    """One counter as crossperf names it; an `optional` one is beyond Table I, and a run without it is whole."""

    name: str
    unit: str
    group: Group
    meaning: str
    at_most: float | None = None
    optional: bool = False


_counters, _formulas = (
    tomllib.loads((files(__name__) / table).read_text("utf-8")) for table in ("counters.toml", "formulas.toml")
)
COUNTERS: dict[str, Counter] = {name: Counter(name, **facts) for name, facts in _counters.items()}
#: The bounded share of accesses that stands beside each ratio of misses to hits.
RATES = {name: name.removesuffix("ratio") + "rate" for name in ("cache_miss_ratio", "l2_miss_ratio", "llc_miss_ratio")}


def _written() -> Iterator[Formula]:
    for entry in _formulas["formula"]:
        texts = {key: text.format_map(_formulas["phrases"]) for key, text in entry.items()}
        formula = Formula(**texts, at_most=COUNTERS[entry["counter"]].at_most)
        yield formula
        if formula.counter in RATES:
            yield formula.to_accesses(RATES[formula.counter])


#: Where two tools know a counter, the one that stands first is believed: a GPU's before its host's, hardware
#: before simulation.
FORMULAS: tuple[Formula, ...] = tuple(_written())

__all__ = ["COUNTERS", "FORMULAS", "RATES", "Counter", "Derived", "Events", "Formula", "Group", "canonical", "derive"]
