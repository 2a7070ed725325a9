"""Runs tables in other formats, and runs added to a table: some thousand runs in memory at a time."""

from __future__ import annotations

import gzip
import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

import polars as pl

from crossperf.errors import RunsTableError, SettingsError, did_you_mean, some_of
from crossperf.files import Folder, whole
from crossperf.files.replacing import naming, sync
from crossperf.records import FORMAT, RUNS_FORMAT
from crossperf.runs import formats, jsonl, places
from crossperf.runs.columns import TypedColumns
from crossperf.runs.raw import Raw, opened
from crossperf.runs.table import RunsTable, errors_of_the_system, sound

#: Runs that are written together; of JSONL fewer, since as records they take far more memory.
_AT_ONCE, _RECORDS_AT_ONCE = 500_000, 20_000


def convert(source: str | os.PathLike[str], output: str | os.PathLike[str], *, by: str | None = None) -> RunsTable:
    """Write a runs table in another format, and return it: what stands at `output` is the same runs.

    Parameters
    ----------
    source
        Any place of a table: a file, a folder, a pattern of names, an address in an object store.
    output
        A file whose ending names the format, or, with `by`, a folder to make.
    by
        A column such as ``platform``: a folder of Parquet, with the runs of each of its values in a folder of theirs
        (``platform=epyc-2/``). Rows then come in another order, and the fingerprint is another.
    """
    table = sound(opened(source), need_runtime=False, need_counters=False)
    if by is not None:
        _refuse_unknown(table, by)
        with Folder("table", _nothing_is_ours, RunsTableError).whole(output) as folder, errors_of_the_system():
            for frame in _batches(table, _AT_ONCE):
                _write_divided(frame, folder, by)
        return table
    kind = places.format_of(output)
    if table.columns.raw.is_held:
        table.write(output)
        return table
    with whole(output) as part, errors_of_the_system():
        if kind == "parquet":
            _write_parquet(table, part)
        else:
            _write_text(table, part, kind)
    return table


def add(source: str | os.PathLike[str], output: str | os.PathLike[str]) -> int:
    """Add the runs of a table to another, made if absent, and return how many; several may add to one at a time.

    To a file of JSONL they are added as whole lines, under a lock. To a folder of Parquet they are added as files of
    their own, which appear whole. Other formats cannot be added to.
    """
    table = sound(opened(source), need_runtime=False, need_counters=False)
    path = Path(output)
    if path.suffix in (".jsonl", ".ndjson"):
        return _add_lines(table, path)
    if path.suffix and not path.is_dir():
        problem = f"found the ending {path.suffix!r}, expected .jsonl or a folder of Parquet"
        raise RunsTableError(f"{path}: {problem}. Runs cannot be added to other formats; convert it first.")
    by = _divided_by(path)
    if by is not None:
        _refuse_unknown(table, by)
    with naming(path, RunsTableError), errors_of_the_system():
        path.mkdir(parents=True, exist_ok=True)
        for frame in _batches(table, _AT_ONCE):
            if by is None:
                _write_whole(frame, path)
            else:
                _write_divided(frame, path, by)
    return len(table)


def _add_lines(table: RunsTable, path: Path) -> int:
    """Add the runs of a table to a file of JSONL; where that ends early, the sentence tells how many are there."""
    added = 0
    try:
        for frame in _batches(table, _RECORDS_AT_ONCE):
            jsonl.append(path, formats.runs_of(frame))
            added += len(frame)
    except OSError as error:
        some = f" after {added:,} of {len(table):,} runs were added" if added else ""
        problem = f"cannot be written ({error.strerror or error}){some}. Make room, or choose another place."
        raise RunsTableError(f"{path}: {problem}", path=str(path), added=added) from error
    return added


def _nothing_is_ours(_: Path) -> bool:
    return False


def _refuse_unknown(table: RunsTable, by: str) -> None:
    if not table.has(by):
        known = table.columns.names
        expected = f"a column of {table.path}: {some_of(known)}"
        raise SettingsError(f"by: found {by!r}{did_you_mean(by, known)}, expected {expected}.", argument="by")


def _batches(table: RunsTable, rows: int) -> Iterator[pl.DataFrame]:
    """Yield the typed columns of a table, some runs at a time."""
    raw = table.columns.raw
    for batch in raw.batches(rows):
        own = TypedColumns(Raw(raw.path, batch))
        yield own.frame(name for name in table.columns.names if name in own.names)


def _write_parquet(table: RunsTable, part: Path) -> None:
    """Write one file of Parquet from parts beside it, which are gone at the end."""
    with ExitStack() as stack:
        parts = []
        for number, frame in enumerate(_batches(table, _AT_ONCE)):
            parts.append(part.with_name(f"{part.name}.{number}"))
            stack.callback(parts[-1].unlink, missing_ok=True)
            _numbered(frame).write_parquet(parts[-1])
        pl.scan_parquet(parts, glob=False, hive_partitioning=False).sink_parquet(part)


def _write_text(table: RunsTable, part: Path, kind: str) -> None:
    with (gzip.open if kind.endswith(".gz") else open)(part, "wb") as file:
        if kind.startswith("csv"):
            for number, frame in enumerate(_batches(table, _AT_ONCE)):
                file.write(_numbered(frame).write_csv(include_header=number == 0).encode())
        else:
            for frame in _batches(table, _RECORDS_AT_ONCE):
                file.write("".join(map(jsonl.line, formats.runs_of(frame))).encode())


def _write_divided(frame: pl.DataFrame, folder: Path, by: str) -> None:
    """Write runs into a folder for each value of a column; the file keeps the column."""
    for (value,), own in frame.partition_by(by, as_dict=True, maintain_order=True).items():
        text = places.NOTHING if value is None else quote(str(value), safe=" ")
        _write_whole(own, folder / f"{quote(by, safe=' ')}={text}")


def _write_whole(frame: pl.DataFrame, folder: Path) -> None:
    """Write runs as a file of a new name, which appears whole: until then its name begins with a dot."""
    folder.mkdir(exist_ok=True)
    name = f"{secrets.token_hex(8)}.parquet"
    part = folder / f".{name}"
    try:
        _numbered(frame).write_parquet(part)
        sync(part)
        part.rename(folder / name)
        sync(folder)
    finally:
        part.unlink(missing_ok=True)


def _numbered(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.lit(FORMAT, pl.Int64).alias(RUNS_FORMAT))


def _divided_by(folder: Path) -> str | None:
    """Return the column that a folder of runs is divided by; ``None`` where it is not."""
    parts = places.parts_below(folder, places.files_of(folder)) if folder.is_dir() else []
    return next((name for part in parts for name in part.labels), None)
