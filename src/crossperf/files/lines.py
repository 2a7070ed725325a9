"""Files of lines of JSON that several processes may add to: every line whole, none lost, nobody else's touched.

Readers take no part of an addition: a new file appears with its lines, and `settled_size` says how far the additions
that ended go.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from crossperf.errors import CrossperfError
from crossperf.files.replacing import beside, head, refuse_unless_regular, sync

#: How long a reader waits for somebody who adds lines, in seconds; an addition takes some milliseconds.
_LONGEST_WAIT_S = 5
#: Why a file cannot be given its name: it has been made meanwhile, or the file system has no links.
_NO_LINK = (errno.EEXIST, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
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
    if not (is_new and _made(target, text.encode(), synced)):
        with _opened(target) as descriptor:
            size = os.fstat(descriptor).st_size
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            _write(descriptor, ("\n" * torn + text).encode(), size, synced)
    if is_new and synced:
        sync(target.parent)


def settled_size(file: IO[Any]) -> int | None:
    """Return the size of a file that is read, without what somebody adds to it just now.

    An addition is waited for, but not for long: whoever holds a lock must not keep a reader from its own file.
    ``None`` for a file that says it is empty and is not, as those of the kernel under ``/proc`` do.
    """
    until = time.monotonic() + _LONGEST_WAIT_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < until:
                time.sleep(0.002)
                continue
        except OSError:
            pass  # the file system has no locks
        try:
            size = os.fstat(file.fileno()).st_size
            return size if size or not os.pread(file.fileno(), 1, 0) else None
        finally:
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)


def _made(target: Path, data: bytes, synced: bool) -> bool:
    """Make a file that holds lines from the moment it appears; False where it stands already, or links are unknown."""
    part = beside(target)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        _write(descriptor, data, 0, synced)
        os.link(part, target)
    except OSError as error:
        if error.errno in _NO_LINK:
            return False
        raise
    finally:
        os.close(descriptor)
        part.unlink(missing_ok=True)
    return True


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
