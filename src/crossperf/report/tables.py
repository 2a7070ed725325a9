"""The tables of an evaluation, for the page and the terminal."""

# N cells, P platforms, A applications

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from crossperf.display import CellView, ColumnView, RowView, TableView, number, numbers, percent, share, words
from crossperf.errors import some_of
from crossperf.platforms import in_order

if TYPE_CHECKING:
    from crossperf.evaluation.compare import TableComparison
    from crossperf.evaluation.heldout import HeldOut
    from crossperf.evaluation.result import Evaluation
    from crossperf.runs.summary import TableInfo

#: Applications in a table; of more, those with the largest errors.
MOST_APPS = 200
#: Rows in the list of gaps, of more the first; and counters with the same gaps that are named.
MOST_COUNTERS, _NAMED = 200, 3
#: Platforms that lack a counter and are named.
_PLACES = 10


def scores(evaluation: Evaluation) -> TableView:
    """Return models by metrics, the best of each marked, with the noise ceiling and constant answers beside."""
    from crossperf.evaluation.scores import METRICS

    constant, view = evaluation.constant, evaluation.scores.view()
    known = {"same_order": constant.order_share, "top1": constant.fastest_share}
    cells = [number(known.get(metric)) for metric in METRICS]
    always: RowView = ("constant answer", *cells, number(None), number(None))
    return replace(view, reference=(*view.reference, always))


def applications(held_out: HeldOut, model: str | None = None) -> TableView:
    """Return each application with its cells, the error of every model and the picks of one, worst first.

    Parameters
    ----------
    model
        Whose picks are shown and whose errors give the order; ``None`` takes the first.
    """
    from crossperf.evaluation import metrics

    names, app_n, first = held_out.apps, held_out.app_n, model or next(iter(held_out.predictions))
    factor_by_model = {}
    for name in held_out.predictions:
        sum_a, count_a = (whole_ap.sum(axis=1) for whole_ap in held_out.error_by_app(name))
        factor_by_model[name] = np.exp(sum_a / np.maximum(count_a, 1))
    cells_a = np.bincount(app_n, minlength=len(names))
    _, first_n = np.unique(held_out.workload_n, return_index=True)
    workloads_a = np.bincount(app_n[first_n], minlength=len(names))
    slowdown_n = metrics.picked_slowdown(held_out.log_relative_time_np, held_out.predictions[first].predicted_np)
    right_a = np.bincount(app_n, slowdown_n == 1.0, len(names)) / np.maximum(cells_a, 1)
    lost_a = np.bincount(app_n, slowdown_n - 1.0, len(names)) / np.maximum(cells_a, 1)
    order_a = sorted(np.flatnonzero(cells_a), key=lambda a: (-factor_by_model[first][a], names[a]))
    rows: list[RowView] = []
    for a in order_a[:MOST_APPS]:
        factors = [number(factor_a[a], 2) for factor_a in factor_by_model.values()]
        counts = number(workloads_a[a], 0), number(cells_a[a], 0)
        rows.append((names[a], *factors, share(right_a[a]), share(lost_a[a], digits=1), *counts))
    part = f"the {MOST_APPS} of " if len(order_a) > MOST_APPS else ""
    return TableView(
        f"Error by application: {part}{len(order_a):,} application{'s' * (len(order_a) != 1)}, the largest error of "
        f"{first} first",
        (
            *words("application"),
            *(ColumnView(name, f"typical factor of {name}; 1 is perfect") for name in factor_by_model),
            ColumnView("right picks", f"share of cells for which {first} names the fastest platform"),
            ColumnView("lost by picks", f"time lost by following {first}, in the mean"),
            ColumnView("workloads", "held out"),
            ColumnView("cells", "held out: a workload on the platform it was profiled on"),
        ),
        tuple(rows),
    )


def platforms(info: TableInfo, known: Mapping[str, str] | None = None) -> TableView:
    """Return each platform of a runs table with what was measured there, by machine and then by threads.

    Parameters
    ----------
    known
        What is known of platforms, in a line each (`crossperf.platforms.in_a_line`).
    """
    rows: list[RowView] = []
    limited, lines = info.limited_workloads > 0, known or {}
    described = any(own.name in lines for own in info.platforms)
    by_name = {own.name: own for own in info.platforms}
    for name in in_order(by_name, {own.name: own.platform_class for own in info.platforms}):
        own = by_name[name]
        counts = number(own.runs, 0), number(own.workloads, 0)
        shares = [
            own.workloads / max(info.workloads, 1),
            own.noise,
            *([own.noise_between_visits] if info.visits else []),
        ]
        digits = (0, 1, 1)
        cells = [share(value, digits=digit) for value, digit in zip(shares, digits, strict=False)]
        absent = [number(count, 0) for count in (own.cannot_run, own.not_measured)] if limited else []
        kind = own.platform_class or "–", *([lines.get(own.name, "–")] if described else [])
        rows.append((own.name, *kind, *counts, *cells[:1], *absent, *cells[1:]))
    gaps = (
        ColumnView("cannot run", "workloads without a version for it"),
        ColumnView("not measured", "workloads that can run there, or may be able to, and never did"),
    )
    between = [ColumnView("between visits", "variation of the visits of a cell, in the median")] if info.visits else []
    return TableView(
        "What was measured on each platform",
        (
            *words("platform", "class", *(["what it is"] if described else [])),
            ColumnView("runs", "that succeeded"),
            *numbers("workloads", "of all workloads"),
            *(gaps if limited else ()),
            ColumnView("variation", "of the repeats of a cell: standard deviation over mean, in the median"),
            *between,
        ),
        tuple(rows),
    )


def missing(info: TableInfo, most: int = MOST_COUNTERS) -> TableView:
    """Return the counters with gaps, and where the gaps are; those with the same gaps stand together."""
    together: dict[tuple[tuple[str, float], ...], list[str]] = {}
    for counter, shares in info.missing_counters.items():
        together.setdefault(tuple(shares.items()), []).append(counter)
    rows = [
        (some_of(counters, _NAMED), number(len(counters), 0), number(len(shares), 0), _where(shares, info))
        for shares, counters in islice(together.items(), most)
    ]
    shown = f", the first {most} rows" if len(together) > most else ""
    columns = (
        *words("counters"),
        ColumnView("how many", "counters with the same gaps"),
        ColumnView("platforms", "that lack them in some runs or all"),
        *words("share of runs without them"),
    )
    gaps = len(info.missing_counters)
    return TableView(f"Counters with gaps, {gaps:,} of {info.counters:,}{shown}", columns, tuple(rows))


def _where(shares: Sequence[tuple[str, float]], info: TableInfo) -> str:
    """Return the platforms that lack a counter with the share of their runs; of many, the least and the greatest.

    A single run is named as such.
    """
    runs = {own.name: own.runs for own in info.platforms}
    texts = [
        "1 run" if runs.get(name, 0) > 1 and round(part * runs[name]) == 1 else percent(part) for name, part in shares
    ]
    if len(shares) == len(info.platforms) > 1 and len(set(texts)) == 1:
        return f"{texts[0]} on each"
    if len(shares) > _PLACES:
        ends = (percent(end(part for _, part in shares)) for end in (min, max))
        return " to ".join(ends) + f" on {len(shares)} platforms"
    return ", ".join(f"{name}: {text}" for (name, _), text in zip(shares, texts, strict=True))


def changes(result: TableComparison) -> TableView:
    """Return how the times of each platform differ between two tables."""
    rows: list[RowView] = []
    for own in result.platforms:
        factors = (own.bias, own.typical_factor, own.unbiased_factor)
        rows.append((own.name, number(own.workloads, 0), *(number(factor, 3) for factor in factors)))
    return TableView(
        f"Times of {result.second} over those of {result.first}",
        (
            *words("platform"),
            ColumnView("workloads", "that both tables have"),
            ColumnView("bias", "geometric mean of second over first"),
            ColumnView("typical factor", "between the two times of a workload; 1 is no change"),
            ColumnView("without bias", "the same after the median change is taken out"),
        ),
        tuple(rows),
    )


def most_changed(result: TableComparison) -> TableView:
    """Return the cells whose time changed most."""
    columns = (*words("application", "input", "platform"), *numbers("first, s", "second, s", "ratio"))
    rows: list[RowView] = []
    for own in result.most_changed:
        seconds = (CellView(f"{value:.3g}", value) for value in (own.first_s, own.second_s))
        rows.append((own.app, own.input, own.platform, *seconds, number(own.ratio, 2)))
    return TableView("What changed most", columns, tuple(rows))
