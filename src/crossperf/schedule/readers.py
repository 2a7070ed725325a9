"""Reads the tables that a simulation rests on from files: times by workload, and machines."""

# W workloads, M modes

from __future__ import annotations

import csv
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crossperf.arrays import Floats
from crossperf.documents import MEGABYTE, opened, parse, read_bytes, read_text
from crossperf.errors import CrossperfError, SettingsError, did_you_mean, some_of
from crossperf.plain import shown, whole
from crossperf.runs import table as runs_table
from crossperf.schedule.machines import FACTS, Machines, price_of
from crossperf.schedule.rules import Maintenance
from crossperf.schedule.times import CELLS, LARGEST, SMALLEST, RelativeTimes, ScheduleTableError
from crossperf.schedule.traces import gavel

#: What may stand behind the name of a mode in a column of a CSV.
_SUFFIXES = (":low", ":high", ":nodes")

_MOST_BYTES = 1024 * MEGABYTE


def read_times(
    path: str | os.PathLike[str], *, cells: str | None = None, reference: str | None = None
) -> RelativeTimes:
    """Return a table of times from a file: CSV or JSON with a row for each workload, or a runs table.

    A CSV has the columns ``app`` and ``input`` (or ``App``, ``Args``, ``Ranks``), one for each mode, and where it gives
    intervals ``MODE:low`` and ``MODE:high``; ``MODE:nodes`` says how many nodes a job takes there for each that it asks
    for. A runs table gives the medians of what was measured. Throughputs of Gavel (JSON) are read as well.

    Parameters
    ----------
    cells
        ``speedup`` or ``relative-time``. ``None`` reads cells under ``Args`` as speed-ups, others as relative times.
    reference
        The platform of a runs table that times are relative to; ``None`` takes the one with the most workloads.
    """
    if cells not in (None, *CELLS):
        raise SettingsError(f"cells: found {cells!r}, expected {' or '.join(CELLS)}.", argument="cells")
    path = Path(path)
    if not path.is_file():
        what = "a folder" if path.is_dir() else "no such file"
        raise _refusal(path, f"{what}, expected a table of times (.csv or .json) or a runs table.")
    if path.suffix == ".json":
        return _from_json(path, reference)
    if path.suffix == ".csv":
        with opened(path) as lines:
            header = lines.readline(4 * MEGABYTE).decode(errors="replace").strip().split(",")
        if not {"platform", "runtime_s"} <= set(header):
            return _from_csv(path, cells)
    return from_runs(runs_table.read(path), reference=reference)


def _refusal(path: str | os.PathLike[str], problem: str, row: int = 0, column: str = "") -> ScheduleTableError:
    place = f"{path}" + (f", row {row:,}" if row else "") + (f", column {column!r}" if column else "")
    return ScheduleTableError(f"{place}: {problem}", path=os.fspath(path), row=row or None)


def csv_rows(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """Return the columns and rows of a CSV, spaces and a ``#`` before the first name gone."""
    try:
        lines = read_text(path).splitlines(keepends=True)
        records = [[word.strip() for word in record] for record in csv.reader(lines) if any(record)]
    except OSError as error:
        raise _refusal(path, f"cannot be read ({error.strerror}), expected CSV.") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise _refusal(path, f"does not read as CSV ({error}).") from error
    if len(records) < 2:
        raise _refusal(path, "found no rows, expected a header and at least one row.")
    header = [records[0][0].lstrip("#").strip(), *records[0][1:]]
    twice = sorted(name for name, count in Counter(header).items() if count > 1)
    if twice:
        raise _refusal(path, f"found the column {twice[0]!r} more than once. Remove one.")
    for row, record in enumerate(records[1:], start=2):
        if len(record) != len(header):
            raise _refusal(path, f"found {len(record)} cells, expected {len(header)} as in the header.", row)
    return header, [dict(zip(header, record, strict=True)) for record in records[1:]]


def _from_csv(path: Path, cells: str | None) -> RelativeTimes:
    header, rows = csv_rows(path)
    named = {name.lower(): name for name in header}
    app, input_, ranks = named.get("app"), named.get("args") or named.get("input"), named.get("ranks")
    if app is None or input_ is None:
        expected = "'app' and 'input' (or 'App', 'Args', 'Ranks') and one for each mode"
        raise _refusal(path, f"found the columns {some_of(header)}, expected {expected}.")
    workloads = [(row[app], " ".join(filter(None, (row[input_], ranks and f"ranks={row[ranks]}")))) for row in rows]
    _refuse_twice(path, workloads)
    modes = [name for name in header if name not in (app, input_, ranks) and not name.endswith(_SUFFIXES)]
    if not modes:
        raise _refusal(path, f"found the columns {some_of(header)}, expected one for each mode beside them. Add them.")
    inverse = (cells or ("speedup" if "args" in named else "relative-time")) == "speedup"

    def read(suffix: str) -> Floats:
        columns = [_column(path, rows, mode + suffix) for mode in modes]
        relative_wm = np.stack(columns, axis=1)
        return 1.0 / relative_wm if inverse else relative_wm

    relative_wm, low_wm, high_wm = read(""), read(":low"), read(":high")
    if inverse:
        low_wm, high_wm = high_wm, low_wm
    groups = [f"{row[app]} {row[ranks]}" if ranks else row[app] for row in rows]
    low_wm, high_wm = (np.where(np.isnan(end), relative_wm, end) for end in (low_wm, high_wm))
    nodes_wm = None
    if any(name.endswith(":nodes") for name in header):
        columns = [_column(path, rows, f"{mode}:nodes") for mode in modes]
        nodes_wm = np.nan_to_num(np.stack(columns, axis=1), nan=1.0)
    tables = (relative_wm, low_wm, high_wm, nodes_wm)
    return RelativeTimes.of(workloads, modes, *tables, group_w=groups, name=path.name)


def _column(path: Path, rows: Sequence[Mapping[str, str]], name: str) -> Floats:
    values = []
    for number, row in enumerate(rows, start=2):
        text = row.get(name, "")
        try:
            value = float(text or math.nan)
        except ValueError:
            value = math.nan
        if text and not SMALLEST <= value <= LARGEST:
            expected = f"a number from {SMALLEST:g} to {LARGEST:g}, or nothing where the workload cannot run"
            raise _refusal(path, f"found {text!r}, expected {expected}.", number, name)
        values.append(value)
    return np.array(values)


def _refuse_twice(path: Path, workloads: Sequence[tuple[str, str]]) -> None:
    seen: set[tuple[str, str]] = set()
    for row, workload in enumerate(workloads, start=2):
        if workload in seen:
            raise _refusal(path, f"found {' '.join(workload)!r} a second time, expected each workload once.", row)
        seen.add(workload)


def _from_json(path: Path, reference: str | None) -> RelativeTimes:
    try:
        facts = parse(read_bytes(path, _MOST_BYTES))
        if gavel.are_throughputs(facts):
            return gavel.times(facts, path.name, reference)
        cells, modes, rows = facts.get("cells", CELLS[0]), list(facts["modes"]), facts["workloads"]
        workloads = [(str(row["app"]), str(row["input"])) for row in rows]
        groups = [str(row.get("group", row["app"])) for row in rows]
        tables = [
            np.array([[_cell(times, mode) for mode in modes] for times in several])
            for several in (
                [row["times"] for row in rows],
                [row.get("low", {}) for row in rows],
                [row.get("high", {}) for row in rows],
                [row.get("nodes", {}) for row in rows],
            )
        ]
    except CrossperfError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        problem = f"does not read as a table of times ({type(error).__name__}: {error})"
        expected = "'modes' and 'workloads', each with 'app', 'input' and 'times' by mode"
        raise _refusal(path, f"{problem}, expected {expected}.") from error
    if cells != CELLS[0]:
        raise _refusal(path, f"found cells of {cells!r}, expected {CELLS[0]!r} in JSON.")
    _refuse_twice(path, workloads)
    if not rows:
        raise _refusal(path, "found no workloads, expected at least one with its times.")
    relative_wm, *ends, nodes_wm = tables
    low_wm, high_wm = (np.where(np.isnan(end), relative_wm, end) for end in ends)
    given = any(row.get("nodes") for row in rows)
    tables = [relative_wm, low_wm, high_wm, *([np.nan_to_num(nodes_wm, nan=1.0)] if given else [])]
    return RelativeTimes.of(workloads, modes, *tables, group_w=groups, name=path.name)


def _cell(times: Mapping[str, Any], mode: str) -> float:
    value = times.get(mode, math.nan)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"found {value!r} in {mode!r}, expected a number")
    return float(value)


def from_runs(table: runs_table.RunsTable, *, reference: str | None = None) -> RelativeTimes:
    """Return the median times of a runs table, relative to a platform; workloads not measured there are left out."""
    key = ["app", "input", "platform"]
    cells = table.select(*key, "runtime_s").group_by(key).agg(pl.col("runtime_s").median()).sort(key)
    platforms = sorted(cells["platform"].unique())
    if not platforms:
        raise _refusal(table.path, "found no successful run, expected measured times.")
    if reference is None:
        counts = {platform: (cells["platform"] == platform).sum() for platform in platforms}
        reference = max(platforms, key=lambda platform: counts[platform])
    if reference not in platforms:
        raise SettingsError(
            f"reference: found {reference!r}{did_you_mean(reference, platforms)}, expected a platform of "
            f"{table.path}: {some_of(platforms, 20)}.",
            argument="reference",
        )
    wide = cells.pivot("platform", index=["app", "input"], values="runtime_s").sort("app", "input")
    measured = wide.filter(pl.col(reference).is_not_null())
    seconds_wm = measured.select(platforms).fill_null(np.nan).to_numpy().astype(np.float64)
    relative_wm = seconds_wm / seconds_wm[:, [platforms.index(reference)]]
    workloads = list(zip(measured["app"].to_list(), measured["input"].to_list(), strict=True))
    missing = wide.height - measured.height
    note = f"{missing:,} workloads of {table.path} cannot run on {reference}, or did not, and are not drawn."
    name, notes = Path(table.path).name, [note] if missing else []
    return RelativeTimes.of(workloads, platforms, relative_wm, name=name, notes=notes)


def read_machines(path: str | os.PathLike[str]) -> Machines:
    """Return the clusters of a CSV with the columns ``machine``, ``size`` and perhaps facts of a node.

    These are ``price_per_node_hour``, ``power_w`` and ``idle_w`` (watts with and without a job), ``memory_gb``.
    """
    path = Path(path)
    if not path.is_file():
        raise _refusal(path, "no such file, expected a CSV of machines. Check the path.")
    header, rows = csv_rows(path)
    if not {"machine", "size"} <= set(header):
        expected = f"'machine' and 'size' (its nodes), and perhaps {', '.join(map(repr, FACTS))}"
        raise _refusal(path, f"found the columns {some_of(header)}, expected {expected}.")
    nodes: dict[str, int] = {}
    facts: dict[str, dict[str, float]] = {name: {} for name in FACTS}
    for number, row in enumerate(rows, start=2):
        name, size = row["machine"], row["size"]
        if not name or name in nodes:
            raise _refusal(path, f"found the machine {name!r}, expected each once, by name.", number)
        count = whole(size)
        if not count:
            raise _refusal(path, f"found {shown(size)} nodes, expected a whole number above 0.", number)
        nodes[name] = count
        for fact, values in facts.items():
            value = price_of(row.get(fact, ""))
            if value is None:
                what = "price" if fact == FACTS[0] else fact
                raise _refusal(path, f"found a {what} of {row[fact]!r}, expected 0 or more, or nothing.", number)
            values[name] = value
    prices, power_w, idle_w, memory_gb = facts.values()
    return Machines.of(nodes, prices, power_w=power_w, idle_w=idle_w, memory_gb=memory_gb)


def read_maintenance(path: str | os.PathLike[str]) -> tuple[Maintenance, ...]:
    """Return the planned outages of a CSV: ``machine``, ``start_s``, ``end_s`` and perhaps ``nodes``."""
    path = Path(path)
    if not path.is_file():
        raise _refusal(path, "no such file, expected a CSV of planned outages. Check the path.")
    header, rows = csv_rows(path)
    if not {"machine", "start_s", "end_s"} <= set(header):
        expected = "'machine', 'start_s', 'end_s' (seconds from the first arrival), and perhaps 'nodes'"
        raise _refusal(path, f"found the columns {some_of(header)}, expected {expected}.")
    windows = []
    for number, row in enumerate(rows, start=2):
        try:
            start_s, end_s = float(row["start_s"]), float(row["end_s"])
            nodes = int(row["nodes"]) if row.get("nodes") else None
        except ValueError as error:
            raise _refusal(path, f"found a cell that is no number ({error}).", number) from None
        if not 0 <= start_s < end_s < math.inf or (nodes is not None and nodes < 1):
            expected = "a start of 0 or more, a later end, and nodes above 0"
            raise _refusal(path, f"found {start_s:g} s to {end_s:g} s, nodes {nodes}, expected {expected}.", number)
        windows.append(Maintenance(row["machine"], start_s, end_s, nodes))
    return tuple(windows)
