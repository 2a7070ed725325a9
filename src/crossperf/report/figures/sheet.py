"""The paper that a figure is drawn on: its style and size, its title, caption and tooltips."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from crossperf.report.figures.colours import FAINT, INK
from crossperf.report.figures.drawn import DPI, Drawn, Tooltip

if TYPE_CHECKING:
    from crossperf.evaluation.result import Evaluation
    from crossperf.report.figures import Plot

#: Inches; a page or a slide scales the whole. A narrow sheet is one for a telephone, with letters of the same size.
WIDTH, NARROW = 7.5, 4.4
#: Points.
TITLE, SMALL = 14.0, 9.5
_LEADING, _POINT = 1.35, 1 / 72  # height of a line of text over its size, and the inches that a point has
_MARGIN, _GAP = 0.12, 0.14  # inches around everything, and between title, drawing and caption
_AXIS = 0.9  # the share of the sheet that the label of an axis may be as wide as
_REACH = 0.12  # inches that a rectangle with a tooltip is wide and high at the least

_STYLE = Path(__file__).with_name("figures.mplstyle")
_COLOURS = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color", "axes.edgecolor", "grid.color"), FAINT),
}


@contextmanager
def settings(name: str) -> Iterator[None]:
    """Set matplotlib for our figures, whatever the caller's own settings, and put those back afterwards.

    Names inside an SVG depend on the figure's name alone.
    """
    salt = {"svg.hashsalt": f"crossperf {name}"}
    with matplotlib.style.context(["default", _STYLE, _COLOURS, salt]), warnings.catch_warnings():
        # A name in a script that the font lacks is no reason to worry a reader: in an SVG the browser has the glyphs.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font")
        yield


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

    def __init__(self, name: str, title: str, *, narrow: bool = False) -> None:
        self.narrow, self.width = narrow, NARROW if narrow else WIDTH
        self._engine = ConstrainedLayoutEngine(w_pad=_MARGIN, h_pad=_MARGIN / 2)
        super().__init__(figsize=(self.width, 4.0), dpi=DPI, layout=self._engine)
        FigureCanvasAgg(self)  # with a canvas that can measure text, matplotlib need not draw the whole figure to do so
        self.name = name
        self.title = title
        self.caption = ""
        self._spots: list[_Spot] = []

    def panel(self, height: float) -> Axes:
        """Return the only axes of a sheet whose drawing has this height, in inches."""
        self.set_size_inches(self.width, height)
        return self.add_subplot()

    def grow(self, height: float) -> None:
        """Make the sheet higher by some inches."""
        self.set_size_inches(self.width, float(self.get_size_inches()[1]) + height)

    def panels(self, height: float, columns: int, **options: Any) -> list[Axes]:
        """Return axes side by side on a sheet whose drawing has this height, in inches."""
        self.set_size_inches(self.width, height)
        return list(self.subplots(1, columns, squeeze=False, **options)[0])

    def stacked(self, height: float, rows: int, **options: Any) -> list[Axes]:
        """Return axes one below another on a sheet whose drawing has this height, in inches."""
        self.set_size_inches(self.width, height)
        return list(self.subplots(rows, 1, squeeze=False, **options)[:, 0])

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
        if self.narrow:
            self._fold_labels()
        if not bare:
            self.set_facecolor("white")
            self._frame()
        self.draw_without_rendering()
        self.set_layout_engine("none")
        return Drawn(self, self.caption, tuple(self._tooltips()), self.title, self.name)

    def _fold_labels(self) -> None:
        """Break the labels of axes that are wider than a narrow sheet has room for."""
        for axes in self.axes:
            for label in (axes.xaxis.label, axes.yaxis.label):
                width, text = self.width_of(label.get_text() or " ", 11), label.get_text()
                if width > self.width * _AXIS - 1.0:
                    label.set_text(textwrap.fill(text, max(len(text) // 2 + 4, 12)))

    def _frame(self) -> None:
        """Grow the sheet by a title above the drawing and the caption below it."""
        width, body = (float(side) for side in self.get_size_inches())
        title, caption = self._wrapped(self.title, TITLE, width), self._wrapped(self.caption, SMALL, width)
        head = len(title) * TITLE * _LEADING * _POINT + _MARGIN + _GAP
        foot = len(caption) * SMALL * _LEADING * _POINT + _MARGIN + _GAP if caption else 0.0
        height = head + body + foot
        self.set_size_inches(width, height)
        self._engine.set(rect=(0, foot / height, 1, body / height))
        left = _MARGIN / width
        common: dict[str, Any] = {"ha": "left", "va": "top", "linespacing": _LEADING * 0.86}
        self.text(left, 1 - _MARGIN / height, "\n".join(title), fontsize=TITLE, fontweight="bold", **common)
        self.text(left, (foot - _GAP) / height, "\n".join(caption), fontsize=SMALL, **common)

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
    plot: Plot,
    how: Callable[..., None],
    evaluation: Evaluation,
    chosen: Mapping[str, str | None],
    *,
    bare: bool,
    narrow: bool = False,
) -> Drawn:
    """Return a figure drawn by its function under our settings."""
    with settings(plot.name):
        sheet = Sheet(plot.name, plot.question, narrow=narrow)
        how(sheet, evaluation, **chosen)
        return sheet.finish(bare=bare)
