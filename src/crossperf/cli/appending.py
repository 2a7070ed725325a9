"""The runs file that measuring and importing add to: asked about first, and never at the cost of what was measured."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossperf.cli.options import NEW_FILE
from crossperf.cli.output import say
from crossperf.errors import CollectError, CrossperfError, several
from crossperf.files import refuse_unless_lines
from crossperf.records import Run
from crossperf.runs import jsonl

if TYPE_CHECKING:
    from crossperf.collect.guard import Guard

RUNS = click.option(
    "-o", "--output", type=NEW_FILE, default=Path("runs.jsonl"), help="Runs are added to the end of this file."
)


def refuse_unwritable(path: Path) -> None:
    """Raise before anything is measured where runs cannot be added line by line."""
    if path.suffix not in (".jsonl", ".ndjson", ""):
        raise CollectError(f"{path}: found the ending {path.suffix!r}, expected .jsonl: runs are added line by line.")
    refuse_unless_lines(path, CollectError)


@contextlib.contextmanager
def kept_as_they_come(path: Path, guard: Guard) -> Iterator[Callable[[Sequence[Run]], None]]:
    """Yield what keeps runs beside a file until they are added to it, so that nothing that ends this loses them.

    What an earlier profiling left behind is added first.
    """
    from crossperf.collect.unfinished import Unfinished, adopt_all

    try:
        if count := adopt_all(path):
            say(f"added {several(count, 'run')} to {path} that a profiling before was killed over")
    except (OSError, CrossperfError) as error:
        say(f"warning: the runs of a profiling that was killed were not added to {path} yet ({error})")
    unfinished = Unfinished(path, guard)
    try:
        with unfinished:
            yield unfinished.keep
    finally:
        if unfinished.added:
            say(f"added {several(unfinished.added, 'run')} to {path}, as far as they were measured")


def append(path: Path, runs: Sequence[Run], add: Callable[[Path, Sequence[Run]], object] = jsonl.append) -> list[Run]:
    """Add runs to a file and return them as added; what a full disk or a lost right keeps out is put elsewhere."""
    if not runs:
        return []
    try:
        added = add(path, runs)
    except (OSError, CrossperfError) as error:
        rescue = _rescue("".join(map(jsonl.line, runs)))
        why = error.strerror if isinstance(error, OSError) else str(error)
        kept = f"{path}: cannot be written ({why}); the runs are kept in {rescue}."
        raise CollectError(
            f"{kept} Make room or set the rights, then add them: cat {rescue} >> {path}", rescued=rescue
        ) from error
    say(f"added {several(len(runs), 'run')} to {path}")
    return list(added) if isinstance(added, list) else list(runs)


def _rescue(text: str) -> str:
    """Write text to a temporary file, or to stderr where that fails too, and return where it is."""
    try:
        descriptor, rescue = tempfile.mkstemp(prefix="crossperf-", suffix=".jsonl")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError:
        for line in text.splitlines():
            say(line)
        return "the lines above"
    return rescue
