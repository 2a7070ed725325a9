"""Counts threads and opened files with strace, for users whom the kernel grants no tracepoints."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crossperf.collect.process import Runner, ask, elsewhere, version_of
from crossperf.collect.starters import left_out, workload
from crossperf.errors import CollectError
from crossperf.importers.measurement import Measurement

_OPEN = ("open", "openat", "openat2", "creat")
_START = ("clone", "clone3", "fork", "vfork")
_READ = ("read", "pread64", "readv", "preadv", "preadv2")
_WRITE = ("write", "pwrite64", "writev", "pwritev", "pwritev2")
_COPY = ("sendfile", "copy_file_range", "splice")
_LINE = re.compile(r"^(?P<pid>\d+)\s+(?:<\.\.\. )?(?P<call>\w+)(?: resumed>|\()(?P<rest>.*)$")
_LAUNCHERS = left_out()


class StraceBackend:
    """Successful calls that open files or start threads; only these calls stop the program, so it stays fast.

    Behind a launcher the bytes read and written are counted as well: the kernel's own count holds the launcher's.
    """

    name = "strace"

    def __init__(self) -> None:
        self._strace = shutil.which("strace")

    def why_not(self) -> str | None:
        """Return why strace traces nothing here, or ``None``."""
        if self._strace is None:
            return "strace is not installed (Debian and Ubuntu: strace)"
        with tempfile.TemporaryDirectory(prefix="crossperf-") as folder:
            done = ask([*self._prefix(Path(folder, "log"), _OPEN), "true"])
        if done is None:
            return "strace does not start here"
        return None if done.returncode == 0 else "the kernel does not let this user trace (kernel.yama.ptrace_scope)"

    def count(self, command: Sequence[str], runner: Runner) -> Measurement:
        """Execute the command under strace and count."""
        calls = [*_OPEN, *_START, "execve", "execveat"]
        behind_launcher = bool(workload(command).behind)
        calls += [*_READ, *_WRITE, *_COPY] if behind_launcher else []
        with tempfile.TemporaryDirectory(prefix="crossperf-") as folder:
            log = Path(folder, "log")
            line = (*self._prefix(log, calls), *command)
            execution = runner.count(line, self.name)
            with log.open(encoding="utf-8", errors="replace") as lines:
                trace = read_trace(lines)
        if not trace.threads:
            raise CollectError(elsewhere(sorted(trace.launchers)))
        notes = (f"{' and '.join(sorted(trace.launchers))}, which only started the others, is left out",)
        events = trace.events(with_bytes=behind_launcher)
        version = version_of(self._strace or self.name)
        return Measurement(self.name, events, version, line, execution.wall_s, notes=notes if trace.launchers else ())

    def _prefix(self, log: Path, calls: Sequence[str]) -> list[str]:
        # A call that this processor does not have is no error with a question mark.
        traced = ",".join(f"?{call}" for call in calls)
        options = ["-f", "-qq", "--seccomp-bpf", "-s", "0", "-e", f"trace={traced}", "-e", "signal=none"]
        return [self._strace or "strace", *options, "-o", str(log), "--"]


@dataclass
class Trace:
    """What a log of strace holds: the calls of the program, without those of what only started it."""

    threads: int = 0
    files: int = 0
    read: int = 0
    written: int = 0
    launchers: set[str] = field(default_factory=set)

    def events(self, *, with_bytes: bool = False) -> dict[str, float | None]:
        """Return the counts as events of the tool ``strace``."""
        counts = {"files_opened": self.files, "threads_started": self.threads}
        counts |= {"bytes_read": self.read, "bytes_written": self.written} if with_bytes else {}
        return {f"strace.{name}": float(count) for name, count in counts.items()}


def read_trace(lines: Iterable[str]) -> Trace:
    """Return what the program did, from strace's log.

    A process belongs to the program by the file that it executed last; one that was forked belongs where its parent
    does, until it executes another.

    >>> trace = read_trace(['7 execve("./a", ...) = 0', '7 openat(AT_FDCWD, "b", O_RDONLY) = 3',
    ...                     '7 openat(AT_FDCWD, "c", O_RDONLY) = -1 ENOENT', '7 clone(flags=SIGCHLD) = 8'])
    >>> trace.files, trace.threads
    (1, 2)
    """
    log = _Log()
    begun: dict[str, str] = {}
    for line in lines:
        match = _LINE.match(line.rstrip())
        if match is None:
            continue
        pid, call, rest = match["pid"], match["call"], match["rest"]
        if rest.endswith("<unfinished ...>"):
            begun[pid] = rest
            continue
        arguments = begun.pop(pid, "") + rest
        result = re.search(r"= (-?\d+)", rest)
        if result is not None and int(result[1]) >= 0:
            log.add(pid, call, arguments, int(result[1]))
    return log.trace


class _Log:
    """The calls of a log in their order, each added to the program or left out."""

    def __init__(self) -> None:
        self.trace = Trace()
        #: Whether each process belongs to the program.
        self._program: dict[str, bool] = {}
        #: What a new process did before the call that started it returned.
        self._waiting: dict[str, list[tuple[str, str, int]]] = defaultdict(list)

    def add(self, pid: str, call: str, arguments: str, result: int) -> None:
        """Add one call that succeeded; the first is that of the command itself."""
        if not self._program:
            self._program[pid] = False
        if pid not in self._program:
            self._waiting[pid].append((call, arguments, result))
            return
        trace, program = self.trace, self._program[pid]
        if call.startswith("exec"):
            path = re.search(r'"((?:[^"\\]|\\.)*)"', arguments)
            name = Path(path[1]).name[:15] if path else ""
            self._program[pid] = name not in _LAUNCHERS
            trace.launchers |= {name} & _LAUNCHERS
            trace.threads += self._program[pid] - program
        elif call in _START:
            self._program[str(result)] = program
            trace.threads += program
            for waiting in self._waiting.pop(str(result), []):
                self.add(str(result), *waiting)
        elif program and call in _OPEN:
            trace.files += 1
        elif program:
            trace.read += result if call in (*_READ, *_COPY) else 0
            trace.written += result if call in (*_WRITE, *_COPY) else 0
