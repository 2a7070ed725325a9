"""A heat map: names down the side, platforms along the top, a number in every cell."""

# R rows, C columns

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.patches import Rectangle
from matplotlib.transforms import ScaledTranslation

from crossperf.arrays import Floats
from crossperf.report.figures.colours import FAINT, ON_DEEP, ON_PALE, PALE_TO_DEEP, Look
from crossperf.report.figures.sheet import Sheet
from crossperf.report.figures.style import SMALL, WIDTH
from crossperf.report.figures.words import fitted_apart

#: Most rows of a map; a longer list tells how many it leaves out.
MOST_ROWS = 40
#: Inches of a row, of the legend below, and the widest that names may run.
_ROW, _LEGEND, _NAMES = 0.25, 0.62, 2.0
#: Below this many inches a column has no room for its numbers.
_ROOM_FOR_NUMBERS = 0.42
#: Ground left between cells, in rows and columns, and between the totals and the rest.
_BETWEEN, APART = 0.05, 0.3
#: Points from the cells up to a platform's mark, and from the mark's middle on to its name.
_TO_MARK, _TO_NAME = 7.0, 7.0
#: From this class on the numbers in the cells are light.
_DEEP = 4


@dataclass(frozen=True)
class Classes:
    """Where each colour begins, and its label in the legend; fixed, so that maps can be compared."""

    begins: tuple[float, ...]
    labels: tuple[str, ...]

    def of(self, value: float) -> int:
        """Return the number of a value's class."""
        return int(np.searchsorted(self.begins, value, side="right")) - 1


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


def heat(sheet: Sheet, what: Map, looks: dict[str, Look], legend_title: str) -> None:
    """Draw a heat map with its legend; the looks are those of the columns that are platforms."""
    names = fitted_apart(sheet, what.rows, _NAMES, 10)
    longest = max(sheet.width_of(name, 10) for name in names)
    room = WIDTH - 0.5 - longest
    column = min(room / (max(what.at_c) + 1), 1.1)
    heads = fitted_apart(sheet, what.columns, 1.6, 10)
    slanted = max(sheet.width_of(name, 10) for name in heads) > column * 0.95
    tall = 0.3 + (max(sheet.width_of(name, 10) for name in heads) if slanted else 0.2)
    axes = sheet.panel(tall + _ROW * (max(what.at_r) + 1) + _LEGEND + 0.3)
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
    axes.set(xlim=(-0.5, room / column - 0.5), ylim=(max(what.at_r) + 0.5 + _LEGEND / _ROW, -0.5))
    axes.spines[:].set_visible(False)
    _legend(sheet, axes, what, legend_title, (longest + 0.05, column))


def _cells(sheet: Sheet, axes: Axes, what: Map, *, numbers: bool) -> None:
    half = 0.5 - _BETWEEN / 2
    corners, colours = [], []
    for r, y in enumerate(what.at_r):
        for c, x in enumerate(what.at_c):
            value = float(what.values_rc[r, c])
            if np.isnan(value):
                axes.plot(x, y, marker=".", color=FAINT, markersize=2.5)
                continue
            number = what.classes.of(value)
            corners.append([(x - half, y - half), (x + half, y - half), (x + half, y + half), (x - half, y + half)])
            colours.append(PALE_TO_DEEP[number])
            if numbers:
                ink = ON_DEEP if number >= _DEEP else ON_PALE
                written = axes.text(x, y, what.number(value), color=ink, ha="center", va="center", fontsize=SMALL)
                written.set_in_layout(False)  # it lies inside the axes; to measure hundreds takes seconds
            sheet.box(axes, (x - half, x + half), (y - half, y + half), what.text(r, c))
    axes.add_collection(PolyCollection(corners, facecolors=colours, edgecolors="none"))


def _legend(sheet: Sheet, axes: Axes, what: Map, title: str, inches: tuple[float, float]) -> None:
    """Draw the colours and what they stand for, in one row below the map, from where the names begin.

    Parameters
    ----------
    inches
        How wide the names before the map run, and how wide a column of the map is.
    """
    names, column = inches
    y, x = max(what.at_r) + 0.5 + 0.3 / _ROW, -0.5 - names / column
    axes.text(x, y, title, ha="left", va="center", fontsize=SMALL)
    x += (sheet.width_of(title, SMALL) + 0.2) / column
    for colour, label in zip(PALE_TO_DEEP, what.classes.labels, strict=True):
        swatch = Rectangle((x, y - 0.31), 0.2 / column, 0.62, facecolor=colour, edgecolor="none", clip_on=False)
        axes.add_patch(swatch)
        axes.text(x + 0.26 / column, y, label, ha="left", va="center", fontsize=SMALL)
        x += (sheet.width_of(label, SMALL) + 0.42) / column
