"""Drawings made on the server: SVG whose places are shares of its width, so that text keeps its size on any screen.

A drawing has no ``viewBox``: marks stand at percentages, and a style sheet sets how wide and high it is. Colours are
presentation attributes or classes, which a strict Content-Security-Policy lets through.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from crossperf.report.figures.colours import Look

#: Room at both ends of an axis, as a share of its length, for labels and dots.
_MARGIN = 0.04
#: Steps of the marks of a log axis, the finest that leaves at most as many as `_TICKS`.
_STEPS = ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,))
_TICKS = 7


@dataclass(frozen=True)
class LogAxis:
    """A log axis from `low` to `high`.

    >>> axis = LogAxis.over([0.2, 4.0])
    >>> axis.ticks
    (0.2, 0.5, 1.0, 2.0, 5.0)
    >>> round(axis.at(1.0), 1)
    50.0
    """

    low: float
    high: float

    @classmethod
    def over(cls, values: Iterable[float]) -> LogAxis:
        """Return the axis that holds some positive values, and 1, with a mark at each end."""
        known = [value for value in values if value > 0 and math.isfinite(value)]
        low, high = min([*known, 0.95]), max([*known, 1.05])
        marks = _marks(low, high)
        return cls(min(marks), max(marks))

    @property
    def ticks(self) -> tuple[float, ...]:
        """The values that are marked."""
        return tuple(mark for mark in _marks(self.low, self.high) if self.low <= mark <= self.high)

    def at(self, value: float) -> float:
        """Return where a value stands, in per cent of the width."""
        span = math.log(self.high / self.low) or 1.0
        share = math.log(min(max(value, self.low), self.high) / self.low) / span
        return 100.0 * (_MARGIN + (1.0 - 2.0 * _MARGIN) * share)


def _marks(low: float, high: float) -> list[float]:
    """Return round values from one at or below `low` to one at or above `high`."""
    for step in _STEPS:
        first, last = math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1
        values = [float(f"{part}e{power}") for power in range(first, last + 1) for part in step]
        below = max(value for value in values if value <= low * 1.0000001)
        above = min(value for value in values if value >= high * 0.9999999)
        marks = [value for value in values if below <= value <= above]
        if len(marks) <= _TICKS:
            return marks
    return marks[:: math.ceil(len(marks) / _TICKS)] if len(marks) > 2 * _TICKS else marks


def factor(value: float) -> str:
    """Return a factor as people write it.

    >>> factor(0.05), factor(1.0), factor(2000.0)
    ('0.05×', '1×', '2,000×')
    """
    return f"{value:,.6g}×" if value < 1e4 else f"{value:.0e}×".replace("e+0", "e")


def axis(own: LogAxis, most: int = _TICKS) -> Markup:
    """Return the labels of an axis: of all ticks, or of every second or third, and 1 among them."""
    ticks, step = own.ticks, -(-len(own.ticks) // most)
    first = ticks.index(1.0) % step if 1.0 in ticks else 0
    labels = Markup("").join(
        Markup('<text x="{:.2f}%" y="14">{}</text>').format(own.at(tick), factor(tick)) for tick in ticks[first::step]
    )
    return Markup('<svg class="axis" aria-hidden="true">{}</svg>').format(labels)


def _grid(own: LogAxis) -> Markup:
    lines = (
        Markup('<line class="{}" x1="{x:.2f}%" x2="{x:.2f}%" y1="0" y2="100%"/>').format(
            "here" if tick == 1.0 else "grid", x=own.at(tick)
        )
        for tick in own.ticks
    )
    return Markup("").join(lines)


def interval(own: LogAxis, middle: float, low: float, high: float, look: Look, *, hatched: bool = False) -> Markup:
    """Return the bar of an interval with a dot at the middle, on the lines of an axis; hatched where it is a guess."""
    start, end = own.at(low), own.at(high)
    bar = Markup('<rect class="{}" x="{:.2f}%" y="9" width="{:.2f}%" height="12" rx="2" fill="{}"/>').format(
        "range guess" if hatched else "range", start, max(end - start, 0.0), "url(#hatch)" if hatched else look.colour
    )
    dot = Markup('<svg class="{}" x="{:.2f}%" y="15" overflow="visible"><g transform="scale(1.3)">{}</g></svg>').format(
        "middle guess" if hatched else "middle", own.at(middle), mark(0.0, 0.0, look.colour, look.shape, unit="")
    )
    return Markup('<svg class="bar" aria-hidden="true">{}{}{}</svg>').format(_grid(own), bar if low < high else "", dot)


def from_one(own: LogAxis, value: float) -> Markup:
    """Return the bar of a factor, from 1 to its value: to the left where it makes a run faster."""
    start, end = sorted((own.at(1.0), own.at(value)))
    bar = Markup('<rect class="{}" x="{:.2f}%" y="8" width="{:.2f}%" height="10" rx="1"/>').format(
        "slower" if value > 1 else "faster", start, end - start
    )
    return Markup('<svg class="bar low" aria-hidden="true">{}{}</svg>').format(_grid(own), bar)


def share(value: float, colour: str = "") -> Markup:
    """Return a bar that is as long as a share of its width."""
    fill = Markup(' fill="{}"').format(colour) if colour else ""
    bar = Markup('<rect class="share" width="{:.1f}%" height="100%"{}/>').format(100.0 * value, fill)
    return Markup('<svg class="meter" aria-hidden="true">{}</svg>').format(bar)


def hatch() -> Markup:
    """Return the pattern of a guess, for all drawings of a page."""
    return Markup(
        '<svg class="unseen" aria-hidden="true" width="0" height="0"><defs><pattern id="hatch" width="6" height="6" '
        'patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line class="hatching" x1="0" x2="0" y1="0" '
        'y2="6"/></pattern></defs></svg>'
    )


def swatch(colour: str, shape: str = "o") -> Markup:
    """Return the mark of a colour, for a legend or beside a name."""
    return Markup('<svg class="swatch" aria-hidden="true" viewBox="-6 -6 12 12">{}</svg>').format(
        mark(0.0, 0.0, colour, shape, unit="")
    )


#: Shapes by matplotlib's letters, as paths around 0 with a radius of about 5.
_PATHS = {
    "s": "M-4-4H4V4H-4Z",
    "^": "M0-5L5 4H-5Z",
    "D": "M0-5.5L5.5 0L0 5.5L-5.5 0Z",
    "v": "M0 5L5-4H-5Z",
    "P": "M-2-5H2V-2H5V2H2V5H-2V2H-5V-2H-2Z",
    "X": "M-4-5L0-2L4-5L5-4L2 0L5 4L4 5L0 2L-4 5L-5 4L-2 0L-5-4Z",
    "<": "M-5 0L4-5V5Z",
    ">": "M5 0L-4-5V5Z",
    "p": "M0-5L5-1.5L3 4.5H-3L-5-1.5Z",
    "h": "M0-5L4.4-2.5V2.5L0 5L-4.4 2.5V-2.5Z",
    "d": "M0-5.5L3.5 0L0 5.5L-3.5 0Z",
}


def mark(x: float, y: float, colour: str, shape: str = "o", *, unit: str = "%") -> Markup:
    """Return a mark at a place; one that is no circle stands in a drawing of its own, as paths know no per cent."""
    if shape not in _PATHS:
        return Markup('<circle cx="{x:.5g}{u}" cy="{y:.5g}{u}" r="4" fill="{}"/>').format(colour, x=x, y=y, u=unit)
    path = Markup('<path d="{}" fill="{}"/>').format(_PATHS[shape], colour)
    return path if not unit else Markup('<svg x="{:.5g}%" y="{:.5g}%" overflow="visible">{}</svg>').format(x, y, path)


def line(values: Sequence[float | None], *, low: float, high: float) -> Markup:
    """Return a series as a line of short strokes over its width; gaps stay gaps, and a line marks 1."""
    count, span = max(len(values) - 1, 1), (high - low) or 1.0
    points = [
        None if own is None else (100.0 * i / count, 100.0 * (1.0 - (own - low) / span)) for i, own in enumerate(values)
    ]
    strokes = (
        Markup('<line class="series" x1="{:.2f}%" y1="{:.2f}%" x2="{:.2f}%" y2="{:.2f}%"/>').format(*a, *b)
        for a, b in pairwise(points)
        if a and b
    )
    dots = (
        Markup('<circle class="series" cx="{:.2f}%" cy="{:.2f}%" r="2"/>').format(*point) for point in points if point
    )
    return Markup('<svg class="series" aria-hidden="true">{}{}</svg>').format(
        Markup("").join(strokes), Markup("").join(dots)
    )
