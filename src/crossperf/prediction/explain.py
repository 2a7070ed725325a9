"""Reasons for predictions: the counters that pushed each, and the known workloads most like it."""

# N cells, F features, B background cells, K latent dimensions, P platforms

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossperf.dataset.build import Source, combine, encode, feature_names, open_table
from crossperf.errors import PredictError, did_you_mean, some_of
from crossperf.model.store import Saved
from crossperf.prediction.answer import match_counters, predict
from crossperf.prediction.neighbours import Neighbour, nearest
from crossperf.prediction.shapley import Attribution, attribute
from crossperf.records import Prediction

Floats = NDArray[np.float64]


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


def explain(
    saved: Saved,
    source_table: Source,
    platform: str | None = None,
    *,
    samples: int = 256,
    neighbours: int = 5,
    limit: int | None = None,
    seed: int = 0,
) -> Explanations:
    """Return what pushed the prediction of every cell of a table, and its nearest known workloads.

    Parameters
    ----------
    platform
        The platform whose relative time is explained. ``None``: for each cell the fastest predicted one other than
        its own, since the time on its own is known.
    samples
        Walks between known runs and this one; four times as many halve the standard errors.
    limit
        Explain the first so many cells only. ``None``: all.
    """
    if platform is not None and platform not in saved.platforms:
        raise PredictError(
            f"--explain-platform: found {platform!r}{did_you_mean(platform, saved.platforms)}, expected one of the "
            f"model's platforms: {some_of(saved.platforms, 20)}.",
            platform=platform,
        )
    table = open_table(source_table, need_runtime=False)
    predictions = predict(saved, table).predictions[:limit]
    cells = combine(table)
    counters_nc, _ = match_counters(cells, saved.counters, table.path)
    source_n = np.array([saved.platforms.index(name) for name in cells.platform_n], dtype=np.int64)
    features_nf = encode(counters_nc, cells.runtime_s_n, source_n, len(saved.sources))[: len(predictions)]
    targets = [platform or fastest_elsewhere(prediction) for prediction in predictions]
    attributions, doubts = _attributions(saved, features_nf, source_n, targets, samples, seed)
    found, more = _neighbours(saved, features_nf, source_n, neighbours)
    explanations = tuple(
        Explanation(prediction.app, prediction.input, prediction.source, target, attribution, near)
        for prediction, target, attribution, near in zip(predictions, targets, attributions, found, strict=True)
    )
    return Explanations(explanations, (*doubts, *more))


def fastest_elsewhere(prediction: Prediction) -> str:
    """Return the fastest predicted platform other than the one the run was measured on."""
    others = [name for name in prediction.relative_time if name != prediction.source]
    return min(others, key=lambda name: prediction.relative_time[name])


def _attributions(
    saved: Saved, features_nf: Floats, source_n: NDArray[np.int64], targets: list[str], samples: int, seed: int
) -> tuple[list[Attribution | None], list[str]]:
    background_bf = getattr(saved.model, "background_bf_", None)
    if background_bf is None or not len(background_bf):
        note = (
            f"The model {saved.model.name!r} keeps no known runs to compare with, so which counters pushed a "
            "prediction is not told. Train the default model for that."
        )
        return [None] * len(features_nf), [note]
    names = feature_names(saved.counters, saved.sources)
    attributions: list[Attribution | None] = [
        attribute(
            saved.model,
            features_nf[i],
            background_bf,
            names,
            source=int(source_n[i]),
            target=saved.platforms.index(target),
            samples=samples,
            # The same draw for each cell, so that its answer does not depend on the others of its table.
            rng=np.random.default_rng(seed),
        )
        for i, target in enumerate(targets)
    ]
    known_p = background_bf[:, -len(saved.sources) :].any(axis=0)
    strange = [saved.platforms[p] for p in np.unique(source_n[: len(features_nf)]) if not known_p[p]]
    if not strange:
        return attributions, []
    note = (
        f"The model keeps no known runs on {some_of(strange)}: runs from there are compared with those on all others."
    )
    return attributions, [note]


def _neighbours(
    saved: Saved, features_nf: Floats, source_n: NDArray[np.int64], count: int
) -> tuple[list[tuple[Neighbour, ...]], list[str]]:
    model, workloads = saved.model, saved.workloads
    training_nk = getattr(model, "training_latent_nk_", None)
    if training_nk is None or not hasattr(model, "latent") or not workloads:
        note = (
            f"The model {model.name!r} keeps no latent space of known workloads, so the nearest are not told. "
            "Train the default model for that."
        )
        return [()] * len(features_nf), [note]
    latent_nk = model.latent(features_nf)
    found = [
        nearest(
            latent_k,
            training_nk,
            model.training_workload_n_,
            workloads,
            saved.log_time_wp,
            saved.platforms,
            source=source,
            count=count,
        )
        for latent_k, source in zip(latent_nk, source_n.tolist(), strict=False)
    ]
    return found, []
