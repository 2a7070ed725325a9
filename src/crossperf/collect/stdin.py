"""Gives every execution of a command the same standard input, though some inputs can be read only once."""

from __future__ import annotations

import contextlib
import os
import select
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO


@dataclass
class Input:
    """The caller's standard input, given to each execution from its start.

    A terminal is handed on. A file is opened anew. A pipe can be read once: the first execution reads it
    live while what passes is kept, and the others read that.
    """

    kept: IO[bytes] | None = None
    _source: int = 0
    _seekable_at: int | None = field(default=None, repr=False)

    @classmethod
    def of_caller(cls) -> Input:
        """Return this process's own standard input."""
        with contextlib.suppress(OSError):
            if not os.isatty(0):
                return cls(_seekable_at=os.lseek(0, 0, os.SEEK_CUR))
        return cls()

    @contextlib.contextmanager
    def open(self) -> Iterator[tuple[int, Callable[[], None]]]:
        """Yield a descriptor for a child's standard input, and what to call once the child holds it."""
        try:
            os.fstat(0)
        except OSError:  # it was closed
            with Path(os.devnull).open("rb") as nothing:
                yield nothing.fileno(), lambda: None
            return
        if os.isatty(0):
            yield 0, lambda: None
        elif self._seekable_at is not None:
            os.lseek(0, self._seekable_at, os.SEEK_SET)
            yield 0, lambda: None
        elif self.kept is not None:
            self.kept.seek(0)
            yield self.kept.fileno(), lambda: None
        else:
            yield from self._live()

    def _live(self) -> Iterator[tuple[int, Callable[[], None]]]:
        self.kept = tempfile.TemporaryFile()  # noqa: SIM115 - the later executions read it
        reader, writer = os.pipe()
        wake_reader, wake_writer = os.pipe()
        copier = threading.Thread(target=self._copy, args=(writer, wake_reader), daemon=True)

        def start() -> None:
            os.close(reader)
            copier.start()

        try:
            yield reader, start
        finally:
            os.close(wake_writer)
            if copier.is_alive():
                copier.join()
            os.close(wake_reader)
            self.kept.flush()

    def _copy(self, writer: int, wake: int) -> None:
        """Hand the pipe on to the child, and keep what passes, until either side ends."""
        assert self.kept is not None  # noqa: S101
        open_child = True
        try:
            while True:
                ready, _, _ = select.select([0, wake], [], [])
                if wake in ready:
                    return
                data = os.read(0, 65536)
                if not data:
                    return
                self.kept.write(data)
                if not open_child:
                    return
                try:
                    _write_all(writer, data, wake)
                except OSError:
                    open_child = False
        finally:
            os.close(writer)


def _write_all(descriptor: int, data: bytes, wake: int) -> None:
    os.set_blocking(descriptor, False)
    view = memoryview(data)
    while view:
        woken, ready, _ = select.select([wake], [descriptor], [])
        if woken:
            return
        if ready:
            view = view[os.write(descriptor, view) :]
