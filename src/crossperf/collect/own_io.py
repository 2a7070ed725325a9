"""What this process has read and written by the account of the kernel, without what its other threads have."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass

#: How often one looks, until no other thread of this process reads or writes meanwhile.
_LOOKS = 5


@dataclass(frozen=True)
class OwnIo:
    """What this process has read and written, with the children it reaped, and what each of its other threads has.

    To learn that, texts were read: how many characters, in how many calls, before its own text was made and since.
    """

    process: dict[str, int]
    threads: dict[int, dict[str, int]]
    read_before: tuple[int, int]
    read_since: tuple[int, int]

    @classmethod
    def now(cls) -> OwnIo:
        """Look at the process between two looks at its threads, again where a thread read or wrote meanwhile."""
        before = _texts_of_threads()
        read_before = list(before.values())
        for _ in range(_LOOKS):
            process, after = _text_of("/proc/self/io"), _texts_of_threads()
            if after == before:
                break
            before = after
            read_before += [process, *after.values()]
        else:
            process, after = _text_of("/proc/self/io"), {}
        fields = {number: _io_fields(text) for number, text in before.items()}
        return cls(_io_fields(process), fields, _size(read_before), _size([process, *after.values()]))


def io_since(before: OwnIo) -> dict[str, int] | None:
    """Return what this process has read and written since, without its other threads and without looking at that.

    A process that ended tells nobody but root what it read and wrote; once reaped, its parent's sum holds it.
    """
    now = OwnIo.now()
    io = {name: now.process[name] - count for name, count in before.process.items() if name in now.process}
    if not io:
        return None
    for name, since, until in zip(("rchar", "syscr"), before.read_since, now.read_before, strict=True):
        io[name] -= since + until
    for number in before.threads.keys() & now.threads.keys():
        for name in io.keys() & before.threads[number].keys() & now.threads[number].keys():
            io[name] -= now.threads[number][name] - before.threads[number][name]
    return io


def _size(texts: Sequence[bytes]) -> tuple[int, int]:
    return sum(map(len, texts)), len(texts)


def _texts_of_threads() -> dict[int, bytes]:
    own = threading.get_native_id()
    return {number: _text_of(f"/proc/self/task/{number}/io") for number in threads_of("self") if number != own}


def _text_of(path: str) -> bytes:
    """Return a text of the kernel, in one read; none where the thread has ended."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            return os.read(descriptor, 4096)
        finally:
            os.close(descriptor)
    return b""


def _io_fields(text: bytes) -> dict[str, int]:
    return {name: int(count) for name, count in re.findall(r"(\w+): (\d+)", text.decode())}


def threads_of(pid: int | str) -> list[int]:
    """Return the numbers of the threads of a process."""
    with os.scandir(f"/proc/{pid}/task") as tasks:
        return [int(task.name) for task in tasks]
