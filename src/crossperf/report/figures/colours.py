"""Which colour and which shape is whose, the same on every figure.

The ground of a page may be white or near-black, so every colour has a middling lightness: at least 3:1 against both.
Platforms own the colours; models differ by shape and dash, in ink.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

#: The ink of words and of what a figure is about, on white; a page writes its own in its place.
INK = "#333333"
#: The ink of what stands back: axes, grids, reference lines.
FAINT = "#7f7f7f"
#: On top of a filled cell, whichever reads better; no page replaces these.
ON_PALE, ON_DEEP = "#101010", "#fdfdfd"

#: One per platform. Found by a search over sRGB for eight colours that stay furthest apart (24 in CIELAB at the least)
#: for ordinary, deuteranope, protanope and tritanope eyes, not too vivid and readable on both grounds.
PLATFORM_COLOURS = ("#6054cc", "#d27e00", "#00724e", "#a23690", "#009cd8", "#ae3c12", "#7e9c5a", "#ba7e9c")
#: With more platforms than colours the shape makes the difference: each round of colours has its own.
_SHAPES = ("o", "s", "^", "D", "v", "P")

#: For groups that are no platforms (applications, classes): as far apart as the platforms' and none like one of those.
GROUP_COLOURS = ("#00a2ae", "#a8426c", "#7e9c00", "#ae78f6", "#c08472", "#5460a2", "#72661e")

#: Cells of a heat map from good to bad. Lightness falls all the way, so the order survives without colour.
PALE_TO_DEEP = ("#e9e3d3", "#f3c98b", "#ec9a4f", "#d46430", "#ab352b", "#831540")

#: Dashes (on, off, ... in points; none is a solid line) and shapes of models, the first one foremost.
_DASHES: tuple[tuple[float, ...], ...] = (
    *((), (5, 2), (1.2, 1.6), (7, 2, 1.2, 2), (3, 1.2, 3, 4)),
    *((1.2, 4), (9, 3), (6, 1.5, 1.2, 1.5, 1.2, 1.5), (2.5, 2.5)),  # as many as an ablation has models
)
_MODEL_SHAPES = ("o", "s", "^", "D", "v", "P", "X", "<", ">")


@dataclass(frozen=True)
class Look:
    """The colour and the shape (matplotlib's letter) of a platform."""

    colour: str
    shape: str


@dataclass(frozen=True)
class Line:
    """The dashes, the width in points and the shape of a model."""

    dashes: tuple[float, ...]
    width: float
    shape: str

    @property
    def style(self) -> Literal["-"] | tuple[float, tuple[float, ...]]:
        """The dashes as matplotlib takes them."""
        return (0.0, self.dashes) if self.dashes else "-"


def looks_of(platforms: Sequence[str]) -> dict[str, Look]:
    """Return the look of each platform, by its place among all platforms of a table.

    >>> looks_of(["epyc-2", "h200"])["h200"]
    Look(colour='#d27e00', shape='o')
    """
    per_round = len(PLATFORM_COLOURS)
    return {
        name: Look(PLATFORM_COLOURS[i % per_round], _SHAPES[i // per_round % len(_SHAPES)])
        for i, name in enumerate(platforms)
    }


def lines_of(models: Sequence[str]) -> dict[str, Line]:
    """Return the line of each model, by its place: the first is solid and the widest."""
    kinds = len(_DASHES)
    return {
        name: Line(_DASHES[i % kinds], 2.4 if i == 0 else 1.6, _MODEL_SHAPES[i % kinds])
        for i, name in enumerate(models)
    }
