from __future__ import annotations

import os
import resource
import threading
from pathlib import Path

import pytest

from crossperf.collect.own_io import OwnIo, io_since
from crossperf.collect.process import Runner


def test_looking_is_not_counted_and_what_was_read_and_written_between_is() -> None:
    before = OwnIo.now()
    with Path(os.devnull).open("wb", buffering=0) as file:
        written = file.write(bytes(1234))
    io = io_since(before)
    assert io is not None
    assert (io["wchar"], io["syscw"], io["rchar"], io["syscr"]) == (written, 1, 0, 0)


def calls_and_characters() -> dict[str, int]:
    """Return what `true` reads and writes; what of it comes from a disk depends on what is cached."""
    io = Runner().execute(["true"]).io
    assert io is not None
    return {name: io[name] for name in ("rchar", "wchar", "syscr", "syscw")}


def test_what_other_threads_of_this_process_write_is_not_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread writes just when the command is reaped, as those of a notebook or of a test runner may."""
    reap, alone = os.wait4, calls_and_characters()
    asked, wrote, done = threading.Event(), threading.Event(), threading.Event()

    def write() -> None:
        with Path(os.devnull).open("wb", buffering=0) as file:
            while asked.wait(timeout=60) and not done.is_set():
                file.write(bytes(64))
                asked.clear()
                wrote.set()

    def reap_late(pid: int, options: int) -> tuple[int, int, resource.struct_rusage]:
        asked.set()
        assert wrote.wait(timeout=60)
        wrote.clear()
        return reap(pid, options)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        monkeypatch.setattr(os, "wait4", reap_late)
        beside = [calls_and_characters() for _ in range(3)]
    finally:
        done.set()
        asked.set()
        thread.join(timeout=60)
    assert beside == [alone] * 3
