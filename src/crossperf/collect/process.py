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

from crossperf.collect.stdin import Input
from crossperf.errors import CollectError, did_you_mean
from crossperf.records import OK

if TYPE_CHECKING:
    from crossperf.collect.regions import Region

#: How often the command's threads and page tables are looked at while it runs.
_LOOK_EVERY_S = 0.05
#: How long an interrupted command has to end by itself before it is killed.
_GRACE_S = 3.0
_PR_SET_CHILD_SUBREAPER = 36
_NO_START = "Check that it is a program for this machine, and that a script starts with '#!' and its interpreter."


@dataclass(frozen=True)
class Execution:
    """One execution of a command: how it ended, how long it took, what the kernel counted.

    `io` holds the fields of ``/proc/PID/io``, children that were waited for included; ``None`` where the
    kernel does not tell. `peak_threads` is the most that were seen at a time, by looking now and then.
    """

    returncode: int
    wall_s: float
    user_s: float
    system_s: float
    max_rss_bytes: int | None
    minor_faults: int
    major_faults: int
    io: Mapping[str, int] | None
    peak_threads: int | None = None
    page_table_bytes: int | None = None
    time_limit_s: float | None = None
    started: float = 0.0
    region: Region | None = None

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
        return OK if self.returncode == 0 else f"exit status {self.returncode}"

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

    After `time_limit_s` seconds an execution and all that it started are ended. `region` is what the command marks,
    for the tools that can count there alone; `env` holds variables for every execution.
    """

    time_limit_s: float | None = None
    stdin: Input = field(default_factory=Input.of_caller)
    interrupted: bool = False
    region: Region | None = None
    env: Mapping[str, str] = field(default_factory=dict)

    def execute(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        quiet: bool = False,
        on_start: Callable[[int], None] | None = None,
    ) -> Execution:
        """Run a command to its end and return what was counted.

        Parameters
        ----------
        env
            Variables to add to the caller's.
        quiet
            Send what the command prints nowhere; otherwise it goes where the caller's output goes.
        on_start
            Called with the child's process id as soon as it runs.
        """
        limit_s = self.time_limit_s
        with contextlib.suppress(OSError, AttributeError):  # what the child leaves behind becomes ours, to be ended
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        nowhere = subprocess.DEVNULL if quiet else None
        variables = {**os.environ, **self.env, **(env or {})}
        with self.stdin.open() as (stdin, child_has_stdin), _Signals(self) as signals:
            started, start = time.time(), time.monotonic()
            try:
                # The child is reaped below, by hand: only a zombie still tells its I/O.
                child = subprocess.Popen(list(command), stdin=stdin, stdout=nowhere, stderr=nowhere, env=variables)
            except OSError as error:
                problem = f"{command[0]}: cannot be started ({error.strerror or error})."
                raise CollectError(f"{problem} {_NO_START}", command=list(command)) from error
            signals.hand_on_to(child.pid)
            child_has_stdin()
            if on_start:
                on_start(child.pid)
            watch = _Watch(child.pid)
            in_time = watch.wait(math.inf if limit_s is None else start + limit_s)
            if not in_time:
                end_family(child.pid)
            wall_s = time.monotonic() - start
            io = _io_of(child.pid)
            _, wait_status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(wait_status)
            if self.interrupted or not in_time:
                end_family(None)
        # A child begins with its parent's memory, so a count below our own peak tells nothing about it.
        own_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return Execution(
            returncode=child.returncode,
            wall_s=wall_s,
            user_s=usage.ru_utime,
            system_s=usage.ru_stime,
            max_rss_bytes=usage.ru_maxrss * 1024 if usage.ru_maxrss > own_kb else watch.peaks.get("resident"),
            minor_faults=usage.ru_minflt,
            major_faults=usage.ru_majflt,
            io=io,
            peak_threads=watch.peaks.get("threads"),
            page_table_bytes=watch.peaks.get("page tables"),
            time_limit_s=None if in_time else limit_s,
            started=started,
        )

    def count(self, line: Sequence[str], tool: str, env: Mapping[str, str] | None = None) -> Execution:
        """Run a command under a tool that counts, quietly; one that fails there raises `CollectError`."""
        execution = self.execute(line, env=env, quiet=True)
        if execution.status != OK:
            raise CollectError(f"the command failed under {tool}: {execution.status}")
        return execution


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
    handed on, because a `kill -INT` reaches this process alone, and a second one does no harm.
    """

    _ALL = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    _HANDED_ON = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT, signal.SIGWINCH)

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._before: dict[int, Any] = {}
        self._pid: int | None = None
        self._early: list[int] = []

    def __enter__(self) -> _Signals:
        if threading.current_thread() is threading.main_thread():
            for number in (*self._ALL, *self._HANDED_ON):
                self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def hand_on_to(self, pid: int) -> None:
        """Send a child what comes from now on, and what came while it was being started."""
        self._pid = pid
        for number in self._early:
            _send(pid, number)

    def _receive(self, number: int, _: Any) -> None:
        if number in self._ALL:
            self._runner.interrupted = True
        if self._pid is None:
            self._early.append(number)
        else:
            _send(self._pid, number)


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


class _Watch:
    """Waits for a child without reaping it, and looks at its threads and page tables meanwhile."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        #: The most that was seen of threads, bytes of page tables, and bytes resident in one process.
        self.peaks: dict[str, int] = {}

    def wait(self, until: float) -> bool:
        """Return whether the child ended before the clock showed `until`."""
        pause_s = 0.001
        watching: list[int] = []
        with contextlib.suppress(OSError):  # where the kernel has them: readable when the process ends
            watching.append(os.pidfd_open(self._pid))
        try:
            while True:
                if os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
                    return True
                left_s = until - time.monotonic()
                if left_s <= 0:
                    return False
                self._look()
                pause_s = min(2 * pause_s, _LOOK_EVERY_S)
                select.select(watching, [], [], min(pause_s, left_s))
        finally:
            for descriptor in watching:
                os.close(descriptor)

    def _look(self) -> None:
        threads = page_tables = resident = 0
        for pid in [self._pid, *_descendants(self._pid)]:
            with contextlib.suppress(OSError, ValueError):
                status = Path(f"/proc/{pid}/status").read_text()
                facts = {name: int(text) for name, text in re.findall(r"^(\w+):\s*(\d+)", status, re.MULTILINE)}
                threads += facts.get("Threads", 0)
                page_tables += facts.get("VmPTE", 0) * 1024
                resident = max(resident, facts.get("VmHWM", 0) * 1024)
        for name, seen in (("threads", threads), ("page tables", page_tables), ("resident", resident)):
            if seen:
                self.peaks[name] = max(self.peaks.get(name, 0), seen)


def _io_of(pid: int) -> dict[str, int] | None:
    """Return what a process that ended and was not reaped yet read and wrote, with its reaped children."""
    try:
        pairs = (line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
        return {name: int(value) for name, value in pairs}
    except (OSError, ValueError):
        return None


def _descendants(pid: int) -> list[int]:
    """Return the processes below one, nearest first."""
    below: list[int] = []
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        children: list[int] = []
        with contextlib.suppress(OSError):
            for task in os.scandir(f"/proc/{parent}/task"):
                with contextlib.suppress(OSError):
                    text = Path(task.path, "children").read_text()
                    children += [int(word) for word in text.split()]
        below += children
        waiting += children
    return below


def end_family(pid: int | None) -> None:
    """End a child and all below it: kindly first, by force after a while. ``None``: what children left behind."""
    mine = os.getpid()
    # Once a parent has ended, its children can no longer be found below it.
    known: set[int] = {pid} if pid else set()

    def family() -> list[int]:
        known.update(_descendants(mine if pid is None else pid))
        return [other for other in known if other != mine and not _ended(other)]

    for number, patience_s in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _GRACE_S)):
        for other in family():
            _send(other, number)
        until = time.monotonic() + patience_s
        while family() and time.monotonic() < until:
            time.sleep(0.01)
    with contextlib.suppress(ChildProcessError):
        while pid is None and os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True
