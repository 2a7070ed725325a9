"""Text files of traces, plain or packed with gzip, and tables in them."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from crossperf.documents import lines_of, opened
from crossperf.errors import some_of
from crossperf.schedule.jobs import TraceError


def unpacked(file: BinaryIO, path: Path) -> TextIO:
    """Return the text of an open file, through gzip where its name ends in ``.gz``."""
    plain = gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
    return io.TextIOWrapper(cast(BinaryIO, plain), encoding="utf-8", errors="replace")


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line."""
    try:
        with opened(path) as packed, unpacked(packed, path) as file:
            yield from enumerate(lines_of(file), start=1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TraceError(f"{path}: does not read as a whole gzip file ({error}). Copy it again.", path=path) from error
    except OSError as error:
        reason = f"cannot be read ({error.strerror}), expected a trace of jobs. Check the path."
        raise TraceError(f"{path}: {reason}", path=path) from error


def rows(
    path: Path, columns: Sequence[str], header: Sequence[str] | None = None
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number and the cells by column of each row of a CSV.

    Parameters
    ----------
    columns
        Columns that must be there.
    header
        The names of all columns, for a file that may come without a first row of them.
    """
    names: list[str] | None = None
    for number, words in enumerate(_records(path), start=1):
        if not words:
            continue
        if names is None:
            words = [word.strip().lstrip("\ufeff") for word in words]
            names = words if header is None or set(columns) <= set(words) else list(header)
            missing = [column for column in columns if column not in names]
            if missing:
                raise TraceError(
                    f"{path}: found the columns {some_of(names, 8)}, expected {some_of(columns, 12)} as well.",
                    path=path,
                )
            if names is words:
                continue
        if len(words) != len(names):
            what = f"found {len(words)} cells, expected {len(names)} as in the header"
            raise TraceError(f"{path}, row {number:,}: {what}. Fix or remove the row.", path=path, line=number)
        yield number, dict(zip(names, words, strict=True))


def _records(path: Path) -> Iterator[list[str]]:
    try:
        yield from csv.reader(line.replace("\0", "") for _, line in lines(path))
    except csv.Error as error:
        raise TraceError(f"{path}: does not read as CSV ({error}).", path=path) from error


def number(path: Path, row: int, name: str, word: str, missing: float) -> float:
    """Return a cell as a number, `missing` where it is empty or says that it is unknown."""
    if word.strip().lower() in ("", "none", "null", "nan"):
        return missing
    try:
        value = float(word)
    except ValueError:
        value = float("inf")
    if value in (float("inf"), float("-inf")):
        what = f"found {word!r} under {name!r}, expected a number"
        raise TraceError(f"{path}, row {row:,}: {what}. Fix or remove the row.", path=path, line=row)
    return value


def seconds_of(path: Path, row: int, name: str, word: str) -> float | None:
    """Return a date and time (``2020-06-09 18:41:01``) in seconds; ``None`` where there is none.

    >>> seconds_of(Path("x"), 1, "start", "1970-01-02 00:00:01")
    86401.0
    """
    if word.strip().lower() in ("", "none", "null", "nan"):
        return None
    try:
        return datetime.fromisoformat(word.strip()).replace(tzinfo=UTC).timestamp()
    except ValueError:
        what = f"found {word!r} under {name!r}, expected a date and time such as 2020-06-09 18:41:01"
        raise TraceError(f"{path}, row {row:,}: {what}. Fix or remove the row.", path=path, line=row) from None


def clairvoyant(name: str, unlimited: int, total: int) -> str:
    """Return the note that limits are missing, so that backfilling sees into the future."""
    few = "" if unlimited == total else f" {unlimited:,} of {total:,} jobs have"
    start = f"{name}:{few}" if few else f"{name}: the trace has"
    return (
        f"{start} no limit. Their run time stands for it, so backfilling is clairvoyant: it knows when they end, "
        "which no scheduler does."
    )
