"""HPCToolkit 4 databases: ``meta.db`` names the metrics, ``profile.db`` holds each thread's values.

Layouts are those of ``FORMATS.md``, which comes with HPCToolkit. All numbers are little-endian and all
pointers count from the start of the file. Context 0 stands for the whole execution of a thread, so the
call tree itself need not be read.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

from crossperf.importers.files import start_of, unusable
from crossperf.importers.hpctoolkit.totals import Thread, summed, to_measurement
from crossperf.importers.measurement import Measurement

#: Needed files with the four letters of their header and their footer.
FILES = {"meta.db": (b"meta", b"_meta.db"), "profile.db": (b"prof", b"_prof.db"), "cct.db": (b"ctxt", b"__ctx.db")}
_TRACE = {"trace.db": (b"trce", b"trace.db")}
_MAGIC = b"HPCTOOLKIT"
_MAJOR, _MINOR = 4, 0
_EXECUTION = 2  # the scope that sums over all that was called
_SUM = 0
_TEXT_LIMIT = 1 << 16
_AGAIN = "Copy the database again, or make it anew with hpcprof."


def reads(folder: Path) -> bool:
    """Tell whether a folder holds a file of a version 4 database, or of a later one."""
    return any(start_of(folder / name, len(_MAGIC)) == _MAGIC for name in FILES)


def read(folder: Path) -> Measurement:
    """Return the execution that a database holds."""
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        present = [name for name in FILES if name not in missing]
        problem = f"found {' and '.join(present)} without {' and '.join(missing)}"
        raise unusable(folder, f"{problem}, expected all files of an HPCToolkit 4 database. {_AGAIN}")
    with _File(folder / "meta.db") as meta, _File(folder / "profile.db") as profile, _File(folder / "cct.db") as tree:
        names = _MetaMetrics(meta)
        threads = list(_threads(profile, names))
        trace_s, trace_notes = _trace(folder / "trace.db")
        sums, longest = summed(threads)
        _check_sums(profile, names, sums)
        version = f"{_MAJOR}.{profile.minor} database"
        notes = [*meta.notes, *profile.notes, *tree.notes, *names.notes, *trace_notes]
        metrics = names.by_thread.values()
        return to_measurement(names.title or None, version, metrics, sums, longest, threads, notes, trace_s)


class _File:
    """One file of a database, read by position; whatever points outside of it is a `ProfileFileError`."""

    def __init__(self, path: Path) -> None:
        kind, footer = (FILES | _TRACE)[path.name]
        self.path = path
        if not path.is_file():  # a pipe would be waited for
            raise unusable(path, "found no regular file, expected a part of an HPCToolkit 4 database.")
        self._file = path.open("rb")
        self.size = os.fstat(self._file.fileno()).st_size
        self.notes: list[str] = []
        try:
            self.minor = self._check(kind, footer)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._file.close()

    def _check(self, kind: bytes, footer: bytes) -> int:
        magic, letters, major, minor = struct.unpack("<10s4sBB", self._bytes(0, 16))
        if magic != _MAGIC:
            self.fail("a file that does not start with HPCTOOLKIT")
        if major != _MAJOR:
            problem = f"found version {major}.{minor} of the format, expected {_MAJOR}.{_MINOR}"
            advice = "crossperf does not know that version; make the database with an HPCToolkit of 2023 to 2025."
            raise unusable(self.path, f"{problem}. {advice}", version=f"{major}.{minor}")
        if letters != kind:
            self.fail(f"a file of kind {letters.decode('ascii', 'replace')!r}, not {kind.decode()!r}")
        if minor != _MINOR:
            # Minor versions only add: FORMATS.md, "Reader compatibility".
            known = f"{_MAJOR}.{_MINOR}"
            self.notes.append(f"{self.path.name} is version {major}.{minor}; what it has beyond {known} is left out")
        if self._bytes(self.size - len(footer), len(footer)) != footer:
            self.fail("a file that is cut short (its last bytes are missing)")
        return int(minor)

    def fail(self, problem: str) -> NoReturn:
        raise unusable(self.path, f"found {problem}, expected a whole file of an HPCToolkit 4 database. {_AGAIN}")

    def _bytes(self, offset: int, size: int) -> bytes:
        if offset < 0 or offset + size > self.size:
            self.fail(f"a file of {self.size:,} bytes where {offset + size:,} are needed")
        self._file.seek(offset)
        return self._file.read(size)

    def get(self, layout: str, offset: int) -> tuple[Any, ...]:
        """Return the numbers that stand at a position."""
        layout = f"<{layout}"
        return struct.unpack(layout, self._bytes(offset, struct.calcsize(layout)))

    def array(self, layout: str, offset: int, count: int, stride: int) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Yield the position and the numbers of each structure of an array."""
        least = struct.calcsize(f"<{layout}")
        if count and (stride < least or offset + count * stride > self.size):
            self.fail(f"an array of {count:,} structures of {stride} bytes that does not fit")
        for position in range(offset, offset + count * stride, stride or 1):
            yield position, self.get(layout, position)

    def text(self, offset: int) -> str:
        """Return the text at a position, which ends with a zero byte."""
        if not 0 < offset < self.size:
            self.fail(f"a name at byte {offset:,}")
        data, end, _ = self._bytes(offset, min(_TEXT_LIMIT, self.size - offset)).partition(b"\0")
        if not end:
            self.fail(f"a name at byte {offset:,} that does not end")
        return data.decode("utf-8", "replace")


class _MetaMetrics:
    """What ``meta.db`` tells: the title, kinds of identifiers, and the numbers under which totals are kept."""

    def __init__(self, meta: _File) -> None:
        _, general, _, id_names, _, metrics = meta.get("QQQQQQ", 0x10)
        self.title = meta.text(meta.get("Q", general)[0]).strip()
        names, kinds = meta.get("QB", id_names)
        self.kinds = [meta.text(pointer) for _, (pointer,) in meta.array("Q", names, kinds, 8)]
        self.by_thread: dict[int, str] = {}
        self.by_summary: dict[int, str] = {}
        self.notes: list[str] = []
        array, count, size, scope_size, summary_size = meta.get("QIBBB", metrics)
        for _, metric in meta.array("QQQHH", array, count, size):
            self._add(meta, metric, scope_size, summary_size)

    def _add(self, meta: _File, metric: tuple[Any, ...], scope_size: int, summary_size: int) -> None:
        pointer, scopes, summaries, scope_count, summary_count = metric
        name = meta.text(pointer)
        of_scopes = meta.array("QH", scopes, scope_count, scope_size)
        whole = [number for _, (scope, number) in of_scopes if meta.get("QB", scope)[1] == _EXECUTION]
        if not whole:
            self.notes.append(f"{name} is left out: the database has no total of it")
            return
        self.by_thread[whole[0]] = name
        for _, (scope, formula, combine, number) in meta.array("QQBxH", summaries, summary_count, summary_size):
            of_whole = meta.get("QB", scope)[1] == _EXECUTION
            if combine == _SUM and of_whole and meta.text(formula) == "$$":
                self.by_summary[number] = name


def _profiles(profile: _File) -> Iterator[tuple[Any, ...]]:
    _, infos = profile.get("QQ", 0x10)
    array, count, size = profile.get("QIB", infos)
    for _, info in profile.array("QQI4xQQI", array, count, size):
        yield info


def _threads(profile: _File, names: _MetaMetrics) -> Iterator[Thread]:
    any_thread = False
    for values, pointer, contexts, indices, id_tuple, flags in _profiles(profile):
        if flags & 1:  # statistics over several threads
            continue
        any_thread = True
        totals = _whole(profile, values, pointer, contexts, indices)
        named = {names.by_thread[number]: value for number, value in totals.items() if number in names.by_thread}
        ids = _identity(profile, names.kinds, id_tuple)
        yield Thread(
            named,
            rank=ids.get("RANK", (None, None))[0],
            thread=ids.get("THREAD", (None, None))[0],
            host=f"{ids['NODE'][1]:x}" if "NODE" in ids else None,
            gpu=any(kind.startswith("GPU") for kind in ids),
        )
    if not any_thread:
        profile.fail("no thread at all")


def _whole(profile: _File, values: int, pointer: int, contexts: int, indices: int) -> dict[int, float]:
    """Return the values of context 0, the whole of a profile, by number of metric; zeros are not stored."""
    first, start = profile.get("IQ", indices) if contexts else (None, 0)
    if first != 0:  # contexts are sorted
        return {}
    end = profile.get("IQ", indices + 12)[1] if contexts > 1 else values
    if not start <= end <= values:
        profile.fail(f"values {start:,} to {end:,} of {values:,}")
    totals = {}
    for _, (number, value) in profile.array("Hd", pointer + start * 10, end - start, 10):
        if not math.isfinite(value):
            profile.fail(f"the value {value}")
        totals[number] = value
    return totals


def _identity(profile: _File, kinds: list[str], pointer: int) -> dict[str, tuple[int, int]]:
    """Return the logical and physical number of a thread's node, rank, thread, ... by kind."""
    if not pointer:
        return {}
    (count,) = profile.get("H", pointer)
    return {
        kinds[kind] if kind < len(kinds) else f"kind {kind}": (logical, physical)
        for _, (kind, _, logical, physical) in profile.array("BxHIQ", pointer + 8, count, 16)
    }


def _check_sums(profile: _File, names: _MetaMetrics, sums: dict[str, float]) -> None:
    """Compare our sums with those that hpcprof stored itself."""
    for values, pointer, contexts, indices, _, flags in _profiles(profile):
        if not flags & 1:
            profile.fail("a first profile that is no summary")
        stored = _whole(profile, values, pointer, contexts, indices)
        for number, value in stored.items():
            name = names.by_summary.get(number)
            if name is not None and not math.isclose(value, sums.get(name, 0.0), rel_tol=1e-6, abs_tol=1e-9):
                profile.fail(f"threads whose {name} sums to {sums.get(name, 0.0):g} beside a stored sum of {value:g}")
        return


def _trace(path: Path) -> tuple[float | None, list[str]]:
    """Return the seconds between the first and the last sample of all traces, where there are traces."""
    if not path.is_file():
        return None, []
    with _File(path) as trace:
        _, headers = trace.get("QQ", 0x10)
        _, count, _, first, last = trace.get("QIB3xQQ", headers)
        span_s = (last - first) * 1e-9 if count and last > first else None
        return span_s, trace.notes
