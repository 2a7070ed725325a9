"""The columns of a runs table as they were written: those of a small table in memory, of a large table read one by one.

A column of Parquet is read without the others, so that a table of any length is checked, described and paired with two
or three of its columns in memory at a time. Text (JSONL, CSV) of more than `formats.HELD_BYTES` becomes Parquet in a
temporary folder first.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import polars as pl

from crossperf.errors import RunsTableError
from crossperf.runs import formats, places
from crossperf.runs.formats import ROW
from crossperf.runs.places import TableFile
from crossperf.runs.rules import Problem, unusable

#: A table of which all columns together take no more bytes is held in memory.
HELD_BYTES = formats.HELD_BYTES
#: Bytes of a value of a column, about: a float, or the view of a text.
_EACH = {True: 16, False: 8}
#: Rows of a batch, where a table is gone through from its first row to its last.
BATCH = 500_000


@dataclass(frozen=True, eq=False)
class Raw:
    """The columns of a table as they were written, by name, and what could not be read of its rows.

    Parameters
    ----------
    path
        What a message calls the table.
    frame
        The columns in memory, or where to read them.
    parts
        The files that the rows come from, in their order; none for rows that come from no file.
    folder
        What holds the temporary files of the table for as long as it is used.
    """

    path: str
    frame: pl.DataFrame | pl.LazyFrame
    parts: tuple[tuple[TableFile, pl.LazyFrame], ...] = ()
    unread: tuple[Problem, ...] = ()
    folder: _Folder | None = None

    @classmethod
    def of_frame(cls, frame: pl.DataFrame, path: str) -> Raw:
        """Return the columns of a data frame; `path` stands in messages."""
        plain = formats.known_columns(path, frame.lazy()).collect()
        return cls(path, plain.with_columns(formats.plain_column(path, column) for column in plain))

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [name for name in self.schema if name != ROW]

    @cached_property
    def schema(self) -> pl.Schema:
        """The types of the columns, by name."""
        return self.frame.collect_schema()

    @cached_property
    def height(self) -> int:
        """How many rows there are."""
        if isinstance(self.frame, pl.DataFrame):
            return self.frame.height
        with formats.reading(self.path, "parquet"):
            return int(self.frame.select(pl.len()).collect().item())

    @property
    def is_held(self) -> bool:
        """Whether the columns are in memory."""
        return isinstance(self.frame, pl.DataFrame)

    def column(self, name: str) -> pl.Series:
        """Return one column as it was written."""
        if isinstance(self.frame, pl.DataFrame):
            return self.frame[name]
        with formats.reading(self.path, "parquet"):
            column = self.frame.select(name).collect(engine="streaming").to_series()
        return formats.plain_column(self.path, column)

    def hashes(self, name: str) -> pl.Series:
        """Return a number for each text of a column, the same for the same text; null for none."""
        text = pl.col(name).cast(pl.String)
        query = self.frame.lazy().select(pl.when(text.is_not_null()).then(text.hash()))
        with formats.reading(self.path, "parquet"):
            return query.collect(engine="streaming").to_series()

    def batches(self, rows: int = BATCH) -> Iterator[pl.DataFrame]:
        """Yield the table in parts of some rows, from the first row to the last."""
        for start in range(0, self.height, rows):
            with formats.reading(self.path, "parquet"):
                batch = self.frame.lazy().slice(start, rows).collect(engine="streaming")
            yield batch.with_columns(formats.plain_column(self.path, column) for column in batch)

    def located(self, problems: Sequence[Problem]) -> list[Problem]:
        """Return problems whose rows are places in the table, counted from 1, with rows as their files number them."""
        if not self.parts or all(problem.row is None for problem in problems):
            return list(problems)
        numbers = self.column(ROW) if ROW in self.schema else None
        return [own if own.row is None else self._located(own, own.row - 1, numbers) for own in problems]

    def _located(self, problem: Problem, place: int, numbers: pl.Series | None) -> Problem:
        part = int(np.searchsorted(self._starts, place, side="right")) - 1
        row = place - int(self._starts[part]) + 1 if numbers is None else int(numbers[place])
        return replace(problem, row=row, file=_short(self.parts[part][0]) if len(self.parts) > 1 else None)

    @cached_property
    def _starts(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        heights = [own.select(pl.len()).collect().item() for _, own in self.parts] if len(self.parts) > 1 else [0]
        return np.concatenate([[0], np.cumsum(heights)[:-1]]).astype(np.int64)


class _Folder:
    """A temporary folder that is made when it is first needed, and goes with whoever holds it."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._count = 0

    def new(self) -> Path:
        """Return a new folder inside."""
        try:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="crossperf-")
            self._count += 1
            path = Path(self._folder.name) / str(self._count)
            path.mkdir()
        except OSError as error:
            problem = f"{tempfile.gettempdir()}: found no room for a large table of text ({error.strerror})"
            raise RunsTableError(f"{problem}, expected a folder to write to. Set TMPDIR to another.") from error
        return path


def opened(place: str | os.PathLike[str]) -> Raw:
    """Return the columns of a table: of a file, a folder of files, a pattern of names, or an object store's address."""
    path = places.spelled(place)
    parts = _remote_parts(path) if places.is_address(path) else places.parts_of(path)
    folder = _Folder()
    files, unread = [], []
    several = len(parts) > 1
    for part in parts:
        frame, problems = _of_part(part, folder)
        files.append((part, _labelled(frame, part)))
        unread += [replace(own, file=_short(part)) if several else own for own in problems]
    if any(ROW in frame.collect_schema() for _, frame in files):
        files = [(part, _numbered(frame)) for part, frame in files]
    raw = Raw(path, _together(files), tuple(files), tuple(unread), folder)
    return _held(raw) if _bytes_of(raw) <= HELD_BYTES else raw


def _of_part(part: TableFile, folder: _Folder) -> tuple[pl.LazyFrame, list[Problem]]:
    made: list[Path] = []

    def place() -> Path:
        if not made:
            made.append(folder.new())
        return made[0]

    return formats.columns_of_part(part, place)


def _labelled(frame: pl.LazyFrame, part: TableFile) -> pl.LazyFrame:
    """Return the columns of a file with those that its folders tell; where the file has them too, they are its own."""
    with formats.reading(part.address, part.kind):
        own = frame.collect_schema()
    lacking = {name: text for name, text in part.labels.items() if name not in own}
    return frame.with_columns(pl.lit(text, pl.String).alias(name) for name, text in lacking.items()) if own else frame


def _numbered(frame: pl.LazyFrame) -> pl.LazyFrame:
    if not frame.collect_schema() or ROW in frame.collect_schema():
        return frame
    return frame.with_row_index(ROW, offset=1).with_columns(pl.col(ROW).cast(pl.Int64))


def _together(files: Sequence[tuple[TableFile, pl.LazyFrame]]) -> pl.LazyFrame:
    """Return the rows of files one after the other; neighbours of one schema are read as one, which is quicker."""
    frames: list[pl.LazyFrame] = []
    for _, group in groupby(files, key=lambda file: (_key(file), tuple(file[1].collect_schema().items()))):
        own = list(group)
        if len(own) > 1 and _key(own[0]) is not None:
            scan = pl.scan_parquet(
                [part.address for part, _ in own],
                glob=False,
                hive_partitioning=False,
                **formats.remote(own[0][0].address),
            )
            frames.append(_labelled(formats.without_format(scan), own[0][0]))
        else:
            frames += [frame for _, frame in own]
    return formats.joined_lazily(frames)


def _key(file: tuple[TableFile, pl.LazyFrame]) -> tuple[tuple[str, str | None], ...] | None:
    part, frame = file
    plain = part.kind == "parquet" and ROW not in frame.collect_schema()
    return tuple(part.labels.items()) if plain else None


def _bytes_of(raw: Raw) -> int:
    return raw.height * sum(_EACH[kind == pl.String] for kind in raw.schema.values())


def _held(raw: Raw) -> Raw:
    """Return a table with its columns in memory."""
    with formats.reading(raw.path, raw.parts[0][0].kind):
        frame = raw.frame.lazy().collect()
    return replace(raw, frame=frame.with_columns(formats.plain_column(raw.path, column) for column in frame))


def _short(part: TableFile) -> str:
    return PurePosixPath(part.address).name if not part.labels else "/".join(PurePosixPath(part.address).parts[-2:])


def _remote_parts(address: str) -> list[TableFile]:
    """Return the files of a table in an object store; Polars lists them, with credentials of the environment alone."""
    last = PurePosixPath(address).name
    is_file = "." in last and not places.has_wildcards(address) and not address.endswith("/")
    if is_file:
        return [TableFile(address, places.format_of(address))]
    pattern = address if places.has_wildcards(address) else address.rstrip("/") + "/**/*.parquet"
    kind = places.format_of(pattern)
    if kind not in ("parquet", "csv"):
        problem = Problem(f"a pattern of {kind} files", "a pattern of .parquet or .csv files", "Name the files.")
        raise unusable(address, [problem])
    settings: dict[str, Any] = {"include_file_paths": ROW} | formats.remote(address)
    with formats.reading(address, kind):
        if kind == "csv":
            scan = pl.scan_csv(pattern, infer_schema=False, **settings)
        else:
            scan = pl.scan_parquet(pattern, missing_columns="insert", extra_columns="ignore", **settings)
        files = scan.select(pl.col(ROW).unique()).collect().to_series()
    return places.parts_below(places.before_wildcards(pattern), sorted(map(places.spelled, files)))
