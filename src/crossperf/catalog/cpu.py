"""Formulas from the events of CPU tools: perf, PAPI, valgrind, and what the operating system counts itself."""

from __future__ import annotations

from crossperf.catalog.formula import Formula

CPU_FORMULAS: tuple[Formula, ...] = ()
