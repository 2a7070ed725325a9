"""Tables that a simulation rests on: the time of each workload in each place, true or predicted, and the machines."""

# W workloads, M modes: ways to run on a cluster, such as tioga-cpu and tioga-gpu, which share its nodes

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from crossperf.errors import CrossperfError, SettingsError, did_you_mean, some_of
from crossperf.records import Prediction
from crossperf.runs import table as runs_table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: What a cell can hold: seconds over seconds on the reference, or the other way round.
CELLS = ("relative-time", "speedup")


class TableError(CrossperfError):
    """A table of times or machines cannot be used; ``path`` names it."""


@dataclass(frozen=True)
class RelativeTimes:
    """Time of each workload in each mode over its time on the reference; NaN where it cannot run.

    A workload is (app, input). `group_w` names what belongs together when times are averaged over an application.
    The range from `low_wm` to `high_wm` holds the truth in 80 % of the cases; both equal the time where none is known.
    """

    workloads: tuple[tuple[str, str], ...]
    modes: tuple[str, ...]
    relative_wm: Floats
    low_wm: Floats
    high_wm: Floats
    group_w: tuple[str, ...]
    name: str = "times"
    notes: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(
        cls,
        workloads: Sequence[tuple[str, str]],
        modes: Sequence[str],
        relative_wm: Floats,
        low_wm: Floats | None = None,
        high_wm: Floats | None = None,
        *,
        group_w: Sequence[str] | None = None,
        name: str = "times",
        notes: Sequence[str] = (),
    ) -> RelativeTimes:
        """Return a table; without ranges they are as narrow as can be, without groups an application is one."""
        low_wm = relative_wm if low_wm is None else low_wm
        high_wm = relative_wm if high_wm is None else high_wm
        groups = tuple(group_w) if group_w is not None else tuple(app for app, _ in workloads)
        return cls(tuple(workloads), tuple(modes), relative_wm, low_wm, high_wm, groups, name, tuple(notes))

    def of_workloads(self, workloads: Sequence[tuple[str, str]]) -> RelativeTimes:
        """Return the rows of these workloads, in their order."""
        place = {workload: w for w, workload in enumerate(self.workloads)}
        rows = np.array([place[workload] for workload in workloads], np.int64)
        return replace(
            self,
            workloads=tuple(workloads),
            relative_wm=self.relative_wm[rows],
            low_wm=self.low_wm[rows],
            high_wm=self.high_wm[rows],
            group_w=tuple(self.group_w[w] for w in rows),
        )

    def of_modes(self, modes: Sequence[str]) -> RelativeTimes:
        """Return the columns of these modes, in their order; a mode that is not there is NaN throughout."""
        place = {mode: m for m, mode in enumerate(self.modes)}

        def columns(cells_wm: Floats) -> Floats:
            nothing_w = np.full(len(cells_wm), np.nan)
            return np.stack([cells_wm[:, place[mode]] if mode in place else nothing_w for mode in modes], axis=1)

        cells = columns(self.relative_wm), columns(self.low_wm), columns(self.high_wm)
        return replace(self, modes=tuple(modes), relative_wm=cells[0], low_wm=cells[1], high_wm=cells[2])

    def to_json(self) -> dict[str, Any]:
        """Return the table as JSON's own types, which `read_times` reads; a cell that cannot run is left out."""
        rows = []
        for w, (app, input_) in enumerate(self.workloads):
            row: dict[str, Any] = {"app": app, "input": input_, "group": self.group_w[w]}
            for key, cells_wm in (("times", self.relative_wm), ("low", self.low_wm), ("high", self.high_wm)):
                there = zip(self.modes, cells_wm[w].tolist(), strict=True)
                row[key] = {mode: cell for mode, cell in there if not math.isnan(cell)}
            rows.append(row)
        return {"format": 1, "cells": "relative-time", "modes": list(self.modes), "workloads": rows}


def aligned(truth: RelativeTimes, *others: RelativeTimes) -> tuple[RelativeTimes, ...]:
    """Return the tables for the workloads that all of them have and the modes of the first, with a note of the rest."""
    shared = set(truth.workloads).intersection(*(other.workloads for other in others))
    if not shared:
        names = some_of((other.name for other in others), 4)
        raise TableError(
            f"{names}: found no workload of {truth.name}, expected the same apps and inputs, such as "
            f"{' '.join(truth.workloads[0])!r}."
        )
    kept = [workload for workload in truth.workloads if workload in shared]
    missing = len(truth.workloads) - len(kept)
    notes = (f"{missing:,} workloads of {truth.name} have no prediction and are not drawn.",) if missing else ()
    first = replace(truth.of_workloads(kept), notes=truth.notes + notes)
    return first, *(other.of_workloads(kept).of_modes(truth.modes) for other in others)


# Reading


def read_times(
    path: str | os.PathLike[str], *, cells: str | None = None, reference: str | None = None
) -> RelativeTimes:
    """Return a table of times from a file: CSV or JSON with a row for each workload, or a runs table.

    A CSV has the columns ``app`` and ``input`` (or ``App``, ``Args``, ``Ranks``), one for each mode, and where it gives
    ranges ``MODE:low`` and ``MODE:high``. A runs table gives the medians of what was measured.

    Parameters
    ----------
    cells
        ``speedup`` or ``relative-time``. ``None`` reads cells under ``Args`` as speed-ups, others as relative times.
    reference
        The platform of a runs table that times are relative to; ``None`` takes the one with the most workloads.
    """
    if cells not in (None, *CELLS):
        raise SettingsError(f"--cells: found {cells!r}, expected {' or '.join(CELLS)}.")
    path = Path(path)
    if not path.is_file():
        found = "a folder" if path.is_dir() else "no such file"
        raise TableError(f"{path}: {found}, expected a table of times (.csv or .json) or a runs table.", path=str(path))
    if path.suffix == ".json":
        return _from_json(path)
    if path.suffix == ".csv" and not _is_runs_table(path):
        return _from_csv(path, cells)
    return from_runs(runs_table.read(path), reference=reference)


def _is_runs_table(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as lines:
        header = lines.readline().strip().split(",")
    return {"platform", "runtime_s"} <= set(header)


def _rows(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """Return the columns and rows of a CSV, spaces and a ``#`` before the first name gone."""
    with path.open(newline="", encoding="utf-8-sig") as lines:
        reader = csv.reader(lines)
        try:
            records = [[word.strip() for word in record] for record in reader if any(record)]
        except (csv.Error, UnicodeDecodeError) as error:
            raise TableError(f"{path}: does not read as CSV ({error}).", path=str(path)) from error
    if len(records) < 2:
        raise TableError(f"{path}: found no rows, expected a header and at least one row.", path=str(path))
    header = [records[0][0].lstrip("#").strip(), *records[0][1:]]
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise TableError(f"{path}: found the column {twice[0]!r} more than once. Remove one.", path=str(path))
    for number, record in enumerate(records[1:], start=2):
        if len(record) != len(header):
            raise TableError(
                f"{path}, row {number:,}: found {len(record)} cells, expected {len(header)} as in the header.",
                path=str(path),
            )
    return header, [dict(zip(header, record, strict=True)) for record in records[1:]]


def _from_csv(path: Path, cells: str | None) -> RelativeTimes:
    header, rows = _rows(path)
    named = {name.lower(): name for name in header}
    app, input_, ranks = named.get("app"), named.get("args") or named.get("input"), named.get("ranks")
    if app is None or input_ is None:
        raise TableError(
            f"{path}: found the columns {some_of(header)}, expected 'app' and 'input' (or 'App', 'Args', 'Ranks') and "
            "one for each mode.",
            path=str(path),
        )
    workloads = [(row[app], " ".join(filter(None, (row[input_], ranks and f"ranks={row[ranks]}")))) for row in rows]
    _refuse_twice(path, workloads)
    modes = [name for name in header if name not in (app, input_, ranks) and not name.endswith((":low", ":high"))]
    inverse = (cells or ("speedup" if "args" in named else "relative-time")) == "speedup"

    def read(suffix: str) -> Floats:
        columns = [_column(path, rows, mode + suffix) for mode in modes]
        relative_wm = np.stack(columns, axis=1) if columns else np.empty((len(rows), 0))
        return 1.0 / relative_wm if inverse else relative_wm

    relative_wm, low_wm, high_wm = read(""), read(":low"), read(":high")
    if inverse:
        low_wm, high_wm = high_wm, low_wm
    groups = [f"{row[app]} {row[ranks]}" if ranks else row[app] for row in rows]
    low_wm, high_wm = (np.where(np.isnan(end), relative_wm, end) for end in (low_wm, high_wm))
    return RelativeTimes.of(workloads, modes, relative_wm, low_wm, high_wm, group_w=groups, name=path.name)


def _column(path: Path, rows: Sequence[Mapping[str, str]], name: str) -> Floats:
    values = []
    for number, row in enumerate(rows, start=2):
        text = row.get(name, "")
        value = _positive(text)
        if value is None:
            raise TableError(
                f"{path}, row {number:,}, column {name!r}: found {text!r}, expected a number above 0, or nothing where "
                "the workload cannot run.",
                path=str(path),
                row=number,
            )
        values.append(value)
    return np.array(values)


def _positive(text: str) -> float | None:
    """Return a number above 0, NaN for an empty cell, ``None`` for anything else."""
    if not text:
        return math.nan
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0.0 < value < math.inf else None


def _refuse_twice(path: Path, workloads: Sequence[tuple[str, str]]) -> None:
    seen: set[tuple[str, str]] = set()
    for number, workload in enumerate(workloads, start=2):
        if workload in seen:
            raise TableError(
                f"{path}, row {number:,}: found {' '.join(workload)!r} a second time, expected each workload once.",
                path=str(path),
                row=number,
            )
        seen.add(workload)


def _from_json(path: Path) -> RelativeTimes:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        cells, modes, rows = facts.get("cells", CELLS[0]), list(facts["modes"]), facts["workloads"]
        workloads = [(str(row["app"]), str(row["input"])) for row in rows]
        groups = [str(row.get("group", row["app"])) for row in rows]
        tables = [
            np.array([[float(row.get(key, row["times"]).get(mode, math.nan)) for mode in modes] for row in rows])
            for key in ("times", "low", "high")
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TableError(
            f"{path}: does not read as a table of times ({type(error).__name__}: {error}), expected 'modes' and "
            "'workloads', each with 'app', 'input' and 'times' by mode.",
            path=str(path),
        ) from error
    if cells != CELLS[0]:
        raise TableError(f"{path}: found cells of {cells!r}, expected {CELLS[0]!r} in JSON.", path=str(path))
    _refuse_twice(path, workloads)
    if not rows or any((cells_wm <= 0).any() or np.isinf(cells_wm).any() for cells_wm in tables):
        raise TableError(f"{path}: expected workloads, all with times above 0. Mend the table.", path=str(path))
    return RelativeTimes.of(workloads, modes, *tables, group_w=groups, name=path.name)


def from_runs(table: runs_table.RunsTable, *, reference: str | None = None) -> RelativeTimes:
    """Return the median times of a runs table, relative to a platform; workloads not measured there are left out."""
    cells = (
        table.succeeded.group_by("app", "input", "platform")
        .agg(pl.col("runtime_s").median())
        .sort("app", "input", "platform")
    )
    platforms = sorted(cells["platform"].unique())
    if not platforms:
        raise TableError(f"{table.path}: found no successful run, expected measured times.", path=table.path)
    if reference is None:
        counts = {platform: (cells["platform"] == platform).sum() for platform in platforms}
        reference = max(platforms, key=lambda platform: counts[platform])
    if reference not in platforms:
        raise SettingsError(
            f"--reference: found {reference!r}{did_you_mean(reference, platforms)}, expected a platform of "
            f"{table.path}: {some_of(platforms, 20)}."
        )
    wide = cells.pivot("platform", index=["app", "input"], values="runtime_s").sort("app", "input")
    there = wide.filter(pl.col(reference).is_not_null())
    seconds_wm = there.select(platforms).fill_null(np.nan).to_numpy().astype(np.float64)
    relative_wm = seconds_wm / seconds_wm[:, [platforms.index(reference)]]
    workloads = list(zip(there["app"].to_list(), there["input"].to_list(), strict=True))
    missing = wide.height - there.height
    notes = [f"{missing:,} workloads of {table.path} were not measured on {reference} and are not drawn."]
    return RelativeTimes.of(
        workloads, platforms, relative_wm, name=Path(table.path).name, notes=notes if missing else []
    )


def from_predictions(
    predictions: Iterable[Prediction], truth: RelativeTimes, source: str, *, name: str = "predictions"
) -> RelativeTimes:
    """Return predictions from runs on one platform as a table, for the workloads and modes of the truth.

    The time on that platform was measured, so the truth there sets the scale of each workload.
    """
    place = {workload: w for w, workload in enumerate(truth.workloads)}
    found = [one for one in predictions if (one.app, one.input) in place]
    workloads = [(one.app, one.input) for one in found]
    at_source_w = truth.relative_wm[[place[workload] for workload in workloads], truth.modes.index(source)]

    def scaled(relative: Sequence[Mapping[str, float]]) -> Floats:
        cells_wm = np.array([[times.get(mode, np.nan) for mode in truth.modes] for times in relative])
        return cells_wm.reshape(len(found), len(truth.modes)) * at_source_w[:, None]

    middle_wm = scaled([one.relative_time for one in found])
    ends = scaled([one.low for one in found]), scaled([one.high for one in found])
    low_wm, high_wm = (np.where(np.isnan(end_wm), middle_wm, end_wm) for end_wm in ends)
    return RelativeTimes.of(workloads, truth.modes, middle_wm, low_wm, high_wm, name=name)


# Predictors that need no model: what the truth itself would teach.


def app_average(truth: RelativeTimes) -> RelativeTimes:
    """Return the mean speed-up of each application in each mode, its own workloads included.

    The range is what the middle 80 % of its workloads span.
    """
    return _averaged(truth, np.unique(np.array(truth.group_w), return_inverse=True)[1], "app-average")


def machine_average(truth: RelativeTimes) -> RelativeTimes:
    """Return one number for each mode, its mean speed-up over all workloads, and the range that 80 % of them span."""
    return _averaged(truth, np.zeros(len(truth.workloads), np.int64), "machine-average")


def ideal(truth: RelativeTimes) -> RelativeTimes:
    """Return the truth as a prediction."""
    return replace(truth, name="ideal")


#: Predictors by name, each a function of the truth.
PREDICTORS = {"ideal": ideal, "app-average": app_average, "machine-average": machine_average}


def _averaged(truth: RelativeTimes, group_w: Ints, name: str) -> RelativeTimes:
    """Return the mean speed-up of each group, NaN in modes that none of the group runs in."""
    relative_wm, low_wm, high_wm = (np.full_like(truth.relative_wm, np.nan) for _ in range(3))
    for group in range(group_w.max() + 1):
        rows_w = group_w == group
        for m, there_w in enumerate(~np.isnan(truth.relative_wm).T & rows_w):
            if there_w.any():
                cells = truth.relative_wm[there_w, m]
                relative_wm[rows_w, m] = mean = 1.0 / (1.0 / cells).mean()
                low_wm[rows_w, m] = min(mean, np.quantile(cells, 0.1))
                high_wm[rows_w, m] = max(mean, np.quantile(cells, 0.9))
    return RelativeTimes.of(
        truth.workloads, truth.modes, relative_wm, low_wm, high_wm, group_w=truth.group_w, name=name
    )


# Machines


@dataclass(frozen=True)
class Machines:
    """Clusters by name, each with its nodes and the price of one for an hour (0 where unknown)."""

    names: tuple[str, ...]
    nodes: tuple[int, ...]
    price_per_node_hour: tuple[float, ...]

    @classmethod
    def of(cls, nodes: Mapping[str, int], price_per_node_hour: Mapping[str, float] | None = None) -> Machines:
        """Return clusters from their nodes by name."""
        prices = price_per_node_hour or {}
        return cls(tuple(nodes), tuple(nodes.values()), tuple(prices.get(name, 0.0) for name in nodes))

    def cluster_of(self, mode: str) -> int | None:
        """Return the cluster that a mode runs on: of the same name, or with the longest name before a ``-``.

        >>> machines = Machines.of({"tioga": 30, "dane": 256})
        >>> machines.cluster_of("tioga-gpu"), machines.cluster_of("dane"), machines.cluster_of("h200")
        (0, 1, None)
        """
        fits = [name for name in self.names if mode == name or mode.startswith(f"{name}-")]
        return self.names.index(max(fits, key=len)) if fits else None

    def clusters_of(self, modes: Iterable[str], table: str = "the table") -> Ints:
        """Return the cluster of each mode, -1 where it has none; raise where no mode has one."""
        found = [self.cluster_of(mode) for mode in modes]
        if all(cluster is None for cluster in found):
            raise TableError(
                f"{table}: found the columns {some_of(modes)}, expected at least one that is named as a machine or "
                f"MACHINE-MODE: {some_of(self.names)}."
            )
        return np.array([-1 if cluster is None else cluster for cluster in found])


def read_machines(path: str | os.PathLike[str]) -> Machines:
    """Return the clusters of a CSV with the columns ``machine``, ``size`` and perhaps ``price_per_node_hour``."""
    path = Path(path)
    if not path.is_file():
        raise TableError(f"{path}: no such file, expected a CSV of machines. Check the path.", path=str(path))
    header, rows = _rows(path)
    if not {"machine", "size"} <= set(header):
        raise TableError(
            f"{path}: found the columns {some_of(header)}, expected 'machine' and 'size' (its nodes), and perhaps "
            "'price_per_node_hour'.",
            path=str(path),
        )
    nodes: dict[str, int] = {}
    prices: dict[str, float] = {}
    for number, row in enumerate(rows, start=2):
        name, size = row["machine"], row["size"]
        if not name or name in nodes:
            raise TableError(f"{path}, row {number}: found the machine {name!r}, expected each once, by name.")
        if not size.isdecimal() or int(size) < 1:
            raise TableError(f"{path}, row {number}: found {size!r} nodes, expected a whole number above 0.")
        nodes[name] = int(size)
        prices[name] = _price(path, number, row.get("price_per_node_hour", ""))
    return Machines.of(nodes, prices)


def _price(path: Path, number: int, text: str) -> float:
    try:
        price = float(text or 0.0)
    except ValueError:
        price = -1.0
    if not 0.0 <= price < math.inf:
        raise TableError(f"{path}, row {number}: found a price of {text!r}, expected 0 or more, or nothing.")
    return price
