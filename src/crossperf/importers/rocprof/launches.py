"""Kernel launches in the CSV of rocprof, rocprofv2 and rocprofv3, and their sums.

rocprof and rocprofv2 write one row for each kernel launch, with a column for each counter; rocprofv3 one row for
each counter of each launch. Counters are added up over all launches; percentages and averages are left out.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crossperf.documents import lines_of
from crossperf.errors import ProfileFileError, several, some_of
from crossperf.importers.files import SPELLINGS, unusable
from crossperf.importers.measurement import Measurement, added_up
from crossperf.runs.rules import as_number

ROCPROF = "rocprof"
#: Blocks of the hardware whose counters add up, and the few derived ones that do too.
_COUNTER = re.compile(
    r"(SQ|SQC|TA|TD|TCP|TCC|TCA|GRBM|CPC|CPF|SPI|GL1A|GL1C|GL2A|GL2C|GCEA)_\w+(\[\d+\])?"
    r"|Wavefronts|FetchSize|WriteSize|FETCH_SIZE|WRITE_SIZE"
)
_INSTANCE = re.compile(r"\[\d+\]$")
_AVERAGED = ("_avr", "_avg", "_max", "_min", "_percent")
NO_KERNEL = "launched no kernel"
_KERNELS_KEPT = 20


@dataclass
class RocprofLaunch:
    """One launch of one kernel; `workgroups` is ``None`` where the file does not tell."""

    kernel: str
    queue: tuple[str, ...]
    workgroups: float | None
    threads_per_group: float | None
    started_ns: float | None
    ended_ns: float | None
    counters: dict[str, float | None] = field(default_factory=dict)

    @property
    def time_ns(self) -> float | None:
        """How long the kernel ran, where the file tells."""
        return None if self.started_ns is None or self.ended_ns is None else self.ended_ns - self.started_ns

    @property
    def threads(self) -> float | None:
        """The threads of all its workgroups, those outside of the grid included."""
        known = self.workgroups is not None and self.threads_per_group is not None
        return (self.workgroups or 0.0) * (self.threads_per_group or 0.0) if known else None


def total(
    passes: Sequence[Sequence[RocprofLaunch]], wanted: Iterable[str] = (), sizes: Sequence[RocprofLaunch] = ()
) -> Measurement:
    """Return the sums over the launches of each execution; the first that holds a counter gives it.

    A counter of `wanted`, which was asked for, is ``None`` rather than absent where it has no value. Sizes of
    launches and their queues are those of `sizes`, or of the first execution.
    """
    events: dict[str, float | None] = {}
    for launches in passes:
        for name in dict.fromkeys(name for launch in launches for name in launch.counters):
            if name not in events:
                events[name] = added_up(launch.counters.get(name) for launch in launches)
    partly = [name for name, value in events.items() if value is None]
    launches = sizes or next((launches for launches in passes if launches), [])
    notes = [] if launches else [NO_KERNEL]
    notes += _never_counted(events) if launches else []
    events = dict.fromkeys(wanted) | events
    events["dispatches"] = float(len(launches)) if launches else None
    events["workgroups"] = added_up(launch.workgroups for launch in launches)
    events["workgroup_threads"] = added_up(launch.threads for launch in launches)
    events["queues"] = float(len({launch.queue for launch in launches})) if launches else None
    if partly:
        notes.append(f"left out, since some launches have no value: {some_of(partly)}")
    if len({len(launches) for launches in passes}) > 1:
        numbers = ", ".join(f"{len(launches):,}" for launches in passes)
        notes.append(f"the executions differ in their number of launches ({numbers}); their counters may not fit")
    facts = {"platform_class": "gpu", "kernels": _kernels(launches)}
    return Measurement(ROCPROF, events, notes=tuple(notes), facts=facts)


def _never_counted(events: dict[str, float | None]) -> list[str]:
    """Take zeros of the sequencer for unknown where it saw no wavefront of the kernels; return the note on it."""
    if all(events.get(name) != 0.0 for name in ("SQ_WAVES", "SQ_INSTS")):
        return []
    zeros = [name for name, value in events.items() if name.startswith("SQ_") and value == 0.0]
    events.update(dict.fromkeys(zeros))
    return ["SQ_* are left out: all are 0 although kernels ran. Doubt the other counters of this file too"]


def kernel_time(launches: Sequence[RocprofLaunch]) -> tuple[float | None, str]:
    """Return the seconds in which a kernel ran, launches at the same time counted once, and a note on them."""
    ran = sorted((each.started_ns, each.ended_ns) for each in launches if each.started_ns and each.ended_ns)
    busy_ns, until = 0.0, 0.0
    for start, end in ran:
        busy_ns += max(0.0, end - max(start, until))
        until = max(until, end)
    if len(ran) < len(launches) or busy_ns <= 0.0:
        return None, "no runtime: the file holds no start and end of every kernel, or rounded ones; give one yourself"
    number = several(len(launches), "kernel")
    return busy_ns * 1e-9, f"runtime is the time in which {number} ran: the host's work and copies are not in it"


def _kernels(launches: Sequence[RocprofLaunch]) -> list[dict[str, Any]]:
    """Return the launches and time of each kernel, the longest-running first."""
    number = Counter(launch.kernel for launch in launches)
    time_ns: Counter[str] = Counter()
    for launch in launches:
        time_ns[launch.kernel] += int(launch.time_ns or 0)
    longest = sorted(number, key=lambda name: (-time_ns[name], name))[:_KERNELS_KEPT]
    return [{"name": name, "launches": number[name], "time_s": time_ns[name] * 1e-9} for name in longest]


def is_header(header: Sequence[str]) -> bool:
    """Return whether a table with these columns holds counters of kernel launches, or their sizes and times."""
    places = _places(header)
    long = {"counter", "value"} <= places.keys()
    timed = {"group", "start", "end"} <= places.keys()
    return "kernel" in places and (long or ("grid" in places and (timed or any(map(adds_up, header)))))


def _places(header: Sequence[str]) -> dict[str, int]:
    plain = [re.sub(r"[-_\s]", "", name).lower() for name in header]
    return {name: plain.index(way) for name, ways in SPELLINGS["rocprof"].items() for way in ways if way in plain}


def adds_up(name: str) -> bool:
    """Return whether a counter is a sum over launches, rather than an average or a percentage."""
    return _COUNTER.fullmatch(name) is not None and not name.endswith(_AVERAGED)


def launches_of(path: Path, counters: bool = True) -> list[RocprofLaunch]:
    """Return the launches of a table; without `counters` their names are enough."""
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            rows = [row for row in csv.reader(lines_of(file)) if row]
    except (OSError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise unusable(path, f"cannot be read ({reason}). Check the path.") from error
    if not rows or not (is_header(rows[0]) or (not counters and "kernel" in _places(rows[0]))):
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
    summed = [(at, _INSTANCE.sub("_sum", name), name) for at, name in enumerate(header) if adds_up(name)]
    # Some tools write the instances and their sum.
    counters = [(at, total) for at, total, name in summed if total == name or total not in header]
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
            _add(launch.counters, _INSTANCE.sub("_sum", name), _number(row[places["value"]]))
    yield from launches.values()


def _add(counters: dict[str, float | None], name: str, value: float | None) -> None:
    before = counters.get(name, 0.0)
    counters[name] = None if before is None or value is None else before + value


def _launch(row: list[str], places: dict[str, int]) -> RocprofLaunch:
    def number(name: str) -> float | None:
        return _number(row[places[name]]) if name in places else None

    grid, group = number("grid"), number("group")
    return RocprofLaunch(
        re.sub(r"( \[clone \.kd\]| \(\.kd\)|\.kd)$", "", row[places["kernel"]]),
        tuple(row[places[name]] for name in ("process", "gpu", "queue") if name in places),
        # The grid is counted in work-items, and its last workgroup may be filled in part.
        workgroups=float(math.ceil(grid / group)) if grid is not None and group is not None and group >= 1 else None,
        threads_per_group=group,
        started_ns=number("start"),
        ended_ns=number("end"),
    )


def _number(text: str) -> float | None:
    value = as_number(text)
    return value if value is not None and math.isfinite(value) else None
