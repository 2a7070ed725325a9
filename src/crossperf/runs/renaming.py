"""Runs under other names: of a platform, an application or an input."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from crossperf.errors import SettingsError, did_you_mean, some_of
from crossperf.files import whole
from crossperf.records import Run
from crossperf.runs import jsonl

#: What can be renamed.
COLUMNS = ("app", "input", "platform")


def rename(path: str | Path, output: str | Path, names: Mapping[str, Iterable[str]]) -> int:
    """Write the runs of a table under other names to another file, and return how many were renamed.

    Parameters
    ----------
    names
        ``OLD=NEW`` by column: ``app``, ``input`` or ``platform``. A name that no run has is an error.
    """
    from crossperf.runs import places, table

    is_jsonl = "jsonl" in places.format_of(path)
    runs = jsonl.read(path) if is_jsonl and Path(path).is_file() else table.read(path, need_runtime=False).runs()
    changes = {column: _pairs(column, texts, runs) for column, texts in names.items()}
    again = renamed(runs, changes)
    kind = places.format_of(output)
    if "jsonl" not in kind:
        table.from_runs(again, name=str(path), need_runtime=False).write(output)
    else:
        opener = gzip.open if kind.endswith(".gz") else open
        with whole(output) as part, opener(part, "wt", encoding="utf-8") as lines:
            lines.writelines(map(jsonl.line, again))
    return sum(_cell(run) != _cell(new) for run, new in zip(runs, again, strict=True))


def renamed(runs: Sequence[Run], changes: Mapping[str, Mapping[str, str]]) -> list[Run]:
    """Return runs with other names; where two cells become one, a repeat that is taken gets the next free number.

    >>> runs = [Run("a", "1", "p", 1.0, repeat=0), Run("a", "1", "q", 1.0, repeat=0)]
    >>> [(run.platform, run.repeat) for run in renamed(runs, {"platform": {"q": "p"}})]
    [('p', 0), ('p', 1)]
    """
    taken: dict[tuple[str, ...], set[int]] = {}
    again = []
    for run in runs:
        new = replace(
            run, **{name: pairs.get(getattr(run, name), getattr(run, name)) for name, pairs in changes.items()}
        )
        numbers = taken.setdefault(_cell(new), set())
        if new.repeat is not None:
            repeat = max(numbers) + 1 if new.repeat in numbers else new.repeat
            numbers.add(repeat)
            new = replace(new, repeat=repeat)
        again.append(new)
    return again


def _cell(run: Run) -> tuple[str, ...]:
    return run.app, run.input, run.platform


def _pairs(column: str, texts: Iterable[str], runs: Sequence[Run]) -> dict[str, str]:
    """Return old and new names of a column; an equals sign inside a name is no divider."""
    known = {str(getattr(run, column)) for run in runs}
    pairs = {}
    for text in texts:
        parts = text.split("=")
        splits = [("=".join(parts[:at]), "=".join(parts[at:])) for at in range(1, len(parts))]
        old, new = next((pair for pair in splits if pair[0] in known), splits[0] if splits else (text, ""))
        if not splits or (not new.strip() and column != "input"):
            raise SettingsError(f"{column}: found {text!r}, expected OLD=NEW.", argument=column)
        if old not in known:
            nearest = did_you_mean(old, known)
            raise SettingsError(
                f"{column}: found {old!r}{nearest}, expected one of the table: {some_of(sorted(known))}.",
                argument=column,
            )
        pairs[old] = new
    return pairs
