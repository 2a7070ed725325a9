"""The tables of the page, each cell as a person reads it and as a script sorts it."""

# N cells, P platforms, A applications

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossperf.evaluation import metrics
from crossperf.evaluation.heldout import HeldOut
from crossperf.evaluation.run import Evaluation
from crossperf.report.figures.words import count
from crossperf.report.sentences import COLUMNS, best

#: Applications in a table; of more, those with the largest errors.
MOST_APPS = 200
#: Counters in the list of gaps; of more, the first by name.
MOST_COUNTERS = 200

Floats = NDArray[np.float64]
_GAP = "–"


@dataclass(frozen=True)
class Cell:
    """What a cell shows, the number it is sorted by (``None`` comes last), and whether it is the best."""

    text: str
    value: float | None = None
    best: bool = False


@dataclass(frozen=True)
class Column:
    """The head of a column; numbers are set to the right."""

    name: str
    hint: str = ""
    number: bool = True


@dataclass(frozen=True)
class Table:
    """A table whose first column names its rows; ``beside`` holds rows to compare with, which are never sorted."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    beside: tuple[tuple[Cell, ...], ...] = ()


def scores(evaluation: Evaluation) -> Table:
    """Return models by metrics, the best of each marked, with the noise ceiling and constant answers beside."""
    bests = {metric: best(evaluation, metric) for metric in COLUMNS}
    constant = evaluation.constant
    always = {"same_order": constant["order_share"], "top1": constant["fastest_share"]}
    rows = [
        (word(name), *(_number(one.get(metric), best_value=bests[metric]) for metric in COLUMNS))
        for name, one in evaluation.models.items()
    ]
    beside = [("noise ceiling", evaluation.noise_ceiling), ("always the same answer", always)]
    return Table(
        "Scores of the models on what was held out",
        (Column("model", number=False), *(Column(_heading(metric), hint) for metric, hint in COLUMNS.items())),
        tuple(rows),
        tuple((word(name), *(_number(one.get(metric)) for metric in COLUMNS)) for name, one in beside),
    )


def _heading(metric: str) -> str:
    """Return a metric's name as a heading, with the direction that is better.

    >>> _heading("same_order")
    'same order ↑'
    """
    return f"{metric.replace('_', ' ')} {'↑' if metrics.METRICS[metric] == 'higher' else '↓'}"


def applications(held_out: HeldOut) -> Table:
    """Return each application with its cells, the error of every model and the picks of the first, worst first."""
    names, app_n = held_out.apps, held_out.app_n
    first = next(iter(held_out.said))
    factor_by_model = {name: _factor_by_app(held_out, name) for name in held_out.said}
    cells_a = np.bincount(app_n, minlength=len(names))
    workloads_a = _workloads_by_app(held_out)
    slowdown_n = metrics.picked_slowdown(held_out.log_relative_time_np, held_out.said[first].predicted_np)
    right_a = np.bincount(app_n, slowdown_n == 1.0, len(names)) / np.maximum(cells_a, 1)
    lost_a = np.bincount(app_n, slowdown_n - 1.0, len(names)) / np.maximum(cells_a, 1)
    order_a = sorted(np.flatnonzero(cells_a), key=lambda a: (-factor_by_model[first][a], names[a]))
    rows = [
        (
            word(names[a]),
            *(_factor(factor_a[a]) for factor_a in factor_by_model.values()),
            _share(right_a[a]),
            _share(lost_a[a], digits=1),
            _count(workloads_a[a]),
            _count(cells_a[a]),
        )
        for a in order_a[:MOST_APPS]
    ]
    most = (
        f"the {MOST_APPS} of {len(order_a):,} applications"
        if len(order_a) > MOST_APPS
        else count(len(order_a), "application")
    )
    return Table(
        f"Error by application: {most}, the largest error of {first} first",
        (
            Column("application", number=False),
            *(Column(name, f"typical factor of {name}; 1 is perfect") for name in factor_by_model),
            Column("right picks", f"share of cells for which {first} names the fastest platform"),
            Column("lost by picks", f"time lost by following {first}, in the mean"),
            Column("workloads", "held out"),
            Column("cells", "held out: a workload on the platform it was profiled on"),
        ),
        tuple(rows),
    )


def _factor_by_app(held_out: HeldOut, model: str) -> Floats:
    pair_np = metrics.to_fastest(held_out.log_relative_time_np, held_out.said[model].predicted_np)
    error_np = np.abs(np.subtract(*pair_np))
    app_np = np.broadcast_to(held_out.app_n[:, None], error_np.shape)
    known_np = ~np.isnan(error_np)
    count_a = np.bincount(app_np[known_np], minlength=len(held_out.apps))
    sum_a = np.bincount(app_np[known_np], error_np[known_np], len(held_out.apps))
    return np.asarray(np.exp(sum_a / np.maximum(count_a, 1)))


def _workloads_by_app(held_out: HeldOut) -> NDArray[np.int64]:
    _, first_n = np.unique(held_out.workload_n, return_index=True)
    return np.bincount(held_out.app_n[first_n], minlength=len(held_out.apps))


def platforms(info: dict[str, Any]) -> Table:
    """Return each platform of a runs table with what was measured there."""
    rows = [
        (
            word(one["name"]),
            word(one["class"] or _GAP),
            _count(one["runs"]),
            _count(one["workloads"]),
            _share(one["workloads"] / max(info["workloads"], 1)),
            _share(one["noise"], digits=1),
        )
        for one in info["platforms"]
    ]
    return Table(
        "What was measured on each platform",
        (
            Column("platform", number=False),
            Column("class", number=False),
            Column("runs", "that succeeded"),
            Column("workloads"),
            Column("of all workloads"),
            Column("variation", "of the repeats of a cell: standard deviation over mean, in the median"),
        ),
        tuple(rows),
    )


def missing(info: dict[str, Any]) -> Table:
    """Return the counters with gaps, and where the gaps are."""
    gaps = info["missing_counters"]
    rows = [
        (word(counter), _count(len(shares)), word(", ".join(f"{name} {share:.0%}" for name, share in shares.items())))
        for counter, shares in list(gaps.items())[:MOST_COUNTERS]
    ]
    shown = f", the first {MOST_COUNTERS}" if len(gaps) > MOST_COUNTERS else ""
    return Table(
        f"Counters with gaps, {len(gaps):,} of {info['counters']:,}{shown}",
        (
            Column("counter", number=False),
            Column("platforms", "that lack it in some runs or all"),
            Column("share of runs without it", number=False),
        ),
        tuple(rows),
    )


def word(text: str) -> Cell:
    """Return a cell of text, which is sorted by itself."""
    return Cell(text)


def left_out(evaluation: Evaluation) -> list[str]:
    """Return which rows of the table took no part, and why, in sentences."""
    facts = evaluation.table
    info = facts.get("info", {})
    found = [
        f"{count(number, 'run')} failed with status '{status}'." for status, number in info.get("failed", {}).items()
    ]
    dropped = [one["name"] for one in info.get("platforms", []) if one["name"] not in facts["platforms"]]
    if dropped:
        found.append(f"{_listed(dropped)}: not among the platforms chosen.")
    incomplete = info.get("workloads", 0) - info.get("complete_workloads", 0)
    if incomplete and not dropped:  # of some platforms alone, the doubts tell how many
        found.append(f"{incomplete:,} of {info['workloads']:,} workloads lack a platform; they count where they ran.")
    return found or ["No row was left out."]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _number(value: float | None, best_value: float | None = None) -> Cell:
    if value is None:
        return Cell(_GAP)
    return Cell(f"{value:,.3f}".replace("-", "−"), value, best_value is not None and value == best_value)


def _factor(value: float) -> Cell:
    return Cell(f"{value:,.2f}", float(value))


def _share(value: float | None, digits: int = 0) -> Cell:
    return Cell(_GAP) if value is None else Cell(f"{value:.{digits}%}", float(value))


def _count(value: int) -> Cell:
    return Cell(f"{value:,}", int(value))
