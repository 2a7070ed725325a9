"""Runs as lines of JSON, with nothing but the standard library, so that a collector starts anywhere."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from crossperf import documents, plain
from crossperf.documents import LONGEST_LINE, opened
from crossperf.errors import RunsTableError
from crossperf.files import add_lines, settled_size
from crossperf.records import FORMAT, RUNS_FORMAT, Run
from crossperf.runs import rules
from crossperf.runs.rules import COUNTER_PREFIX, Problem

#: What says which cell a run belongs to.
_CELL = ("app", "input", "platform")


def rows(path: Path, *, is_held: bool = False) -> Iterator[tuple[int, dict[str, Any] | Problem]]:
    """Yield each line's number with its columns, or with the problem that keeps it from being read."""
    return ((number, columns_of(row, number)) for number, row in objects(path, is_held=is_held))


def objects(path: Path, *, is_held: bool = False) -> Iterator[tuple[int, dict[str, Any] | Problem]]:
    """Yield each line's number with its JSON object, or with the problem that keeps it from being read.

    What somebody adds to the file meanwhile is left out; nobody does where the caller holds its lock.
    """
    is_packed = path.suffix == ".gz"
    with opened(path) as raw, gzip.open(raw) if is_packed else raw as file:
        size = None if is_packed or is_held else settled_size(raw)
        for number, line in enumerate(_lines(file, size), start=1):
            if len(line) > LONGEST_LINE:
                yield number, _too_long(number)
                return
            if line.strip():
                yield number, object_of(line, number)


def _lines(file: Any, size: int | None = None) -> Iterator[bytes]:
    """Yield the lines of a file, up to a size if one is given; of one that is longer than any may be, its start."""
    while line := file.readline(LONGEST_LINE + 1 if size is None else min(LONGEST_LINE + 1, size)):
        yield line
        size = None if size is None else size - len(line)


def _too_long(number: int) -> Problem:
    advice = "It is another kind of file, or was damaged: copy or write it again."
    most = f"at most {LONGEST_LINE // documents.MEGABYTE} MB"
    return Problem(f"a line of more than {LONGEST_LINE:,} bytes", f"one run a line, {most}", advice, row=number)


def object_of(line: bytes, number: int) -> dict[str, Any] | Problem:
    """Return the object of a line, or the problem that keeps it from being read."""
    try:
        facts = documents.parse(line, lenient=True)
    except ValueError as error:
        advice = "Correct or remove the line; a last line cut short comes from an interrupted write."
        return Problem(f"text that is not JSON ({error})", "one JSON object", advice, row=number)
    return facts if isinstance(facts, dict) else _no_object(facts, number)


def newer_format(written: Any, number: int | None = None) -> Problem:
    """Return the problem of runs whose format is not known."""
    return Problem(
        f"format {plain.shown(written)}", f"runs of format {FORMAT}", "Upgrade crossperf.", number, RUNS_FORMAT
    )


def _no_object(facts: Any, number: int) -> Problem:
    return Problem(f"a {type(facts).__name__}", "one JSON object", "Write one run a line.", row=number)


def columns_of(facts: Any, number: int) -> dict[str, Any] | Problem:
    """Return the object of one line as the columns of a table, or the problem that keeps it from being read.

    >>> columns_of(Run("a", "1", "p", counters={"instructions": 5}).to_json(), 1)["counter.instructions"]
    5
    """
    if isinstance(facts, Problem):
        return facts
    if not isinstance(facts, Mapping):
        return _no_object(facts, number)
    if facts.get(RUNS_FORMAT, FORMAT) != FORMAT:
        return newer_format(facts[RUNS_FORMAT], number)
    counters = facts.get("counters") or {}
    if not isinstance(counters, Mapping):
        nested = f"a {type(counters).__name__} under 'counters'"
        return Problem(nested, "an object of names and numbers", 'Write {"counters": {"NAME": 1.0}}.', row=number)
    columns = {name: value for name, value in facts.items() if name not in ("counters", RUNS_FORMAT)}
    return columns | {COUNTER_PREFIX + name: value for name, value in counters.items()}


def read(path: str | os.PathLike[str]) -> list[Run]:
    """Return the runs of a JSONL file; one that cannot be read raises with every bad line."""
    runs, problems = [], []
    for number, row in rows(Path(path)):
        if isinstance(row, Problem):
            problems.append(row)
        elif nameless := [name for name in _CELL if row.get(name) is None]:
            advice = "Add it, or remove the line."
            problems += [Problem("nothing", f"the {name} of the run", advice, number, name) for name in nameless]
        elif wrong := _wrong_values(row, number):
            problems += wrong
        else:
            runs.append(Run.from_json(nest({name: _typed(name, value) for name, value in row.items()})))
    if problems:
        raise rules.unusable(path, problems)
    return runs


def _typed(name: str, value: Any) -> Any:
    """Return a value as its type; what a failed run has in its place stays."""
    own = rules.typed(name, value)
    return value if own is None and not rules.is_missing(value) else own


def _wrong_values(row: Mapping[str, Any], number: int) -> list[Problem]:
    """Return what is wrong with the values of a run that did not fail; where it failed, they are as they are."""
    if rules.failed(row.get("status")):
        return []
    judged = (rules.check_value(name, value, number, need_runtime=False) for name, value in row.items())
    return [problem for problem in judged if problem is not None and problem.severity == "error"]


def nest(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a table's row as a line of JSONL nests them: the reverse of `columns_of`."""
    counters = {name: value for name, value in row.items() if name.startswith(COUNTER_PREFIX)}
    others = {name: value for name, value in row.items() if name not in counters}
    return others | {"counters": {name.removeprefix(COUNTER_PREFIX): value for name, value in counters.items()}}


def line(run: Run) -> str:
    """Return a run as one line of a JSONL file.

    >>> line(Run("a", "1", "p", 2.0)).strip()
    '{"runs_format": 1, "app": "a", "input": "1", "platform": "p", "runtime_s": 2.0, "status": "ok", "counters": {}}'
    """
    try:
        return json.dumps({RUNS_FORMAT: FORMAT, **run.to_json()}, allow_nan=False) + "\n"
    except ValueError as error:
        raise RunsTableError(
            f"Run of {run.app!r} on {run.platform!r}: found a number that is not finite, expected numbers that JSON "
            "can hold. Write None for what was not measured; nothing was written.",
            run=run,
        ) from error


def append(path: str | os.PathLike[str], runs: Iterable[Run]) -> int:
    """Add runs to the end of a JSONL file, made if absent, and return how many.

    All lines leave in one write under a lock, so that two collectors may share a file; if an earlier writer was cut
    off in the middle of a line, the new runs start on a line of their own. Lines that a full disk cut off
    are taken back. A file that holds something else than lines of JSON is left as it is.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "runs.jsonl"
    ...     append(path, [Run("a", "1", "p", 2.0)]) + append(path, [Run("a", "1", "q", 3.0)])
    ...     [run.platform for run in read(path)]
    2
    ['p', 'q']
    """
    if Path(path).suffix == ".gz":
        advice = "Append to a plain .jsonl file, and compress it when it is complete."
        raise RunsTableError(f"{path}: found a compressed file, expected one that lines can be added to. {advice}")
    lines = list(map(line, runs))
    add_lines(path, "".join(lines), RunsTableError)
    return len(lines)


def next_repeat(path: str | os.PathLike[str], app: str, input: str, platform: str) -> int:  # noqa: A002
    """Return the number after the highest repeat of a workload on a platform; 0 where it has none yet."""
    if not Path(path).is_file():
        return 0
    name = json.dumps(app).encode()
    with Path(path).open("rb") as file:
        lines = enumerate(_lines(file, settled_size(file)), start=1)
        rows = (object_of(text, number) for number, text in lines if name in text)
        own = (row for row in rows if isinstance(row, dict) and [*map(row.get, _CELL)] == [app, input, platform])
        repeats = [row.get("repeat") for row in own]
    return 1 + max((repeat if isinstance(repeat, int) else 0 for repeat in repeats), default=-1)
