"""Runs one command as its own shell would have run it, and keeps what the kernel counted for it.

The command stays in the caller's process group, so that a terminal's Ctrl-C and job control reach it
directly; other signals are handed on. What the command leaves behind after an interrupt or a time-out is
ended, since this process is made the parent of orphans.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossperf.collect.family import descendants, end_family, send
from crossperf.collect.guard import Guard
from crossperf.collect.own_io import OwnIo, io_since, threads_of
from crossperf.collect.starters import left_out
from crossperf.collect.stdin import Input
from crossperf.errors import CollectError, did_you_mean
from crossperf.records import OK

if TYPE_CHECKING:
    from crossperf.collect.regions import Region

#: How often the command's threads and page tables are looked at while it runs.
_LOOK_EVERY_S = 0.05
#: How long a silent execution has to end after an interrupt before it is ended.
_HURRY_S = 0.5
_PR_SET_CHILD_SUBREAPER = 36
_LAUNCHERS = left_out(while_it_runs=True)
#: Why tools that read a processor's counters have nothing to read.
NO_HARDWARE = "no hardware counters here, as on most virtual machines"
_NO_START = "Check that it is a program for this machine, and that a script starts with '#!' and its interpreter."


@dataclass(frozen=True)
class Execution:
    """One execution of a command: how it ended, how long it took, what the kernel counted.

    What only started the program (`launchers`, such as mpirun) is left out, and what cannot be separated from it is
    ``None``: page faults, and `io`, the fields of ``/proc/PID/io``. Children that were waited for are included.
    `peak_threads` is the most that were seen at a time, by looking now and then; `threads_started` are all, known
    where the kernel started nothing else meanwhile. `last_words` is the end of what it wrote to stderr, where that was
    asked for. `success` holds the exit statuses that are no failure.
    """

    returncode: int
    wall_s: float
    user_s: float
    system_s: float
    max_rss_bytes: int | None
    minor_faults: int | None
    major_faults: int | None
    io: Mapping[str, int] | None
    peak_threads: int | None = None
    threads_started: int | None = None
    page_table_bytes: int | None = None
    time_limit_s: float | None = None
    started: float = 0.0
    launchers: tuple[str, ...] = ()
    last_words: str = ""
    region: Region | None = None
    success: tuple[int, ...] = (0,)

    @property
    def marked(self) -> Region | None:
        """The region that the command marked, entered and left at least once; ``None`` without one."""
        return self.region if self.region and self.region.visits and self.status == OK else None

    @property
    def runtime_s(self) -> float:
        """Seconds of the marked region, or of the whole execution."""
        return self.marked.wall_s if self.marked else self.wall_s

    @property
    def status(self) -> str:
        """``ok``, or in a few words how the command failed."""
        if self.time_limit_s is not None:
            return f"timeout after {self.time_limit_s:g} s"
        if self.returncode < 0:
            return f"killed by {_signal_name(-self.returncode)}"
        return OK if self.returncode in self.success else f"exit status {self.returncode}"

    @property
    def exit_status(self) -> int:
        """What a shell would report: 128 + signal, 124 after a time-out."""
        if self.time_limit_s is not None:
            return 124
        return 128 - self.returncode if self.returncode < 0 else self.returncode


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def resolve(command: Sequence[str]) -> str:
    """Return the file that a command names, or raise with what is wrong about it."""
    if not command:
        raise CollectError("no command was given; expected one after '--', such as: crossperf profile -- ./app 100")
    name = command[0]
    program = shutil.which(name)
    if program:
        return program
    path = Path(name)
    if "/" not in name:
        folders = [folder for folder in os.get_exec_path() if Path(folder).is_dir()]
        nearest = did_you_mean(name, {entry.name for folder in folders for entry in os.scandir(folder)})
        raise CollectError(f"{name}: no such command on PATH{nearest}. Check its name, or give its path.")
    if path.is_dir():
        raise CollectError(f"{name}: found a folder, expected a program. Name the file inside it.")
    if path.exists():
        raise CollectError(f"{name}: found a file that may not be executed. Allow it with: chmod +x {name}")
    raise CollectError(f"{name}: no such file. Check the path of the command.")


@dataclass
class Runner:
    """Executes commands one after another, with the caller's signals and standard input.

    After `time_limit_s` seconds, or when the clock shows `deadline`, an execution and all that it started are ended.
    `stdout` is the descriptor that takes what the command prints there; by default it is the caller's. `on_look` is
    called now and then while a quiet execution runs, with the seconds since its start. `whole` passes over regions that
    the command marks; otherwise `region` is what it marks, for the tools that can count there alone. `env` holds
    variables for every execution. `quiet_stdout` takes what a quiet execution prints; by default nobody does. `success`
    holds the exit statuses that are no failure. `guard` ends the command where this process is killed. With `words`,
    what every execution writes to stderr goes nowhere, and its end is kept.
    """

    time_limit_s: float | None = None
    deadline: float = math.inf
    stdin: Input = field(default_factory=Input.of_caller)
    interrupted_by: int | None = None
    stdout: int | None = None
    on_look: Callable[[float], None] | None = None
    whole: bool = False
    region: Region | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    quiet_stdout: int = subprocess.DEVNULL
    success: tuple[int, ...] = (0,)
    guard: Guard | None = None
    words: bool = False

    @property
    def interrupted(self) -> bool:
        """Whether a signal came that ends the profiling."""
        return self.interrupted_by is not None

    def execute(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        quiet: bool = False,
        last_words: bool = False,
        on_start: Callable[[int], None] | None = None,
    ) -> Execution:
        """Run a command to its end and return what was counted.

        Parameters
        ----------
        env
            Variables to add to the caller's.
        quiet
            Send what the command prints to `quiet_stdout`; otherwise it goes where the caller's output goes.
        last_words
            Keep the end of what a quiet execution writes to stderr.
        on_start
            Called with the child's process id as soon as it runs.
        """
        limit_s, tailed = self.time_limit_s, self.words or (quiet and last_words)
        with contextlib.suppress(OSError, AttributeError):  # what the child leaves behind becomes ours, to be ended
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        variables = {**os.environ, **self.env, **(env or {})}
        with (
            self.stdin.open() as (stdin, child_has_stdin),
            _Signals(self) as signals,
            _Tail(tailed) as tail,
        ):
            stderr = tail.writer if tailed else subprocess.DEVNULL if quiet else None
            streams = (self.quiet_stdout if quiet else self.stdout, stderr)
            begun, others = _tasks_begun(), set(descendants(os.getpid()))
            started, start = time.time(), time.monotonic()
            try:
                # The child is reaped below, by hand: what it read and wrote is counted for its parent only then.
                child = subprocess.Popen(
                    list(command), stdin=stdin, stdout=streams[0], stderr=streams[1], env=variables
                )
            except OSError as error:
                problem = f"{command[0]}: cannot be started ({error.strerror or error})."
                raise CollectError(f"{problem} {_NO_START}", command=list(command)) from error
            if self.guard:
                self.guard.watch(child.pid)
            signals.hand_on_to(child.pid)
            child_has_stdin()
            if on_start:
                on_start(child.pid)
            watch = _Watch(child.pid, tail, self.on_look if quiet else None)
            until = min(self.deadline, start + (math.inf if limit_s is None else limit_s))
            # A tool may keep a signal from the command below it; the command alone decides what it does with one.
            in_time = watch.wait(until, lambda: quiet and self.interrupted)
            if not in_time:
                end_family(child.pid)
            wall_s = time.monotonic() - start
            ended = watch.ended()
            threads_started = watch.threads_started(begun)
            before = OwnIo.now()
            _, wait_status, usage = os.wait4(child.pid, 0)
            io = io_since(before) if ended.apart else None
            faults = (usage.ru_minflt, usage.ru_majflt) if ended.apart else ended.faults_below or (None, None)
            child.returncode = os.waitstatus_to_exitcode(wait_status)
            if self.guard:
                self.guard.leave(child.pid)
            if self.interrupted or not in_time:
                end_family(None, spared=others)
        # A child begins with its parent's memory, so a count below our own peak tells nothing about it.
        own_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return Execution(
            returncode=child.returncode,
            wall_s=wall_s,
            user_s=usage.ru_utime,
            system_s=usage.ru_stime,
            max_rss_bytes=usage.ru_maxrss * 1024 if usage.ru_maxrss > own_kb else watch.peaks.get("resident"),
            minor_faults=faults[0],
            major_faults=faults[1],
            io=io,
            peak_threads=watch.peaks.get("threads"),
            threads_started=threads_started,
            page_table_bytes=watch.peaks.get("page tables"),
            time_limit_s=None if in_time else round(wall_s, 1) if limit_s is None else limit_s,
            started=started,
            launchers=watch.launchers,
            last_words=tail.text,
            success=self.success,
        )

    def count(self, line: Sequence[str], tool: str, env: Mapping[str, str] | None = None) -> Execution:
        """Run a command under a tool that counts, quietly; one that fails there raises `CollectError`."""
        execution = self.execute(line, env=env, quiet=True, last_words=True)
        if execution.status != OK:
            raise CollectError(f"the command failed under {tool}: {in_its_words(tool, execution)}")
        return execution


def in_its_words(tool: str, execution: Execution) -> str:
    r"""Return how a command ended under a tool, with the tool's own last line about it, if there is one.

    >>> in_its_words("perf", Execution(1, 0, 0, 0, 0, 0, 0, None, last_words="a\nperf: no memory\n"))
    'exit status 1 (perf: no memory)'
    """
    own = [line.strip() for line in execution.last_words.splitlines() if re.match(rf"\S*\b{tool}[\w-]*: ", line)]
    return execution.status + (f" ({own[-1][:200]})" if own else "")


def elsewhere(launchers: Sequence[str]) -> str:
    """Return that a launcher's ranks were not seen, and what to do."""
    name = " and ".join(launchers)
    advice = f"put crossperf behind it: {name} ... crossperf profile -- ./app"
    return f"{name} starts its processes where they cannot be followed; {advice}"


def ask(command: Sequence[str], patience_s: float = 30.0) -> subprocess.CompletedProcess[str] | None:
    """Return how a short command ended and what it printed; ``None`` where it does not start, or takes too long."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False, timeout=patience_s
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def version_of(program: str, pattern: str = r"\d[\w.]*") -> str | None:
    """Return what ``PROGRAM --version`` answers, or ``None`` where it does not tell."""
    done = ask([program, "--version"])
    match = re.search(pattern, done.stdout + done.stderr) if done else None
    return match[0] if match else None


class _Signals:
    """Hands the caller's signals on to the child while it runs, and remembers that they came.

    Ctrl-C at a terminal reaches the child by itself, since it shares the process group; SIGINT is still
    handed on, because a `kill -INT` reaches this process alone, and a second one does no harm. SIGUSR1 and SIGUSR2
    for which the caller has a handler of its own, such as a batch system's warning of a time limit, end the child, and
    the handler is called then.
    """

    _ALL = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    _HANDED_ON = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT, signal.SIGWINCH)

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._before: dict[int, Any] = {}
        self._pid: int | None = None
        self._early: list[int] = []
        self._owed: set[int] = set()

    def __enter__(self) -> _Signals:
        if threading.current_thread() is threading.main_thread():
            for number in (*self._ALL, *self._HANDED_ON):
                self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        for number in sorted(self._owed):
            signal.raise_signal(number)

    def hand_on_to(self, pid: int) -> None:
        """Send a child what comes from now on, and what came while it was being started."""
        self._pid = pid
        for number in self._early:
            send(pid, number)

    def _receive(self, number: int, _: Any) -> None:
        if number in self._ALL:
            self._runner.interrupted_by = number
        elif number in (signal.SIGUSR1, signal.SIGUSR2) and callable(self._before[number]):
            self._runner.interrupted_by = number
            self._owed.add(number)
        if self._pid is None:
            self._early.append(number)
        else:
            send(self._pid, number)


class _Tail:
    """The end of what a quiet execution writes to stderr: read all along, so that nobody waits for us."""

    _KEPT = 4096

    def __init__(self, wanted: bool) -> None:
        self.reader, self.writer = os.pipe() if wanted else (-1, -1)
        self._data = b""

    def __enter__(self) -> _Tail:
        if self.reader >= 0:
            os.set_blocking(self.reader, False)
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in (self.reader, self.writer):
            if descriptor >= 0:
                os.close(descriptor)

    def drain(self) -> None:
        """Take what has been written."""
        with contextlib.suppress(OSError):
            while self.reader >= 0 and (data := os.read(self.reader, 65536)):
                self._data = (self._data + data)[-self._KEPT :]

    @property
    def text(self) -> str:
        """What was kept."""
        return self._data.decode("utf-8", "replace")


@dataclass(frozen=True)
class _Ended:
    """Whether the sums of a child that ended hold nothing but the program; if not, the page faults below it."""

    apart: bool
    faults_below: tuple[int, int] | None = None


class _Watch:
    """Waits for a child without reaping it, and looks at its processes meanwhile."""

    def __init__(self, pid: int, tail: _Tail, on_look: Callable[[float], None] | None = None) -> None:
        self._pid = pid
        self._tail = tail
        self._on_look = on_look
        #: The process that each thread belongs to, and the last name that each process was seen under.
        self._process: dict[int, int] = {}
        self._names: dict[int, str] = {}
        #: The most that was seen of threads, bytes of page tables, and bytes resident in one process.
        self.peaks: dict[str, int] = {}

    def wait(self, until: float, hurry: Callable[[], bool] = lambda: False) -> bool:
        """Return whether the child ended before the clock showed `until`, or soon after there was need to hurry."""
        pause_s, start = 0.001, time.monotonic()
        watching = [self._tail.reader] if self._tail.reader >= 0 else []
        pidfds: list[int] = []
        with contextlib.suppress(OSError):  # where the kernel has them: readable when the process ends
            pidfds.append(os.pidfd_open(self._pid))
        try:
            while True:
                if os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
                    return True
                now = time.monotonic()
                if now >= until:
                    return False
                until = min(until, now + _HURRY_S) if hurry() else until
                self._look()
                if self._on_look:
                    self._on_look(now - start)
                pause_s = min(2 * pause_s, _LOOK_EVERY_S)
                select.select([*pidfds, *watching], [], [], min(pause_s, until - now))
                self._tail.drain()
        finally:
            self._tail.drain()
            for descriptor in pidfds:
                os.close(descriptor)

    def _look(self) -> None:
        threads = page_tables = resident = 0
        for pid in [self._pid, *descendants(self._pid)]:
            with contextlib.suppress(OSError, ValueError):
                status = Path(f"/proc/{pid}/status").read_text()
                name = status.partition("\n")[0].removeprefix("Name:").strip()
                self._names[pid] = name
                self._process |= dict.fromkeys(threads_of(pid), pid)
                if name in _LAUNCHERS:
                    continue
                facts = {fact: int(text) for fact, text in re.findall(r"^(\w+):\s*(\d+)", status, re.MULTILINE)}
                threads += facts.get("Threads", 0)
                page_tables += facts.get("VmPTE", 0) * 1024
                resident = max(resident, facts.get("VmHWM", 0) * 1024)
        for fact, seen in (("threads", threads), ("page tables", page_tables), ("resident", resident)):
            if seen:
                self.peaks[fact] = max(self.peaks.get(fact, 0), seen)

    @property
    def launchers(self) -> tuple[str, ...]:
        """The processes that only started others, by name."""
        return tuple(sorted(set(self._names.values()) & _LAUNCHERS))

    def ended(self) -> _Ended:
        """Return what is known of a child that ended, before it is reaped."""
        name, minor, major = _ended_with(self._pid)
        self._names[self._pid] = name
        below = {pid for pid, seen in self._names.items() if seen in _LAUNCHERS and pid != self._pid}
        # What nobody has reaped yet is in no sum: the orted that a program started alone leaves behind.
        below = {pid for pid in below if not Path(f"/proc/{pid}").exists()}
        if name not in _LAUNCHERS:
            return _Ended(apart=not below)
        # A process that mpirun has just forked still carries its name.
        known = minor > 0 and {self._names[pid] for pid in below} <= {name}
        return _Ended(apart=False, faults_below=(minor, major) if known else None)

    def threads_started(self, begun: int | None) -> int | None:
        """Return how many threads the program started, where looking saw all that the kernel has started since."""
        ended = _tasks_begun()
        if begun is None or ended is None:
            return None
        if not set(range(begun + 1, ended + 1)) <= {*self._process, *threads_of("self")}:
            return None
        return sum(self._names[pid] not in _LAUNCHERS for pid in self._process.values()) or None


def _tasks_begun() -> int | None:
    """Return the number that the kernel gave the thread it started last, whoever asked for it."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/loadavg").read_text().split()[4])
    return None


def _ended_with(pid: int) -> tuple[str, int, int]:
    """Return the name of a process that ended and was not reaped, and the page faults of the children it reaped."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        before, _, after = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
        fields = after.split()
        return before.partition("(")[2], int(fields[8]), int(fields[10])
    return "", 0, 0
