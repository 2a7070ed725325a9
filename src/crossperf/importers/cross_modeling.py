"""Reads what the seed paper's authors' scripts write: a ``results.json`` a run, and tables made of them.

``results.json`` holds ``machine``, ``app``, ``exec``, ``args``, ``ranks``, ``events``, ``path``, ``modules``,
``spack_env``, ``exec_path`` and ``duration`` (minutes), then one entry for each HPCToolkit metric.
``collect-dataset.py`` gathers these as columns of a ``data.csv``; ``combine-datasets.py`` joins the tables of
all machines under Intel's names. Where one of those names hides another meaning, it is given its own again.

A job that died leaves a ``results.json`` cut short; it becomes a failed run.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crossperf.catalog import canonical
from crossperf.documents import lines_of, parse
from crossperf.errors import some_of
from crossperf.importers import tabular
from crossperf.importers.files import SPELLINGS, start_of, text_of, unusable
from crossperf.importers.measurement import Measurement
from crossperf.importers.tabular import ProfileReading, UnusableRowError
from crossperf.runs.rules import as_number, is_missing

RESULTS = "results.json"
_NEEDED = ("machine", "app", "args", "ranks")
_DESCRIPTION = ("exec", "events", "path", "modules", "spack_env", "exec_path")
_REALTIME = "REALTIME (sec)"
_NAMES = SPELLINGS["cross-modeling"]


def reads(path: Path) -> bool:
    """Tell whether a file is a ``results.json`` or a table of them, or a folder holds one."""
    if path.is_dir():
        return (path / RESULTS).is_file() and _looks_like_results(path / RESULTS)
    if path.suffix == ".json":
        return _looks_like_results(path)
    return path.suffix == ".csv" and set(_NEEDED) <= set(tabular.header(path))


def read(path: Path) -> ProfileReading:
    """Return one measurement for each sound row, and the other rows with their reasons."""
    if path.is_dir():
        path = path / RESULTS
    if path.suffix == ".json":
        return ProfileReading([_result(path)], [])
    return tabular.read(path, lambda number, row: _of_row(path, number, row))


def _of_row(path: Path, number: int, row: Mapping[str, Any]) -> Measurement:
    absent = [name for name in _NEEDED if name not in row]
    if absent:
        expected = "a table of collect-dataset.py or combine-datasets.py"
        advice = "Import another table as format 'table', by a mapping file."
        raise unusable(path, f"found no column {', '.join(absent)}, expected {expected}. {advice}")
    return _measurement(row, {"imported_row": number})


def _looks_like_results(path: Path) -> bool:
    start = start_of(path, 4096).decode("utf-8", "replace")
    return start.lstrip().startswith("{") and all(f'"{name}"' in start for name in ("machine", "app", "args"))


def _result(path: Path) -> Measurement:
    text = text_of(path, "the results of a run")
    death = _death(path.with_name("std.err"))
    try:
        facts = parse(text.encode(), lenient=True)
    except ValueError:
        # The scripts print one key a line, so what came before the job's end can be read.
        facts = dict(re.findall(r'^\s*"(\w+)": "([^"]*)",?$', text, flags=re.MULTILINE))
        death = death or "the job ended before its results were complete"
    if not isinstance(facts, dict) or any(name not in facts for name in ("machine", "app", "args")):
        raise unusable(path, f"found no machine, app and args, expected the {RESULTS} of a run. Collect the run again.")
    try:
        return _measurement(facts, {"status": death} if death else {})
    except UnusableRowError as error:
        raise unusable(path, f"{error}") from error


def _death(path: Path) -> str | None:
    with contextlib.suppress(OSError), path.open(encoding="utf-8", errors="replace") as lines:
        return next(
            (status for line in lines_of(lines) for words, status in _NAMES["deaths"].items() if words in line), None
        )
    return None


def _measurement(row: Mapping[str, Any], more: Mapping[str, Any]) -> Measurement:
    machine = str(row["machine"])
    hidden = _NAMES["hidden"].get(machine, {})
    events: dict[str, float | None] = {}
    counters: dict[str, float | None] = {}
    problems, filled, renamed = [], [], []
    for column, cell in row.items():
        if column in _NEEDED or column in _DESCRIPTION or column in ("duration", _REALTIME):
            continue
        name = canonical(column)
        if name in hidden:
            renamed.append(f"{name} is {hidden[name]}")
            name = hidden[name]
        number = None if is_missing(cell) else as_number(cell)
        if not is_missing(cell) and (number is None or number - number != 0):
            problems.append(f"column {column!r}: found {cell!r}, expected a number.")
        if number == -1:
            filled.append(column.strip())
            number = None
        counter = _NAMES["counters"].get(name)
        (events if counter is None else counters)[counter or name] = number
    runtime_s, notes = _runtime(row, failed="status" in more)
    ranks = as_number(row.get("ranks"))
    if problems:
        raise UnusableRowError(" ".join(problems))
    if filled:
        hold, are = ("counter holds", "is") if len(filled) == 1 else ("counters hold", "are")
        notes.append(f"{len(filled)} {hold} -1, the scripts' mark for absent, and {are} missing: {some_of(filled)}")
    if renamed:
        notes.append(f"on {machine} " + "; ".join(renamed))
    if ranks is None or ranks > 1:
        which = "of rank 0" if machine == "corona" else "the mean over ranks"
        notes.append(f"counts are {which}, as the scripts take them, not totals")
    facts = {
        "app": row["app"],
        "input": " ".join(filter(None, [str(row["args"]).strip(), f"ranks={ranks:g}" if ranks else ""])),
        "platform": machine,
        "platform_class": _NAMES["classes"].get(machine),
        "ranks": int(ranks) if ranks is not None and ranks.is_integer() and ranks > 0 else None,
        "executable": row.get("exec_path") or row.get("exec"),
        "modules": row.get("modules"),
        "spack_env": row.get("spack_env"),
    }
    known = {name: value for name, value in facts.items() if not is_missing(value)}
    known |= dict(more)
    return Measurement(
        "cross-modeling", events, counters=counters, runtime_s=runtime_s, notes=tuple(notes), facts=known
    )


def _runtime(row: Mapping[str, Any], *, failed: bool) -> tuple[float | None, list[str]]:
    """Return the seconds of a run, and what must be known of them."""
    measured = as_number(row.get(_REALTIME))
    if measured is not None and measured > 0:
        return measured, []
    minutes = as_number(row.get("duration"))
    if minutes is not None and minutes > 0:
        return minutes * 60.0, ["runtime is the job step's duration, start of the profiler included, in whole seconds"]
    if failed:
        return None, []
    problem = f"found neither {_REALTIME!r} nor 'duration' above 0, expected the runtime"
    raise UnusableRowError(f"{problem}. Collect it again.")
