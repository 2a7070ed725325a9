"""The tables of predictions: relative times, intervals, what pushed them, similar workloads, what to measure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from crossperf.display import CellView, RowView, TableView, number, numbers, words
from crossperf.records import FAMILIAR, UNKNOWN, UNUSUAL

if TYPE_CHECKING:
    from crossperf.adaptation.adapt import Suggestion
    from crossperf.prediction.explain import Explanation, Neighbour
    from crossperf.prediction.shapley import Attribution
    from crossperf.records import Prediction

#: An explanation shows the features that pushed most, and the rest together.
_STRONGEST = 8
#: What to do with a run, by how familiar it looks.
_ADVICE = {
    FAMILIAR: "",
    UNUSUAL: ": believe the interval, not the number",
    UNKNOWN: ": the model has seen nothing like it, so measure it where it matters",
}


def many(predictions: Sequence[Prediction]) -> TableView:
    """Return predictions, a row each, the fastest platform marked."""
    first = predictions[0]
    platforms = list(first.relative_time)
    rows: list[RowView] = [
        (
            prediction.app,
            prediction.input,
            prediction.source,
            *(_relative(prediction, name) for name in platforms),
            *([prediction.familiarity.word] if prediction.familiarity else []),
        )
        for prediction in predictions
    ]
    looks = words("looks") if first.familiarity else ()
    return TableView(_title(first), (*words("app", "input", "run on"), *numbers(*platforms), *looks), tuple(rows))


def _relative(prediction: Prediction, platform: str) -> CellView:
    value = prediction.relative_time[platform]
    seconds = f" ({prediction.seconds[platform]:,.3g} s)" if platform in prediction.seconds else ""
    return CellView(f"{value:,.2f}x{seconds}", value, best=platform == prediction.fastest)


def _title(prediction: Prediction) -> str:
    names = {"source": "the run's own platform", "fastest": "the fastest predicted"}
    return f"time relative to {names.get(prediction.relative_to, prediction.relative_to)} (2.0x is twice as slow)"


def single(prediction: Prediction) -> TableView:
    """Return a prediction with its intervals, a row for each platform, the fastest first."""
    rows = []
    for name in sorted(prediction.relative_time, key=prediction.relative_time.__getitem__):
        low, high = prediction.low[name], prediction.high[name]
        texts = (
            name,
            f"{prediction.relative_time[name]:,.2f}x",
            f"{low:,.2f}x to {high:,.2f}x" if low < high else "",
            f"{prediction.seconds[name]:,.3g}" if name in prediction.seconds else "-",
            f"{prediction.chance_fastest[name]:.0%}",
        )
        rows.append(tuple(CellView(text, bold=name == prediction.fastest) for text in texts))
    columns = numbers("relative time", f"interval, {prediction.level:.0%}", "seconds", "fastest?")
    run = f"{prediction.app} {prediction.input}, run on {prediction.source}"
    return TableView(f"{run}: {_title(prediction)}", (*words("platform"), *columns), tuple(rows))


def familiarity(prediction: Prediction) -> str:
    """Return how familiar a run looks, in a sentence."""
    looks = prediction.familiarity
    if looks is None:
        return ""
    because = f" ({', '.join(looks.because)})" if looks.because else ""
    return f"this run looks {looks.word} to the model{because}{_ADVICE[looks.word]}"


def contributions(attribution: Attribution, explanation: Explanation) -> TableView:
    """Return the features that contributed most to a prediction, as factors."""
    run = f"{explanation.app} {explanation.input} on {explanation.platform}"
    parts = [part for part in attribution.contributions if part.contribution != 0.0]
    rows = []
    for part in parts[:_STRONGEST]:
        values = ("not measured" if value is None else f"{value:,.4g}" for value in (part.value, part.median))
        rows.append((part.feature, _effect(part.contribution), f"{part.standard_error:.1%}", *values))
    rest = parts[_STRONGEST:]
    if rest:
        rows.append((f"{len(rest)} others together", _effect(sum(part.contribution for part in rest)), "", "", ""))
    return TableView(
        f"contributions to the time of {run}, relative to {explanation.source}",
        (*words("counter"), *numbers("effect", "standard error", "this run", "median of known runs")),
        tuple(rows),
    )


def _effect(contribution: float) -> str:
    """Return a contribution in words.

    >>> _effect(math.log(1.8)), _effect(-math.log(2.0))
    ('x1.80 slower', 'x2.00 faster')
    """
    return f"x{math.exp(abs(contribution)):,.2f} {'slower' if contribution > 0 else 'faster'}"


def nearest(neighbours: Sequence[Neighbour], run: str) -> TableView:
    """Return the known workloads nearest to a run, and their true relative times."""
    platforms = list(neighbours[0].relative_time)
    rows: list[RowView] = [
        (
            near.app,
            near.input,
            f"{near.distance:.3g}",
            near.relative_to,
            *(number(near.relative_time[name], 2, unit="x") for name in platforms),
        )
        for near in neighbours
    ]
    return TableView(
        f"known workloads nearest to {run}, and their true relative times",
        (*words("app", "input"), *numbers("distance"), *words("relative to"), *numbers(*platforms)),
        tuple(rows),
    )


def suggestions(chosen: Sequence[Suggestion]) -> TableView:
    """Return which workloads to measure next, the best first."""
    rows = [(str(place), own.app, own.input, f"{own.gain:.0%}", own.why) for place, own in enumerate(chosen, start=1)]
    columns = (*numbers(""), *words("app", "input"), *numbers("takes away"), *words("why"))
    return TableView("measure these next on the new platform", columns, tuple(rows))
