"""Heat maps: where a model is wrong, and which counters are missing."""

# R rows, C columns, N cells, A applications, P platforms

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.patches import Rectangle
from matplotlib.transforms import ScaledTranslation

from crossperf.arrays import Floats, Integers
from crossperf.errors import several
from crossperf.evaluation.result import Evaluation
from crossperf.report.figures import NothingToDraw, cells
from crossperf.report.figures.colours import FAINT, ON_DEEP, ON_PALE, PALE_TO_DEEP, Look
from crossperf.report.figures.sheet import SMALL, Sheet
from crossperf.report.figures.words import fitted, fitted_apart, left_out, percent, plain, times

_MOST_ROWS = 40  # most rows of a map; a longer list tells how many it leaves out
_ROW, _LEGEND, _NAMES = 0.25, 0.62, 2.0  # inches of a row, of the legend below, and the widest that names may run
_NARROW_NAMES = 1.05
_ROOM_FOR_NUMBERS = 0.42  # below this many inches a column has no room for its numbers
_BETWEEN, _APART = 0.05, 0.3  # ground left between cells, in rows and columns, and between the totals and the rest
#: Points from the cells up to a platform's mark, and from the mark's middle on to its name.
_TO_MARK, _TO_NAME = 7.0, 7.0
_DEEP = 4  # from this class on the numbers in the cells are light


@dataclass(frozen=True)
class Classes:
    """Where each colour begins, and its label in the legend; fixed, so that maps can be compared."""

    begins: tuple[float, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Map:
    """What a heat map shows: values by row and column (NaN: a dot), where each lies, and how it is written."""

    rows: Sequence[str]
    columns: Sequence[str]
    values_rc: Floats
    at_r: Sequence[float]
    at_c: Sequence[float]
    classes: Classes
    number: Callable[[float], str]
    text: Callable[[int, int], str]


#: Why the total differs from the score, which is a mean over folds.
_ALL_COUNT = "All predictions count the same, where the score is the mean over folds. "
_FACTORS = Classes((1.0, 1.1, 1.25, 1.5, 2.0, 4.0), ("to 1.1x", "to 1.25x", "to 1.5x", "to 2x", "to 4x", "4x or more"))
_SHARES = Classes((0.0, 0.05, 0.25, 0.5, 0.75, 1.0), ("under 5%", "5% up", "25% up", "50% up", "75% up", "all"))


def errors(sheet: Sheet, evaluation: Evaluation, *, model: str | None = None) -> None:
    """Draw the typical factor of a model for each application on each platform, the worst applications first."""
    held = cells.held_out(evaluation)
    name, _ = cells.predictions_of(evaluation, model)
    sum_ap, count_ap = held.error_by_app(name)
    scored_a = [held.apps.index(app) for app in held.held_apps]
    mean_a = sum_ap.sum(axis=1) / np.maximum(count_ap.sum(axis=1), 1)
    worst_a = np.array(sorted(scored_a, key=lambda a: -mean_a[a])[:_MOST_ROWS], dtype=np.int64)
    order_p = cells.places(evaluation, held)
    sum_ap, count_ap = sum_ap[:, order_p], count_ap[:, order_p]
    sum_rc, count_rc = (_with_totals(whole_ap, worst_a) for whole_ap in (sum_ap, count_ap))
    factor_rc = np.exp(np.divide(sum_rc, count_rc, out=np.full(sum_rc.shape, np.nan), where=count_rc > 0))
    rows = ["all applications", *(held.apps[a] for a in worst_a)]
    columns = [*(held.platforms[p] for p in order_p), "all"]

    def text(row: int, column: int) -> str:
        where = "all platforms" if column == len(held.platforms) else plain(columns[column])
        factor, often = times(float(factor_rc[row, column])), several(int(count_rc[row, column]), "prediction")
        return f"{plain(rows[row])} on {where}: off by {factor} ({often})"

    at_r = [0.0, *(1 + _APART + a for a in range(len(worst_a)))]
    at_c = [*range(len(held.platforms)), len(held.platforms) + _APART]
    heat(sheet, Map(rows, columns, factor_rc, at_r, at_c, _FACTORS, _short, text), cells.looks(evaluation), "off by")
    sheet.title = f"Where is {fitted(sheet, name, 1.6 if sheet.narrow else 2.6, 14)} wrong?"
    apps = several(len(held.held_apps), "application")
    sheet.caption = (
        f"{cells.those(evaluation, len(held), 'cell')}, {apps}, the worst first. "
        "Off by: the typical factor between predicted and measured time, each over that on the source; 1.00 is "
        f"perfect. {_ALL_COUNT * (cells.folds_scored(evaluation) > 1)}A dot: nothing to predict there."
        f"{left_out(len(held.held_apps) - len(worst_a), 'application', 'with smaller errors')}"
    )


def _short(factor: float) -> str:
    return f"{factor:.2f}" if factor < 9.995 else f"{factor:.0f}" if factor < 999.5 else "1k+"


def _with_totals(whole_ap: Floats, rows_a: Integers) -> Floats:
    """Return some rows below the total of all rows, each with its total at the end."""
    with_row = np.vstack([whole_ap.sum(axis=0), whole_ap[rows_a]])
    return np.column_stack([with_row, with_row.sum(axis=1)])


def missing(sheet: Sheet, evaluation: Evaluation) -> None:
    """Draw which share of each platform's runs lacks a counter, for the counters with gaps."""
    info = cells.table_info(evaluation)
    gaps = info.missing_counters
    if not gaps:
        raise NothingToDraw(f"None of {several(info.counters, 'counter')} is missing from any run.")
    measured = {platform.name for platform in info.platforms}
    platforms = [name for name in cells.shown_order(evaluation) if name in measured]
    counters = sorted(gaps, key=lambda name: (-sum(gaps[name].values()), name))[:_MOST_ROWS]
    share_rc = np.array([[gaps[name].get(platform, np.nan) for platform in platforms] for name in counters])

    def text(row: int, column: int) -> str:
        share, platform = percent(float(share_rc[row, column])), plain(platforms[column])
        return f"{plain(counters[row])} is missing from {share} of the runs on {platform}"

    at_r, at_c = range(len(counters)), range(len(platforms))
    shown = Map(counters, platforms, share_rc, at_r, at_c, _SHARES, percent, text)
    heat(sheet, shown, cells.looks(evaluation), "missing from")
    left = left_out(len(gaps) - len(counters), "counter", "with smaller gaps")
    sheet.caption = (
        f"{several(len(gaps), 'counter')} of {info.counters:,} with gaps, over {several(info.runs, 'run')}; a dot: "
        f"in every run.{left}"
    )


def heat(sheet: Sheet, what: Map, looks: dict[str, Look], legend_title: str) -> None:
    """Draw a heat map with its legend; the looks are those of the columns that are platforms."""
    names = fitted_apart(sheet, what.rows, _NARROW_NAMES if sheet.narrow else _NAMES, 10)
    longest = max(sheet.width_of(name, 10) for name in names)
    room = sheet.width - (0.3 if sheet.narrow else 0.5) - longest
    column = min(room / (max(what.at_c) + 1), 1.1)
    heads = fitted_apart(sheet, what.columns, 1.6, 10)
    slanted = max(sheet.width_of(name, 10) for name in heads) > column * 0.95
    tall = 0.3 + (max(sheet.width_of(name, 10) for name in heads) if slanted else 0.2)
    lines = _legend_lines(sheet, what, legend_title)
    legend = _LEGEND + _ROW * (len(lines) - 1)
    axes = sheet.panel(tall + _ROW * (max(what.at_r) + 1) + legend + 0.3)
    _cells(sheet, axes, what, numbers=column >= _ROOM_FOR_NUMBERS)
    axes.set_yticks(what.at_r, names)
    axes.xaxis.tick_top()
    axes.set_xticks(what.at_c, heads, rotation=90 if slanted else 0)
    axes.tick_params(length=0)
    axes.tick_params(axis="x", pad=_TO_MARK + _TO_NAME)
    above = axes.get_xaxis_transform() + ScaledTranslation(0, _TO_MARK / 72, sheet.dpi_scale_trans)
    for x, name in zip(what.at_c, what.columns, strict=True):
        if look := looks.get(name):
            axes.plot(x, 1, marker=look.shape, color=look.colour, markersize=6, clip_on=False, transform=above)
    axes.set(xlim=(-0.5, room / column - 0.5), ylim=(max(what.at_r) + 0.5 + legend / _ROW, -0.5))
    axes.spines[:].set_visible(False)
    _legend(axes, what, lines, longest + 0.05, column)


def _cells(sheet: Sheet, axes: Axes, what: Map, *, numbers: bool) -> None:
    half = 0.5 - _BETWEEN / 2
    corners, colours = [], []
    for r, y in enumerate(what.at_r):
        for c, x in enumerate(what.at_c):
            value = float(what.values_rc[r, c])
            if np.isnan(value):
                axes.plot(x, y, marker=".", color=FAINT, markersize=2.5)
                continue
            number = int(np.searchsorted(what.classes.begins, value, side="right")) - 1
            corners.append([(x - half, y - half), (x + half, y - half), (x + half, y + half), (x - half, y + half)])
            colours.append(PALE_TO_DEEP[number])
            if numbers:
                ink = ON_DEEP if number >= _DEEP else ON_PALE
                written = axes.text(x, y, what.number(value), color=ink, ha="center", va="center", fontsize=SMALL)
                written.set_in_layout(False)  # it lies inside the axes; to measure hundreds takes seconds
            sheet.box(axes, (x - half, x + half), (y - half, y + half), what.text(r, c))
    axes.add_collection(PolyCollection(corners, facecolors=colours, edgecolors="none"))


def _legend_lines(sheet: Sheet, what: Map, title: str) -> list[list[tuple[str, str, float]]]:
    """Return the entries of the legend in lines that fit the sheet, each with its colour, label and width in inches."""
    entries = [("", title, sheet.width_of(title, SMALL) + 0.2)]
    classes = zip(PALE_TO_DEEP, what.classes.labels, strict=True)
    entries += [(colour, label, sheet.width_of(label, SMALL) + 0.42) for colour, label in classes]
    lines: list[list[tuple[str, str, float]]] = [[]]
    for entry in entries:
        if sum(width for _, _, width in lines[-1]) + entry[2] > sheet.width - 0.1:
            lines.append([])
        lines[-1].append(entry)
    return lines


def _legend(axes: Axes, what: Map, lines: list[list[tuple[str, str, float]]], names: float, column: float) -> None:
    """Draw the colours and what they stand for below the map, whose names and columns are this wide, in inches."""
    for number, line in enumerate(lines):
        y, x = max(what.at_r) + 0.5 + 0.3 / _ROW + number, -0.5 - names / column
        for colour, label, width in line:
            if colour:
                swatch = Rectangle((x, y - 0.31), 0.2 / column, 0.62, facecolor=colour, edgecolor="none", clip_on=False)
                axes.add_patch(swatch)
            axes.text(x + (0.26 / column if colour else 0.0), y, label, ha="left", va="center", fontsize=SMALL)
            x += width / column
