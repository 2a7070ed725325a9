"""Reasons for predictions: the contribution of each counter, and the known workloads nearest in a latent space."""

# N cells, F features, B background cells, K latent dimensions, W workloads, P platforms

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crossperf import plain
from crossperf.arrays import Floats, Integers
from crossperf.dataset.cells import Cells
from crossperf.errors import PredictError, did_you_mean, some_of
from crossperf.model.fitted.model import KnownRuns
from crossperf.model.trained import TrainedModel
from crossperf.prediction.answer import Question, ask, predict
from crossperf.prediction.shapley import Attribution, attribute
from crossperf.records import Prediction

#: Explanations that the text form shows.
_SHOWN = 5


@dataclass(frozen=True)
class Neighbour:
    """One known workload: how far away its nearest cell lies, and its true relative times.

    ``relative_time[p]`` is time on p over time on `relative_to`; ``None`` where it never ran.
    """

    app: str
    input: str
    distance: float
    relative_to: str
    relative_time: Mapping[str, float | None]


def nearest(
    latent_k: Floats, known_latent_bk: Floats, known_workload_b: Integers, cells: Cells, *, source: int, count: int = 5
) -> tuple[Neighbour, ...]:
    """Return the workloads with the nearest known cells, nearest first, each once.

    Relative times refer to the platform ``source``; for a workload that never ran there, to its fastest one.

    >>> times = np.log([[1.0, 2.0], [3.0, 3.0]])
    >>> known = Cells(("p", "q"), ("cpu", "cpu"), (("a", "1"), ("b", "1")), times, np.array([0]), np.array([0]))
    >>> nearest(np.array([4.0]), np.array([[0.0], [5.0], [1.0]]), np.array([0, 0, 1]), known, source=0)[0]
    Neighbour(app='a', input='1', distance=1.0, relative_to='p', relative_time={'p': 1.0, 'q': 2.0})
    """
    distance_b = np.linalg.norm(known_latent_bk - latent_k, axis=1)
    distance_w = np.full(len(cells.workloads), np.inf)
    np.minimum.at(distance_w, known_workload_b, distance_b)
    known_w = np.isfinite(distance_w) & ~np.isnan(cells.log_time_wp).all(axis=1)
    order_w = np.argsort(distance_w, kind="stable")
    numbers: list[int] = order_w[known_w[order_w]][:count].tolist()
    neighbours = []
    for number in numbers:
        log_time_p, names = cells.log_time_wp[number], cells.platforms
        reference = source if not np.isnan(log_time_p[source]) else int(np.nanargmin(log_time_p))
        relative_p = np.exp(log_time_p - log_time_p[reference]).tolist()
        times = {name: None if np.isnan(time) else time for name, time in zip(names, relative_p, strict=True)}
        neighbours.append(Neighbour(*cells.workloads[number], float(distance_w[number]), names[reference], times))
    return tuple(neighbours)


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
        facts: dict[str, Any] = plain.to_json(self)
        for part in facts["attribution"]["contributions"] if self.attribution else ():
            part["factor"] = math.exp(part["contribution"])
        return facts


@dataclass(frozen=True)
class Explanations:
    """The explanation of each cell of a table, in the order of its predictions, and what to know about all."""

    explanations: tuple[Explanation, ...]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        lines = [f"Explanations of {len(self.explanations):,} predictions, as factors on the relative time"]
        for each in self.explanations[:_SHOWN]:
            parts = each.attribution.contributions[:3] if each.attribution else ()
            why = ", ".join(f"{part.feature} {part.factor:.2f}x" for part in parts) or "no known runs to compare with"
            lines.append(f"  {each.app} {each.input} from {each.source}, on {each.platform}: {why}")
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
    can: Sequence[str] | None = None,
    seed: int = 0,
) -> Explanations:
    """Return the contribution of each counter to the predictions of runs, and their nearest known workloads.

    Parameters
    ----------
    platform
        The platform whose relative time is explained. ``None``: for each cell the fastest predicted one other than
        its own, since the time on its own is known; no contributions where nothing else can run it.
    samples
        Walks between known runs and this one; four times as many halve the standard errors.
    neighbours
        How many known workloads to name.
    limit
        Explain the first cells alone, up to this number. ``None``: all.
    can
        Where there is a version of the program, as for `crossperf.predict`.

    Returns
    -------
    Explanations
        One for each cell; without contributions, and with a note, where the model keeps no known runs.

    >>> from crossperf.datasets import toy
    >>> from crossperf.model import train
    >>> runs = toy.make_runs(apps=3, inputs=2, seed=1)
    >>> quick = {"trees": 8, "members": 3, "width": 16, "steps": 20, "vae_steps": 20}
    >>> len(explain(train(runs, **quick), runs[0], samples=8).explanations[0].neighbours)
    5
    """
    if platform is not None and platform not in model.platforms:
        raise PredictError(
            f"platform: found {platform!r}{did_you_mean(platform, model.platforms)}, expected one of the model's "
            f"platforms: {some_of(model.platforms, 20)}.",
            argument="platform",
            platform=platform,
        )
    question = runs if isinstance(runs, Question) else ask(model, runs)
    question = question.take(range(len(question))[:limit])
    predictions = predict(model, question, can=can).predictions
    targets = [platform or _fastest_elsewhere(own) for own in predictions]
    _refuse_not_offered(predictions, platform)
    part = model.fitted.part
    known = part if isinstance(part, KnownRuns) and len(part.background) else None
    explanations = []
    for i, (prediction, target) in enumerate(zip(predictions, targets, strict=True)):
        run, cell = (prediction.app, prediction.input, prediction.source, target), question.features[i]
        if known is None:
            explanations.append(Explanation(*run, None))
            continue
        reasons = None
        if target != prediction.source or platform is not None:
            # The same draw for each cell, so that its answer does not depend on the others of its table.
            rng, number = np.random.default_rng(seed), model.platforms.index(target)
            reasons = attribute(model.fitted, cell, known.background, target=number, samples=samples, rng=rng)
        near = known.latent(cell)[0], known.known_latent_bk, known.known_workload_b
        source = int(cell.source_n[0])
        explanations.append(Explanation(*run, reasons, nearest(*near, model.cells, source=source, count=neighbours)))
    return Explanations(tuple(explanations), _notes(model, known, question))


def _fastest_elsewhere(prediction: Prediction) -> str:
    """Return the fastest predicted platform other than a run's own; its own where nothing else can run it."""
    elsewhere = [name for name in prediction.offered if name != prediction.source]
    return min(elsewhere, key=lambda name: prediction.relative_time[name], default=prediction.source)


def _refuse_not_offered(predictions: Sequence[Prediction], platform: str | None) -> None:
    for own in predictions:
        if platform is not None and platform in own.cannot:
            raise PredictError(
                f"platform: found {platform!r} for ({own.app}, {own.input}) ({own.cannot[platform]}), expected one "
                f"that can run it: {some_of(own.offered, 20)}. Name what can run it with can.",
                argument="platform",
                platform=platform,
            )


def _notes(model: TrainedModel, known: KnownRuns | None, question: Question) -> tuple[str, ...]:
    if known is None:
        return (
            f"The model {model.name!r} keeps no known runs to compare with, so it explains nothing: neither the "
            "contributions of counters nor the nearest workloads. Train the default model for that.",
        )
    unknown = sorted(set(question.features.source_n.tolist()) - set(known.background.source_n.tolist()))
    strange = some_of([model.platforms[source] for source in unknown])
    note = f"The model keeps no known runs on {strange}: runs measured on it are compared with those on all others."
    return (note,) if unknown else ()
