"""Counts a command's events with ``perf stat``."""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from crossperf.catalog import FORMULAS, canonical
from crossperf.catalog.formula import sufficient_events
from crossperf.collect.process import Execution, Runner, ask, version_of
from crossperf.errors import ProfileFileError
from crossperf.importers.measurement import Measurement
from crossperf.importers.perf import PerfEvent, events_in, remarks, totals

#: Tracepoints count only what passes a filter: threads rather than processes, calls that succeeded.
_FILTERS = {"task:task_newtask": "clone_flags & 0x10000"}
_SUCCEEDED = "ret >= 0"
#: Events of the kernel, which need no counter of the processor.
_SOFTWARE = ("page-faults", "task-clock")
#: Processors have 4 to 8 counters; with more events than counters perf shares them in time and estimates.
_GROUP_SIZE = 4


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

    def count(self, command: Sequence[str], runner: Runner) -> Measurement:
        """Execute the command once for each group of events, and return all of them."""
        hardware, notes = self._hardware()
        traced, more_notes = self._tracepoints()
        groups = self._groups(hardware)
        groups[0] += [*_SOFTWARE, *traced]
        executed = [self._run(group, command, runner) for group in groups]
        rows = [row for counted, _, _ in executed for row in counted]
        wall_s = sorted(execution.wall_s for _, _, execution in executed)
        events = totals(rows)
        known = set(map(canonical, events))
        events |= {name: None for name in (*self._wanted_hardware(), *_tracepoint_names()) if name not in known}
        notes += more_notes + [note for row in rows for note in remarks(row)]
        if len(groups) > 1:
            notes.append(f"{len(groups)} executions, so that no two events share a counter of the processor")
        version, line, median_s = version_of(self._perf or self.name), executed[0][1], wall_s[len(wall_s) // 2]
        return Measurement(self.name, events, version, line, median_s, notes=tuple(notes))

    def _groups(self, hardware: Sequence[str]) -> list[list[str]]:
        size = len(hardware) if self.multiplex else _GROUP_SIZE
        return [list(hardware[start : start + size]) for start in range(0, len(hardware), size or 1)] or [[]]

    def _run(
        self, events: Sequence[str], command: Sequence[str], runner: Runner
    ) -> tuple[list[PerfEvent], tuple[str, ...], Execution]:
        with tempfile.TemporaryDirectory(prefix="crossperf-") as folder:
            report = Path(folder, "perf.json")
            line = (*self._prefix(events, report), *command)
            execution = runner.count(line, self.name)
            return events_in(report), line, execution

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
            done = ask([*self._prefix(events, report), "true"])
            with contextlib.suppress(ProfileFileError):
                if done and done.returncode == 0:
                    return [row.event for row in events_in(report) if row.value is not None]
        return []

    def _hardware(self) -> tuple[list[str], list[str]]:
        generic, special = self._wanted_hardware(special=False), self._wanted_hardware(generic=False)
        counted = set(self._counted([f"{name}:u" for name in generic]))
        usable = [f"{name}:u" for name in generic if counted & {name, f"{name}:u"}]
        if not usable:
            return [], [self.what_not() or "none of the generic hardware events counts here"]
        # An event that perf has no name for on this processor fails the whole command: ask for each alone.
        offered = [name for name in special if self._counted([f"{name}:u"])]
        at_hand = [*offered, *(name.removesuffix(":u") for name in usable)]
        needed = sufficient_events(at_hand, [formula for formula in FORMULAS if formula.tool == self.name])
        lacking = [name for name in (*generic, *special) if name not in at_hand]
        usable += [f"{name}:u" for name in offered if name in needed]
        return usable, [f"not offered by this processor: {', '.join(lacking)}"] if lacking else []

    def _wanted_hardware(self, *, generic: bool = True, special: bool = True) -> list[str]:
        vendor = {"AMD": "AMD Zen", "IBM": "POWER"}.get(self.vendor or "", self.vendor)
        common, of_vendor = _events("any CPU"), _events(vendor)
        names = [*(common if generic else ()), *(event for event in of_vendor if special and event not in common)]
        return [event for event in names if event not in _SOFTWARE and ":" not in event]

    def _tracepoints(self) -> tuple[list[str], list[str]]:
        names = _tracepoint_names()
        usable = self._counted(names) or [name for name in names if self._counted([name])]
        notes = [] if usable else ["threads and opened files are not counted: the kernel's tracepoints need root"]
        return usable, notes


def _events(on: str | None) -> list[str]:
    mine = [formula for formula in FORMULAS if formula.tool == "perf" and formula.on == on]
    return list(dict.fromkeys(event for formula in mine for event in formula.events))


def _tracepoint_names() -> list[str]:
    return [event for event in _events("any CPU") if re.match(r"(task|syscalls):", event)]
