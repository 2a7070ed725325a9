"""Reads what ``perf stat`` wrote: CSV (``-x``), JSON (``-j``), or the text that it prints for people."""

from __future__ import annotations

from pathlib import Path

from crossperf.importers.measurement import Measurement
from crossperf.importers.perf import lines, printed
from crossperf.importers.perf.events import PerfEvent, remarks, totals
from crossperf.importers.perf.lines import events_in

__all__ = ["PerfEvent", "events_in", "read", "reads", "remarks", "totals"]


def reads(path: Path) -> bool:
    """Tell whether a file looks like the output of ``perf stat``."""
    return lines.reads(path) or printed.reads(path)


def read(path: Path) -> list[Measurement]:
    """Return what a file holds: one execution, or each whose text it keeps."""
    return printed.read(path) if printed.holds(path) else [lines.read(path)]
