"""Reads the counters of AMD GPUs that rocprof, rocprofv2 and rocprofv3 wrote as CSV.

rocprof and rocprofv2 write one row for each kernel launch, with a column for each counter; rocprofv3 one row for
each counter of each launch. Counters are added up over all launches; percentages and averages are left out.

Written from AMD's description of the formats: no AMD GPU was at hand, so the reader has not seen what a real one
writes.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crossperf.errors import ProfileFileError, some_of
from crossperf.importers import tabular
from crossperf.importers.files import SPELLINGS, unusable
from crossperf.importers.measurement import Measurement, added_up
from crossperf.runs.rules import as_number

ROCPROF = "rocprof"
#: Blocks of the hardware whose counters add up, and the few derived ones that do too.
_COUNTER = re.compile(
    r"(SQ|SQC|TA|TD|TCP|TCC|TCA|GRBM|CPC|CPF|SPI|GL1A|GL1C|GL2A|GL2C|GCEA)_\w+(\[\d+\])?"
    r"|Wavefronts|FetchSize|WriteSize|FETCH_SIZE|WRITE_SIZE"
)
_AVERAGED = ("_avr", "_avg", "_max", "_min", "_percent")
_NO_KERNEL = "launched no kernel"
_KERNELS_KEPT = 20


@dataclass
class RocprofLaunch:
    """One launch of one kernel; `workgroups` is ``None`` where the file does not tell."""

    kernel: str
    queue: tuple[str, ...]
    workgroups: float | None
    time_ns: float | None
    counters: dict[str, float | None] = field(default_factory=dict)


def reads(path: Path) -> bool:
    """Return whether this is CSV with counters by rocprof, or a folder in which rocprofv3 left such files."""
    if path.is_dir():
        return any(path.rglob("*counter_collection.csv"))
    return _is_header(tabular.header(path))


def read(path: Path) -> list[Measurement]:
    """Return the sums over all launches of a file, or of a folder's files: one execution of a program.

    rocprofv3 executes a program once for each group of counters and writes a folder ``pass_N`` each time, with
    one file for each process; sizes of launches are taken from the first of them.
    """
    files = sorted(path.rglob("*counter_collection.csv")) if path.is_dir() else [path]
    if not files:
        advice = "Record with: rocprofv3 --pmc SQ_WAVES --output-format csv -d FOLDER -- COMMAND"
        raise unusable(path, f"no file *counter_collection.csv in it, expected what rocprofv3 writes. {advice}")
    passes: dict[str, list[RocprofLaunch]] = defaultdict(list)
    for file in files:
        passes[next((part for part in file.parts[::-1] if part.startswith("pass_")), "")] += _launches(file)
    sums = total(list(passes.values()))
    if _NO_KERNEL in sums.notes:
        raise unusable(path, "found no kernel launch, expected at least one. Profile a program that uses the GPU.")
    return [sums]


def total(passes: Sequence[Sequence[RocprofLaunch]], wanted: Iterable[str] = ()) -> Measurement:
    """Return the sums over the launches of each execution; the first that holds a counter gives it.

    A counter of `wanted`, which was asked for, is ``None`` rather than absent where it has no value.
    """
    events: dict[str, float | None] = {}
    for launches in passes:
        for name in dict.fromkeys(name for launch in launches for name in launch.counters):
            if name not in events:
                events[name] = added_up(launch.counters.get(name) for launch in launches)
    partly = [name for name, value in events.items() if value is None]
    events = dict.fromkeys(wanted) | events
    launches = next((launches for launches in passes if launches), [])
    events["workgroups"] = added_up(launch.workgroups for launch in launches)
    events["queues"] = float(len({launch.queue for launch in launches})) if launches else None
    notes = [] if launches else [_NO_KERNEL]
    if partly:
        notes.append(f"left out, since some launches have no value: {some_of(partly)}")
    if len({len(launches) for launches in passes}) > 1:
        numbers = ", ".join(f"{len(launches):,}" for launches in passes)
        notes.append(f"the executions differ in their number of launches ({numbers}); their counters may not fit")
    facts = {"platform_class": "gpu", "kernels": _kernels(launches)}
    return Measurement(ROCPROF, events, notes=tuple(notes), facts=facts)


def _kernels(launches: Sequence[RocprofLaunch]) -> list[dict[str, Any]]:
    """Return the launches and time of each kernel, the longest-running first."""
    number = Counter(launch.kernel for launch in launches)
    time_ns: Counter[str] = Counter()
    for launch in launches:
        time_ns[launch.kernel] += int(launch.time_ns or 0)
    longest = sorted(number, key=lambda name: (-time_ns[name], name))[:_KERNELS_KEPT]
    return [{"name": name, "launches": number[name], "time_s": time_ns[name] * 1e-9} for name in longest]


def _is_header(header: Sequence[str]) -> bool:
    places = _places(header)
    long = "counter" in places and "value" in places
    return "kernel" in places and (long or ("grid" in places and any(map(adds_up, header))))


def _places(header: Sequence[str]) -> dict[str, int]:
    plain = [re.sub(r"[-_\s]", "", name).lower() for name in header]
    return {name: plain.index(way) for name, ways in SPELLINGS["rocprof"].items() for way in ways if way in plain}


def adds_up(name: str) -> bool:
    """Return whether a counter is a sum over launches, rather than an average or a percentage."""
    return _COUNTER.fullmatch(name) is not None and not name.endswith(_AVERAGED)


def _launches(path: Path) -> list[RocprofLaunch]:
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise unusable(path, f"cannot be read ({reason}). Check the path.") from error
    if not rows or not _is_header(rows[0]):
        start = ",".join(rows[0])[:60] if rows else "an empty file"
        expected = "a header with the kernel's name, its grid and counters, or Counter_Name and Counter_Value"
        advice = "Record with 'rocprof -i' or 'rocprofv3 --pmc ... --output-format csv'."
        raise unusable(path, f"found {start!r}, expected {expected}. {advice}")
    header, *rows = rows
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            problem = f"found {len(row)} cells, expected {len(header)}. The file was cut short; record it again."
            raise ProfileFileError(f"{path}, row {number}: {problem}", path=str(path))
    places = _places(header)
    return list(_long(rows, places) if "counter" in places else _wide(header, rows, places))


def _wide(header: list[str], rows: list[list[str]], places: dict[str, int]) -> Iterator[RocprofLaunch]:
    """Yield launches of one row each; instances of a unit (``TCC_HIT[0]``, ``TCC_HIT[1]``) make up its sum."""
    counters = [(at, re.sub(r"\[\d+\]$", "_sum", name)) for at, name in enumerate(header) if adds_up(name)]
    for row in rows:
        launch = _launch(row, places)
        for at, name in counters:
            _add(launch.counters, name, _number(row[at]))
        yield launch


def _long(rows: list[list[str]], places: dict[str, int]) -> Iterator[RocprofLaunch]:
    """Yield launches of a row for each counter; parts of the GPU that count apart make up one sum."""
    keys = [places[name] for name in ("process", "gpu", "queue", "launch") if name in places]
    launches: dict[tuple[str, ...], RocprofLaunch] = {}
    for row in rows:
        launch = launches.setdefault(tuple(row[at] for at in keys), _launch(row, places))
        name = row[places["counter"]]
        if adds_up(name):
            _add(launch.counters, re.sub(r"\[\d+\]$", "_sum", name), _number(row[places["value"]]))
    yield from launches.values()


def _add(counters: dict[str, float | None], name: str, value: float | None) -> None:
    before = counters.get(name, 0.0)
    counters[name] = None if before is None or value is None else before + value


def _launch(row: list[str], places: dict[str, int]) -> RocprofLaunch:
    def number(name: str) -> float | None:
        return _number(row[places[name]]) if name in places else None

    grid, group, start, end = number("grid"), number("group"), number("start"), number("end")
    return RocprofLaunch(
        row[places["kernel"]].removesuffix(".kd").removesuffix(" [clone .kd]"),
        tuple(row[places[name]] for name in ("process", "gpu", "queue") if name in places),
        # The grid is counted in work-items, and its last workgroup may be filled in part.
        workgroups=float(math.ceil(grid / group)) if grid is not None and group else None,
        time_ns=end - start if start is not None and end is not None else None,
    )


def _number(text: str) -> float | None:
    value = as_number(text)
    return value if value is not None and math.isfinite(value) else None
