"""Reads what Nsight Systems (``nsys export --type sqlite``, ``nsys profile --export sqlite``) wrote: an SQLite file.

Kernel launches, copies and streams are added up over all processes and GPUs, under the names of the CUPTI back
end, which sees the same. The file is opened read-only; which tables and columns it has depends on the release of
nsys and on what was traced, so each is looked for.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from crossperf.importers.files import start_of, unusable
from crossperf.importers.measurement import Measurement

_MAGIC = b"SQLite format 3\0"
_KERNELS, _COPIES = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"
_GRAPHS, _SPAN = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "ANALYSIS_DETAILS"
#: Tables of which an export of nsys has at least one.
_OWN = ("TARGET_INFO_SESSION_START_TIME", "EXPORT_META_DATA", "META_DATA_EXPORT", _KERNELS)
#: What CUPTI numbers the kinds of copies by; pages of managed memory that move on demand are apart.
_DIRECTIONS = {1: "memcpy_htod", 2: "memcpy_dtoh", 8: "memcpy_dtod", 11: "managed_htod", 12: "managed_dtoh"}
_ALWAYS = ("memcpy_htod", "memcpy_dtoh")
_KERNELS_KEPT = 20
#: What a damaged file makes of SQLite, and of Python where a value is of another type.
_DAMAGE = (sqlite3.Error, OverflowError, TypeError, ValueError)
#: Steps of SQLite's machine between looks at the count, and the most of them: hours of work stored in a small file.
_STEPS, _MOST_STEPS = 100_000, 200_000


def reads(path: Path) -> bool:
    """Tell whether a file is an SQLite export of nsys."""
    if start_of(path, len(_MAGIC)) != _MAGIC:
        return False
    try:
        with _opened(path) as export:
            return any(name in export.columns for name in _OWN)
    except _DAMAGE:
        return False


def read(path: Path) -> list[Measurement]:
    """Return what the processes of one capture did on GPUs."""
    try:
        with _opened(path) as export:
            return [_measurement(path, export)]
    except _DAMAGE as error:
        problem = f"found an SQLite file that breaks off, is damaged or is no export of nsys ({error})"
        advice = "Make it anew with: nsys export --type sqlite REPORT.nsys-rep"
        raise unusable(path, f"{problem}, expected tables of nsys. {advice}") from error


class _Export:
    """The tables of an export; asking for a table or column that it lacks gives nothing."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchmany(10_000)
        self.columns = {str(name): self._columns_of(str(name)) for (name,) in tables}

    def _columns_of(self, table: str) -> frozenset[str]:
        rows = self._connection.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchmany(10_000)
        return frozenset(str(name) for (name,) in rows)

    def rows(self, query: str, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query, or none where the table lacks one of the columns that it needs."""
        if table not in self.columns or not set(columns) <= self.columns[table]:
            return []
        return self._connection.execute(query).fetchmany(1_000_000)

    def texts(self, table: str) -> dict[str, str]:
        """Return a table of names and values; the first value of a name counts."""
        values: dict[str, str] = {}
        for name, value in self.rows(f"SELECT name, value FROM {table}", table, "name", "value"):  # noqa: S608
            values.setdefault(str(name), str(value))
        return values


@contextmanager
def _opened(path: Path) -> Iterator[_Export]:
    """Yield the export at a path, read-only; a query that never ends is given up."""
    steps = iter(range(_MOST_STEPS))
    # Immutable: SQLite neither locks the file nor looks for a journal beside it.
    address = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        connection.text_factory = lambda text: text.decode("utf-8", "replace")
        connection.set_progress_handler(lambda: next(steps, None) is None, _STEPS)
        connection.execute("PRAGMA trusted_schema = OFF")
        yield _Export(connection)


def _measurement(path: Path, export: _Export) -> Measurement:
    kernels, copies = _kernels(export), _copies(export)
    if not kernels and not copies:
        why = "found no kernel and no copy, expected a capture of a program that uses a GPU through CUDA"
        raise unusable(path, f"{why}. Trace it with: nsys profile --trace cuda --export sqlite COMMAND")
    events, notes = _events(export, kernels, copies), []
    if managed := sum(events.get(f"managed_{way}_bytes") or 0.0 for way in ("htod", "dtoh")):
        notes.append(f"{managed:,.0f} bytes of managed memory that moved on demand are kept apart from the copies")
    if export.rows(f"SELECT 1 FROM {_GRAPHS} LIMIT 1", _GRAPHS):  # noqa: S608
        advice = "'nsys profile --cuda-graph-trace node' lists them"
        notes.append(f"kernels inside CUDA graphs were not recorded one by one and are not counted; {advice}")
    runtime_s = _span_s(export)
    # A capture starts before the program and ends after it.
    about = "runtime is the span of the capture, with the start of the program under nsys"
    notes.append("no runtime: the export holds no span of the capture" if runtime_s is None else about)
    version = (export.texts("META_DATA_EXPORT") | export.texts("EXPORT_META_DATA")).get("EXPORT_PRODUCT_VERSION")
    facts = _facts(export) | {"kernels": kernels[:_KERNELS_KEPT]}
    return Measurement("nsys", events, version, runtime_s=runtime_s, notes=tuple(notes), facts=facts)


def _kernels(export: _Export) -> list[dict[str, Any]]:
    """Return each kernel with its launches added up, the longest-running first."""
    query = f"""
        SELECT demangledName, count(*), sum(end - start), max(blockX * blockY * blockZ), max(registersPerThread),
            total(CAST(gridX AS REAL) * gridY * gridZ),
            total(CAST(gridX AS REAL) * gridY * gridZ * blockX * blockY * blockZ)
        FROM {_KERNELS} GROUP BY demangledName ORDER BY sum(end - start) DESC
    """  # noqa: S608
    sizes = [f"{kind}{axis}" for kind in ("grid", "block") for axis in "XYZ"]
    rows = export.rows(query, _KERNELS, "start", "end", "demangledName", "registersPerThread", *sizes)
    names = dict(export.rows("SELECT id, value FROM StringIds", "StringIds", "id", "value")) if rows else {}
    return [
        {
            "name": str(names.get(name, name)),
            "launches": launches,
            "blocks": blocks,
            "most_threads_per_block": most_threads,
            "most_registers_per_thread": most_registers,
            "time_s": duration_ns * 1e-9,
            "sums": (threads, duration_ns),
        }
        for name, launches, duration_ns, most_threads, most_registers, blocks, threads in rows
    ]


def _copies(export: _Export) -> dict[str, tuple[float, float, float]]:
    """Return number, bytes and nanoseconds of the copies by direction."""
    query = f"SELECT copyKind, count(*), total(bytes), total(end - start) FROM {_COPIES} GROUP BY copyKind"  # noqa: S608
    rows = export.rows(query, _COPIES, "copyKind", "bytes", "start", "end")
    return {_DIRECTIONS[kind]: (count, size, ns) for kind, count, size, ns in rows if kind in _DIRECTIONS}


def _events(
    export: _Export, kernels: list[dict[str, Any]], copies: Mapping[str, tuple[float, float, float]]
) -> dict[str, float | None]:
    sums = [kernel.pop("sums") for kernel in kernels]
    events: dict[str, float | None] = {
        "kernel_launches": float(sum(kernel["launches"] for kernel in kernels)),
        "thread_blocks": math.fsum(kernel["blocks"] for kernel in kernels),
        "kernel_threads": math.fsum(threads for threads, _ in sums),
        "kernel_ns": math.fsum(duration_ns for _, duration_ns in sums),
        "streams": _streams(export),
    }
    for direction in dict.fromkeys((*_ALWAYS, *copies)):
        count, size, ns = copies.get(direction, (0.0, 0.0, 0.0))
        events |= {f"{direction}_count": float(count), f"{direction}_bytes": size, f"{direction}_ns": ns}
    if not all(math.isfinite(value) for value in events.values() if value is not None):
        raise ValueError("a sum is infinite")
    return events


def _streams(export: _Export) -> float | None:
    """Return how many streams carried a kernel or a copy, over all processes; on-demand pages use none."""
    places = ("globalPid", "contextId", "streamId")
    streams: set[tuple[Any, ...]] = set()
    for table, condition in ((_KERNELS, "1"), (_COPIES, "copyKind NOT IN (11, 12, 13)")):
        query = f"SELECT DISTINCT {', '.join(places)} FROM {table} WHERE {condition}"  # noqa: S608
        wanted = (*places, "copyKind") if table == _COPIES else places
        streams |= set(export.rows(query, table, *wanted))
    return float(len(streams)) or None


def _span_s(export: _Export) -> float | None:
    rows = export.rows(f"SELECT max(duration) FROM {_SPAN}", _SPAN, "duration")  # noqa: S608
    return rows[0][0] * 1e-9 if rows and rows[0][0] else None


def _facts(export: _Export) -> dict[str, Any]:
    """Return what the file tells of program and machine; a program is one whose process used a GPU."""
    start, gpus = "TARGET_INFO_SESSION_START_TIME", "TARGET_INFO_GPU"
    env, capture = export.texts("TARGET_INFO_SYSTEM_ENV"), export.texts("META_DATA_CAPTURE")
    started = export.rows(f"SELECT utcTime FROM {start}", start, "utcTime")  # noqa: S608
    used = export.rows(f"SELECT DISTINCT deviceId FROM {_KERNELS}", _KERNELS, "deviceId")  # noqa: S608
    named = dict(export.rows(f"SELECT id, name FROM {gpus}", gpus, "id", "name"))  # noqa: S608
    models = sorted({str(named[gpu]) for (gpu,) in used if gpu in named})
    arguments = [text for name, text in capture.items() if name.startswith("PROCESS_0:ARGUMENT_")]
    return {
        "app": _program(export, capture.get("PROCESS_0:COMMAND")),
        "input": " ".join(arguments) or None,
        "platform_class": "gpu",
        "host": env.get("Hostname"),
        "started": str(started[0][0]) if started else None,
        "gpu": " + ".join(models) or None,
        "gpus": len(used) or None,
        "cpu_model": env.get("CpuDescription"),
    }


def _program(export: _Export, command: str | None) -> str | None:
    """Return the name of the program: of the processes on the GPU, or else of the command that nsys started."""
    processes = dict(export.rows("SELECT globalPid, name FROM PROCESSES", "PROCESSES", "globalPid", "name"))
    query = f"SELECT DISTINCT globalPid FROM {_KERNELS}"  # noqa: S608
    used = {processes.get(pid) for (pid,) in export.rows(query, _KERNELS, "globalPid")} - {None}
    names = {PurePosixPath(str(name).split()[0]).name for name in used if str(name).strip()}
    if len(names) == 1:
        return names.pop()
    return PurePosixPath(command).name if command else None
