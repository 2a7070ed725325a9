"""Counts a command's events with ``perf stat``."""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from crossperf.catalog import FORMULAS, canonical
from crossperf.catalog.formula import sufficient_events
from crossperf.collect import regions
from crossperf.collect.process import NO_HARDWARE, Execution, Runner, ask, elsewhere, version_of
from crossperf.collect.starters import left_out
from crossperf.errors import CollectError, ProfileFileError
from crossperf.importers.measurement import Measurement
from crossperf.importers.perf import PerfEvent, events_in, remarks, totals

_NEW, _RENAMED = "task:task_newtask", "task:task_rename"
#: What perf calls the process that becomes the command.
_BEFORE = "perf-exec"
#: Counted over the whole program, although it marks a region: its threads.
_OF_THE_WHOLE = (_NEW, _RENAMED)
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
            return f"{NO_HARDWARE}: software events and tracepoints only"
        return None

    def count(self, command: Sequence[str], runner: Runner) -> Measurement:
        """Execute the command once for each group of events, and return all of them."""
        hardware, notes = self._hardware()
        traced, more_notes = self._tracepoints()
        groups = self._groups(hardware)
        groups[0] += [*_SOFTWARE, *traced]
        if runner.region:
            groups = [[event for event in group if event not in _OF_THE_WHOLE] for group in groups]
            groups += filter(None, [[event for event in traced if event in _OF_THE_WHOLE]])
        executed = [self._run(group, command, runner) for group in groups]
        rows = _processes([row for counted, _, _ in executed for row in counted])
        wall_s = sorted(execution.wall_s for _, _, execution in executed)
        events = totals(rows)
        known = set(map(canonical, events))
        events |= {name: None for name in (*self._wanted_hardware(), *_tracepoint_names()) if name not in known}
        launchers = executed[0][2].launchers
        if launchers:
            if _RENAMED in known and not (events[_NEW] or events[_RENAMED]):
                raise CollectError(elsewhere(launchers))
            events["page-faults"] = None
            notes.append(_launcher_note(launchers, bool(hardware)))
        notes += more_notes + [note for row in rows for note in remarks(row)]
        if len(groups) > 1 and hardware:
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
            of_the_whole = all(event in _OF_THE_WHOLE for event in events)
            options, env = regions.for_perf(None if of_the_whole else runner.region, Path(folder))
            prefix = self._prefix(events, report)
            line = (*prefix[:-1], *options, *prefix[-1:], *command)
            execution = runner.count(line, self.name, env)
            return events_in(report), line, execution

    def _prefix(self, events: Sequence[str], report: Path) -> list[str]:
        # By its name: called by its path, perf puts its own folder in front of the command's PATH.
        line = ["perf", "stat", "-j", "-o", str(report)]
        for event in events:
            line += ["-e", event]
            # A filter belongs to the event before it, so each tracepoint has an -e of its own.
            if event == _RENAMED:
                line += ["--filter", _became(program=True), "-e", event, "--filter", _became(program=False)]
            elif ":" in event and not event.endswith(":u"):
                line += ["--filter", " && ".join([*(["ret >= 0"] if ":sys_exit_" in event else []), _of_program()])]
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
                    return list(dict.fromkeys(row.event for row in events_in(report) if row.value is not None))
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


def _of_program(field: str = "comm") -> str:
    """Return the filter for what the program does, without what only started it."""
    return " && ".join(f'{field} != "{name}"' for name in sorted(left_out()))


def _became(*, program: bool) -> str:
    """Return the filter for processes that became the program's by executing a file of it, or ceased to be."""
    outside = " || ".join(f'{{}} == "{name}"' for name in sorted(left_out()))
    before, after = ("oldcomm", "newcomm") if program else ("newcomm", "oldcomm")
    perf_itself = f'oldcomm {"==" if program else "!="} "{_BEFORE}"'
    join = "||" if program else "&&"
    return f"(({outside.replace('{}', before)}) {join} {perf_itself}) && {_of_program(after)}"


def _processes(rows: Sequence[PerfEvent]) -> list[PerfEvent]:
    """Return the events with a single one for the processes that executed the program, less those that left it."""
    changes = [row for row in rows if row.event == _RENAMED]
    rest = [row for row in rows if row.event != _RENAMED]
    if len(changes) != 2 or changes[0].value is None or changes[1].value is None:
        return [*rest, *(replace(row, value=None) for row in changes[:1])]
    return [*rest, replace(changes[0], value=changes[0].value - changes[1].value)]


def _launcher_note(launchers: Sequence[str], hardware: bool) -> str:
    names = " and ".join(launchers)
    if hardware:
        return f"{names}, which only started the others, is left out of threads and files; hardware events hold it"
    return f"{names}, which only started the others, is left out"


def _events(on: str | None) -> list[str]:
    mine = [formula for formula in FORMULAS if formula.tool == "perf" and formula.on == on]
    return list(dict.fromkeys(event for formula in mine for event in formula.events))


def _tracepoint_names() -> list[str]:
    return [event for event in _events("any CPU") if re.match(r"(task|syscalls):", event)]
