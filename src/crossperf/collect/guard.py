"""Sees to it that a kill loses nothing: a small process that outlives its parent, ends what that left, keeps its runs.

The kernel can end a child with its parent (``PR_SET_PDEATHSIG``), but not what the child started, nor a program under a
tool that counts; and asking for it would change how the command is started, whose time is being measured.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

#: Reads what runs until nobody is left to tell, and then acts. Starts at once: it loads nothing before.
_SCRIPT = """
import json, sys
print(flush=True)
running, kept = set(), {}
for line in sys.stdin:
    try:
        word, *facts = json.loads(line)
    except ValueError:
        break
    if word == "watch":
        running.add(facts[0])
    elif word == "leave":
        running.discard(facts[0])
    elif word == "keep":
        kept[facts[0]] = facts[1]
    else:
        kept.pop(facts[0], None)
if running or kept:
    sys.path.insert(0, sys.argv[1])
    from pathlib import Path
    from crossperf.collect.family import end_family
    from crossperf.collect.unfinished import adopt
    for pid in running:
        end_family(pid, kindly=False)
    for part, output in kept.items():
        adopt(Path(part), Path(output))
"""


class Guard:
    """The process that ends what runs, with all that it started, when this process is killed, and keeps its runs."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

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
        """See that the guard is there, before something is started."""
        if self._process is None or self._process.poll() is not None:
            root, pipe, nowhere = str(Path(__file__).parents[2]), subprocess.PIPE, subprocess.DEVNULL
            command = [sys.executable, "-c", _SCRIPT, root]
            with contextlib.suppress(OSError):  # where there can be none, one goes without
                self._process = subprocess.Popen(
                    command, stdin=pipe, stdout=pipe, stderr=nowhere, bufsize=0, start_new_session=True
                )
                if self._process.stdout:
                    self._process.stdout.readline()

    def watch(self, pid: int) -> None:
        """Tell that a program runs now, which must not outlive this process."""
        self._tell("watch", pid)

    def leave(self, pid: int) -> None:
        """Tell that a program has ended."""
        self._tell("leave", pid)

    def keep(self, part: Path, output: Path) -> None:
        """Tell that a file holds runs which belong to the end of another."""
        self._tell("keep", str(part.absolute()), str(output.absolute()))

    def forget(self, part: Path) -> None:
        """Tell that the runs of a file are where they belong."""
        self._tell("forget", str(part.absolute()))

    def _tell(self, *facts: Any) -> None:
        if self._process and self._process.stdin:
            with contextlib.suppress(OSError), self._lock:
                self._process.stdin.write((json.dumps(facts) + "\n").encode())
