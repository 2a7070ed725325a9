"""Every counter by one name: its unit, group and meaning, and how each tool and vendor spells it.

Both tables are data: ``counters.toml`` has the counters, ``formulas.toml`` the formulas in their order of belief.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from crossperf.catalog.formula import Derived, Events, Formula, derive
from crossperf.catalog.names import canonical

Group = Literal["memory and locality", "control flow and parallelism", "I/O"]


@dataclass(frozen=True)
class Counter:
    """One counter as crossperf names it."""

    name: str
    unit: str
    group: Group
    meaning: str
    at_most: float | None = None


_counters, _formulas = (
    tomllib.loads((files(__name__) / table).read_text("utf-8")) for table in ("counters.toml", "formulas.toml")
)
COUNTERS: dict[str, Counter] = {name: Counter(name, **facts) for name, facts in _counters.items()}
#: Where two tools know a counter, the one that stands first is believed: a GPU's before its host's, hardware
#: before simulation.
FORMULAS: tuple[Formula, ...] = tuple(
    Formula(**{key: text.format_map(_formulas["phrases"]) for key, text in formula.items()})
    for formula in _formulas["formula"]
)

__all__ = ["COUNTERS", "FORMULAS", "Counter", "Derived", "Events", "Formula", "Group", "canonical", "derive"]
