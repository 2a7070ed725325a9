"""Files of profilers: a look at how one starts, its whole text, and the error where it cannot be used."""

from __future__ import annotations

import shlex
import tomllib
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

from crossperf.documents import opened, read_text
from crossperf.errors import ProfileFileError

#: Names in the files of other tools, by tool, and what they are called here.
SPELLINGS: dict[str, dict[str, Any]] = tomllib.loads(
    (files("crossperf.importers") / "spellings.toml").read_text("utf-8")
)


def unusable(path: Path | str, problem: str, **facts: Any) -> ProfileFileError:
    """Return the error of a file: its path, then what was found, what was expected and what to do."""
    return ProfileFileError(f"{path}: {problem}", path=str(path), **facts)


def named_after(command: str) -> dict[str, Any]:
    """Return the application and input of a command line; none of an empty one.

    >>> named_after("./bin/sort -n 'big list.txt'")
    {'app': 'sort', 'input': '-n big list.txt'}
    """
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return {"app": PurePosixPath(words[0]).name, "input": " ".join(words[1:]) or None} if words else {}


def utc_time(seconds: float) -> str | None:
    """Return a moment since 1970 as a text; ``None`` where no calendar has it.

    >>> utc_time(0.0), utc_time(1e20)
    ('1970-01-01T00:00:00+00:00', None)
    """
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return None


def start_of(path: Path, n_bytes: int = 1 << 16) -> bytes:
    """Return the first bytes of a file; none of what is no file or cannot be read."""
    try:
        with opened(path) as file:
            return file.read(n_bytes)
    except OSError:
        return b""


def text_of(path: Path, expected: str, errors: str = "strict") -> str:
    """Return the text of a file, or raise that it is not what was expected."""
    try:
        return read_text(path, errors=errors)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise unusable(path, f"cannot be read ({reason}), expected {expected}. Check the file.") from error
