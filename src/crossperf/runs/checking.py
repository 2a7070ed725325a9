"""A few runs checked in plain Python: the problems that a table of them has, in a fraction of a millisecond.

`columns` is the road for tables of any size; polars needs some 50 ms there even for one row, and is not imported
here. Both roads ask `rules` about values and `problems_across` about rows that clash, and report the same problems.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from crossperf.errors import did_you_mean
from crossperf.records import COLUMNS, Run, can_run, versions
from crossperf.runs import jsonl, rules
from crossperf.runs.rules import TEXTS, Problem, as_number, is_counter

#: A run as a record, or as the object that a line of JSONL holds.
Record = Run | Mapping[str, Any]
#: The columns of one run, with the number of its row.
NumberedRow = tuple[int, dict[str, Any]]

#: From about here on columns are the faster road.
_FEW_RUNS, _FEW_BYTES = 200, 400_000
_NAMES = ("app", "platform")
_CELL = ("app", "input", "platform")
#: The classes that most tables have: a workload may name them in a table without such a platform.
_CLASSES = ("cpu", "gpu")


def check_runs(runs: Record | Iterable[Record], *, need_runtime: bool = True) -> list[Problem]:
    """Return every problem of a few runs, records or objects of JSON, errors first; none means that they can be used.

    Parameters
    ----------
    need_runtime
        Whether a run without a runtime is a problem. It is for learning, and is not for predicting.

    >>> for problem in check_runs(Run("lulesh", "30", "epyc-2", -1.0, counters={"instructions": 3e9})):
    ...     print(problem.row, problem.column, problem.actual)
    1 runtime_s -1.0
    """
    rows, unread = split_rows(numbered(runs))
    return unread + _problems(rows, need_runtime)


def checked(
    runs: Record | Iterable[Record], *, name: str = "runs", need_runtime: bool = True, need_counters: bool = True
) -> list[Run]:
    """Return a few runs as a table would hold them: numbers as numbers, what is missing as ``None``.

    Runs that cannot be used raise `RunsTableError` with all their problems.

    Parameters
    ----------
    name
        What a message calls the runs.
    need_counters
        Whether runs without any counter are a problem. They are for learning and predicting, and tell a time all the
        same.

    >>> checked({"app": "a", "input": "1", "platform": "p", "runtime_s": "2.5", "counters": {"cycles": 7}})[0].runtime_s
    2.5
    """
    return _sound(*split_rows(numbered(runs)), name, need_runtime, need_counters)


def few(source: Any, *, need_runtime: bool = True) -> list[Run] | None:
    """Return the checked runs of a source that is small, or ``None`` where it is to be read as columns.

    Small are up to 200 records, and JSONL files of up to 400 kB.
    """
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.suffix not in (".jsonl", ".ndjson") or not path.is_file() or path.stat().st_size > _FEW_BYTES:
            return None
        return _sound(*split_rows(jsonl.rows(path)), str(path), need_runtime)
    if isinstance(source, Run | Mapping) or (isinstance(source, list | tuple) and len(source) <= _FEW_RUNS):
        return checked(source, need_runtime=need_runtime)
    return None


def split_rows(rows: Iterable[tuple[int, dict[str, Any] | Problem]]) -> tuple[list[NumberedRow], list[Problem]]:
    """Return the rows that could be read, and the problems of the others."""
    pairs = list(rows)
    readable = [(number, row) for number, row in pairs if not isinstance(row, Problem)]
    return readable, [row for _, row in pairs if isinstance(row, Problem)]


def numbered(runs: Record | Iterable[Record]) -> Iterable[tuple[int, dict[str, Any] | Problem]]:
    """Yield each run's number with its columns, or with the problem that keeps it from being read."""
    records = [runs] if isinstance(runs, Run | Mapping) else runs
    for number, run in enumerate(records, start=1):
        yield number, jsonl.columns_of(run.to_json() if isinstance(run, Run) else run, number)


def values_by_column(rows: Sequence[NumberedRow]) -> dict[str, list[Any]]:
    """Return the columns of rows, each of floats where every value is a number, otherwise of texts."""
    names = dict.fromkeys(name for _, row in rows for name in row)
    return {name: column_values(name, [row.get(name) for _, row in rows]) for name in names}


def column_values(name: str, values: list[Any]) -> list[Any]:
    """Return the values of a column as floats where every value is a number, otherwise as texts."""
    if name not in TEXTS and all(value is None or _is_number(value) for value in values):
        return [None if value is None else float(value) for value in values]
    return [value if value is None or isinstance(value, str) else rules.text(value) for value in values]


def _is_number(value: Any) -> bool:
    return type(value) is float or (not isinstance(value, str) and as_number(value) is not None)


def _problems(rows: Sequence[NumberedRow], need_runtime: bool) -> list[Problem]:
    if not rows:
        return [rules.NO_RUNS]
    columns = values_by_column(rows)
    numbers = [number for number, _ in rows]
    ok = [not rules.failed(status) for status in columns.get("status", [None] * len(rows))]
    problems = rules.check_columns(list(columns))
    if "runtime_s" not in columns and not (need_runtime and any(ok)):
        problems = [problem for problem in problems if problem.column != "runtime_s"]
    for name in [*filter(columns.__contains__, COLUMNS), *sorted(filter(is_counter, columns))]:
        judged = zip(numbers, columns[name], ok, strict=True)
        asked = [(number, value) for number, value, sound in judged if sound or name in _NAMES]
        problems += column_problems(name, asked, need_runtime)
    problems += problems_across(numbers, columns, ok)
    runnable = [None if rules.is_missing(text) else text for text in columns.get("runnable", [])]
    if any(runnable):
        parts = (columns.get(name, [None] * len(rows)) for name in (*_CELL, "platform_class"))
        problems += runnable_problems(zip(numbers, *parts, runnable, ok, strict=True))
    return sorted(problems, key=lambda problem: problem.severity)


def column_problems(name: str, values: Iterable[tuple[int, Any]], need_runtime: bool) -> list[Problem]:
    """Return what is wrong with the values of a column, each with the number of its row."""
    answers = (rules.check_value(name, value, number, need_runtime=need_runtime) for number, value in values)
    problems = list(islice(filter(None, answers), rules.MOST_SHOWN + 1))
    if len(problems) > rules.MOST_SHOWN:
        expected = f"at most {rules.MOST_SHOWN:,} problems in one column"
        problems[-1] = Problem("further bad values", expected, "Fix these first.", column=name)
    return problems


def problems_across(numbers: Sequence[int], columns: Mapping[str, list[Any]], ok: Sequence[bool]) -> list[Problem]:
    """Return what is wrong between rows: ids and repeats given twice, platforms of several classes."""
    problems = []
    for number, run_id in _copies(numbers, columns.get("run_id", [])):
        advice = "Remove the copy, or give the run an id of its own."
        problems.append(Problem(f"{run_id!r} a second time", "each run_id once", advice, number, "run_id", run_id))
    for number, (app, input_, platform, repeat) in _copies(numbers, _repeats(columns, ok)):
        again = f"repeat {repeat} of ({app}, {input_}) on {platform} a second time"
        advice = "Both are used; remove one if it is a copy."
        problems.append(Problem(again, "each repeat once", advice, number, "repeat", repeat, "warning"))
    classes: dict[str | None, dict[str, int]] = {}  # by platform and class: the first row that names them
    pairs = (columns.get("platform", []), columns.get("platform_class", []))
    for number, platform, kind in zip(numbers, *pairs, strict=False):
        if kind is not None:
            classes.setdefault(platform, {}).setdefault(kind, number)
    for platform, rows in classes.items():
        if len(rows) > 1:
            both = f"platform {platform!r} as {' and '.join(sorted(rows))}"
            first = min(rows.values())
            problems.append(Problem(both, "one class for each platform", "Correct it.", first, "platform_class"))
    return problems


def runnable_problems(cells: Iterable[tuple[int, str, str, str, str | None, str | None, bool]]) -> list[Problem]:
    """Return what is wrong with where workloads can run: rows that disagree, runs where none can be, unknown names.

    A cell is the number of its row, app, input, platform, its class, ``runnable``, and whether the run succeeded.
    """
    cells = list(cells)
    kinds = {platform: kind for _, _, _, platform, kind, _, _ in cells if kind is not None}
    known = {*kinds.values(), *(platform for _, _, _, platform, *_ in cells if platform is not None), *_CLASSES}
    by_workload: dict[tuple[str, str], tuple[str, ...]] = {}
    strangers: dict[str, int] = {}
    problems = []
    for number, app, input_, platform, _, runnable, ok in cells:
        names = versions(runnable)
        first = by_workload.setdefault((app, input_), names) if names else None
        if names is None or first is None:
            continue
        if set(first) != set(names):
            both = f"{' '.join(first)!r} and {runnable!r} for ({app}, {input_})"
            advice = "Correct it in one of them."
            problems.append(Problem(both, "the same in each of its rows", advice, number, "runnable", runnable))
        elif ok and platform in kinds and not can_run(names, platform, kinds[platform]):
            actual = f"{runnable!r} for ({app}, {input_}), which ran on {platform}"
            advice = f"Add {kinds[platform]!r} or {platform!r}, or correct the platform of the run."
            problems.append(Problem(actual, "a list with its platform or class", advice, number, "runnable", runnable))
        strangers |= {name: number for name in names if name not in known and name not in strangers}
    for name, number in strangers.items():
        actual, advice = f"{name!r}{did_you_mean(name, known)}", "Rename it, or leave it if other tables have it."
        expected = "classes or platforms of the table, separated by spaces"
        problems.append(Problem(actual, expected, advice, number, "runnable", name, "warning"))
    return problems[: rules.MOST_SHOWN]


def _repeats(columns: Mapping[str, list[Any]], ok: Sequence[bool]) -> list[tuple[Any, ...] | None]:
    """Return the workload, platform and repeat of each run that did not fail and has a number."""
    if not {"app", "input", "platform", "repeat"} <= columns.keys():
        return []
    inputs, repeats = [text or "" for text in columns["input"]], map(rules.whole, columns["repeat"])
    cells = zip(columns["app"], inputs, columns["platform"], repeats, ok, strict=True)
    return [(*cell, repeat) if sound and repeat is not None else None for *cell, repeat, sound in cells]


def _copies(numbers: Sequence[int], keys: Iterable[Any]) -> list[tuple[int, Any]]:
    """Return the first rows whose key an earlier row has."""
    first: dict[Any, int] = {}
    keyed = [(number, key) for number, key in zip(numbers, keys, strict=False) if key is not None]
    copies = [(number, key) for number, key in keyed if first.setdefault(key, number) != number]
    return copies[: rules.MOST_SHOWN]


def _sound(
    rows: Sequence[NumberedRow], unread: Sequence[Problem], name: str, need_runtime: bool, need_counters: bool = True
) -> list[Run]:
    problems = [*unread, *_problems(rows, need_runtime)]
    allowed = () if need_counters else (rules.NO_COUNTERS,)
    if errors := [problem for problem in problems if problem.severity == "error" and problem not in allowed]:
        raise rules.unusable(name, errors)
    typed = [{name: rules.typed(name, value) for name, value in row.items()} for _, row in rows]
    return [Run.from_json(jsonl.nest(row | {"input": row.get("input") or ""})) for row in typed]
