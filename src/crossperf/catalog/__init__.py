"""Every counter by one name: its unit, group and meaning, and how each tool and vendor spells it."""

from __future__ import annotations

from crossperf.catalog.counters import COUNTERS, Counter, Group
from crossperf.catalog.cpu import CPU_FORMULAS
from crossperf.catalog.formula import Derived, Events, Formula, derive
from crossperf.catalog.gpu import GPU_FORMULAS
from crossperf.catalog.names import canonical

#: Where two tools know a counter, the one that stands first is believed: a GPU's before its host's, hardware
#: before simulation.
FORMULAS: tuple[Formula, ...] = (*GPU_FORMULAS, *CPU_FORMULAS)

__all__ = ["COUNTERS", "FORMULAS", "Counter", "Derived", "Events", "Formula", "Group", "canonical", "derive"]
