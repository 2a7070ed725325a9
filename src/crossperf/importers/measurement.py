"""A measurement: the events that one tool counted, under its own names, and the run that measurements make."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crossperf.catalog import FORMULAS, canonical, derive
from crossperf.records import COLUMNS, OK, Run

#: Units of time as profilers name them.
SECONDS = {"sec": 1.0, "s": 1.0, "msec": 1e-3, "ms": 1e-3, "usec": 1e-6, "us": 1e-6, "nsec": 1e-9, "ns": 1e-9}


@dataclass(frozen=True)
class Measurement:
    """The raw events of one tool over one execution, with where they come from.

    Back ends make them by running a command, readers by reading a file.

    Parameters
    ----------
    tool
        ``perf``, ``papi``, ``valgrind``, ...: the name under which events and version are kept.
    events
        Counts under the tool's own names; ``None`` was asked for and not counted.
    command
        The tool's whole command line.
    notes
        What a reader of the numbers must know: what is missing and why, what was scaled.
    facts
        What else is known from the tool or file: columns of a run (``app``, ``ranks``, ``host``, ...) or metadata.
    counters
        Counters that the source holds under crossperf's names already; they need no formula.
    slowdown
        Wall time under the tool over wall time without it.
    reasons
        Why an event is ``None``, by its name, where more is known than that it was not counted.
    """

    tool: str
    events: Mapping[str, float | None] = field(default_factory=dict)
    version: str | None = None
    command: tuple[str, ...] = ()
    runtime_s: float | None = None
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    counters: Mapping[str, float | None] = field(default_factory=dict)
    slowdown: float | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


def added_up(values: Iterable[float | None]) -> float | None:
    """Return the sum of values, ``None`` where one of them is not known, or where there are none.

    >>> added_up([1.0, 2.0]), added_up([1.0, None]), added_up([])
    (3.0, None, None)
    """
    listed = list(values)
    known = [value for value in listed if value is not None]
    return math.fsum(known) if known and len(known) == len(listed) else None


@dataclass(frozen=True)
class Counted:
    """Counters of a run from all its tools: values, which tool each comes from, why some are missing."""

    values: Mapping[str, float]
    measured_by: Mapping[str, str]
    missing: Mapping[str, str]


def counted(measurements: Sequence[Measurement]) -> Counted:
    """Return the counters of a run from all that was measured.

    Where two tools know a counter, the catalog's order decides; of two measurements with the same event
    the first is believed.
    """
    events: dict[str, float | None] = {}
    tool_of: dict[str, str] = {}
    values: dict[str, float] = {}
    measured_by: dict[str, str] = {}
    for measurement in measurements:
        for name, value in measurement.counters.items():
            if value is not None and name not in values:
                values[name], measured_by[name] = value, measurement.tool
        for event, value in measurement.events.items():
            name = canonical(event)
            if events.get(name) is None:
                events[name], tool_of[name] = value, measurement.tool
    reasons = {canonical(event): text for each in measurements for event, text in each.reasons.items()}
    missing: dict[str, str] = {}
    for name, derived in derive(events, FORMULAS).items():
        tool = next(tool_of[event] for event in derived.formula.events if event in tool_of)
        if name in values:
            continue
        if derived.value is None:
            lacking = (event for event in derived.formula.events if events.get(event) is None)
            reason = next((reasons[event] for event in lacking if event in reasons), derived.reason)
            missing[name] = f"{tool}: {reason}"
        else:
            values[name], measured_by[name] = derived.value, tool
    return Counted(values, measured_by, missing)


def to_run(measurements: Sequence[Measurement], **columns: Any) -> Run:
    """Return the run that measurements of one execution make; `columns` stand above those in their facts."""
    of_all = counted(measurements)
    facts: dict[str, Any] = {}
    for measurement in reversed(measurements):
        facts |= _known(measurement.facts) | _known({"runtime_s": measurement.runtime_s})
    facts |= _known(columns)
    facts.setdefault("source_tool", " + ".join(f"{each.tool} {each.version or ''}".rstrip() for each in measurements))
    facts.setdefault("status", OK)
    provenance = {
        "measured_by": dict(of_all.measured_by),
        "missing": dict(of_all.missing),
        "tools": [_provenance(measurement) for measurement in measurements],
        "events": {measurement.tool: dict(measurement.events) for measurement in measurements if measurement.events},
    }
    known = {name: value for name, value in facts.items() if name in COLUMNS}
    metadata = {name: value for name, value in facts.items() if name not in COLUMNS}
    metadata |= {name: value for name, value in provenance.items() if value}
    return Run(**known, counters=dict(of_all.values), metadata=metadata)


def _known(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}


def _provenance(measurement: Measurement) -> dict[str, Any]:
    facts = {"tool": measurement.tool, "version": measurement.version, "command": list(measurement.command) or None}
    return _known(facts | {"slowdown": measurement.slowdown, "notes": list(measurement.notes) or None})
