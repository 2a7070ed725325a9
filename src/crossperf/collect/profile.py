r"""Profiles one command: native repeats for its runtime, then once more under each tool that counts.

```
command --Runner--> Execution (x repeats) --system--> Measurement  \
        --Backend-> Measurement (one for each tool)                 > to_run -> Run (x repeats)
```
"""

from __future__ import annotations

import platform as python_platform
import shlex
import socket
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from crossperf import catalog
from crossperf.collect.backends import AUTO, Backend, backends, chosen
from crossperf.collect.process import Execution, Runner, resolve
from crossperf.collect.valgrind import CacheShape
from crossperf.errors import CollectError, MissingDependencyError, SettingsError, several
from crossperf.importers.measurement import Counted, Measurement, counted, to_run
from crossperf.platforms import MachineFacts, Platform, facts_of_this_machine, platform_of, read, user_file
from crossperf.records import OK, Run

GPU_TOOLS = ("ncu", "cupti", "nvprof", "rocprof")
#: Their files are imported; nothing here starts them.
READ_ONLY = ("nvprof",)
#: Tools that execute the command's instructions one by one, and how many times as long that takes.
_EMULATORS = {"qemu": "10 to 100", "valgrind": "20 to 200"}
#: Above this many seconds a command is not executed under them unless that is asked for.
_LONG_S = 60.0
#: What a shell reports for a command that Ctrl-C ended.
_INTERRUPTED = 130
#: Says on the way what is being done.
Say = Callable[[str], None]


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

    def __repr__(self) -> str:
        tools = " + ".join(measurement.tool for measurement in self.measurements) or "nothing but the system"
        seconds = ", ".join(f"{execution.wall_s:.4g} s" for execution in self.executions[:5])
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
        return tuple(self._run(number, execution) for number, execution in enumerate(self.executions))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the numbers must know, each with its tool."""
        return tuple(f"{each.tool}: {note}" for each in self.measurements for note in each.notes)

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
        """What a shell would report for the command: that of the execution that failed, otherwise 0."""
        if self.cut_off_with is not None:
            return self.cut_off_with
        return next((done.exit_status for done in self.executions if done.status != OK), 0)

    def why_missing(self, counter: str) -> str:
        """Return why a counter of the catalog has no value: first the reasons of tools for this kind of platform."""
        tools = dict.fromkeys(formula.tool for formula in catalog.FORMULAS if formula.counter == counter)
        reasons = {tool: reason for tool in tools if (reason := self._why_not(tool, counter))}
        of_gpu = {tool: reason for tool, reason in reasons.items() if tool in GPU_TOOLS}
        of_cpu = {tool: reason for tool, reason in reasons.items() if tool not in GPU_TOOLS}
        of_class = (of_gpu or of_cpu) if self.platform_class == "gpu" else (of_cpu or of_gpu)
        if not of_class:
            return f"not asked for; {', '.join(tool for tool in tools if tool not in READ_ONLY)} can count it"
        # Every tool of a GPU has the same reason where there is none, or where it was not used.
        shown = dict(list(of_class.items())[:1]) if of_class is of_gpu and self.platform_class != "gpu" else of_class
        return "; ".join(f"{tool}: {reason}" for tool, reason in shown.items())

    def _why_not(self, tool: str, counter: str) -> str | None:
        own = next((measurement for measurement in self.measurements if measurement.tool == tool), None)
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
            runtime_s=execution.wall_s,
            repeat=number,
            status=execution.status,
            run_id=uuid.uuid4().hex,
            ranks=self.ranks,
            threads=self.threads,
            host=socket.gethostname(),
            started=datetime.fromtimestamp(execution.started, UTC).isoformat(timespec="seconds"),
            command=list(self.command),
        )


def of_system(execution: Execution, facts: MachineFacts) -> Measurement:
    """Return what the operating system counts for every execution, at no cost, as events of the tool ``os``.

    The levels of the page table are those of the machine.
    """
    events: dict[str, float | None] = {
        "os.user_s": execution.user_s,
        "os.system_s": execution.system_s,
        "os.max_rss_bytes": execution.max_rss_bytes,
        "os.minor_faults": float(execution.minor_faults),
        "os.major_faults": float(execution.major_faults),
        "os.peak_threads": execution.peak_threads,
        "os.page_table_bytes": execution.page_table_bytes,
        "os.page_levels": facts.page_levels,
    }
    io = execution.io or {}
    events |= {f"os.{name}": io.get(name) for name in ("rchar", "wchar", "read_bytes", "write_bytes")}
    notes = () if execution.io else ("bytes read and written are unknown: this kernel keeps no /proc/PID/io",)
    version = f"Linux {python_platform.release()}"
    return Measurement("os", events, version, runtime_s=execution.wall_s, notes=notes)


def profile(
    command: Sequence[str],
    *,
    app: str | None = None,
    input: str | None = None,  # noqa: A002
    platform: str | None = None,
    platform_class: str | None = None,
    repeats: int = 3,
    backend: str = AUTO,
    cache: Mapping[str, CacheShape] | str | None = None,
    multiplex: bool = False,
    launch_limit: int | None = None,
    timeout: float | None = None,
    count_timeout: float | None = None,
    ranks: int | None = None,
    threads: int | None = None,
    registry: str | Path | None = None,
    say: Say = lambda _: None,
) -> Profile:
    """Return the runs of a command on this machine: its runtimes, and the counters of its work.

    The first execution prints where the caller prints; later ones print nowhere. A failed execution ends the
    repeats, and nothing is counted. An interrupt ends the profiling; what was measured so far is returned.

    Parameters
    ----------
    command
        The program with its arguments; no shell is involved.
    app, input
        Names of the application and its input; the defaults are the program's name and its arguments.
    platform
        Name of this machine; the default is its name in `registry`, or one made from its processor.
    platform_class
        ``cpu`` or ``gpu``; the default is ``gpu`` where the command launched kernels.
    repeats
        Executions for the runtime.
    backend
        ``auto`` (every tool that works here and adds something), ``os`` (none), or names: ``perf,valgrind``.
    cache, multiplex, launch_limit
        See `crossperf.collect.backends.backends`.
    timeout, count_timeout
        Seconds after which a native execution, or one under a tool, is ended.
    ranks, threads
        MPI ranks and threads, for the record.
    registry
        The file of the platforms that are known; the default is the user's own.
    say
        Called with a line of text before each step that takes long.

    Returns
    -------
    Profile
        `Profile.runs` holds one run for each execution.

    Examples
    --------
    >>> result = profile(["true"], repeats=2, backend="os", platform="here")
    >>> [(run.app, run.platform, run.repeat, run.status) for run in result.runs]
    [('true', 'here', 0, 'ok'), ('true', 'here', 1, 'ok')]
    """
    resolve(command)
    app = Path(command[0]).name if app is None else app
    input = shlex.join(command[1:]) if input is None else input  # noqa: A001
    kept = read(user_file() if registry is None else registry)
    facts = facts_of_this_machine()
    tools = backends(facts, cache, multiplex, launch_limit)
    start = Profile(tuple(command), app, input, "", platform_class, ranks, threads, facts)
    result = measure(start, tools, backend, repeats, timeout, count_timeout, say)
    here = platform_of(facts, kept, platform, result.platform_class)
    return replace(result, platform_name=here.name)


def measure(
    result: Profile,
    tools: Sequence[Backend],
    backend: str = AUTO,
    repeats: int = 3,
    timeout: float | None = None,
    count_timeout: float | None = None,
    say: Say = lambda _: None,
) -> Profile:
    """Return an empty profile filled with what the tools of a choice measure of its command; see `profile`."""
    if repeats < 1:
        raise SettingsError(f"repeats: found {repeats}, expected at least 1.", argument="repeats")
    for name, seconds in (("timeout", timeout), ("count_timeout", count_timeout)):
        if seconds is not None and not seconds > 0:
            raise SettingsError(f"{name}: found {seconds:g}, expected seconds above 0.", argument=name)
    picked = chosen(tools, backend)
    runner = Runner(timeout)
    for number in range(repeats):
        execution = runner.execute(result.command, quiet=number > 0)
        if runner.interrupted:
            # The time of an execution that was cut off tells nothing about the command.
            return replace(result, cut_off_with=execution.exit_status or _INTERRUPTED)
        result = replace(result, executions=(*result.executions, execution))
        if execution.status != OK:
            return result
    # Counting tools see the same standard input, under a limit of their own.
    return _count(result, picked, replace(runner, time_limit_s=count_timeout), say, in_order=backend == AUTO)


def _count(result: Profile, picked: Sequence[Backend], runner: Runner, say: Say, *, in_order: bool) -> Profile:
    """Execute the command once more under each tool; with `in_order`, leave out tools with nothing to add."""
    native_s = sorted(done.wall_s for done in result.executions)[len(result.executions) // 2]
    for backend in picked:
        reason = (backend.why_not() or _superfluous(backend, result, native_s)) if in_order else None
        if reason is None:
            say(f"counting with {backend.name}")
            try:
                measurement = backend.count(result.command, runner)
            except (CollectError, MissingDependencyError) as error:
                reason = str(error)
            else:
                slowdown = measurement.runtime_s / native_s if measurement.runtime_s else None
                more = (*result.measurements, replace(measurement, slowdown=slowdown))
                result = replace(result, measurements=more)
            if runner.interrupted:
                return replace(result, cut_off_with=_INTERRUPTED)
        if reason is not None:
            result = replace(result, not_counted={**result.not_counted, backend.name: reason})
    return result


def _superfluous(backend: Backend, result: Profile, native_s: float) -> str | None:
    """Return why a tool would add nothing to what is known already, or ``None``."""
    formulas = [formula for formula in catalog.FORMULAS if formula.tool == backend.name]
    # What the system saw by looking now and then is worth replacing by a count.
    known = {name for name, tool in result.counted.measured_by.items() if not (name == "threads" and tool == "os")}
    emulates = backend.name in _EMULATORS
    if emulates and "warp_blocks" in result.counted.values:
        return f"left out: the work is on the GPU, and {backend.name} cannot run its driver"
    if emulates and native_s > _LONG_S:
        advice = "ask for it by name, or profile a smaller input"
        return (
            f"left out: the command takes {native_s:.0f} s, and {_EMULATORS[backend.name]} times as long under "
            f"{backend.name}; {advice}"
        )
    if formulas and all(formula.counter in known for formula in formulas):
        return "left out: other tools counted all that it could"
    return None
