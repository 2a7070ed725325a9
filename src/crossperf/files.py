"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossperf.errors import CrossperfError


@contextmanager
def _naming(target: Path, kind: type[CrossperfError] = CrossperfError) -> Iterator[None]:
    """Turn the system's errors into one that names the file or folder that was to be written."""
    try:
        yield
    except OSError as error:
        raise kind(
            f"{target}: cannot be written ({error.strerror}). Choose another place.", path=str(target)
        ) from error


@contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a file to write to; it takes the place of `path` on success and vanishes on failure.

    An interrupt counts as failure: what stood at `path` before is still there.
    """
    target = Path(path)
    with _naming(target):
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        os.close(descriptor)
        part = Path(name)
        try:
            yield part
            part.chmod(0o644)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def write_json(path: str | os.PathLike[str], facts: Any, *, on_one_line: Collection[str] = ()) -> None:
    """Write facts as JSON, the file whole or not at all.

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
    with whole(path) as part:
        part.write_text(text + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Folder:
    """A kind of folder that crossperf writes: whole or not at all, and only ever in the place of its own kind.

    `noun` is what it holds, as in "found a model there already"; `ours` tells whether a folder is of this kind.
    """

    noun: str
    ours: Callable[[Path], bool]
    error: type[CrossperfError] = CrossperfError

    @contextmanager
    def whole(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Path]:
        """Yield a folder to write into; it takes the place of `path` on success and vanishes on failure."""
        target = Path(path)
        self.refuse_unless_free(target, overwrite=overwrite)
        with _naming(target, self.error):
            target.parent.mkdir(parents=True, exist_ok=True)
            part = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
            try:
                part.chmod(0o755)
                yield part
                _swap_in(part, target)
            finally:
                shutil.rmtree(part, ignore_errors=True)

    def refuse_unless_free(self, target: Path, *, overwrite: bool) -> None:
        """Raise unless such a folder may be written there; worth asking before the work that fills it."""
        if not target.exists():
            if target.parent.exists() and not os.access(target.parent, os.W_OK):
                raise self.error(f"{target}: its folder cannot be written to. Choose another place.")
        elif not target.is_dir() or (any(target.iterdir()) and not self.ours(target)):
            stranger = f"something that is not a crossperf {self.noun}, expected a new or a {self.noun} folder"
            raise self.error(f"{target}: found {stranger}. It was left as it is; choose another place.")
        elif self.ours(target) and not overwrite:
            advice = "Choose another place, or replace it with overwrite=True."
            raise self.error(f"{target}: found a {self.noun} there already, expected a new folder. {advice}")


def _swap_in(part: Path, target: Path) -> None:
    """Move a finished folder to its place; what stood there is moved aside first and removed last."""
    if not target.exists():
        part.replace(target)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".old", dir=target.parent))
    old = aside / "old"
    try:
        target.replace(old)
        part.replace(target)
    except BaseException:
        if old.exists() and not target.exists():
            old.replace(target)
        raise
    finally:
        # Where the old folder could not be put back, it stays aside rather than being lost.
        if target.exists():
            shutil.rmtree(aside, ignore_errors=True)
