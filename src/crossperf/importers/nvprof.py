"""Reads what nvprof wrote with ``--csv``: metrics and events of each kernel, or the time of each.

nvprof keeps the least, the greatest and the mean over a kernel's launches. Counts are whole numbers; their means
times launches are added up over kernels. Ratios hold for one kernel, so they are left out where there are several.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crossperf.errors import several
from crossperf.importers.files import named_after, start_of, text_of, unusable
from crossperf.importers.measurement import SECONDS, Measurement, added_up

_COUNTED = ("Kernel", "Invocations", "Avg")
_TIMED = ("Time(%)", "Time", "Calls", "Name")
_COMMAND = re.compile(r"==\d+== NVPROF is profiling process \d+, command: (.+)")
_TIME = re.compile(r"([\d.]+)(s|ms|us|ns)?")


@dataclass
class _NvprofTables:
    """What the tables of a file hold, by device and kernel."""

    launches: dict[tuple[str, str], float] = field(default_factory=dict)
    counts: dict[str, dict[tuple[str, str], float | None]] = field(default_factory=lambda: defaultdict(dict))
    ratios: dict[str, dict[tuple[str, str], float | None]] = field(default_factory=lambda: defaultdict(dict))
    seconds: list[float | None] = field(default_factory=list)


def reads(path: Path) -> bool:
    """Return whether this is CSV that nvprof wrote."""
    return any(_columns(line) for line in start_of(path).decode("utf-8", "replace").splitlines())


def read(path: Path) -> list[Measurement]:
    """Return the sums over all kernels of one file: one execution of a program."""
    lines = text_of(path, "CSV of nvprof", errors="replace").splitlines()
    tables = _NvprofTables()
    try:
        for columns, unit, row in _rows(lines):
            (_add_counts if "Kernel" in columns else _add_time)(tables, columns, unit, row)
    except (ValueError, csv.Error) as error:
        problem = f"found a row that is cut off or damaged ({error}), expected CSV of nvprof"
        raise unusable(path, f"{problem}. Copy the file again, or record it again.") from error
    if not tables.launches:
        advice = "Record with: nvprof --csv --metrics inst_executed --log-file FILE COMMAND"
        raise unusable(path, f"found no kernel, expected a table of nvprof with at least one. {advice}")
    return [_measurement(tables, lines)]


def _columns(line: str) -> list[str] | None:
    """Return the columns of a line that heads a table, or ``None``."""
    if not line.startswith(('"Device"', '"Type"', '"Time(%)"', "Device,", "Type,", "Time(%),")):
        return None
    columns = [name.strip('" ') for name in line.split(",")]
    return columns if set(_COUNTED) <= set(columns) or set(_TIMED) <= set(columns) else None


def _rows(lines: Sequence[str]) -> Iterator[tuple[list[str], str, dict[str, str]]]:
    """Yield each row with the columns of its table and the unit of its times; kernels may hold commas of their own."""
    columns: list[str] = []
    unit = ""
    for line in lines:
        if header := _columns(line):
            columns, unit = header, ""
        elif columns and line.count(",") >= len(columns) - 1 and not line.startswith("=="):
            cells = next(csv.reader([line]))
            cells[len(columns) - 1 :] = [",".join(cells[len(columns) - 1 :])]
            row = dict(zip(columns, cells, strict=True))
            if row.get("Time") in SECONDS:
                unit = row["Time"]
            else:
                yield columns, unit, row


def _add_counts(tables: _NvprofTables, columns: list[str], unit: str, row: dict[str, str]) -> None:  # noqa: ARG001
    kernel = (row.get("Device", ""), row["Kernel"])
    name = row.get("Metric Name") or row.get("Event Name") or ""
    if not name or not row["Invocations"].isdigit():
        return
    tables.launches[kernel] = float(row["Invocations"])
    if row["Avg"].isdigit():
        tables.counts[name][kernel] = float(row["Avg"]) * tables.launches[kernel]
    else:  # a percentage, or a ratio with digits behind a point
        tables.ratios[name][kernel] = _number(row["Avg"].rstrip("%"))


def _add_time(tables: _NvprofTables, columns: list[str], unit: str, row: dict[str, str]) -> None:  # noqa: ARG001
    time = _TIME.fullmatch(row["Time"])
    if row["Name"].startswith("[CUDA") or row.get("Type", "GPU activities") != "GPU activities" or not time:
        return
    scale = SECONDS.get(time[2] or unit)
    tables.seconds.append(None if scale is None else float(time[1]) * scale)
    tables.launches[row.get("Device", ""), row["Name"]] = float(row["Calls"])


def _measurement(tables: _NvprofTables, lines: Sequence[str]) -> Measurement:
    kernels = list(tables.launches)
    events = {name: added_up(values.get(kernel) for kernel in kernels) for name, values in tables.counts.items()}
    if len(kernels) == 1:
        events |= {name: values[kernels[0]] for name, values in tables.ratios.items()}
    events["invocations"] = added_up(tables.launches.values())
    runtime_s = added_up(tables.seconds)
    number = several(len(kernels), "kernel")
    note = f"runtime is the time of {number}, added up over their launches: the host's work and copies are not in it"
    notes = [note if runtime_s else "no runtime: nvprof keeps none beside counters; give one yourself"]
    if tables.ratios and len(kernels) > 1:
        notes.append(f"ratios and percentages are left out: they cannot be added up over {number}")
    devices = sorted({re.sub(r" \(\d+\)$", "", device) for device, _ in kernels if device})
    facts: dict[str, Any] = {"platform_class": "gpu", "gpu": " + ".join(devices) or None}
    command = next((match[1] for line in lines if (match := _COMMAND.match(line))), "")
    return Measurement("nvprof", events, runtime_s=runtime_s, notes=tuple(notes), facts=facts | named_after(command))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
