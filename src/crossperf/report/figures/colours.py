"""Which colour and which shape is whose, the same on every figure.

The ground of a page may be white or near-black, so every colour has a middling lightness: at least 3:1 against both.
Machines own the colours, and platforms of one machine its shades; models differ by shape and dash, in ink.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from crossperf.platforms import family_of

#: The ink of words and of what a figure is about, on white; a page writes its own in its place.
INK = "#333333"
#: The ink of what stands back: axes, grids, reference lines.
FAINT = "#7f7f7f"
#: On top of a filled cell, whichever reads better; no page replaces these.
ON_PALE, ON_DEEP = "#101010", "#fdfdfd"

#: One per machine. Found by a search over sRGB for eight colours that stay furthest apart (23 in CIELAB at the least)
#: for ordinary, deuteranope, protanope and tritanope eyes, not too vivid and readable on both grounds.
PLATFORM_COLOURS = ("#5f53ca", "#d27e02", "#007351", "#a73b94", "#049dd9", "#b33f19", "#7e9d5b", "#bb7f9d")
#: The same hues, dark to light, for a machine with several sizes: fewer threads are darker. The shades of the first
#: three machines stay 21 apart for all eyes; further on shapes and names must help.
SHADES = (
    ("#6155d3", "#7d6cda", "#9686d3"),
    ("#975901", "#b46b00", "#bf8548"),
    ("#007754", "#388a6a", "#679c84"),
    ("#ab3897", "#b958a6", "#be7baf"),
    ("#046f9b", "#0a85b7", "#6097bc"),
    ("#b83e16", "#c85c37", "#cd7d61"),
    ("#51712f", "#69844b", "#85976f"),
    ("#915574", "#a16c87", "#ac8799"),
)
#: Each size of a machine has a shape of its own, and so has each round of colours where machines outnumber them.
_SHAPES = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "d")
_PER_ROUND = 3

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
    """Return the look of each platform: the colour tells the machine, its shade and the shape how much of it is used.

    >>> looks = looks_of(["epyc-1t", "epyc-2t", "h200"])
    >>> looks["epyc-1t"], looks["h200"]
    (Look(colour='#6155d3', shape='o'), Look(colour='#d27e02', shape='o'))
    """
    families = {name: family_of(name) for name in platforms}
    machines = list(dict.fromkeys(family.machine for family in families.values()))
    looks: dict[str, Look] = {}
    for name, family in families.items():
        sizes = sorted({own.size for own in families.values() if own.machine == family.machine})
        looks[name] = _free(_look(machines.index(family.machine), sizes.index(family.size), len(sizes)), looks)
    return looks


def _look(machine: int, size: int, sizes: int) -> Look:
    """Return the look of a size of a machine, before it is known whether another has it."""
    place, number = machine % len(PLATFORM_COLOURS), machine // len(PLATFORM_COLOURS)
    shades = SHADES[place]
    colour = PLATFORM_COLOURS[place] if sizes == 1 else shades[round(size * (len(shades) - 1) / (sizes - 1))]
    return Look(colour, _SHAPES[(number * _PER_ROUND + size) % len(_SHAPES)])


def _free(look: Look, taken: Mapping[str, Look]) -> Look:
    """Return a look that no other platform has, of the same colour while shapes last."""
    others, start = {*taken.values()}, _SHAPES.index(look.shape)
    turned = (replace(look, shape=_SHAPES[(start + step) % len(_SHAPES)]) for step in range(len(_SHAPES)))
    return next((own for own in turned if own not in others), look)


def lines_of(models: Sequence[str]) -> dict[str, Line]:
    """Return the line of each model, by its place: the first is solid and the widest."""
    kinds = len(_DASHES)
    return {
        name: Line(_DASHES[i % kinds], 2.4 if i == 0 else 1.6, _MODEL_SHAPES[i % kinds])
        for i, name in enumerate(models)
    }
