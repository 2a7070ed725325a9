"""The figures of an evaluation, by name: each answers one question.

Importing this loads no matplotlib; drawing does. ``FIGURES["order"](evaluation)`` returns a `Drawn`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crossperf.errors import CrossperfError, MissingDependencyError, did_you_mean
from crossperf.report.figures.drawn import FORMATS, Drawn, NothingToDraw, Tooltip

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from crossperf.evaluation.result import Evaluation

__all__ = ["FIGURES", "FORMATS", "Drawn", "NothingToDraw", "Plot", "Plots", "Tooltip", "plot_named"]


@dataclass(frozen=True)
class Plot:
    """One figure: what it is called, what it asks, and how to draw it.

    Parameters
    ----------
    module
        Which module of this package draws it, in a function of the figure's name.
    paper
        The number of the paper's figure that it is on this data, where it is one.
    takes
        What the reader may choose, by keyword: ``app`` (a name of ``evaluation.held_out.apps``), ``model``
        (a name of ``evaluation.held_out.predictions``) or ``rpv`` (what times are relative to: ``fastest``, ``slowest``
        or ``source``); ``None`` is the figure's own choice.
    """

    name: str
    question: str
    module: str
    paper: int | None = None
    takes: tuple[str, ...] = ()

    def __call__(
        self, evaluation: Evaluation, *, bare: bool = False, narrow: bool = False, **chosen: str | None
    ) -> Drawn:
        """Return the figure drawn, or raise `NothingToDraw` where the evaluation lacks what it shows.

        Parameters
        ----------
        bare
            Leave title and caption out of the figure, for a page that sets both itself.
        narrow
            Draw it for a telephone: as wide as that, legends below.
        """
        for word in chosen:
            if word not in self.takes:
                raise CrossperfError(
                    f"The figure {self.name!r} takes no {word!r}{did_you_mean(word, self.takes)}, expected "
                    f"{' or '.join(self.takes) or 'nothing to choose'}. Leave it out."
                )
        try:
            sheet = importlib.import_module("crossperf.report.figures.sheet")
        except ImportError as error:
            raise MissingDependencyError("Figures need matplotlib: pip install 'crossperf[report]'") from error
        draw = getattr(importlib.import_module(f"crossperf.report.figures.{self.module}"), self.name)
        drawn: Drawn = sheet.draw(self, draw, evaluation, chosen, bare=bare, narrow=narrow)
        return drawn


_PLOTS = (
    Plot("picks", "How often is the fastest platform found?", "order"),
    Plot("distribution", "How do the times of the platforms compare?", "spread", paper=2, takes=("rpv",)),
    Plot("vector", "How fast is an application on each platform?", "vector", paper=3, takes=("app", "rpv")),
    Plot("order", "How often is the whole order of the platforms right?", "order", paper=4),
    Plot("roc", "Can it tell when the most common order holds?", "order", paper=5),
    Plot("errors", "Where is the model wrong?", "heat", takes=("model",)),
    Plot("scatter", "How near are the predictions to what was measured?", "calibration", takes=("model", "rpv")),
    Plot("reliability", "Do the intervals hold as often as they should?", "calibration"),
    Plot("familiarity", "Is it wrong more often where a run looks odd?", "calibration", takes=("model",)),
    Plot("space", "Which runs does the model take for similar?", "space"),
    Plot("drivers", "Which counters determine where a run lies on the map?", "space"),
    Plot("noise", "How much do repeats of the same run vary?", "spread"),
    Plot("missing", "Which counters are missing, and where?", "heat"),
)

#: Every figure by its name, in the order of the page; command line, page and notebooks all read this.
FIGURES: dict[str, Plot] = {plot.name: plot for plot in _PLOTS}


def plot_named(name: str) -> Plot:
    """Return a figure by its name."""
    if name not in FIGURES:
        raise CrossperfError(
            f"figure {name!r} is not known{did_you_mean(name, FIGURES)}, expected one of {', '.join(FIGURES)}."
        )
    return FIGURES[name]


class Plots:
    """The figures of one evaluation as methods: ``evaluation.plot.order()`` returns a matplotlib figure.

    A notebook shows it; ``figure.savefig("order.pdf")`` saves it. `drawn` returns caption and tooltips as well.
    """

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation

    def drawn(self, name: str, *, bare: bool = False, narrow: bool = False, **chosen: str | None) -> Drawn:
        """Return a figure by name, with its caption and tooltips."""
        return plot_named(name)(self._evaluation, bare=bare, narrow=narrow, **chosen)

    def __getattr__(self, name: str) -> Callable[..., Figure]:
        if name not in FIGURES:
            raise AttributeError(f"no figure {name!r}{did_you_mean(name, FIGURES)}, expected {', '.join(FIGURES)}")

        def method(**chosen: Any) -> Figure:
            return self.drawn(name, **chosen).figure

        method.__name__ = name
        method.__doc__ = FIGURES[name].question
        return method

    def __dir__(self) -> list[str]:
        return [*FIGURES, "drawn"]
