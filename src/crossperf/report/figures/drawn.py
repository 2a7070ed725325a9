"""A figure as it comes back: drawn, with its title, its caption and its tooltips."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossperf.errors import CrossperfError
from crossperf.files import refuse_unless_ours, whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What a figure can be saved as, by the end of the file's name.
FORMATS = ("svg", "png", "pdf")
#: How a figure in each of them begins; nothing else is ever replaced by one.
_BEGINS = {"svg": (b"<?xml", b"<svg"), "png": (b"\x89PNG",), "pdf": (b"%PDF",)}
#: Dots per inch of a PNG, and of the points that an SVG or a PDF holds as an image: a 7.5 inch figure is 1,200 wide.
DPI = 160


class NothingToDraw(CrossperfError):  # noqa: N818 - it is no error: the page shows its sentence in the figure's place
    """An evaluation does not hold what a figure shows; the message names what is missing and what would bring it."""


def refuse_unless_figure(path: str | os.PathLike[str]) -> str:
    """Return the format in which a figure is saved under a name; raise where it has none, or no figure stands there.

    It is worth asking before the work that is to be drawn.
    """
    target = Path(path)
    kind = target.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise CrossperfError(
            f"{target}: found {f'the suffix {target.suffix!r}' if kind else 'no suffix'}, expected "
            f".{', .'.join(FORMATS)}, which is the format to save in. Choose another name.",
            path=str(target),
        )
    refuse_unless_ours(target, lambda beginning: beginning.startswith(_BEGINS[kind]))
    return kind


@dataclass(frozen=True)
class Tooltip:
    """A text that shows when a pointer rests on a place in a figure.

    ``x`` and ``y`` are the centre as a share of the figure's width and height, y from the top. With a width
    and a height the place is a rectangle (a bar, a cell of a heat map), without it is a point.
    """

    x: float
    y: float
    text: str
    width: float = 0.0
    height: float = 0.0


@dataclass(frozen=True, eq=False)
class Drawn:
    """A figure with the question it answers, its caption with the counts, and its tooltips."""

    figure: Figure
    caption: str
    tooltips: tuple[Tooltip, ...] = ()
    title: str = ""
    #: The figure's name; keeps what it defines in an SVG apart from what another figure on the same page defines.
    name: str = ""

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches."""
        width, height = self.figure.get_size_inches()
        return float(width), float(height)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the figure as SVG, PNG or PDF, by the path's suffix; the file appears whole or not at all."""
        kind = refuse_unless_figure(path)
        with whole(path) as part:
            part.write_bytes(self.as_bytes(kind))

    def as_bytes(self, kind: str) -> bytes:
        """Return the figure in one of `FORMATS`, the same bytes each time."""
        from crossperf.report.figures.sheet import settings

        # Title and caption travel inside the file; the date does not, so that the same figure is the same file.
        metadata = {"Title": self.title, "Subject" if kind == "pdf" else "Description": self.caption}
        undated: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
        into = io.BytesIO()
        with settings(self.name):
            self.figure.savefig(into, format=kind, dpi=DPI, metadata={**metadata, **undated})
        return into.getvalue()
