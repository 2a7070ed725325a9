"""Locks between processes: to wait for what another changes, and to be the only one that works in a folder."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import platform
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the folder of a file to oneself among those that ask; where the file system has no locks, go on without.

    The folder carries the lock, so that no file is left behind, and it ends with the process however that ends.
    """
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            folder = os.open(Path(os.path.realpath(path)).parent, os.O_RDONLY | os.O_DIRECTORY)
            held.callback(os.close, folder)
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def alone(path: str | os.PathLike[str]) -> Iterator[None]:
    """Be the only process that holds a file; another one is not waited for, and `BlockingIOError` names it.

    The file is made where it is not there, and says who holds it. The lock ends with the process however that ends;
    where the file system has no locks, go on without.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, alone(f"{folder}/lock"):
    ...     os.listdir(folder)
    ['lock']
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip()
            raise BlockingIOError(errno.EWOULDBLOCK, holder or "a process that is not known", os.fspath(path)) from None
        except OSError:
            pass
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {platform.node()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
