"""A process and all that it started: finding them, and ending them so that none slips away."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Collection
from pathlib import Path

#: How long an interrupted command has to end by itself before it is killed.
_GRACE_S = 3.0
#: How long a process that was asked to stop may take to do so.
_STOPS_WITHIN_S = 0.5


def send(pid: int, number: int) -> None:
    """Send a signal; a process that is gone, or is another user's, gets none."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def descendants(pid: int, spared: Collection[int] = ()) -> list[int]:
    """Return the processes below one, nearest first, without those spared and what is below them."""
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
        children = [child for child in children if child not in spared]
        below += children
        waiting += children
    return below


def end_family(pid: int | None, *, kindly: bool = True, spared: Collection[int] = ()) -> None:
    """End a child and all below it: kindly first, by force after a while. ``None``: what children left behind.

    Asked kindly, a process may start another before it ends, which nobody can find any more; by force none can.
    Those that are `spared` are somebody else's.
    """
    mine = os.getpid()
    known: set[int] = set()

    def family() -> list[int]:
        below = descendants(mine if pid is None else pid, {mine, *spared})
        known.update(below, {pid} if pid else ())
        return [other for other in known if not _ended(other)]

    # Once a parent has ended, a child that it started meanwhile can no longer be found below it: first nobody moves.
    held: set[int] = set()
    while new := set(family()) - held:
        for other in new:
            send(other, signal.SIGSTOP)
        until = time.monotonic() + _STOPS_WITHIN_S
        while any(_state(other) not in "TtZX" for other in new) and time.monotonic() < until:
            time.sleep(0.001)
        held |= new
    for number, patience_s in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _GRACE_S))[not kindly :]:
        for other in family():
            send(other, number)
            send(other, signal.SIGCONT)
        until = time.monotonic() + patience_s
        while family() and time.monotonic() < until:
            time.sleep(0.01)
    for other in known if pid is None else ():
        with contextlib.suppress(ChildProcessError):  # one that is not our own child is reaped by its parent
            os.waitpid(other, os.WNOHANG)


def _ended(pid: int) -> bool:
    return _state(pid) in "ZX"


def _state(pid: int) -> str:
    """Return the letter that the kernel has for what a process does; one that is gone is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "X"
