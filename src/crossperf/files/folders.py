"""Folders that appear whole or not at all, and only ever in the place of their own kind."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from crossperf.errors import CrossperfError
from crossperf.files.replacing import beside, naming, refuse_unless_reachable, sync

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
#: What kernels and file systems answer that cannot let two names change places.
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)


@dataclass(frozen=True)
class Folder:
    """A kind of folder that crossperf writes: whole or not at all, and only ever in the place of its own kind.

    `noun` is what it holds, as in "found a model there already"; `ours` tells whether a folder is of this kind and
    holds nothing else, so that replacing it loses nothing.
    """

    noun: str
    ours: Callable[[Path], bool]
    error: type[CrossperfError] = CrossperfError

    @contextlib.contextmanager
    def whole(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Path]:
        """Yield a folder to write into; it takes the place of `path` on success and vanishes on failure."""
        self.refuse_unless_free(Path(path), overwrite=overwrite)
        target = Path(os.path.realpath(path))
        with naming(path, self.error):
            target.parent.mkdir(parents=True, exist_ok=True)
            part = beside(target)
            try:
                part.mkdir()
                yield part
                _sync_all(part)
                self._put(part, target)
                sync(target.parent)
            finally:
                _remove(part)

    def refuse_unless_free(self, target: Path, *, overwrite: bool) -> None:
        """Raise unless such a folder may be written there; worth asking before the work that fills it."""
        refuse_unless_reachable(target, self.error, makes_folders=True)
        if not target.exists():
            return
        if not self._replaceable(target):
            stranger = f"something that is not a crossperf {self.noun}, expected a new or a {self.noun} folder"
            raise self.error(f"{target}: found {stranger}. It was left as it is; choose another place.")
        if any(target.iterdir()) and not overwrite:
            advice = "Choose another place, or replace it with overwrite=True."
            raise self.error(f"{target}: found a {self.noun} there already, expected a new folder. {advice}")

    def _replaceable(self, folder: Path) -> bool:
        return folder.is_dir() and (not any(folder.iterdir()) or self.ours(folder))

    def _put(self, part: Path, target: Path) -> None:
        """Move a finished folder to its place; what stood there ends as `part`, or is back where it was."""
        if not target.exists():
            part.rename(target)  # fails where somebody else has put a folder there meanwhile
            return
        part.chmod(target.stat().st_mode & 0o7777)
        if not exchange(part, target):
            _put_aside(part, target)
        elif not self._replaceable(part):
            exchange(part, target)
            self.refuse_unless_free(target, overwrite=True)


def exchange(first: Path, second: Path) -> bool:
    """Let two names change places in one step, and tell whether that was possible: not every file system can."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    if renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(second))


def _put_aside(part: Path, target: Path) -> None:
    """Move a finished folder to its place in two steps; a kill between them leaves the old one beside it, whole."""
    old = beside(target).with_suffix(".old")
    try:
        target.rename(old)
        part.rename(target)
    except BaseException:
        if old.exists() and not target.exists():
            old.rename(target)
        raise
    old.rename(part)


def _remove(folder: Path) -> None:
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except KeyboardInterrupt:  # it ends the command, and leaves nothing behind all the same
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _sync_all(folder: Path) -> None:
    for parent, _, names in os.walk(folder):
        for name in names:
            sync(Path(parent, name))
        sync(Path(parent))
