"""Counts a command's events through libpapi."""

from __future__ import annotations

import contextlib
import os
import signal
from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crossperf.catalog import FORMULAS, Formula, canonical
from crossperf.collect import libpapi
from crossperf.collect.process import NO_HARDWARE, Execution, Runner
from crossperf.errors import CollectError
from crossperf.importers.measurement import Measurement
from crossperf.records import OK

_FORMULAS = [formula for formula in FORMULAS if formula.tool == "papi"]
#: The strictest setting of the kernel under which a user may count their own processes.
_PARANOID = 2
# The command starts as a shell that stops itself; once its counters are set it goes on as the command.
_STOPPED = ("/bin/sh", "-c", 'kill -STOP $$; exec "$@"', "sh")


@dataclass
class PapiBackend:
    """Counts the events of a command, its threads and its children through libpapi.

    Events that the processor cannot count together are counted in further executions of the command.

    Parameters
    ----------
    events
        Preset or native events by PAPI's names; ``None``: for each counter of the catalog, those of its first
        formula for PAPI that this processor can count.
    kernel
        Count what the kernel does for the command as well; by default user mode alone, as PAPI's own tools.
    """

    events: Sequence[str] | None = None
    kernel: bool = False
    name: str = field(default="papi", init=False)

    def why_not(self) -> str | None:
        """Return why PAPI cannot count here, or ``None`` if it can."""
        try:
            library = libpapi.load()
        except libpapi.LibraryMissingError as error:
            return f"{error}; install it, on Debian and Ubuntu with: apt-get install papi-tools"
        try:
            libpapi.EventSet(library, attach_to=os.getpid(), kernel=self.kernel).close()
            groups, refused = self._groups(library)
        except libpapi.PapiCallError as error:
            return _no_counters(str(error))
        if not groups:
            return _no_counters(", ".join(f"{name}: {why}" for name, why in list(refused.items())[:1]))
        return None

    def _groups(self, library: libpapi.Library) -> tuple[list[list[str]], dict[str, str]]:
        """Return what to count together, and why the other events that were wanted cannot be counted."""
        if self.events is not None:
            return libpapi.group(library, list(dict.fromkeys(self.events)), self.kernel)
        _, refused = libpapi.group(library, catalog_events(), self.kernel)
        chosen, lacking = choose(refused)
        groups, _ = libpapi.group(library, chosen, self.kernel)
        return groups, {name: refused[name] for name in lacking}

    def count(self, command: Sequence[str], runner: Runner) -> Measurement:
        """Execute a command once per group of events, and return all counts."""
        if why_not := self.why_not():
            raise CollectError(f"papi cannot count here: {why_not}")
        library = libpapi.load()
        groups, refused = self._groups(library)
        executed = [_execute(library, together, command, runner, self.kernel) for together in groups]
        events: dict[str, float | None] = dict.fromkeys(refused)
        events |= {name: count for _, counts in executed for name, count in counts.items()}
        named = {canonical(name): value for name, value in events.items()}
        notes, runtime_s = tuple(_notes(groups, refused, self.kernel)), executed[0][0].wall_s
        return Measurement(self.name, named, library.version, (*_STOPPED, *command), runtime_s, notes=notes)


def catalog_events() -> tuple[str, ...]:
    """Return every event that the catalog's formulas for PAPI read under PAPI's own names."""
    names = dict.fromkeys(name for formula in _FORMULAS for name in formula.events)
    return tuple(name for name in names if _is_papis(name))


def choose(refused: Container[str]) -> tuple[list[str], list[str]]:
    """Return the events to count, and those that are missed, where a processor refuses some.

    Of a counter with several formulas, the first whose events can all be counted is taken.
    """
    by_counter: dict[str, list[Formula]] = defaultdict(list)
    for formula in _FORMULAS:
        if all(_is_papis(name) for name in formula.events):
            by_counter[formula.counter].append(formula)
    chosen: dict[str, None] = {}
    missed: dict[str, None] = {}
    for formulas in by_counter.values():
        usable = [each for each in formulas if not any(name in refused for name in {*each.events} - each.optional)]
        # What only another processor could count is not missed.
        taken = (usable or [each for each in formulas if each.on == "any CPU"] or formulas)[0]
        chosen |= dict.fromkeys(name for name in taken.events if usable and name not in refused)
        missed |= dict.fromkeys(name for name in taken.events if not usable and name in refused)
    return list(chosen), [name for name in missed if name not in chosen]


def _is_papis(name: str) -> bool:
    """Whether this is a preset or an event of a processor; perf's generic events are in small letters."""
    return name == name.upper()


def _no_counters(why: str) -> str:
    paranoid = 0
    with contextlib.suppress(OSError, ValueError):
        paranoid = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    if paranoid > _PARANOID and os.geteuid() != 0:
        advice = f"ask an administrator for: sysctl kernel.perf_event_paranoid={_PARANOID}"
        return f"the kernel lets only root count (perf_event_paranoid is {paranoid}); {advice}"
    return f"{NO_HARDWARE} ({why})"


def _execute(
    library: libpapi.Library, together: Sequence[str], command: Sequence[str], runner: Runner, kernel: bool
) -> tuple[Execution, dict[str, float]]:
    """Run a command with a group of events attached before its first instruction."""
    attached: list[libpapi.EventSet] = []
    failed: list[libpapi.PapiCallError] = []

    def attach(pid: int) -> None:
        stopped = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        if stopped is None or stopped.si_code != os.CLD_STOPPED:
            return
        try:
            attached.append(libpapi.EventSet(library, attach_to=pid, kernel=kernel))
            for event in together:
                attached[0].add(event)
            attached[0].start()
            os.kill(pid, signal.SIGCONT)
        except libpapi.PapiCallError as error:  # the child must not stay behind, stopped
            failed.append(error)
            os.kill(pid, signal.SIGKILL)

    try:
        execution = runner.execute([*_STOPPED, *command], quiet=True, on_start=attach)
        if failed:
            raise CollectError(f"papi cannot count {command[0]}: {failed[0]}.") from failed[0]
        if execution.status != OK or not attached:
            raise CollectError(f"the command failed under papi: {execution.status}")
        return execution, attached[0].stop()
    except libpapi.PapiCallError as error:
        raise CollectError(f"papi lost the counts of {command[0]}: {error}.") from error
    finally:
        for events in attached:
            events.close()


def _notes(groups: Sequence[Sequence[str]], refused: Mapping[str, str], kernel: bool) -> list[str]:
    names_by_reason: dict[str, list[str]] = defaultdict(list)
    for name, why in refused.items():
        names_by_reason[why].append(name)
    notes = [f"not counted, PAPI says {why!r}: {', '.join(names)}" for why, names in names_by_reason.items()]
    if not kernel:
        notes.append("user mode alone")
    if len(groups) > 1:
        notes.append(f"{len(groups)} executions, since the processor cannot count all events at once")
    return notes
