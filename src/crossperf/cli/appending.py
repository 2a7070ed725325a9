"""The runs file that measuring and importing add to: asked about first, and never at the cost of what was measured."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from crossperf.cli.options import PATH
from crossperf.cli.output import say
from crossperf.errors import CollectError, several
from crossperf.files import refuse_unless_lines
from crossperf.records import Run
from crossperf.runs import jsonl

RUNS = click.option(
    "-o", "--output", type=PATH, default=Path("runs.jsonl"), help="Runs are added to the end of this file."
)


def refuse_unwritable(path: Path) -> None:
    """Raise before anything is measured where there is no place for it."""
    if path.is_dir():
        raise CollectError(f"{path}: found a folder, expected a file for the runs. Choose another name with -o.")
    if path.suffix not in (".jsonl", ".ndjson", ""):
        raise CollectError(f"{path}: found the ending {path.suffix!r}, expected .jsonl: runs are added line by line.")
    if not path.parent.exists():
        raise CollectError(f"{path}: the folder {path.parent} does not exist. Make it, or choose another with -o.")
    refuse_unless_lines(path, CollectError)
    try:
        if path.exists():
            os.close(os.open(path, os.O_WRONLY | os.O_APPEND))
        elif not os.access(path.parent, os.W_OK):
            raise PermissionError
    except OSError as error:
        reason = f" ({error.strerror})" if error.strerror else ""
        raise CollectError(f"{path}: may not be written{reason}. Choose another place with -o.") from error


def numbered(runs: Sequence[Run], path: Path) -> list[Run]:
    """Return runs whose repeats go on from those that the file holds."""
    if not runs:
        return []
    first = jsonl.next_repeat(path, runs[0].app, runs[0].input, runs[0].platform)
    return [replace(run, repeat=first + number) for number, run in enumerate(runs)]


def append(path: Path, runs: Sequence[Run]) -> None:
    """Add runs to a file; what a full disk or a lost right keeps out is put elsewhere and named."""
    if not runs:
        return
    try:
        jsonl.append(path, runs)
    except OSError as error:
        rescue = _rescue("".join(map(jsonl.line, runs)))
        kept = f"{path}: cannot be written ({error.strerror}); the runs are kept in {rescue}."
        raise CollectError(f"{kept} Make room or set the rights, then add them: cat {rescue} >> {path}") from error
    say(f"added {several(len(runs), 'run')} to {path}")


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
