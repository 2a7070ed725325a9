"""Files of lines of JSON that several processes may add to: every line whole, none lost, nobody else's touched."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path

from crossperf.errors import CrossperfError
from crossperf.files.replacing import head, refuse_unless_regular, sync

_LINE_OF_JSON = re.compile(rb'\s*\{[ \t]*["}]')


def refuse_unless_lines(path: str | os.PathLike[str], kind: type[CrossperfError] = CrossperfError) -> Path:
    """Return the file that lines of JSON may be added to, there or not; one that holds anything else raises."""
    target = refuse_unless_regular(path, kind)
    if target.exists() and target.stat().st_size and not _LINE_OF_JSON.match(head(target)):
        problem = "found something else than lines of JSON, expected a file that lines can be added to"
        raise kind(f"{os.fspath(path)}: {problem}. It was left as it is; choose another name.", path=str(path))
    return target


def add_lines(
    path: str | os.PathLike[str], text: str, kind: type[CrossperfError] = CrossperfError, *, synced: bool = True
) -> None:
    """Add lines of JSON to the end of a file, made if absent.

    They leave in one write under a lock, so that several processes may share a file; if an earlier writer was cut off
    in the middle of a line, they start on a line of their own. Lines that a full disk cut off are taken back.

    Parameters
    ----------
    synced
        Wait until they are on the disk, where a power failure cannot take them either.
    """
    if not text:
        return
    target = refuse_unless_lines(path, kind)
    is_new = not target.exists()
    with _opened(target) as descriptor:
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        _write(descriptor, ("\n" * torn + text).encode(), size, synced)
    if is_new and synced:
        sync(target.parent)


@contextlib.contextmanager
def _opened(target: Path) -> Iterator[int]:
    """Yield a file, held to oneself where the file system has locks."""
    descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o666)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _write(descriptor: int, data: bytes, size: int, synced: bool) -> None:
    written = 0
    try:
        while written < len(data):
            written += os.write(descriptor, memoryview(data)[written:])
        if synced:
            os.fsync(descriptor)
    except OSError:
        # Only if nobody else has added lines since, where locks do not hold: theirs must not be cut.
        if written and os.fstat(descriptor).st_size == size + written:
            os.ftruncate(descriptor, size)
        raise
