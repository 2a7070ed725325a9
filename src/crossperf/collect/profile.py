"""Measures one command: native repeats for its runtime, then once more under each tool that counts.

```
command --Runner--> Execution (x repeats) --system--> Measurement  \
        --Backend-> Measurement (one for each tool)                 > to_run -> Run (x repeats) -> runs.jsonl
```
"""

from __future__ import annotations

import shlex
import socket
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from crossperf import catalog
from crossperf.collect import system
from crossperf.collect.cupti import CuptiBackend
from crossperf.collect.ncu import NcuBackend
from crossperf.collect.papi import PapiBackend
from crossperf.collect.perf import PerfBackend
from crossperf.collect.process import Execution, Runner, resolve
from crossperf.collect.rocprof import RocprofBackend
from crossperf.collect.strace import StraceBackend
from crossperf.collect.valgrind import Cache, ValgrindBackend
from crossperf.errors import CollectError, MissingDependencyError, SettingsError, did_you_mean
from crossperf.importers.measurement import Counted, Measurement, counted, to_run
from crossperf.platforms import cache_geometry
from crossperf.records import OK, Run

GPU_TOOLS = ("ncu", "cupti", "nvprof", "rocprof")
#: Their files are imported; nothing here starts them.
READ_ONLY = ("nvprof",)
#: Above this many seconds a command is not executed under valgrind unless that is asked for.
_LONG_S = 60.0
#: Says on the way what is being done.
Say = Callable[[str], None]


class Backend(Protocol):
    """A tool that counts while a command runs."""

    name: str

    def why_not(self) -> str | None:
        """Return why the tool cannot be used here and what to do about it, or ``None``."""

    def count(self, command: Sequence[str], runner: Runner) -> Measurement:
        """Execute the command under the tool; one that fails there raises `CollectError`."""


@dataclass(frozen=True)
class Choice:
    """A back end and why it is not used here, if it is not; `limits` is what it cannot do although it works."""

    backend: Backend
    why_not: str | None
    limits: str | None = None


def backends(
    facts: Mapping[str, Any],
    caches: Mapping[str, Cache] | None = None,
    multiplex: bool = False,
    launch_limit: int | None = None,
) -> list[Backend]:
    """Return every back end, set up for the machine whose facts are given, in the order in which they run.

    Parameters
    ----------
    caches
        What valgrind simulates, in place of the machine's own caches: bytes, ways and bytes a line.
    multiplex
        Let perf count all its events in one execution and scale them.
    launch_limit
        Let ncu count the first so many kernel launches alone.
    """
    assumed, notes = cache_geometry(facts)
    vendor = facts.get("cpu_vendor")
    chosen = {**assumed, **(caches or {})}
    return [
        NcuBackend(launch_limit),
        CuptiBackend(),
        RocprofBackend(),
        PerfBackend(vendor, multiplex),
        PapiBackend(),
        StraceBackend(),
        ValgrindBackend(chosen, [] if caches else notes),
    ]


def choices(known: Sequence[Backend]) -> list[Choice]:
    """Return each back end with whether it works here."""
    found = []
    for backend in known:
        why_not = backend.why_not()
        what_not = getattr(backend, "what_not", None)
        found.append(Choice(backend, why_not, what_not() if what_not and why_not is None else None))
    return found


@dataclass(frozen=True)
class Job:
    """What to measure and under which names."""

    command: tuple[str, ...]
    platform: str = ""
    platform_class: str | None = None
    app: str = ""
    input: str = ""
    repeats: int = 3
    time_limit_s: float | None = None
    count_limit_s: float | None = None
    ranks: int | None = None
    threads: int | None = None

    @classmethod
    def of(cls, command: Sequence[str], **settings: Any) -> Job:
        """Return a job named after its command, where no names are given.

        >>> job = Job.of(["./bin/dgemm", "400", "-v"])
        >>> job.app, job.input
        ('dgemm', '400 -v')
        """
        given = {name: value for name, value in settings.items() if value is not None}
        named = {"app": Path(command[0]).name, "input": shlex.join(command[1:])} if command else {}
        return cls(tuple(command), **{**named, **given})


@dataclass
class Profiled:
    """What profiling a command gave, as far as it got."""

    job: Job
    executions: list[Execution] = field(default_factory=list)
    measurements: list[Measurement] = field(default_factory=list)
    not_counted: dict[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    interrupted: bool = False
    cut_off_with: int | None = None

    @property
    def runs(self) -> list[Run]:
        """One run for each execution, numbered from 0; those that succeeded carry all counters."""
        return [self._run(number, execution) for number, execution in enumerate(self.executions)]

    @property
    def platform_class(self) -> str:
        """The class that the job names, otherwise ``gpu`` for a command that launched kernels, else ``cpu``."""
        return self.job.platform_class or ("gpu" if self.counted.values.get("warp_blocks") else "cpu")

    @property
    def counted(self) -> Counted:
        """The counters of the first execution."""
        of_system = [system.measurement(execution, self.facts) for execution in self.executions[:1]]
        return counted([*self.measurements, *of_system])

    @property
    def exit_status(self) -> int:
        """What a shell would report for the command: that of the execution that failed, otherwise 0."""
        if self.interrupted:
            return self.cut_off_with or 130
        return next((done.exit_status for done in self.executions if done.status != OK), 0)

    def why_missing(self, counter: str) -> str:
        """Return why a counter of the catalog has no value: first the reasons of tools for this kind of platform."""
        tools = dict.fromkeys(formula.tool for formula in catalog.FORMULAS if formula.counter == counter)
        reasons = {tool: reason for tool in tools if (reason := self._why_not(tool, counter))}
        of_gpu = {tool: reason for tool, reason in reasons.items() if tool in GPU_TOOLS}
        of_cpu = {tool: reason for tool, reason in reasons.items() if tool not in GPU_TOOLS}
        told = (of_gpu or of_cpu) if self.platform_class == "gpu" else (of_cpu or of_gpu)
        if not told:
            return f"not asked for; {', '.join(tool for tool in tools if tool not in READ_ONLY)} can count it"
        # Every tool of a GPU says the same where there is none, or where it was not used.
        shown = dict(list(told.items())[:1]) if told is of_gpu and self.platform_class != "gpu" else told
        return "; ".join(f"{tool}: {reason}" for tool, reason in shown.items())

    def _why_not(self, tool: str, counter: str) -> str | None:
        if tool in self.not_counted:
            return self.not_counted[tool]
        for measurement in self.measurements:
            if measurement.tool == tool and all(value is None for value in measurement.events.values()):
                return measurement.notes[0] if measurement.notes else "counted nothing"
            if measurement.tool == tool:
                return (counted([measurement]).missing.get(counter) or "").removeprefix(f"{tool}: ") or None
        return None

    def _run(self, number: int, execution: Execution) -> Run:
        of_system = system.measurement(execution, self.facts)
        failed = execution.status != OK
        measurements = [of_system] if failed else [*self.measurements, of_system]
        return to_run(
            measurements,
            app=self.job.app,
            input=self.job.input,
            platform=self.job.platform,
            platform_class=self.platform_class,
            runtime_s=execution.wall_s,
            repeat=number,
            status=execution.status,
            run_id=uuid.uuid4().hex,
            ranks=self.job.ranks,
            threads=self.job.threads,
            host=socket.gethostname(),
            started=datetime.fromtimestamp(execution.started, UTC).isoformat(timespec="seconds"),
            command=list(self.job.command),
        )


def profile(
    job: Job, known: Sequence[Backend], facts: Mapping[str, Any], wanted: str = "auto", say: Say = lambda _: None
) -> Profiled:
    """Return what can be measured of a command here.

    The first execution prints where the caller prints; later ones print nowhere. A failed execution ends the
    repeats, and nothing is counted. An interrupt ends the job; what was measured so far is returned.

    Parameters
    ----------
    known
        The back ends to choose from (`backends`).
    wanted
        ``auto``, ``os``, or names of back ends: ``perf,valgrind``.
    """
    if job.repeats < 1:
        raise SettingsError(f"--repeats: found {job.repeats}, expected at least 1.")
    resolve(job.command)
    chosen = _chosen(known, wanted)
    result = Profiled(job, facts=facts)
    runner = Runner(job.time_limit_s)
    for number in range(job.repeats):
        execution = runner.execute(job.command, quiet=number > 0)
        if runner.interrupted:
            # The time of an execution that was cut off tells nothing about the command.
            result.interrupted = True
            result.cut_off_with = execution.exit_status
            return result
        result.executions.append(execution)
        if execution.status != OK:
            return result
    # Counting tools see the same standard input, under a limit of their own.
    _count(result, chosen, replace(runner, time_limit_s=job.count_limit_s), say, in_order=wanted == "auto")
    return result


def _chosen(known: Sequence[Backend], wanted: str) -> list[Backend]:
    by_name = {backend.name: backend for backend in known}
    if wanted == "auto":
        return list(known)
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    for name in names:
        if name not in (*by_name, "os"):
            expected = f"auto, os or one of {', '.join(by_name)}"
            raise SettingsError(f"--backend: found {name!r}{did_you_mean(name, by_name)}, expected {expected}.")
    picked = [by_name[name] for name in names if name != "os"]
    for backend in picked:
        if why_not := backend.why_not():
            advice = "Mend that, or leave --backend out: what works here is taken then"
            raise CollectError(f"--backend {backend.name}: {why_not}. {advice}.")
    return picked


def _count(result: Profiled, chosen: Sequence[Backend], runner: Runner, say: Say, *, in_order: bool) -> None:
    """Execute the command once more under each tool; with `in_order`, leave out tools with nothing to add."""
    native_s = sorted(done.wall_s for done in result.executions)[len(result.executions) // 2]
    for backend in chosen:
        reason = backend.why_not() if in_order else None
        reason = reason or (_superfluous(backend, result, native_s) if in_order else None)
        if reason:
            result.not_counted[backend.name] = reason
            continue
        say(f"counting with {backend.name}")
        try:
            found = backend.count(result.job.command, runner)
        except (CollectError, MissingDependencyError) as error:
            if runner.interrupted:
                result.interrupted = True
                return
            result.not_counted[backend.name] = str(error)
            continue
        slowdown = found.runtime_s / native_s if found.runtime_s else None
        result.measurements.append(replace(found, slowdown=slowdown))
        if runner.interrupted:
            result.interrupted = True
            return


def _superfluous(backend: Backend, result: Profiled, native_s: float) -> str | None:
    """Return why a tool would add nothing to what is known already, or ``None``."""
    values = result.counted.values
    formulas = [formula for formula in catalog.FORMULAS if formula.tool == backend.name]
    # What the system saw by looking now and then is worth replacing by a count.
    known = {name for name, tool in result.counted.measured_by.items() if not (name == "threads" and tool == "os")}
    if backend.name == "valgrind" and "warp_blocks" in values:
        return "left out: the work is on the GPU, and valgrind cannot run its driver"
    if backend.name == "valgrind" and native_s > _LONG_S:
        advice = "ask for it with --backend, or profile a smaller input"
        return f"left out: the command takes {native_s:.0f} s, and 20 to 200 times as long under valgrind; {advice}"
    if formulas and all(formula.counter in known for formula in formulas):
        return "left out: other tools counted all that it could"
    return None
