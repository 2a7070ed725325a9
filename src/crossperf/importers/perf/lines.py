"""What ``perf stat`` wrote for programs: a line of CSV (``-x``) or JSON (``-j``) for each event."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from crossperf.documents import parse
from crossperf.errors import ProfileFileError
from crossperf.importers.files import start_of, text_of, unusable
from crossperf.importers.measurement import Measurement
from crossperf.importers.perf.events import PerfEvent, to_measurement, totals

#: No line of perf is longer; one that is comes from something else.
_LONGEST = 1 << 12
_NOT_COUNTED = ("<not counted>", "<not supported>")
_NO_VALUE = object()


def reads(path: Path) -> bool:
    """Tell whether a file looks like the CSV or JSON of ``perf stat``."""
    head = start_of(path).decode("utf-8", "replace").splitlines()[:20]
    events = [line for line in head if line.strip() and not line.startswith("#")]
    return any(_json_line(line) or _csv_line(line) for line in events[:3])


def read(path: Path) -> Measurement:
    """Return what one file holds."""
    rows = events_in(path)
    elapsed_ns = totals(rows).get("duration_time")
    notes = [] if elapsed_ns else ["no runtime: add '-e duration_time' to perf stat to have it"]
    started = re.match(r"# started on (.+)", start_of(path).decode("utf-8", "replace"))
    facts: dict[str, Any] = {"started": started[1].strip() if started else None}
    return to_measurement(rows, elapsed_ns * 1e-9 if elapsed_ns else None, notes, facts)


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
            expected = "what perf stat printed, or its CSV ('perf stat -x,') or JSON ('perf stat -j')"
            problem = f"{path}, line {number}: found {line.strip()[:60]!r}, expected {expected}."
            raise ProfileFileError(problem, path=path, line=number)
    if not rows:
        raise unusable(path, "found no event, expected the output of perf stat. Count again.")
    return rows


def _json_line(line: str) -> PerfEvent | None:
    try:
        # Some releases leave a comma behind the last fact.
        facts = parse(re.sub(r",\s*\}\s*$", "}", line).encode(), lenient=True)
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
    for separator in (",", ";", "\t", ":", "|") if len(line) <= _LONGEST else ():
        fields = line.split(separator)
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
        facts = parse(line.encode(), lenient=True)
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
    except (TypeError, ValueError, OverflowError):
        return 1.0
