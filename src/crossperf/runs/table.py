"""The runs table: one typed frame of sound runs, from a file, from records or from a data frame."""

from __future__ import annotations

import errno
import hashlib
import html
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from crossperf.errors import RunsTableError, several, some_of
from crossperf.files import whole
from crossperf.records import OK, Run
from crossperf.runs import columns, formats, frames, jsonl
from crossperf.runs.checking import Record, numbered, split_rows
from crossperf.runs.events import EVENTS, distinct_events
from crossperf.runs.rules import COUNTER_PREFIX, Problem, is_counter, unusable

#: What can change an answer, and so what a fingerprint covers (with the counters).
_ANSWERING = ("app", "input", "platform", "platform_class", "repeat", "status", "runtime_s", "runnable", EVENTS)
#: Rows that a notebook shows.
_SHOWN = 5


@dataclass(frozen=True, repr=False)
class RunsTable:
    """A sound runs table: typed columns, failed runs included, with the warnings it came with.

    `frame` has every known column that the file has, the counters as floats under ``counter.NAME`` in
    order of their names, and whatever else the file holds.

    >>> from crossperf.datasets import toy
    >>> toy.make_table(apps=3, inputs=2, seed=1)
    RunsTable 'toy': 72 runs of 6 workloads on 4 platforms, 17 counters
      platforms: cpu-a, cpu-b, gpu-a, gpu-b
      counters: branch_miss_ratio, bytes_gpu_to_host, bytes_host_to_gpu, cache_miss_ratio and 13 more
    """

    frame: pl.DataFrame
    path: str
    warnings: tuple[Problem, ...] = field(default=())

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        platforms = some_of(sorted(self.frame["platform"].unique()), 6)
        counters = some_of((name.removeprefix(COUNTER_PREFIX) for name in self.counters), 4)
        return f"RunsTable {self._headline()}\n  platforms: {platforms}\n  counters: {counters}"

    def _repr_html_(self) -> str:
        rows = self.frame.head(_SHOWN)._repr_html_()
        return f"<p>{html.escape(self._headline())}</p>{rows}"

    def _headline(self) -> str:
        failed = f" ({self.n_failed:,} failed)" if self.n_failed else ""
        workloads = self.frame.select("app", "input").n_unique()
        platforms = several(self.frame["platform"].n_unique(), "platform")
        return (
            f"{self.path!r}: {several(len(self), 'run')}{failed} of {several(workloads, 'workload')} on {platforms}, "
            f"{several(len(self.counters), 'counter')}"
        )

    @property
    def counters(self) -> list[str]:
        """The counter columns, by name."""
        return sorted(name for name in self.frame.columns if is_counter(name))

    @cached_property
    def events(self) -> pl.DataFrame:
        """Each different text of the column ``events`` with its numeric events as columns, by name."""
        texts = self.frame[EVENTS] if EVENTS in self.frame.columns else pl.Series(EVENTS, [], dtype=pl.String)
        return distinct_events(texts.cast(pl.String))

    @property
    def succeeded(self) -> pl.DataFrame:
        """The runs that did not fail."""
        return self.frame.filter(pl.col("status") == OK)

    @property
    def n_failed(self) -> int:
        """How many runs failed."""
        return self.frame.height - self.succeeded.height

    @property
    def fingerprint(self) -> str:
        """A digest of everything that can change an answer; the same for each format of the same runs."""
        digest = hashlib.sha256()
        for name in [*(c for c in _ANSWERING if c in self.frame.columns), *self.counters]:
            column = self.frame[name]
            if column.null_count() == len(column):
                continue  # JSONL leaves such a column out; its absence says the same
            digest.update(name.encode() + b"\x00")
            if column.dtype == pl.String:
                texts = column.fill_null("\x00").to_list()
                digest.update("\x1f".join(texts).encode())
            else:
                digest.update(column.cast(pl.Float64).fill_null(np.nan).to_numpy().tobytes())
        return digest.hexdigest()[:16]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the table in the format that the path's ending names; the file appears whole or not at all."""
        kind = formats.format_of(Path(path))
        with whole(path) as part, _errors_of_the_system():
            formats.write_columns(self.frame, self.runs, part, kind)

    def runs(self) -> list[Run]:
        """Return the table as records."""
        return [
            Run.from_json(jsonl.nest({name: row[name] for name in row if row[name] is not None or is_counter(name)}))
            for row in self.frame.iter_rows(named=True)
        ]

    def to_frame(self) -> Any:
        """Return the table as a data frame of pandas if it is installed, else of polars."""
        return frames.to_frame(self.frame.to_dict(as_series=False))


@contextmanager
def _errors_of_the_system() -> Iterator[None]:
    """Raise what polars tells of a full disk or lost rights as the system's own error, which names the reason."""
    try:
        yield
    except PolarsError as error:
        number = re.search(r"os error (\d+)", str(error))
        code = int(number[1]) if number else errno.EIO
        raise OSError(code, os.strerror(code)) from error


#: What runs can come as: a path, a table, one record or several, or a data frame of pandas, polars or pyarrow.
Source = str | os.PathLike[str] | RunsTable | Record | Iterable[Record] | Any


def read_runs(source: Source, *, need_runtime: bool = True) -> RunsTable:
    """Return a runs table from whatever holds the runs; runs that cannot be used raise with all their problems.

    Parameters
    ----------
    source
        A path that ends in .jsonl, .csv, .parquet, .jsonl.gz or .csv.gz; a `RunsTable`; runs as records or as
        objects of JSON, one or several; or a data frame of pandas, polars or pyarrow.
    need_runtime
        Whether a run without a runtime is a problem. It is for learning, and is not for predicting.

    Returns
    -------
    RunsTable
        The runs, failed ones included, with `warnings` about what may be wrong.

    Raises
    ------
    RunsTableError
        With ``problems``, everything that must be fixed.

    >>> table = read_runs([Run("lulesh", "30", "epyc-2", 12.5, counters={"instructions": 3e9})])
    >>> len(table), table.counters
    (1, ['counter.instructions'])
    """
    if isinstance(source, RunsTable):
        return source
    if isinstance(source, str | os.PathLike):
        return _sound(*formats.read_columns(Path(source)), str(source), need_runtime)
    if frames.is_frame(source):
        return from_frame(source, need_runtime=need_runtime)
    if isinstance(source, Run | Mapping) or (isinstance(source, Iterable) and not isinstance(source, bytes)):
        return from_runs(cast("Iterable[Record]", source), need_runtime=need_runtime)
    expected = "a path, a runs table, runs, or a data frame of pandas, polars or pyarrow"
    sentence = f"source: found {type(source).__name__}, expected {expected}."
    raise RunsTableError(sentence, argument="source", problems=[])


#: The same, for ``runs.read(path)``.
read = read_runs


def from_runs(runs: Record | Iterable[Record], *, name: str = "runs", need_runtime: bool = True) -> RunsTable:
    """Return a runs table from records; problems raise as they do for a file, under `name`."""
    rows, unread = split_rows(numbered(runs))
    return _sound(formats.columns_of_rows(rows, name), unread, name, need_runtime)


def from_frame(frame: Any, *, name: str = "frame", need_runtime: bool = True) -> RunsTable:
    """Return a runs table from a data frame of pandas, polars or pyarrow; `name` stands in messages."""
    return _sound(formats.known_columns(name, frames.to_polars(frame, name)), [], name, need_runtime)


def check(source: str | os.PathLike[str], *, need_runtime: bool = True) -> list[Problem]:
    """Return every problem of a file that `read_runs` would raise or warn about, errors first.

    >>> for problem in check("no-such-table.csv"):
    ...     print(problem)
    found no such file, expected a runs table. Check the path.
    """
    try:
        raw, unread = formats.read_columns(Path(source))
    except RunsTableError as error:
        return list(error.facts["problems"])
    return unread + columns.typed(raw, need_runtime)[1]


def _sound(raw: pl.DataFrame, unread: Sequence[Problem], path: str, need_runtime: bool) -> RunsTable:
    frame, problems = columns.typed(raw, need_runtime)
    problems = [*unread, *problems]
    if errors := [problem for problem in problems if problem.severity == "error"]:
        raise unusable(path, errors)
    return RunsTable(frame, path, tuple(problem for problem in problems if problem.severity == "warning"))
