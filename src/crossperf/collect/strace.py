"""Counts threads and opened files with strace, for users whom the kernel grants no tracepoints."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from crossperf.collect.process import Runner, ask, version_of
from crossperf.importers.measurement import Measurement

_CALLS = "open,openat,openat2,creat,clone,clone3"
_LINE = re.compile(r"^(?P<pid>\d+)\s+(?:<\.\.\. )?(?P<call>\w+)(?: resumed>|\()(?P<rest>.*)$")


class StraceBackend:
    """Successful calls that open files or start threads; only these calls stop the program, so it stays fast."""

    name = "strace"

    def __init__(self) -> None:
        self._strace = shutil.which("strace")

    def why_not(self) -> str | None:
        """Return why strace traces nothing here, or ``None``."""
        if self._strace is None:
            return "strace is not installed (Debian and Ubuntu: strace)"
        with tempfile.TemporaryDirectory(prefix="crossperf-") as folder:
            done = ask([*self._prefix(Path(folder, "log")), "true"])
        if done is None:
            return "strace does not start here"
        return None if done.returncode == 0 else "the kernel does not let this user trace (kernel.yama.ptrace_scope)"

    def count(self, command: Sequence[str], runner: Runner) -> Measurement:
        """Execute the command under strace and count."""
        with tempfile.TemporaryDirectory(prefix="crossperf-") as folder:
            log = Path(folder, "log")
            line = (*self._prefix(log), *command)
            execution = runner.count(line, self.name)
            with log.open(encoding="utf-8", errors="replace") as lines:
                events = events_of(lines)
        return Measurement(self.name, events, version_of(self._strace or self.name), line, execution.wall_s)

    def _prefix(self, log: Path) -> list[str]:
        options = ["-f", "-qq", "--seccomp-bpf", "-e", f"trace={_CALLS}", "-e", "signal=none"]
        return [self._strace or "strace", *options, "-o", str(log), "--"]


def events_of(lines: Iterable[str]) -> dict[str, float | None]:
    """Return how many files were opened and threads started, from strace's log.

    >>> events_of(['7 openat(AT_FDCWD, "a", O_RDONLY) = 3', '7 openat(AT_FDCWD, "b", O_RDONLY) = -1 ENOENT'])
    {'strace.files_opened': 1.0, 'strace.threads_started': 0.0}
    """
    files = threads = 0
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
        if result is None or int(result[1]) < 0:
            continue
        if not call.startswith("clone"):
            files += 1
        elif "CLONE_THREAD" in arguments:
            threads += 1
    return {"strace.files_opened": float(files), "strace.threads_started": float(threads)}
