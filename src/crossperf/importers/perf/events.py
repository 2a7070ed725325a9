"""Events as perf reports them, whatever the form: what adds up, and what a reader of them must know."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from crossperf.catalog import canonical
from crossperf.catalog.names import KIND_OF_CORE
from crossperf.importers.measurement import Measurement


@dataclass(frozen=True)
class PerfEvent:
    """One event as perf reports it; `running` is the share of the time in which it was counted."""

    event: str
    value: float | None
    running: float = 1.0
    unit: str = ""


def totals(rows: Iterable[PerfEvent]) -> dict[str, float | None]:
    """Return each event once: intervals, processors, and the two kinds of cores of a hybrid one are added up.

    In an interval without a running process perf counts nothing; an event is unknown where none has a count.
    """
    totals: dict[str, float | None] = {}
    for row in rows:
        name = canonical(row.event) if re.match(rf"{KIND_OF_CORE}/", row.event) else row.event
        before = totals.get(name)
        totals[name] = before if row.value is None else (before or 0.0) + row.value
    return totals


def remarks(row: PerfEvent) -> Iterator[str]:
    """Yield what a reader of an event must know: that it was scaled, or that it is no count."""
    if row.value is not None and row.running < 0.995:
        yield f"{row.event} was counted for {row.running:.0%} of the time and scaled by perf"
    if row.value is not None and row.value < 0:
        yield f"{row.event} came out negative ({row.value:g}) and is not used"


def to_measurement(
    rows: Sequence[PerfEvent], runtime_s: float | None, notes: Sequence[str] = (), facts: dict[str, Any] | None = None
) -> Measurement:
    """Return what one execution counted, with what is missing or was scaled."""
    events = totals(rows)
    doubts = [note for row in rows for note in remarks(row)]
    lacking = [name for name, value in events.items() if value is None]
    if lacking:
        doubts.append(f"perf could not count {', '.join(lacking)}")
    if events.get("instructions") is not None:
        doubts.append("counts hold the kernel's share too; 'perf stat -e instructions:u' and the like leave it out")
    shares = {row.event: row.running for row in rows if row.running < 0.995}
    kept = dict(facts or {}) | ({"perf_running_share": shares} if shares else {})
    return Measurement("perf", events, runtime_s=runtime_s, notes=(*doubts, *notes), facts=kept)
