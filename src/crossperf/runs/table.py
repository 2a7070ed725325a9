"""The runs table: one typed frame of sound runs, from a file, from records or from a data frame."""

from __future__ import annotations

import errno
import hashlib
import html
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from crossperf.errors import RunsTableError, several, some_of
from crossperf.files import whole
from crossperf.records import Run
from crossperf.runs import columns, formats, frames, places
from crossperf.runs.checking import Record, numbered, split_rows
from crossperf.runs.columns import TypedColumns
from crossperf.runs.events import EVENTS, distinct_events
from crossperf.runs.index import CellIndex, Coded
from crossperf.runs.raw import Raw, opened
from crossperf.runs.rules import COUNTER_PREFIX, NO_COUNTERS, Problem, is_counter, unusable

#: What can change an answer, and so what a fingerprint covers (with the counters).
_ANSWERING = (
    "app",
    "input",
    "platform",
    "platform_class",
    "repeat",
    "status",
    "runtime_s",
    "measured_in",
    "runnable",
    EVENTS,
)
#: Rows that a notebook shows, and rows that are digested together.
_SHOWN, _AT_ONCE = 5, 1 << 20


@dataclass(frozen=True, repr=False, eq=False)
class RunsTable:
    """A sound runs table: typed columns, failed runs included, with the warnings it came with.

    A small table is in memory. Of one with more than 128 MB of columns, each column is read when it is asked for
    (`column`), and `frame` is everything at once: every known column that the file has, the counters as floats under
    ``counter.NAME`` in order of their names, and whatever else the file holds.

    >>> from crossperf.datasets import toy
    >>> toy.make_table(apps=3, inputs=2, seed=1)
    RunsTable 'toy': 72 runs of 6 workloads on 4 platforms, 17 counters
      platforms: cpu-a, cpu-b, gpu-a, gpu-b
      counters: branch_miss_ratio, bytes_gpu_to_host, bytes_host_to_gpu, cache_miss_ratio and 13 more
    """

    columns: TypedColumns
    path: str
    warnings: tuple[Problem, ...] = field(default=())

    def __len__(self) -> int:
        return self.columns.raw.height

    def __repr__(self) -> str:
        platforms = some_of(sorted(set(self.index.platforms)), 6)
        counters = some_of((name.removeprefix(COUNTER_PREFIX) for name in self.counters), 4)
        return f"RunsTable {self._headline()}\n  platforms: {platforms}\n  counters: {counters}"

    def _repr_html_(self) -> str:
        rows = self.columns.frame(rows=range(min(_SHOWN, len(self))))._repr_html_()
        return f"<p>{html.escape(self._headline())}</p>{rows}"

    def _headline(self) -> str:
        failed = f" ({self.n_failed:,} failed)" if self.n_failed else ""
        workloads = len(self.index.first_w)
        platforms = several(len(self.index.platforms), "platform")
        return (
            f"{self.path!r}: {several(len(self), 'run')}{failed} of {several(workloads, 'workload')} on {platforms}, "
            f"{several(len(self.counters), 'counter')}"
        )

    @cached_property
    def frame(self) -> pl.DataFrame:
        """All columns together, in memory."""
        return self.columns.frame()

    def column(self, name: str) -> pl.Series:
        """Return one column as its type."""
        return self.columns.column(name)

    def has(self, name: str) -> bool:
        """Tell whether the table has a column."""
        return name in self.columns.names

    @property
    def index(self) -> CellIndex:
        """The cell of each run, as a number."""
        return self.columns.index

    @property
    def counters(self) -> list[str]:
        """The counter columns, by name."""
        return sorted(filter(is_counter, self.columns.names))

    @cached_property
    def _coded_events(self) -> Coded:
        return Coded.of(self.column(EVENTS))

    @cached_property
    def events(self) -> pl.DataFrame:
        """Each different text of the column ``events`` with its numeric events as columns, by name."""
        texts = self._coded_events.texts if self.has(EVENTS) else pl.Series(dtype=pl.String)
        return distinct_events(texts.alias(EVENTS))

    def event(self, name: str) -> pl.Series:
        """Return what each run counted of an event, null where it did not."""
        texts = self._coded_events.texts
        lacking = len(texts) - self.events.height  # null comes first, and has no events
        values = pl.concat([pl.Series(name, [None] * lacking, dtype=pl.Float64), self.events[name]])
        return values.gather(pl.Series(self._coded_events.code_r))

    @property
    def succeeded(self) -> pl.DataFrame:
        """The runs that did not fail."""
        return self.select(*self.columns.names)

    def select(self, *names: str) -> pl.DataFrame:
        """Return some columns of the runs that did not fail."""
        ok = pl.Series(self.columns.ok_r)
        return pl.DataFrame([self.column(name).filter(ok) for name in names])

    @property
    def platforms(self) -> list[str]:
        """The platforms with a run that did not fail, by name."""
        counts = np.bincount(self.index.platform_c[self.index.cell_r[self.columns.ok_r]])
        return [str(self.index.platforms[int(p)]) for p in np.flatnonzero(counts)]

    @cached_property
    def platform_classes(self) -> dict[str, str]:
        """The class of each platform that has one."""
        if not self.has("platform_class"):
            return {}
        kind = Coded.of(self.column("platform_class"))
        pairs = pl.DataFrame({"platform": self.index.platform_c[self.index.cell_r], "kind": kind.code_r}).unique()
        named = ((self.index.platforms[platform], kind.values[code]) for platform, code in pairs.sort("kind").rows())
        return {platform: text for platform, text in named if text is not None}

    @property
    def n_failed(self) -> int:
        """How many runs failed."""
        return len(self) - int(self.columns.ok_r.sum())

    @cached_property
    def fingerprint(self) -> str:
        """A digest of everything that can change an answer; the same for each format of the same runs."""
        digest = hashlib.sha256()
        for name in [*filter(self.has, _ANSWERING), *self.counters]:
            column = self.column(name)
            if column.null_count() == len(column):
                continue  # JSONL leaves such a column out; its absence says the same
            digest.update(name.encode() + b"\x00")
            for start in range(0, len(column), _AT_ONCE):
                some = column.slice(start, _AT_ONCE)
                if column.dtype == pl.String:
                    digest.update(b"\x1f" * (start > 0) + some.fill_null("\x00").str.join("\x1f")[0].encode())
                else:
                    digest.update(some.cast(pl.Float64).fill_null(np.nan).to_numpy().tobytes())
        return digest.hexdigest()[:16]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the table in the format that the path's ending names; the file appears whole or not at all."""
        kind = places.format_of(path)
        with whole(path) as part, errors_of_the_system():
            formats.write_columns(self.frame, self.runs, part, kind)

    def runs(self) -> list[Run]:
        """Return the table as records."""
        return formats.runs_of(self.frame)

    def to_frame(self) -> Any:
        """Return the table as a data frame of pandas if it is installed, else of polars."""
        return frames.to_frame(self.frame.to_dict(as_series=False))


@contextmanager
def errors_of_the_system() -> Iterator[None]:
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
        A path that ends in .jsonl, .csv, .parquet, .jsonl.gz or .csv.gz, a folder of such files, a pattern of names
        (``runs/*.parquet``) or an address in an object store (``s3://``, ``gs://``, ``az://``); a `RunsTable`; runs as
        records or as objects of JSON, one or several; or a data frame of pandas, polars or pyarrow.
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
        return sound(opened(source), need_runtime)
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
    return sound(Raw(name, formats.columns_of_rows(rows, name), unread=tuple(unread)), need_runtime)


def from_frame(frame: Any, *, name: str = "frame", need_runtime: bool = True) -> RunsTable:
    """Return a runs table from a data frame of pandas, polars or pyarrow; `name` stands in messages."""
    return sound(Raw.of_frame(frames.to_polars(frame, name), name), need_runtime)


def check(source: str | os.PathLike[str], *, need_runtime: bool = True) -> list[Problem]:
    """Return every problem of a file that `read_runs` would raise or warn about, errors first.

    >>> for problem in check("no-such-table.csv"):
    ...     print(problem)
    found no such file, expected a runs table. Check the path.
    """
    try:
        return columns.check(TypedColumns(opened(source)), need_runtime)
    except RunsTableError as error:
        return list(error.facts["problems"])


def sound(raw: Raw, need_runtime: bool = True, need_counters: bool = True) -> RunsTable:
    """Return the table of columns that can be used; others raise with all their problems."""
    own = TypedColumns(raw)
    problems = columns.check(own, need_runtime)
    allowed = () if need_counters else (NO_COUNTERS,)
    if errors := [problem for problem in problems if problem.severity == "error" and problem not in allowed]:
        raise unusable(raw.path, errors)
    return RunsTable(own, raw.path, tuple(problem for problem in problems if problem.severity == "warning"))
