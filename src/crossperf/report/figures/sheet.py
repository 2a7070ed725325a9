"""The paper that a figure is drawn on: its size, its title, caption and tooltips."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from crossperf.report.figures.drawn import DPI, Drawn, Tooltip
from crossperf.report.figures.style import SMALL, TITLE, WIDTH, drawing

if TYPE_CHECKING:
    from crossperf.evaluation.result import Evaluation
    from crossperf.report.figures import Plot

#: Height of a line of text over its size, and the inches that a point has.
_LEADING, _POINT = 1.35, 1 / 72
#: Inches around everything, and between title, drawing and caption.
_MARGIN, _GAP = 0.12, 0.14

#: Inches that a rectangle with a tooltip is wide and high at the least.
_REACH = 0.12


@dataclass(frozen=True, eq=False)
class _Spot:
    """A tooltip before the layout is settled: where it lies in the data of its axes."""

    axes: Axes
    x: tuple[float, float]
    y: tuple[float, float]
    text: str
    least: float = 0.0


class Sheet(Figure):
    """A figure that grows as high as what is on it, and shows itself in a notebook."""

    def __init__(self, name: str, title: str) -> None:
        super().__init__(figsize=(WIDTH, 4.0), dpi=DPI, layout="constrained")
        FigureCanvasAgg(self)  # with a canvas that can measure text, matplotlib need not draw the whole figure to do so
        self._engine().set(w_pad=_MARGIN, h_pad=_MARGIN / 2)
        self.name = name
        self.title = title
        self.caption = ""
        self._spots: list[_Spot] = []

    def panel(self, height: float, width: float = WIDTH) -> Axes:
        """Return the only axes of a sheet whose drawing has this size, in inches."""
        self.set_size_inches(width, height)
        return self.add_subplot()

    def panels(self, height: float, columns: int, **options: Any) -> list[Axes]:
        """Return axes side by side on a sheet whose drawing has this height, in inches."""
        self.set_size_inches(WIDTH, height)
        return list(self.subplots(1, columns, squeeze=False, **options)[0])

    def point(self, axes: Axes, x: float, y: float, text: str) -> None:
        """Add a tooltip to a point of some axes, in data coordinates."""
        self._spots.append(_Spot(axes, (x, x), (y, y), text))

    def points(self, axes: Axes, x_n: Iterable[float], y_n: Iterable[float], texts: Iterable[str]) -> None:
        """Add a tooltip to each of many points."""
        for x, y, text in zip(x_n, y_n, texts, strict=True):
            self.point(axes, float(x), float(y), text)

    def box(self, axes: Axes, x: tuple[float, float], y: tuple[float, float], text: str) -> None:
        """Add a tooltip to a rectangle of some axes, from and to in data coordinates."""
        self._spots.append(_Spot(axes, x, y, text, _REACH))

    def width_of(self, text: str, size: float) -> float:
        """Return how wide a text of a size runs, in inches."""
        probe = self.text(0, 0, text, fontsize=size)
        width = probe.get_window_extent().width / self.dpi
        probe.remove()
        return float(width)

    def finish(self, *, bare: bool) -> Drawn:
        """Settle where everything lies.

        Title and caption come above and below, on white, unless the sheet stays bare and lets the page through.
        """
        if not bare:
            self.set_facecolor("white")
            self._frame()
        self.draw_without_rendering()
        self.set_layout_engine("none")
        return Drawn(self, self.caption, tuple(self._tooltips()), self.title, self.name)

    def _frame(self) -> None:
        """Grow the sheet by a title above the drawing and the caption below it."""
        width, body = (float(side) for side in self.get_size_inches())
        title, caption = self._wrapped(self.title, TITLE, width), self._wrapped(self.caption, SMALL, width)
        head = len(title) * TITLE * _LEADING * _POINT + _MARGIN + _GAP
        foot = len(caption) * SMALL * _LEADING * _POINT + _MARGIN + _GAP if caption else 0.0
        height = head + body + foot
        self.set_size_inches(width, height)
        self._engine().set(rect=(0, foot / height, 1, body / height))
        left = _MARGIN / width
        common: dict[str, Any] = {"ha": "left", "va": "top", "linespacing": _LEADING * 0.86}
        self.text(left, 1 - _MARGIN / height, "\n".join(title), fontsize=TITLE, fontweight="bold", **common)
        self.text(left, (foot - _GAP) / height, "\n".join(caption), fontsize=SMALL, **common)

    def _engine(self) -> ConstrainedLayoutEngine:
        engine = self.get_layout_engine()
        assert isinstance(engine, ConstrainedLayoutEngine)  # noqa: S101 - set in `__init__`
        return engine

    def _wrapped(self, text: str, size: float, width: float) -> list[str]:
        """Return a text in lines that fit the sheet."""
        if not text:
            return []
        room = width - 2 * _MARGIN
        letters = max(int(len(text) * room / max(self.width_of(text, size), 1e-6)), 10)
        # A line of wide letters runs longer than the average one: try again with fewer until all fit.
        while True:
            lines = textwrap.wrap(text, letters)
            if letters <= 10 or max(self.width_of(line, size) for line in lines) <= room:
                return lines
            letters -= 3

    def _tooltips(self) -> Iterable[Tooltip]:
        size = self.get_size_inches() * self.dpi
        for spot in self._spots:
            ends = spot.axes.transData.transform(np.transpose([spot.x, spot.y])) / size
            x, y = ends.mean(axis=0).tolist()
            width, height = np.maximum(np.abs(ends[1] - ends[0]), spot.least * self.dpi / size).tolist()
            yield Tooltip(x, 1 - y, spot.text, width, height)

    def _repr_svg_(self) -> str:
        return Drawn(self, self.caption, title=self.title, name=self.name).as_bytes("svg").decode("utf-8")


def draw(
    plot: Plot, how: Callable[..., None], evaluation: Evaluation, chosen: Mapping[str, str | None], *, bare: bool
) -> Drawn:
    """Return a figure drawn by its function under our settings."""
    with drawing():
        sheet = Sheet(plot.name, plot.question)
        how(sheet, evaluation, **chosen)
        return sheet.finish(bare=bare)
