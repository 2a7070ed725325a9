"""Figure 3 for every application: one drawing with room for all, and where its marks go for each."""

# P platforms, A applications, 3 quartiles

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from crossperf.arrays import Floats, Integers
from crossperf.report.figures import FIGURES, Drawn
from crossperf.report.figures.cells import held_out
from crossperf.report.figures.words import plain, times

if TYPE_CHECKING:
    from crossperf.evaluation.result import Evaluation
    from crossperf.report.figures.vector import Vector

#: Applications to choose from; of more, those with the most cells.
MOST_APPS = 200
_POINTS_PER_INCH = 72


@dataclass(frozen=True)
class Chooser:
    """The drawing of the first choice, what the script needs for the others, and a note on those left out."""

    drawn: Drawn
    facts: dict[str, Any]
    left_out: str


def chooser(evaluation: Evaluation) -> Chooser:
    """Return Figure 3 with a choice of applications, for an evaluation that it can be drawn of."""
    held = held_out(evaluation)
    from crossperf.report.figures import sheet
    from crossperf.report.figures.vector import caption, fastest_first, question, vector, vectors

    apps, cells_a = held.apps, np.bincount(held.app_n)
    names = [apps[a] for a in np.argsort(-cells_a, kind="stable")]
    among = vectors(evaluation, sorted(names[:MOST_APPS]))
    drawn = sheet.draw(FIGURES["vector"], partial(vector, among=among), evaluation, {"app": names[0]}, bare=True)
    order_p = fastest_first(among)
    facts = {
        "chosen": [own.app for own in among].index(names[0]),
        "platforms": [plain(held.platforms[p]) for p in order_p],
        "series": ["measured", *(f"predicted by {plain(model)}" for model in among[0].predicted_3p)],
        "apps": [
            {
                "name": plain(own.app),
                "question": question(plain(own.app)),
                "caption": caption(evaluation, own),
                "marks": _marks(drawn, own, order_p),
            }
            for own in among
        ],
    }
    more = len(names) - len(among)
    return Chooser(drawn, facts, f"the {len(among)} with the most cells; {more:,} more are left out" if more else "")


def _marks(drawn: Drawn, shown: Vector, order_p: Integers) -> list[list[list[Any] | None]]:
    """Return for each platform and series where the line begins, the mark lies and the line ends, and in words."""
    return [
        [_mark(drawn, own_3p[:, p]) for own_3p in (shown.measured_3p, *shown.predicted_3p.values())] for p in order_p
    ]


def _mark(drawn: Drawn, quartiles_3: Floats) -> list[Any] | None:
    if np.isnan(quartiles_3).any():
        return None
    first, middle, third = quartiles_3.tolist()
    words = f"median {times(middle)}, middle half {times(first)} to {times(third)}"
    return [*_across(drawn, [first, middle, third]), words]


def _across(drawn: Drawn, ratios: Sequence[float]) -> list[float]:
    """Return how far from the left edge of the drawing ratios lie, in points."""
    pixels = drawn.figure.axes[0].transData.transform([(ratio, 0.0) for ratio in ratios])[:, 0]
    return [round(float(x) * _POINTS_PER_INCH / drawn.figure.dpi, 1) for x in pixels]
