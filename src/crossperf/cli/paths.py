"""Paths on the command line: what a command writes is never what it reads, and can be written before it works."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, NamedTuple

import click

from crossperf.errors import SettingsError
from crossperf.files import refuse_unless_reachable, refuse_unless_regular
from crossperf.runs.places import is_address

#: Where the context of a command keeps the paths that it was given so far.
_PATHS = "crossperf.paths"
Role = Literal["read", "file", "folder"]


class _Given(NamedTuple):
    path: Path
    is_written: bool
    flag: str


class PathOfCommand(click.Path):
    """A path of a file or folder, which the command reads, or writes as one of the two.

    One that is written is refused where the command reads it too, where nothing can be put, and in an object store.
    """

    def __init__(self, role: Role = "read") -> None:
        super().__init__(path_type=Path)
        self._role = role

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, checked against those that the command was given before it."""
        if isinstance(value, str) and is_address(value) and param is not None and self._role != "read":
            what = f"{_flag(param)}: found {value}, an address in an object store"
            raise SettingsError(f"{what}, expected a file or folder of this machine. Copy it there afterwards.")
        path = super().convert(value, param, ctx)
        if ctx is not None and param is not None and not ctx.resilient_parsing and str(path) != "-":
            given = _Given(Path(os.fsdecode(path)), self._role != "read", _flag(param))
            if given.is_written:
                refuse_unless_reachable(given.path, SettingsError, makes_folders=self._role == "folder")
            if self._role == "file":
                refuse_unless_regular(given.path, SettingsError)
            others: list[_Given] = ctx.find_root().meta.setdefault(_PATHS, [])
            for other in others:
                _refuse_collision(*sorted((given, other), key=lambda each: not each.is_written))
            others.append(given)
        return path


def _flag(param: click.Parameter) -> str:
    flags = [flag for flag in param.opts if flag.startswith("--")]
    return flags[0] if flags else param.human_readable_name.strip("[]")


def _refuse_collision(written: _Given, other: _Given) -> None:
    if not written.is_written or not _collide(written.path, other.path):
        return
    how = "writes too" if other.is_written else "reads"
    raise SettingsError(
        f"{written.flag}: found {written.path}, which this command {how} ({other.flag}), expected another file. "
        "Choose another name; nothing was written.",
        path=str(written.path),
    )


def _collide(written: Path, other: Path) -> bool:
    """Tell whether two paths are the same file, or one is a file that stands in the folder that is the other."""
    first, second = os.path.realpath(written), os.path.realpath(other)
    if written.is_dir():
        return False  # folders are replaced by their own kind alone, and only where that is asked for
    if other.is_dir():
        return written.exists() and os.path.commonpath([first, second]) == second
    same = written.exists() and other.exists() and written.samefile(other)
    return first == second or same
