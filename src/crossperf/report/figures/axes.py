"""Axes that several figures share: ratios on a log scale with 1x marked, platforms as rows, legends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from crossperf.arrays import Floats
from crossperf.report.figures.colours import FAINT, INK, Line, Look
from crossperf.report.figures.sheet import Sheet
from crossperf.report.figures.words import fitted_apart, number

NAMES = 1.15  # inches that names before the rows of a narrow sheet may run
_ROW, _HANDLE = 0.235, 0.62  # inches of a row of a legend, and of a handle with what is around it
_LEAST_SPAN = 1.25  # a log axis spans this factor at least, so that equal values do not fill it with noise
_AS_IMAGE = 300  # more points than this are held as an image inside an SVG
#: Marks within a decade, from fine to coarse; the finest that leaves room for its labels is taken.
_STEPS: tuple[tuple[float, ...], ...] = (
    (1.0, *(round(1 + 0.05 * i, 2) for i in range(1, 20)), *range(2, 10)),
    (1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2, 2.5, 3, 4, 5, 6, 7, 8, 9),
    (1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3, 4, 5, 6, 7, 8, 9),
    (1.0, 1.5, 2, 3, 4, 5, 7),
    (1.0, 1.5, 2, 3, 5, 7),
    (1.0, 2, 3, 5),
    (1.0, 2, 5),
    (1.0, 3),
)


def ratio_marks(low: float, high: float, most: int = 7) -> list[float]:
    """Return round ratios to mark on a log axis, 1 always among them where it lies on the axis.

    >>> ratio_marks(0.9, 90)
    [1.0, 2.0, 5.0, 10.0, 20.0, 50.0]
    >>> ratio_marks(0.95, 1.4)
    [1.0, 1.1, 1.2, 1.3, 1.4]
    >>> ratio_marks(1, 1e9)
    [1.0, 100.0, 10000.0, 1000000.0, 100000000.0]
    """
    decades = range(int(np.floor(np.log10(low))) - 1, int(np.ceil(np.log10(high))) + 1)
    for steps in _STEPS:
        marks = [float(f"{step * 10.0**decade:.3g}") for decade in decades for step in steps]
        inside = [mark for mark in marks if low <= mark <= high]
        if len(inside) <= most:
            return inside
    whole = [decade for decade in decades if low <= 10.0**decade <= high]
    every = -(-len(whole) // most)
    return [10.0**decade for decade in whole if decade % every == 0]


def most_marks(sheet: Sheet, wide: int = 7) -> int:
    """Return how many marks the labels of a log axis leave room for."""
    return min(wide, 4) if sheet.narrow else wide


def ratio_limits(values: Floats) -> tuple[float, float]:
    """Return where a log axis begins and ends that holds these ratios and 1, with some room.

    >>> low, high = ratio_limits(np.array([2.0, 8.0]))
    >>> low < 1.0 < 8.0 < high < 10.0
    True
    """
    low, high = min(float(np.min(values)), 1.0), max(float(np.max(values)), 1.0)
    high = max(high, low * _LEAST_SPAN)
    room = (high / low) ** 0.04
    return low / room, high * room


def ratio_axis(axis: Axis, values: Floats, label: str, *, most: int = 7) -> tuple[float, float]:
    """Make an axis a log one that holds these ratios and 1, with marks such as 1x, 2x and 10x; return its limits."""
    low, high = ratio_limits(values)
    log_axis(axis, low, high, "x", most=most)
    axis.set_label_text(label)
    axis.grid(True)
    return low, high


def log_axis(axis: Axis, low: float, high: float, unit: str = "", *, most: int = 7) -> None:
    """Make an axis a log one with round marks that are written out."""
    which = "x" if axis is axis.axes.xaxis else "y"
    axis.axes.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    axis.set_major_locator(FixedLocator(ratio_marks(low, high, most)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{number(value)}{unit}"))
    axis.set_minor_locator(NullLocator())


def line_at_1x(axes: Axes, *, upright: bool = True) -> Line2D:
    """Draw the line at 1x: as fast as the fastest, as large as the truth."""
    return (axes.axvline if upright else axes.axhline)(1.0, color=FAINT, linewidth=1.4, zorder=1)


def named_rows(sheet: Sheet, axes: Axes, names: Sequence[str], room: float = 2.0) -> None:
    """Make rows of a figure, the first one on top, and write each one's name before it."""
    axes.set_yticks(range(len(names)), fitted_apart(sheet, names, min(room, NAMES) if sheet.narrow else room, 10))
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def platform_legend(sheet: Sheet, axes: Axes, looks: Mapping[str, Look], room: float = 1.6, **options: Any) -> None:
    """Add a legend of the platforms' colours and shapes to the right of some axes."""
    handles = [Line2D([], [], color=look.colour, marker=look.shape, ls="none", ms=7) for look in looks.values()]
    legend(sheet, axes, fitted_apart(sheet, looks, room, 10), handles, **options)


def height_of_legend(sheet: Sheet, rows: int) -> float:
    """Return the inches that a figure must have for a legend of some rows beside it."""
    return 0.0 if sheet.narrow else 0.9 + _ROW * rows


def model_legend(
    sheet: Sheet, axes: Axes, lines: Mapping[str, Line], prefixes: Mapping[str, str], **options: Any
) -> None:
    """Add a legend of the models' lines to the right of some axes, each name after its prefix."""
    handles = [Line2D([], [], color=INK, linewidth=line.width, linestyle=line.style) for line in lines.values()]
    names = zip(lines, fitted_apart(sheet, lines, 1.5, 10), strict=True)
    labels = [f"{prefixes.get(name, '')}{short}" for name, short in names]
    legend(sheet, axes, labels, handles, handlelength=2.6, handletextpad=0.7, **options)


def legend(sheet: Sheet, axes: Axes, labels: Sequence[str], handles: Sequence[Artist], **options: Any) -> None:
    """Add a legend to the right of some axes, unless the options place it elsewhere; on a narrow sheet below."""
    place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.02), "handletextpad": 0.3, "labelspacing": 0.45}
    if not sheet.narrow:
        axes.legend(handles, labels, **{**place, **options})
        return
    widest = max(sheet.width_of(label, 10) for label in labels) + _HANDLE
    columns = max(1, min(len(labels), int((sheet.width - 0.2) / widest)))
    sheet.grow(_ROW * (-(-len(labels) // columns) + bool(options.get("title"))) + 0.2)
    kept = {name: value for name, value in options.items() if name not in ("loc", "bbox_to_anchor")}
    spacing = {"handletextpad": 0.3, "columnspacing": 1.0, "labelspacing": 0.45}
    sheet.legend(handles, labels, **{"loc": "outside lower left", "ncols": columns, **spacing, **kept})


def cloud(axes: Axes, x_n: Floats, y_n: Floats, looks: Sequence[Look], seed: int, size: float = 16) -> None:
    """Draw points, each with its look, in random order so that none hides another by rule; held as one image."""
    order_n = np.random.default_rng(seed).permutation(len(x_n))
    kind: dict[str, Any] = {"s": size, "alpha": 0.6, "linewidths": 0, "zorder": 2, "rasterized": len(x_n) > _AS_IMAGE}
    for shape in dict.fromkeys(look.shape for look in looks):
        own = [i for i in order_n if looks[i].shape == shape]
        axes.scatter(x_n[own], y_n[own], marker=shape, c=[looks[i].colour for i in own], **kind)


def unit_square(sheet: Sheet, x_label: str, y_label: str) -> Axes:
    """Return the only axes of a sheet, both shares from 0 to 100% and equally long, with the diagonal."""
    axes = sheet.panel(3.9 if sheet.narrow else 4.3)
    axes.plot([0, 1], [0, 1], color=FAINT, linewidth=1.2)
    quarters = [0, 0.25, 0.5, 0.75, 1]
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel=x_label, ylabel=y_label, xticks=quarters, yticks=quarters)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:.0%}")
    axes.grid(True)
    return axes
