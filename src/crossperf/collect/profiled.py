"""What profiling a command gave: its executions, what each tool counted, and the runs that these make."""

from __future__ import annotations

import platform as python_platform
import shlex
import socket
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

from crossperf import catalog
from crossperf.collect import regions
from crossperf.collect.process import NO_HARDWARE, Execution
from crossperf.errors import several, some_of
from crossperf.importers.measurement import Counted, Measurement, counted, to_run
from crossperf.platforms import MachineFacts, Platform
from crossperf.records import OK, Run
from crossperf.text import as_utf8

GPU_TOOLS = ("ncu", "cupti", "nvprof", "rocprof")
#: What counts while a command runs; the files of other tools are imported.
COLLECTED = {"os", "perf", "papi", "strace", "qemu", "valgrind", "ncu", "cupti", "rocprof"}


@dataclass(frozen=True)
class Profile:
    """What profiling a command gave, as far as it got.

    Parameters
    ----------
    command
        The program with its arguments.
    app, input, platform_name, ranks, threads
        What its runs are recorded under.
    class_given
        The class of the platform where the caller names one.
    facts
        Those of the machine.
    executions
        The native executions, in their order; a failed one is the last.
    measurements
        What each tool counted, in an execution of its own.
    not_counted
        Why a tool did not count, by its name.
    cut_off_with
        What a shell would report for the interrupt that ended the profiling; ``None`` without one.
    identity
        What the ``run_id`` of each run follows from, so that it stays the same while more becomes known.
    """

    command: tuple[str, ...]
    app: str
    input: str
    platform_name: str = ""
    class_given: str | None = None
    ranks: int | None = None
    threads: int | None = None
    facts: MachineFacts = field(default_factory=MachineFacts, repr=False)
    executions: tuple[Execution, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    not_counted: Mapping[str, str] = field(default_factory=dict)
    cut_off_with: int | None = None
    identity: uuid.UUID = field(default_factory=uuid.uuid4, repr=False, compare=False)

    def __repr__(self) -> str:
        tools = " + ".join(measurement.tool for measurement in self.measurements) or "nothing but the system"
        seconds = ", ".join(f"{execution.runtime_s:.4g} s" for execution in self.executions[:5])
        more = ", ..." if len(self.executions) > 5 else ""
        return (
            f"Profile of {shlex.join(self.command)[:100]}\n"
            f"  app {self.app!r}, input {self.input[:60]!r}, platform {self.platform_name!r}\n"
            f"  {several(len(self.executions), 'run')}: {seconds}{more}\n"
            f"  {len(self.counted.values)} counters, counted by {tools}"
        )

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """One run for each execution, numbered from 0; those that succeeded carry all counters."""
        return self.runs_from(0)

    def runs_from(self, first: int) -> tuple[Run, ...]:
        """Return the runs of the executions from a number on."""
        return tuple(self._run(number, self.executions[number]) for number in range(first, len(self.executions)))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the numbers must know, each with its tool."""
        of_tools = (f"{each.tool}: {note}" for each in self.measurements for note in each.notes)
        return (*self.region_notes, *of_tools)

    @property
    def region_notes(self) -> tuple[str, ...]:
        """What must be known of the region that the command marks."""
        first = self.executions[0].region if self.executions else None
        return first.notes if first else regions.not_seen(self.command)

    @property
    def platform(self) -> Platform:
        """The machine under the name that the runs carry, with its facts."""
        return Platform(self.platform_name, self.platform_class, self.facts)

    @property
    def platform_class(self) -> str:
        """The class that the caller names, otherwise ``gpu`` for a command that launched kernels, else ``cpu``."""
        return self.class_given or ("gpu" if self.counted.values.get("warp_blocks") else "cpu")

    @cached_property
    def counted(self) -> Counted:
        """The counters of the first execution."""
        return counted([*self.measurements, *(of_system(execution, self.facts) for execution in self.executions[:1])])

    @property
    def interrupted(self) -> bool:
        """Whether the profiling was ended before its time."""
        return self.cut_off_with is not None

    @property
    def exit_status(self) -> int:
        """What a shell would report for the command: that of the execution that failed, otherwise that of the first."""
        if self.cut_off_with is not None:
            return self.cut_off_with
        failed = [done.exit_status for done in self.executions if done.status != OK]
        return next(iter(failed or [done.exit_status for done in self.executions]), 0)

    def why_missing(self, counter: str) -> str:
        """Return why a counter of the catalog has no value: first the reasons of tools for this kind of platform."""
        tools = dict.fromkeys(formula.tool for formula in catalog.FORMULAS if formula.counter == counter)
        reasons = {tool: reason for tool in tools if (reason := self._why_not(tool, counter))}
        of_gpu = {tool: reason for tool, reason in reasons.items() if tool in GPU_TOOLS}
        of_cpu = {tool: reason for tool, reason in reasons.items() if tool not in GPU_TOOLS}
        of_class = (of_gpu or of_cpu) if self.platform_class == "gpu" else (of_cpu or of_gpu)
        if not of_class:
            return f"not asked for; {', '.join(tool for tool in tools if tool in COLLECTED)} can count it"
        # Every tool of a GPU has the same reason where there is none, or where it was not used.
        shown = dict(list(of_class.items())[:1]) if of_class is of_gpu and self.platform_class != "gpu" else of_class
        return "; ".join(f"{tool}: {reason}" for tool, reason in shown.items())

    def why_not(self, tool: str, counters: Sequence[str]) -> str:
        """Return in one reason why a tool gave no value of these counters."""
        own = next((measurement for measurement in self.measurements if measurement.tool == tool), None)
        reasons = [reason for counter in counters if (reason := self._why_not(tool, counter))]
        if not reasons:
            return "counts none of it here" if own or tool == "os" else "not asked for"
        if any(text.startswith(NO_HARDWARE) for text in (*reasons, *(own.notes if own else ()))):
            return NO_HARDWARE
        return some_of(dict.fromkeys(reasons), 2)

    def _why_not(self, tool: str, counter: str) -> str | None:
        own = next((measurement for measurement in self.measurements if measurement.tool == tool), None)
        if tool == "os":
            return _why_not_os(counter, self.executions[0]) if self.executions else None
        if own is None or tool in self.not_counted:
            return self.not_counted.get(tool)
        if all(value is None for value in own.events.values()):
            return own.notes[0] if own.notes else "counted nothing"
        return counted([own]).missing.get(counter, "").removeprefix(f"{tool}: ") or None

    def _run(self, number: int, execution: Execution) -> Run:
        tools = self.measurements if execution.status == OK else ()
        return to_run(
            [*tools, of_system(execution, self.facts)],
            app=self.app,
            input=self.input,
            platform=self.platform_name,
            platform_class=self.platform_class,
            runtime_s=execution.runtime_s,
            whole_runtime_s=execution.wall_s if execution.marked else None,
            region_visits=execution.marked.visits if execution.marked else None,
            repeat=number,
            status=execution.status,
            run_id=uuid.uuid5(self.identity, str(number)).hex,
            ranks=self.ranks,
            threads=self.threads,
            host=socket.gethostname(),
            started=datetime.fromtimestamp(execution.started, UTC).isoformat(timespec="milliseconds"),
            command=list(map(as_utf8, self.command)),
        )


def of_system(execution: Execution, facts: MachineFacts) -> Measurement:
    """Return what the operating system counts for every execution, at no cost, as events of the tool ``os``.

    The levels of the page table are those of the machine. Faults and bytes are those of the marked region, if the
    command marks one.
    """
    events: dict[str, float | None] = {
        "os.user_s": execution.user_s,
        "os.system_s": execution.system_s,
        "os.max_rss_bytes": execution.max_rss_bytes,
        "os.minor_faults": execution.minor_faults,
        "os.major_faults": execution.major_faults,
        "os.peak_threads": execution.peak_threads,
        "os.threads_started": execution.threads_started,
        "os.page_table_bytes": execution.page_table_bytes,
        "os.page_levels": facts.page_levels,
    }
    io = execution.io or {}
    if region := execution.marked:
        io = region.io or {}
        events |= {"os.minor_faults": region.minor_faults, "os.major_faults": region.major_faults}
        events |= {"os.user_s": None, "os.system_s": None, "os.region_cpu_s": region.cpu_s}
    events |= {f"os.{name}": io.get(name) for name in ("rchar", "wchar", "read_bytes", "write_bytes")}
    why_not = None if io else _why_not_os("io_bytes_read", execution)
    notes = (f"bytes read and written are unknown: {why_not}",) if why_not else ()
    version = f"Linux {python_platform.release()}"
    return Measurement("os", events, version, runtime_s=execution.runtime_s, notes=notes)


def _why_not_os(counter: str, execution: Execution) -> str | None:
    """Return why the operating system gave no value of a counter for an execution, or ``None``."""
    if counter == "threads" and execution.threads_started is None:
        return "threads are seen by looking now and then, and others may have started meanwhile"
    launchers = " and ".join(execution.launchers)
    lost = {"page_faults": execution.minor_faults, "io_bytes_read": execution.io, "io_bytes_written": execution.io}
    if lost.get(counter, 0) is not None:
        return None
    if launchers:
        return f"the sum holds {launchers}, which only started the program"
    return "this kernel keeps no /proc/PID/io"
