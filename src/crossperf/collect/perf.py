"""Counts with ``perf stat``, and reads what it wrote as CSV or JSON."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossperf.catalog import FORMULAS, canonical
from crossperf.collect.measurement import Measurement
from crossperf.collect.process import Execution, Runner, version_of
from crossperf.errors import ProfileFileError

#: Tracepoints count only what passes a filter: threads rather than processes, calls that succeeded.
_FILTERS = {"task:task_newtask": "clone_flags & 0x10000"}
_SUCCEEDED = "ret >= 0"
#: Events of the kernel, which need no counter of the processor.
_SOFTWARE = ("page-faults", "task-clock")
#: Processors have 4 to 8 counters; with more events than counters perf shares them in time and estimates.
_GROUP_SIZE = 4
_NOT_COUNTED = ("<not counted>", "<not supported>")


@dataclass(frozen=True)
class Row:
    """One event as perf reports it; `running` is the share of the time in which it was counted."""

    event: str
    value: float | None
    running: float = 1.0
    unit: str = ""


class PerfBackend:
    """Hardware events, software events and tracepoints, children and threads included.

    Parameters
    ----------
    vendor
        The processor's vendor as formulas name it (``Intel``, ``AMD``, ``ARM``, ``IBM``); it decides which
        events are asked for beyond the generic ones.
    multiplex
        Count all hardware events in one execution and let perf scale them, instead of one execution for each
        group that fits the processor's counters.
    """

    name = "perf"

    def __init__(self, vendor: str | None = None, multiplex: bool = False) -> None:
        self.vendor = vendor
        self.multiplex = multiplex
        self._perf = shutil.which("perf")

    def why_not(self) -> str | None:
        """Return why perf counts nothing here, or ``None``."""
        if self._perf is None:
            return "perf is not installed (Debian: linux-perf; Ubuntu: linux-tools-generic)"
        if not self._counted(_SOFTWARE):
            return "the kernel does not let this user count; root may set kernel.perf_event_paranoid to 2 or less"
        return None

    def what_not(self) -> str | None:
        """Return what perf cannot do here although it works, or ``None``."""
        if not self._counted(["instructions:u"]):
            return "no hardware counters here, as on most virtual machines: software events and tracepoints only"
        return None

    @property
    def counts_hardware(self) -> bool:
        """Whether the processor's own counters can be used here."""
        return self.what_not() is None

    def count(self, command: Sequence[str], runner: Runner) -> Measurement:
        """Execute the command once for each group of events, and return all of them."""
        hardware, notes = self._hardware()
        traced, more_notes = self._tracepoints()
        asked = [*_SOFTWARE, *traced]
        groups = [hardware] if self.multiplex or not hardware else list(_chunks(hardware, _GROUP_SIZE))
        rows: list[Row] = []
        lines: list[tuple[str, ...]] = []
        wall_s: list[float] = []
        for number, group in enumerate(groups):
            found, line, execution = self._run([*group, *(asked if number == 0 else ())], command, runner)
            rows += found
            lines.append(line)
            wall_s.append(execution.wall_s)
        events = _totals(rows)
        known = set(map(canonical, events))
        events |= {name: None for name in (*self._wanted_hardware(), *_tracepoint_names()) if name not in known}
        notes += more_notes + [note for row in rows for note in _remarks(row)]
        if len(groups) > 1:
            notes.append(f"{len(groups)} executions, so that no two events share a counter of the processor")
        return Measurement(
            self.name,
            events,
            version=version_of(self._perf or self.name),
            command=lines[0],
            runtime_s=sorted(wall_s)[len(wall_s) // 2],
            notes=tuple(notes),
        )

    def _run(
        self, events: Sequence[str], command: Sequence[str], runner: Runner
    ) -> tuple[list[Row], tuple[str, ...], Execution]:
        with tempfile.TemporaryDirectory(prefix="crossperf-") as folder:
            report = Path(folder, "perf.json")
            line = (*self._prefix(events, report), *command)
            execution = runner.count(line, self.name)
            return rows_of(report), line, execution

    def _prefix(self, events: Sequence[str], report: Path) -> list[str]:
        line = [self._perf or "perf", "stat", "-j", "-o", str(report)]
        for event in events:
            line += ["-e", event]
            # A filter belongs to the event before it, so each tracepoint has an -e of its own.
            if ":sys_exit_" in event or event in _FILTERS:
                line += ["--filter", _FILTERS.get(event, _SUCCEEDED)]
        return [*line, "--"]

    def _counted(self, events: Sequence[str]) -> list[str]:
        """Return those of the events that count here, by counting nothing at all."""
        if self._perf is None:
            return []
        with tempfile.TemporaryDirectory(prefix="crossperf-") as folder:
            report = Path(folder, "perf.json")
            line = [*self._prefix(events, report), "true"]
            try:
                done = subprocess.run(line, capture_output=True, check=False, timeout=30)
            except (OSError, subprocess.TimeoutExpired):
                return []
            if done.returncode != 0:
                return []
            try:
                return [row.event for row in rows_of(report) if row.value is not None]
            except ProfileFileError:
                return []

    def _hardware(self) -> tuple[list[str], list[str]]:
        generic, special = self._wanted_hardware(special=False), self._wanted_hardware(generic=False)
        counted = set(self._counted([f"{name}:u" for name in generic]))
        usable = [f"{name}:u" for name in generic if counted & {name, f"{name}:u"}]
        if not usable:
            return [], [self.what_not() or "none of the generic hardware events counts here"]
        # An event that perf has no name for on this processor fails the whole command: ask for each alone.
        usable += [f"{name}:u" for name in special if self._counted([f"{name}:u"])]
        lacking = [name for name in (*generic, *special) if f"{name}:u" not in usable]
        return usable, [f"not offered by this processor: {', '.join(lacking)}"] if lacking else []

    def _wanted_hardware(self, *, generic: bool = True, special: bool = True) -> list[str]:
        vendor = {"AMD": "AMD Zen", "IBM": "POWER"}.get(self.vendor or "", self.vendor)
        mine = [formula for formula in FORMULAS if formula.tool == self.name]
        of_vendor = [formula for formula in mine if formula.on == vendor]
        of_all = [formula for formula in mine if formula.on == "any CPU"]
        names = {event: None for formula in [*of_all, *of_vendor] for event in formula.events}
        common = {event for formula in of_all for event in formula.events}
        return [
            event
            for event in names
            if event not in _SOFTWARE and ":" not in event and (generic if event in common else special)
        ]

    def _tracepoints(self) -> tuple[list[str], list[str]]:
        names = _tracepoint_names()
        usable = self._counted(names)
        if not usable:
            usable = [name for name in names if self._counted([name])]
        if not usable:
            return [], ["threads and opened files are not counted: the kernel's tracepoints need root"]
        return usable, []


def _tracepoint_names() -> list[str]:
    events = [event for formula in FORMULAS if formula.tool == "perf" for event in formula.events]
    return [event for event in dict.fromkeys(events) if re.match(r"(task|syscalls):", event)]


def _chunks(items: Sequence[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(items), size):
        yield list(items[start : start + size])


def _remarks(row: Row) -> Iterator[str]:
    if row.value is not None and row.running < 0.995:
        yield f"{row.event} was counted for {row.running:.0%} of the time and scaled by perf"
    if row.value is not None and row.value < 0:
        yield f"{row.event} came out negative ({row.value:g}) and is not used"


# Reading


def reads(path: Path) -> bool:
    """Tell whether a file looks like the CSV or JSON of ``perf stat``."""
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            head = [line for line in (next(lines, "") for _ in range(20)) if line.strip() and not line.startswith("#")]
    except OSError:
        return False
    return any(_json_line(line) or _csv_line(line) for line in head[:3])


def read(path: Path) -> list[Measurement]:
    """Return what one ``perf stat`` file holds."""
    rows = rows_of(path)
    events = _totals(rows)
    elapsed_ns = events.get("duration_time")
    notes = [note for row in rows for note in _remarks(row)]
    lacking = [name for name, value in events.items() if value is None]
    if lacking:
        notes.append(f"perf could not count {', '.join(lacking)}")
    if elapsed_ns is None:
        notes.append("no runtime: add '-e duration_time' to perf stat to have it")
    shares = {row.event: row.running for row in rows if row.running < 0.995}
    return [
        Measurement(
            "perf",
            events,
            runtime_s=elapsed_ns * 1e-9 if elapsed_ns else None,
            notes=tuple(notes),
            facts={"started": _started(path)} | ({"perf_running_share": shares} if shares else {}),
        )
    ]


def _totals(rows: Iterable[Row]) -> dict[str, float | None]:
    """Return each event once: intervals, processors, and the two kinds of cores of a hybrid one are added up.

    In an interval without a running process perf counts nothing; an event is unknown where none has a count.
    """
    totals: dict[str, float | None] = {}
    for row in rows:
        name = canonical(row.event) if re.match(r"cpu_\w+/", row.event) else row.event
        before = totals.get(name)
        totals[name] = before if row.value is None else (before or 0.0) + row.value
    return totals


def rows_of(path: Path) -> list[Row]:
    """Return the events of a ``perf stat`` file, JSON or CSV, in its order."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ProfileFileError(f"{path}: cannot be read ({error.strerror}).", path=path) from error
    rows: list[Row] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        row = _json_line(line) or _csv_line(line)
        if row is None:
            if _is_extra(line):
                continue
            expected = "CSV or JSON of perf stat, made with 'perf stat -x,' or 'perf stat -j'"
            raise ProfileFileError(
                f"{path}, line {number}: found {line.strip()[:60]!r}, expected {expected}.", path=path, line=number
            )
        rows.append(row)
    if not rows:
        raise ProfileFileError(f"{path}: found no event, expected the output of perf stat. Count again.", path=path)
    return rows


def _json_line(line: str) -> Row | None:
    try:
        facts = json.loads(line)
    except ValueError:
        return None
    if not isinstance(facts, dict) or "event" not in facts or "counter-value" not in facts:
        return None
    value = _value(facts["counter-value"])
    if value is _NO_VALUE:
        return None
    return Row(str(facts["event"]), value, _share(facts.get("pcnt-running", 100.0)), str(facts.get("unit") or ""))


def _csv_line(line: str) -> Row | None:
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
            return Row(event, value, share, unit)
    return None


def _is_extra(line: str) -> bool:
    """Tell a line that holds a derived metric and no event of its own."""
    try:
        facts = json.loads(line)
    except ValueError:
        return bool(re.match(r"^[,;\s]*[,;]", line))
    return isinstance(facts, dict) and ("metric-value" in facts or "metric-unit" in facts)


_NO_VALUE = object()


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


def _started(path: Path) -> str | None:
    with path.open(encoding="utf-8", errors="replace") as lines:
        match = re.match(r"# started on (.+)", next(lines, ""))
    return match[1].strip() if match else None
