"""Functions that jobs of the tests execute: they write lines into a file of their own, as results are to be written."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def note(path: str, *words: object) -> None:
    with Path(path).open("a") as file:
        print(*words, file=file, flush=True)


def square(path: str, number: int) -> int:
    note(path, number, number * number)
    return number * number


def fail(path: str) -> None:
    note(path, "begun")
    raise ValueError("no such input: 7")


def count_up(path: str, until: int, pause_s: float) -> None:
    """Go on counting where the file ends."""
    before = Path(path).read_text().split() if Path(path).exists() else []
    for number in range(len(before), until):
        time.sleep(pause_s)
        note(path, number)


def kill_itself_once(path: str) -> None:
    if not Path(path).exists():
        note(path, "killed")
        os.kill(os.getpid(), signal.SIGKILL)
    note(path, "again")
