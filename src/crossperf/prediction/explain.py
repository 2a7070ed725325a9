"""Reasons for predictions: the contribution of each counter, and the nearest known workloads."""

# N cells, F features, B background cells, K latent dimensions, P platforms

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crossperf.dataset.features import Features
from crossperf.errors import PredictError, did_you_mean, some_of
from crossperf.model.fitted.protocols import KnownRuns
from crossperf.model.trained import TrainedModel
from crossperf.prediction.answer import predict
from crossperf.prediction.neighbours import Neighbour, nearest
from crossperf.prediction.question import Question, ask
from crossperf.prediction.shapley import Attribution, attribute
from crossperf.records import Prediction

#: Explanations that the text form shows.
_SHOWN = 5


@dataclass(frozen=True)
class Explanation:
    """Why one run was predicted to take so long on `platform`, relative to `source`, where it was measured."""

    app: str
    input: str
    source: str
    platform: str
    attribution: Attribution | None
    neighbours: tuple[Neighbour, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as JSON's own types."""
        return {
            **vars(self),
            "attribution": self.attribution.to_json() if self.attribution else None,
            "neighbours": [neighbour.to_json() for neighbour in self.neighbours],
        }


@dataclass(frozen=True)
class Explanations:
    """The explanation of each cell of a table, in the order of its predictions, and what to know about all."""

    explanations: tuple[Explanation, ...]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        lines = [f"Explanations of {len(self.explanations):,} predictions, as factors on the relative time"]
        for each in self.explanations[:_SHOWN]:
            parts = each.attribution.contributions[:3] if each.attribution else ()
            reasons = (
                ", ".join(f"{part.feature} {part.factor:.2f}x" for part in parts) or "no known runs to compare with"
            )
            lines.append(f"  {each.app} {each.input} from {each.source}, on {each.platform}: {reasons}")
        return "\n".join(lines + (["  ..."] if len(self.explanations) > _SHOWN else []))

    def _repr_html_(self) -> str:
        return str(self.to_frame()._repr_html_())

    def to_frame(self) -> Any:
        """Return one row for each run and feature, the strongest first: pandas where it is installed, else Polars."""
        from crossperf.runs.frames import to_frame

        names = ("feature", "factor", "standard_error", "value", "median")
        rows = [
            (each.app, each.input, each.source, each.platform, *(getattr(part, name) for name in names))
            for each in self.explanations
            for part in (each.attribution.contributions if each.attribution else ())
        ]
        heads = ("app", "input", "source", "platform", *names)
        return to_frame({name: [row[place] for row in rows] for place, name in enumerate(heads)})


def explain(
    model: TrainedModel,
    runs: Any,
    platform: str | None = None,
    *,
    samples: int = 256,
    neighbours: int = 5,
    limit: int | None = None,
    seed: int = 0,
) -> Explanations:
    """Return the contribution of each counter to the predictions of runs, and their nearest known workloads.

    Parameters
    ----------
    platform
        The platform whose relative time is explained. ``None``: for each cell the fastest predicted one other than
        its own, since the time on its own is known.
    samples
        Walks between known runs and this one; four times as many halve the standard errors.
    neighbours
        How many known workloads to name.
    limit
        Explain the first cells alone, up to this number. ``None``: all.
    """
    if platform is not None and platform not in model.platforms:
        raise PredictError(
            f"platform: found {platform!r}{did_you_mean(platform, model.platforms)}, expected one of the model's "
            f"platforms: {some_of(model.platforms, 20)}.",
            argument="platform",
            platform=platform,
        )
    question = (runs if isinstance(runs, Question) else ask(model, runs)).take(limit)
    predictions = predict(model, question).predictions
    targets = [platform or fastest_elsewhere(prediction) for prediction in predictions]
    part = model.fitted.part
    if not isinstance(part, KnownRuns) or not len(part.background):
        note = (
            f"The model {model.name!r} keeps no known runs to compare with, so it explains nothing: neither the "
            "contributions of counters nor the nearest workloads. Train the default model for that."
        )
        return Explanations(
            tuple(_explanation(*pair, None) for pair in zip(predictions, targets, strict=True)), (note,)
        )
    explanations = [
        _explanation(
            prediction,
            target,
            attribute(
                model.fitted,
                question.features[i],
                part.background,
                target=model.platforms.index(target),
                samples=samples,
                # The same draw for each cell, so that its answer does not depend on the others of its table.
                rng=np.random.default_rng(seed),
            ),
            _nearest(model, part, question.features[i], neighbours),
        )
        for i, (prediction, target) in enumerate(zip(predictions, targets, strict=True))
    ]
    return Explanations(tuple(explanations), _notes(model, part, question))


def _explanation(
    prediction: Prediction, target: str, attribution: Attribution | None, near: tuple[Neighbour, ...] = ()
) -> Explanation:
    return Explanation(prediction.app, prediction.input, prediction.source, target, attribution, near)


def _nearest(model: TrainedModel, part: KnownRuns, cell: Features, count: int) -> tuple[Neighbour, ...]:
    source = int(cell.source_n[0])
    return nearest(
        part.latent(cell)[0], part.known_latent_bk, part.known_workload_b, model.cells, source=source, count=count
    )


def fastest_elsewhere(prediction: Prediction) -> str:
    """Return the fastest predicted platform other than the one the run was measured on."""
    others = [name for name in prediction.relative_time if name != prediction.source]
    return min(others, key=lambda name: prediction.relative_time[name])


def _notes(model: TrainedModel, part: KnownRuns, question: Question) -> tuple[str, ...]:
    """Return a note where no known run was measured on a run's platform."""
    known = set(part.background.source_n.tolist())
    strange = [model.platforms[source] for source in np.unique(question.source_n).tolist() if source not in known]
    if not strange:
        return ()
    return (
        f"The model keeps no known runs on {some_of(strange)}: runs measured on it are compared with those on all "
        "others.",
    )
