"""Keeps the runs of a profiling on its way, in a file beside the one that they are for, so that a kill loses none.

The file holds lines of runs; a later line of the same ``run_id`` knows more and counts in place of the earlier. Whoever
profiles holds a lock on it. What is not locked was left behind, and is added by the next who writes to the same place.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from crossperf.collect.guard import Guard
from crossperf.errors import CrossperfError
from crossperf.files import locked
from crossperf.records import Run
from crossperf.runs import jsonl

_MARK = ".unfinished-"
#: The fact of an error by which runs that could not be added are kept in another place.
RESCUED = "rescued"


class Unfinished:
    """The runs of one profiling on its way; leaving it by an error adds them to their place as they are.

    `added` counts those, and is 0 where the profiling ended well: its runs are then for the caller to add, within.
    """

    def __init__(self, output: Path, guard: Guard) -> None:
        self._output, self._guard = output, guard
        self._path = output.with_name(f"{output.name}{_MARK}{secrets.token_hex(4)}")
        self._descriptor: int | None = None
        self.added = 0

    def __enter__(self) -> Unfinished:
        return self

    def keep(self, runs: Sequence[Run]) -> None:
        """Keep runs, or what is known of them by now; a profiling goes on where there is no place for them."""
        with contextlib.suppress(OSError):
            if self._descriptor is None:
                self._descriptor = self._opened()
            os.write(self._descriptor, "".join(map(jsonl.line, runs)).encode())
            os.fsync(self._descriptor)

    def _opened(self) -> int:
        # Nobody may come upon it before it is locked.
        hidden = self._path.with_name(f".{self._output.name[:60]}.{secrets.token_hex(4)}.part")
        descriptor: int | None = None
        try:
            descriptor = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            hidden.rename(self._path)
        except BaseException:
            hidden.unlink(missing_ok=True)
            if descriptor is not None:
                os.close(descriptor)
            raise
        self._guard.keep(self._path, self._output)
        return descriptor

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is None:
            return
        is_elsewhere = kind is None or (isinstance(error, CrossperfError) and RESCUED in error.facts)
        if is_elsewhere:
            with contextlib.suppress(OSError):  # the next profiling sees that its runs are there
                self._path.unlink()
        os.close(self._descriptor)
        if not is_elsewhere:
            with contextlib.suppress(OSError, CrossperfError):
                self.added = adopt(self._path, self._output)
        self._guard.forget(self._path)


def adopt_all(output: Path) -> int:
    """Add the runs of profilings that were killed to the file that they are for, and return how many."""
    left = sorted(path for path in output.parent.iterdir() if path.name.startswith(output.name + _MARK))
    return sum(adopt(path, output) for path in left)


def adopt(part: Path, output: Path) -> int:
    """Add the runs that a profiling left behind to the file that they are for, and return how many.

    Nothing is done where the profiling is still on its way. Runs that are in the file already are not added again.
    """
    with _left_behind(part) as is_left:
        if not is_left:
            return 0
        known = {run.run_id: run for run in _readable(part)}
        for name in _ids_in(output, [name for name in known if name]):
            del known[name]
        add_numbered(output, list(known.values()))
        part.unlink()
        return len(known)


@contextlib.contextmanager
def _left_behind(part: Path) -> Iterator[bool]:
    """Hold a file of this user's, and yield whether nobody else does."""
    try:
        descriptor = os.open(part, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        facts = os.fstat(descriptor)
        is_ours = stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid()
        is_there = is_ours and os.path.samestat(facts, part.stat())
    except OSError:
        is_there = False
    try:
        yield is_there
    finally:
        os.close(descriptor)


def _readable(part: Path) -> Iterator[Run]:
    """Yield the runs of a file; what is no run, as a last line that was cut off, is passed over."""
    for _, row in jsonl.rows(part, is_held=True):
        if isinstance(row, dict) and all(
            isinstance(row.get(name), str) for name in ("app", "input", "platform", "run_id")
        ):
            with contextlib.suppress(TypeError, ValueError, CrossperfError):
                run = Run.from_json(jsonl.nest(row))
                jsonl.line(run)
                yield run


def _ids_in(path: Path, names: Sequence[str]) -> set[str]:
    if not path.is_file():
        return set()
    with path.open("rb") as lines:
        return {name for line in lines for name in names if name.encode() in line}


def add_numbered(path: Path, runs: Sequence[Run]) -> list[Run]:
    """Add runs to a file, with repeats that go on from those it holds, whoever else adds some now; return them."""
    if not runs:
        return []
    with locked(path):
        first = jsonl.next_repeat(path, runs[0].app, runs[0].input, runs[0].platform)
        numbered = [replace(run, repeat=first + number) for number, run in enumerate(runs)]
        jsonl.append(path, numbered)
    return numbered
