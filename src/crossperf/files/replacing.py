"""Files that take the place of others: whole or not at all, with the rights of the file before, safe on the disk."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from crossperf.errors import CrossperfError

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
#: How the JSON that crossperf writes begins.
_OWN_JSON = re.compile(rb'\s*\{\s*"format"\s*:')
#: Bytes at the beginning of a file by which its kind is known.
_HEAD = 512


@contextlib.contextmanager
def naming(target: str | os.PathLike[str], kind: type[CrossperfError] = CrossperfError) -> Iterator[None]:
    """Turn the system's errors into one that names the file or folder that was to be written."""
    try:
        yield
    except OSError as error:
        raise kind(
            f"{os.fspath(target)}: cannot be written ({error.strerror or error}). Choose another place.",
            path=str(target),
        ) from error


def refuse_unless_regular(path: str | os.PathLike[str], kind: type[CrossperfError] = CrossperfError) -> Path:
    """Return the regular file that a path leads to through links, there or not; a folder, device or pipe raises.

    So does the file that this process prints into: it would print into what was replaced.
    """
    target = Path(os.path.realpath(path))
    with naming(path, kind):
        try:
            facts = Path(path).stat()
        except FileNotFoundError:
            return target
        strange = None if stat.S_ISREG(facts.st_mode) else _KINDS.get(stat.S_IFMT(facts.st_mode), "no file")
        if strange is None and any(os.path.samestat(facts, own) for own in _printed_into()):
            strange = "the file that this command prints into"
    if strange:
        advice = "It was left as it is; choose another place."
        raise kind(f"{os.fspath(path)}: found {strange}, expected a regular file. {advice}", path=str(path))
    return target


def refuse_unless_reachable(
    path: str | os.PathLike[str], kind: type[CrossperfError] = CrossperfError, *, makes_folders: bool = False
) -> None:
    """Raise where no file or folder could be put: a loop of links, a folder that is none, is absent or is not ours.

    It is worth asking before the work whose result goes there.

    Parameters
    ----------
    makes_folders
        Folders that are absent on the way are made by whoever writes, so the first that stands counts.
    """
    with naming(path, kind):
        try:
            facts = Path(path).stat()
        except FileNotFoundError:
            facts = None
        target = Path(os.path.realpath(path))
        folder = target.parent
        while makes_folders and not folder.exists():
            folder = folder.parent
        if not folder.exists():
            problem = f"the folder {Path(path).parent} does not exist. Make it, or choose another place."
            raise kind(f"{os.fspath(path)}: {problem}", path=str(path))
        if facts and stat.S_ISREG(facts.st_mode):
            os.close(os.open(target, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK))  # some refuse even root
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _printed_into() -> Iterator[os.stat_result]:
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):  # it is closed
            yield os.fstat(descriptor)


def beside(target: Path) -> Path:
    """Return a new name in the folder of a file or folder, for what shall take its place."""
    return target.with_name(f".{target.name[:60]}.{secrets.token_hex(4)}.part")


@contextlib.contextmanager
def whole(path: str | os.PathLike[str], *, ours: Callable[[bytes], bool] | None = None) -> Iterator[Path]:
    """Yield a file to write to; it takes the place of `path` on success and vanishes on failure.

    An interrupt counts as failure: what stood at `path` before is still there. A link is followed. A new file has the
    rights that the umask gives, another keeps its own.

    Parameters
    ----------
    ours
        Tells by how a file begins whether it may be replaced; by default any regular file may. An empty one always is.
    """
    target = refuse_unless_ours(path, ours) if ours else refuse_unless_regular(path)
    with naming(path):
        before = target.stat() if target.exists() else None
        if before and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        part = beside(target)
        try:
            mode = _create(part, before)
            yield part
            _settle(part, mode, before)
            part.replace(target)
            sync(target.parent)
        finally:
            part.unlink(missing_ok=True)


def refuse_unless_ours(path: str | os.PathLike[str], ours: Callable[[bytes], bool]) -> Path:
    """Return the file that a path leads to, there or not; one that begins as none of ours does raises."""
    target = refuse_unless_regular(path)
    with naming(path):
        is_ours = not target.exists() or target.stat().st_size == 0 or ours(head(target))
    if not is_ours:
        problem = "found a file that crossperf did not write, expected a new name or one of its own files"
        raise CrossperfError(f"{os.fspath(path)}: {problem}. It was left as it is; choose another.", path=str(path))
    return target


def refuse_unless_json(path: str | os.PathLike[str]) -> None:
    """Raise where `write_json` would; worth asking before the work whose facts it is to hold."""
    refuse_unless_ours(path, is_own_json)


def head(path: Path) -> bytes:
    """Return how a file begins."""
    with path.open("rb") as file:
        return file.read(_HEAD)


def _create(part: Path, before: os.stat_result | None) -> int:
    """Make an empty file and return its rights: those of the file before, or what the umask gives."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(part, flags, 0o600 | stat.S_IMODE(before.st_mode) & 0o777 if before else 0o666)
    try:
        made = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    return stat.S_IMODE(before.st_mode if before else made.st_mode)


def _settle(part: Path, mode: int, before: os.stat_result | None) -> None:
    """Give a finished file its rights, and see that it is on the disk."""
    descriptor = os.open(part, os.O_RDONLY)
    try:
        made = os.fstat(descriptor)
        if before and (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid):
            with contextlib.suppress(PermissionError):  # only root may give a file away
                os.fchown(descriptor, before.st_uid, before.st_gid)
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync(path: Path) -> None:
    """See that a file, or the names in a folder, are on the disk; some file systems cannot do so for a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise
    finally:
        os.close(descriptor)


def write_json(path: str | os.PathLike[str], facts: Any, *, on_one_line: Collection[str] = ()) -> None:
    """Write facts as JSON, the file whole or not at all; only JSON of crossperf's own is ever replaced.

    Parameters
    ----------
    on_one_line
        Keys at the top whose values are long columns of numbers: each takes one line, the rest is indented.
    """
    long = {name: facts[name] for name in on_one_line if facts.get(name) is not None}
    short = {name: value for name, value in facts.items() if name not in long} if long else facts
    text = json.dumps(short, indent=2, allow_nan=False)
    if long:
        compact = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
        lines = [f'  "{name}": {compact(value)}' for name, value in long.items()]
        text = ",\n".join([text.removesuffix("\n}"), *lines]) + "\n}"
    with whole(path, ours=is_own_json) as part:
        part.write_text(text + "\n", encoding="utf-8")


def is_own_json(beginning: bytes) -> bool:
    r"""Tell by how a file begins whether it is JSON that crossperf wrote: each kind names its format first.

    >>> is_own_json(b'{\n  "format": 3,'), is_own_json(b"app,input,platform")
    (True, False)
    """
    return _OWN_JSON.match(beginning) is not None
