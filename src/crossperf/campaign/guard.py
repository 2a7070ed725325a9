"""Ends the program of a campaign that was killed: a small process that sees its parent go and what it left running."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from types import TracebackType

#: Reads which program runs until nobody is left to tell, and then ends it. Starts at once: it loads nothing before.
_SCRIPT = """
import sys
print(flush=True)
pid = 0
for line in sys.stdin:
    pid = int(line)
if pid:
    from crossperf.collect.family import end_family
    end_family(pid, kindly=False)
"""


class Guard:
    """The process that ends the program which runs, with all that it started, when this process is killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Guard:
        self.stand_by()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process:
            with contextlib.suppress(OSError):
                self._process.communicate()

    def stand_by(self) -> None:
        """See that the guard is there: a command that took too long is ended with all children of this process."""
        if self._process is None or self._process.poll() is not None:
            command, pipe = [sys.executable, "-c", _SCRIPT], subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0, start_new_session=True)
            if self._process.stdout:
                self._process.stdout.readline()

    def watch(self, pid: int | None) -> None:
        """Tell which program runs now; ``None`` when it has ended."""
        if self._process and self._process.stdin:
            with contextlib.suppress(OSError):
                self._process.stdin.write(b"%d\n" % (pid or 0))
