"""How every figure is set: sizes that survive a slide."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib.style

from crossperf.report.figures.colours import FAINT, INK

#: Inches; a page or a slide scales the whole.
WIDTH = 7.5
#: Points.
TITLE, TEXT, SMALL = 14.0, 11.0, 9.5

_SETTINGS: dict[str, Any] = {
    # DejaVu Sans comes with matplotlib, so a figure is measured the same everywhere; Verdana runs as wide in a browser.
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "font.size": TEXT,
    "axes.labelsize": TEXT,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "legend.fontsize": 10,
    "text.parse_math": False,  # a platform may be called 'm5$large'
    "axes.unicode_minus": True,
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "axes.edgecolor": FAINT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "figure.edgecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "auto",
    "savefig.edgecolor": "none",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}


@contextmanager
def drawing() -> Iterator[None]:
    """Set matplotlib for our figures, whatever the caller's own settings, and put his back afterwards."""
    with matplotlib.style.context(["default", _SETTINGS]), warnings.catch_warnings():
        # A name in a script that the font lacks is no reason to worry a reader: in an SVG the browser has the glyphs.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font")
        yield


@contextmanager
def saving(name: str) -> Iterator[None]:
    """Set matplotlib for writing a figure, with names inside an SVG that depend on the figure's name alone."""
    with drawing(), matplotlib.rc_context({"svg.hashsalt": f"crossperf {name}"}):
        yield
