"""Reads what Nsight Compute (``ncu``) wrote: CSV (``--csv``, pages ``raw`` and ``details``) and ``.ncu-rep``.

Metrics that add up (``*.sum`` and the sizes of launches) are added up over all kernel launches, processes and
GPUs. Percentages and averages are left out: what they say of a whole run is worked out again from the sums.
Reports (``.ncu-rep``) are read through NVIDIA's package ncu-report.
"""

from __future__ import annotations

import csv
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crossperf.errors import MissingDependencyError, ProfileFileError, several, some_of
from crossperf.importers.files import SPELLINGS, start_of, text_of, unusable
from crossperf.importers.measurement import Measurement, added_up

BLOCKS, THREADS, REGISTERS = "launch__grid_size", "launch__thread_count", "launch__registers_per_thread"
BLOCK_SIZE, TIME = "launch__block_size", "gpu__time_duration.sum"
WARPS, CYCLES = "sm__warps_active.sum", "sm__cycles_active.sum"
_STREAM, _CONTEXT, _GPU = "launch__stream_id", "launch__context_id", "device__attribute_display_name"
#: Metrics without ``.sum`` in their name that add up over launches.
_SUMS = (BLOCKS, THREADS, "inst_executed", "thread_inst_executed", "thread_inst_executed_true")
#: What the occupancy of a launch is worked out from, where its sums were not collected.
_MOST_WARPS, _MEAN_CYCLES = "device__attribute_max_warps_per_multiprocessor", "sm__cycles_active.avg"
_OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
#: Kept of each launch although they do not add up.
_OF_LAUNCH = (BLOCK_SIZE, REGISTERS, _MOST_WARPS, _MEAN_CYCLES, _OCCUPANCY)
_NO_KERNEL = "launched no kernel"
_KERNELS_KEPT = 20
#: This many rows settle how a file spells its numbers; each holds some in the billions.
_ROWS_LOOKED_AT = 200
_REPORT_START = b"NVR\0"
#: Tables that another program wrote again have no quotes where none are needed.
_HEAD = re.compile(r'\ufeff?("ID"|ID),')


@dataclass(frozen=True)
class NcuLaunch:
    """One launch of one kernel, its metrics in base units: bytes, nanoseconds, counts."""

    kernel: str
    metrics: Mapping[str, float | None]
    process: str | None = None
    stream: tuple[str, ...] | None = None
    gpu: str | None = None


def reads(path: Path) -> bool:
    """Return whether this is a report of ncu, or CSV that it wrote."""
    head = start_of(path)
    return head.startswith(_REPORT_START) or header_at(head.decode("utf-8", "replace").splitlines()) is not None


def read(path: Path) -> list[Measurement]:
    """Return the sums over all launches of one file: one execution of a program."""
    every_launch = launches(path)
    if not every_launch:
        advice = "Profile a program that uses the GPU; a report that was cut short reads like this too."
        raise unusable(path, f"found no kernel launch, expected at least one. {advice}")
    runtime_s, note = kernel_time(every_launch)
    sums = total(every_launch)
    return [replace(sums, runtime_s=runtime_s, notes=(*sums.notes, note))]


def kernel_time(launches: Sequence[NcuLaunch]) -> tuple[float | None, str]:
    """Return the seconds of all kernels, added up, and a note on them."""
    nanoseconds = added_up(launch.metrics.get(TIME) for launch in launches)
    if not nanoseconds:
        return None, f"no runtime: some kernels have no {TIME}; give one yourself"
    number = several(len(launches), "kernel")
    under = "under ncu, which runs one at a time, at fixed clocks and with empty caches unless set otherwise"
    return nanoseconds * 1e-9, f"runtime is the time of {number}, added up, {under}: the host's work is not in it"


def launches(path: Path) -> list[NcuLaunch]:
    """Return every kernel launch of a file, in its order."""
    if start_of(path).startswith(_REPORT_START):
        return list(_launches_of_report(path))
    return list(launches_of_text(text_of(path, "a table of ncu", errors="replace"), str(path)))


def total(launches: Sequence[NcuLaunch], wanted: Iterable[str] = ()) -> Measurement:
    """Return the sums over launches; a metric that one launch lacks, or none of `wanted` has, is ``None``."""
    names = dict.fromkeys([*wanted, *(name for launch in launches for name in launch.metrics)])
    events = {name: added_up(launch.metrics.get(name) for launch in launches) for name in filter(_adds_up, names)}
    unknown = [name for name, value in events.items() if value is None]
    partly = [name for name in unknown if any(launch.metrics.get(name) is not None for launch in launches)]
    streams = {launch.stream for launch in launches}
    events["launches"] = float(len(launches)) if launches else None
    events |= _occupancy(launches)
    events["streams_with_kernels"] = float(len(streams)) if launches and None not in streams else None
    notes = [] if launches else [_NO_KERNEL]
    if partly:
        notes.append(f"left out, since some launches have no value: {some_of(partly)}")
    if any("__" not in name and name not in _SUMS for name in names):
        notes.append("most metrics go by labels on ncu's page of details; 'ncu --page raw' has their names")
    processes = {launch.process for launch in launches if launch.process}
    gpus = {launch.gpu for launch in launches if launch.gpu}
    facts: dict[str, Any] = {"platform_class": "gpu", "kernels": _kernels(launches)}
    facts |= {"app": processes.pop()} if len(processes) == 1 else {}
    facts |= {"gpu": " + ".join(sorted(gpus))} if gpus else {}
    return Measurement("ncu", events, notes=tuple(notes), facts=facts)


def _adds_up(name: str) -> bool:
    # Samples over time ("X.TriageCompute.y") see a part of the GPU.
    return (name.endswith(".sum") and name.count(".") == 1) or name in _SUMS


def _occupancy(launches: Sequence[NcuLaunch]) -> dict[str, float | None]:
    """Return active warps and slots for warps, each times active cycles: sums, since shares do not add up."""
    pairs = [_warps(launch.metrics) for launch in launches]
    return {"warps_active": added_up(active for active, _ in pairs), "warp_slots": added_up(room for _, room in pairs)}


def _warps(metrics: Mapping[str, float | None]) -> tuple[float | None, float | None]:
    """Return the warps that were active and those that could have been, over the cycles of one launch.

    >>> _warps({WARPS: 3200.0, CYCLES: 100.0, _MOST_WARPS: 64.0})
    (3200.0, 6400.0)
    >>> _warps({_OCCUPANCY: 50.0, _MEAN_CYCLES: 100.0})
    (50.0, 100.0)
    """
    active, cycles, most = (metrics.get(name) for name in (WARPS, CYCLES, _MOST_WARPS))
    if active is not None and cycles is not None and most is not None:
        return active, cycles * most
    percent, mean_cycles = metrics.get(_OCCUPANCY), metrics.get(_MEAN_CYCLES)
    if percent is not None and mean_cycles is not None:
        return percent / 100 * mean_cycles, mean_cycles
    return None, None


def _kernels(launches: Sequence[NcuLaunch]) -> list[dict[str, Any]]:
    """Return what each kernel was launched with, the longest-running first."""
    by_name: dict[str, list[NcuLaunch]] = defaultdict(list)
    for launch in launches:
        by_name[launch.kernel].append(launch)

    def values(name: str, metric: str) -> list[float]:
        return [value for launch in by_name[name] if (value := launch.metrics.get(metric)) is not None]

    longest = sorted(by_name, key=lambda name: (-math.fsum(values(name, TIME)), name))[:_KERNELS_KEPT]
    return [
        {
            "name": name,
            "launches": len(by_name[name]),
            "blocks": math.fsum(values(name, BLOCKS)),
            "most_threads_per_block": max(values(name, BLOCK_SIZE), default=None),
            "most_registers_per_thread": max(values(name, REGISTERS), default=None),
            "time_s": math.fsum(values(name, TIME)) * 1e-9,
        }
        for name in longest
    ]


def header_at(lines: Sequence[str]) -> int | None:
    """Return the number of the line that heads ncu's table, or ``None``."""
    return next((i for i, line in enumerate(lines) if _HEAD.match(line) and "Kernel Name" in line), None)


def launches_of_text(text: str, path: str) -> Iterator[NcuLaunch]:
    """Yield the launches of ncu's CSV; what the program and ncu print around the table is passed over."""
    lines = text.splitlines()
    start = header_at(lines)
    if start is None:
        problem = 'found no line that starts with "ID" and names "Kernel Name", expected a table of ncu'
        why = f" ncu says: {complaint(text)}." if complaint(text) else ""
        raise unusable(path, f"{problem}.{why} Make one with: ncu --csv --page raw --log-file FILE COMMAND")
    table = csv.reader(line for line in lines[start:] if not line.startswith("=="))
    try:
        header = [name.lstrip("\ufeff").strip('"') for name in next(table)]
        rows = [row for row in table if row and (row[0].isdigit() or (not row[0] and len(row) == len(header)))]
    except csv.Error as error:
        raise unusable(path, f"no proper CSV ({error}). Record it again.") from error
    expected = {"ID", "Kernel Name"} | ({"Metric Name", "Metric Value"} if "Metric Name" in header else set())
    if missing := sorted(expected.difference(header)):
        raise unusable(path, f"found no column {missing[0]!r} in its heading, expected a table of ncu. Record again.")
    numbers = _Numbers(cell for row in rows[:_ROWS_LOOKED_AT] for cell in row)
    yield from (_long if "Metric Name" in header else _wide)(header, rows, numbers, path)


def _wide(header: list[str], rows: list[list[str]], numbers: _Numbers, path: str) -> Iterator[NcuLaunch]:
    """Yield launches of the page ``raw``: one row each, after a row of units."""
    units = dict(zip(header, rows.pop(0), strict=True)) if rows and not rows[0][0] else {}
    kept = [(at, name) for at, name in enumerate(header) if _adds_up(name) or name in _OF_LAUNCH]
    # Whoever wrote the table again may have dropped the row of units: then a time could be of any.
    kept = [(at, name) for at, name in kept if units or name != TIME]
    labels = [(at, name) for at, name in enumerate(header) if "__" not in name or name == _GPU]
    for row in rows:
        if len(row) != len(header):
            raise _cut_short(path, row, f"{len(row)} cells", f"{len(header)}")
        metrics = {name: numbers.read(row[at], units.get(name, "")) for at, name in kept}
        yield _launch({name: row[at] for at, name in labels}, metrics)


def _long(header: list[str], rows: list[list[str]], numbers: _Numbers, path: str) -> Iterator[NcuLaunch]:
    """Yield launches of the page ``details``: one row for each metric of each launch."""
    by_launch: dict[str, tuple[dict[str, str], dict[str, float | None]]] = {}
    enough = header.index("Metric Value") + 1
    for row in rows:
        if len(row) < enough:
            raise _cut_short(path, row, f"{len(row)} cells", f"{enough} or more")
        cells = dict(zip(header, row, strict=False))
        _, metrics = by_launch.setdefault(cells["ID"], (cells, {}))
        name = SPELLINGS["ncu"].get(cells["Metric Name"], cells["Metric Name"])
        if name:
            metrics[name] = numbers.read(cells["Metric Value"], cells.get("Metric Unit", ""))
    for cells, metrics in by_launch.values():
        yield _launch(cells, metrics)


def _cut_short(path: str, row: list[str], cells: str, expected: str) -> ProfileFileError:
    return unusable(path, f"launch {row[0]} has {cells}, expected {expected}. The file was cut short; record it again.")


def _launch(cells: Mapping[str, str], metrics: dict[str, float | None]) -> NcuLaunch:
    grid, block = cells.get("Grid Size", ""), cells.get("Block Size", "")
    metrics.setdefault(BLOCKS, _volume(grid))
    metrics.setdefault(BLOCK_SIZE, _volume(block))
    metrics.setdefault(THREADS, _volume(grid, block))
    places = [cells.get(name) for name in ("Process ID", "Context", "Stream")]
    stream = tuple(place for place in places if place is not None)
    process, gpu = cells.get("Process Name") or None, cells.get(_GPU) or None
    return NcuLaunch(cells["Kernel Name"], metrics, process, stream if len(stream) == len(places) else None, gpu)


def _volume(*sizes: str) -> float | None:
    """Return the number of blocks or threads of a size, or of one within the other; ``None`` where it is no number.

    >>> _volume("(4, 4, 1)"), _volume("(4, 4, 1)", "(32, 1, 1)"), _volume("(4, 4, 1)", "")
    (16.0, 512.0, None)
    """
    numbers = [re.findall(r"\d+", size) for size in sizes]
    volume = math.prod(float(number) for own in numbers for number in own)
    return volume if all(numbers) and math.isfinite(volume) else None


class _Numbers:
    """Reads numbers as the locale of their writer spelt them: ``1,234.56``, ``1.234,56``, ``1 234,56``.

    One ``4.352`` could be either; the other numbers of the file settle it.
    """

    _COMMA_IS_DECIMAL = re.compile(r"\d{1,3}(\.\d{3}){2,}(,\d+)?|[\d.\u00a0\u202f]*\d,(\d{1,2}|\d{4,})")

    def __init__(self, cells: Iterable[str]) -> None:
        self._decimal = "," if any(self._COMMA_IS_DECIMAL.fullmatch(cell) for cell in cells) else "."

    def read(self, text: str, unit: str) -> float | None:
        plain = re.sub(r"[\s\u00a0\u202f']", "", text)
        plain = plain.replace("." if self._decimal == "," else ",", "").replace(self._decimal, ".")
        try:
            value = float(plain)
        except ValueError:
            return None
        return value * _scale(unit) if math.isfinite(value) else None


_NANOSECONDS = {"n": 1.0, "u": 1e3, "m": 1e6, "": 1e9}
_TENS = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_COUNTED = r"(byte|inst|sectors?|cycle|warp|thread|block|request|branches)"


def _scale(unit: str) -> float:
    """Return what a value in this unit is multiplied with for bytes, nanoseconds or counts.

    >>> _scale("Mbyte"), _scale("us"), _scale("sector")
    (1000000.0, 1000.0, 1.0)
    """
    if time := re.fullmatch(r"([num]?)s(econd)?", unit):
        return _NANOSECONDS[time[1]]
    match = re.fullmatch(rf"([KMGT]){_COUNTED}", unit)
    return _TENS[match[1]] if match else 1.0


def _launches_of_report(path: Path) -> Iterator[NcuLaunch]:
    try:
        import ncu_report  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        advice = "Or make CSV of it where ncu is: ncu --import FILE --csv --page raw --log-file FILE.csv"
        needed = "reading .ncu-rep needs ncu-report: pip install 'crossperf[ncu]'"
        raise MissingDependencyError(f"{path}: {needed}. {advice}") from error
    try:
        report = ncu_report.load_report(str(path))
        ranges = [report.range_by_idx(i) for i in range(report.num_ranges())]
        actions = [part.action_by_idx(i) for part in ranges for i in range(part.num_actions())]
    except Exception as error:  # the package raises its own kinds, and RuntimeError
        problem = f"ncu-report cannot read it ({error}). It may be cut short, or newer than the package."
        raise unusable(path, problem) from error
    for action in actions:
        by_name = {name: action.metric_by_name(name) for name in action.metric_names()}
        gpu = by_name[_GPU].as_string() if _GPU in by_name else None
        metrics: dict[str, float | None] = {
            name: metric.as_double() * _scale(metric.unit() or "")
            for name, metric in by_name.items()
            if metric.has_value() and metric.kind() != metric.ValueKind_STRING
        }
        # ncu-report tells no process ids, so the streams of two processes can look like one.
        places = [metrics.get(name) for name in (_CONTEXT, _STREAM)]
        stream = tuple(f"{place:g}" for place in places if place is not None)
        kernel = action.name(action.NameBase_DEMANGLED)
        yield NcuLaunch(kernel, metrics, None, stream if len(stream) == len(places) else None, gpu)


def complaint(text: str) -> str:
    """Return what ncu says went wrong, in its words, or an empty string."""
    return next((line.removeprefix("==ERROR==").strip() for line in text.splitlines() if line.startswith("==ERR")), "")
