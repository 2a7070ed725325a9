"""Reads what ``perf stat`` wrote as CSV (``-x``) or JSON (``-j``)."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossperf.catalog import canonical
from crossperf.errors import ProfileFileError
from crossperf.importers.files import start_of, text_of, unusable
from crossperf.importers.measurement import Measurement

_NOT_COUNTED = ("<not counted>", "<not supported>")
_NO_VALUE = object()


@dataclass(frozen=True)
class PerfEvent:
    """One event as perf reports it; `running` is the share of the time in which it was counted."""

    event: str
    value: float | None
    running: float = 1.0
    unit: str = ""


def reads(path: Path) -> bool:
    """Tell whether a file looks like the CSV or JSON of ``perf stat``."""
    head = start_of(path).decode("utf-8", "replace").splitlines()[:20]
    events = [line for line in head if line.strip() and not line.startswith("#")]
    return any(_json_line(line) or _csv_line(line) for line in events[:3])


def read(path: Path) -> list[Measurement]:
    """Return what one ``perf stat`` file holds."""
    rows = events_in(path)
    events = totals(rows)
    elapsed_ns = events.get("duration_time")
    notes = [note for row in rows for note in remarks(row)]
    lacking = [name for name, value in events.items() if value is None]
    if lacking:
        notes.append(f"perf could not count {', '.join(lacking)}")
    if elapsed_ns is None:
        notes.append("no runtime: add '-e duration_time' to perf stat to have it")
    shares = {row.event: row.running for row in rows if row.running < 0.995}
    started = re.match(r"# started on (.+)", start_of(path).decode("utf-8", "replace"))
    facts: dict[str, Any] = {"started": started[1].strip() if started else None}
    facts |= {"perf_running_share": shares} if shares else {}
    runtime_s = elapsed_ns * 1e-9 if elapsed_ns else None
    return [Measurement("perf", events, runtime_s=runtime_s, notes=tuple(notes), facts=facts)]


def totals(rows: Iterable[PerfEvent]) -> dict[str, float | None]:
    """Return each event once: intervals, processors, and the two kinds of cores of a hybrid one are added up.

    In an interval without a running process perf counts nothing; an event is unknown where none has a count.
    """
    totals: dict[str, float | None] = {}
    for row in rows:
        name = canonical(row.event) if re.match(r"cpu_\w+/", row.event) else row.event
        before = totals.get(name)
        totals[name] = before if row.value is None else (before or 0.0) + row.value
    return totals


def events_in(path: Path) -> list[PerfEvent]:
    """Return the events of a ``perf stat`` file, JSON or CSV, in its order."""
    text = text_of(path, "the output of perf stat", errors="replace")
    rows: list[PerfEvent] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        row = _json_line(line) or _csv_line(line)
        if row is not None:
            rows.append(row)
        elif not _is_extra(line):
            expected = "CSV or JSON of perf stat, made with 'perf stat -x,' or 'perf stat -j'"
            problem = f"{path}, line {number}: found {line.strip()[:60]!r}, expected {expected}."
            raise ProfileFileError(problem, path=path, line=number)
    if not rows:
        raise unusable(path, "found no event, expected the output of perf stat. Count again.")
    return rows


def _json_line(line: str) -> PerfEvent | None:
    try:
        facts = json.loads(line)
    except ValueError:
        return None
    if not isinstance(facts, dict) or "event" not in facts or "counter-value" not in facts:
        return None
    value = _value(facts["counter-value"])
    if value is _NO_VALUE:
        return None
    return PerfEvent(str(facts["event"]), value, _share(facts.get("pcnt-running", 100.0)), str(facts.get("unit") or ""))


def _csv_line(line: str) -> PerfEvent | None:
    """Return an event from ``[prefix,...]value,unit,event[,deviation],runtime,percent[,...]``.

    What stands before the value (an interval's time, a processor) depends on perf's options, so the value is
    found as the field which is followed by a unit and a name.
    """
    for separator in (",", ";", "\t", ":", "|"):
        fields = next(csv.reader([line], delimiter=separator))
        for at in range(min(4, len(fields) - 3)):
            value = _value(fields[at])
            unit, event = fields[at + 1].strip(), fields[at + 2].strip()
            if value is _NO_VALUE or not re.fullmatch(r"[A-Za-z]*", unit) or not re.match(r"[A-Za-z_]", event):
                continue
            rest = [text for text in fields[at + 3 :] if not text.strip().endswith("%")]
            share = _share(rest[1]) if len(rest) > 1 else 1.0
            return PerfEvent(event, value, share, unit)
    return None


def _is_extra(line: str) -> bool:
    """Tell a line that holds a derived metric and no event of its own."""
    try:
        facts = json.loads(line)
    except ValueError:
        return bool(re.match(r"^[,;\s]*[,;]", line))
    return isinstance(facts, dict) and ("metric-value" in facts or "metric-unit" in facts)


def _value(text: Any) -> Any:
    """Return a count, ``None`` for an event that was not counted, or a mark for what is no count at all."""
    word = str(text).strip()
    if word in _NOT_COUNTED:
        return None
    try:
        return float(word)
    except ValueError:
        return _NO_VALUE


def _share(text: Any) -> float:
    try:
        return float(text) / 100.0
    except (TypeError, ValueError):
        return 1.0


def remarks(row: PerfEvent) -> Iterator[str]:
    """Yield what a reader of an event must know: that it was scaled, or that it is no count."""
    if row.value is not None and row.running < 0.995:
        yield f"{row.event} was counted for {row.running:.0%} of the time and scaled by perf"
    if row.value is not None and row.value < 0:
        yield f"{row.event} came out negative ({row.value:g}) and is not used"
