"""One fold of a cross-validation as a piece of work: fit a model on the training part, score the part held out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from crossperf import plain
from crossperf.dataset.cells import Split
from crossperf.dataset.pairing import Dataset, Fold, folds
from crossperf.errors import WorkerError
from crossperf.evaluation import metrics
from crossperf.evaluation.heldout import HeldOutPredictions
from crossperf.evaluation.latent import LatentMap
from crossperf.evaluation.parcels import ModelSpec, unpack
from crossperf.evaluation.scores import Scores
from crossperf.evaluation.scoring import score_fold
from crossperf.model.base import Predictor
from crossperf.model.fitted.model import LatentSpace
from crossperf.workers import Parcel, Study
from crossperf.workers.threads import here


@dataclass(frozen=True)
class FoldQuestion:
    """Which model is scored on which fold of which split; `rows` is a digest of the rows of the fold."""

    split: Split
    folds: int
    seed: int
    fold: int
    rows: str
    model: ModelSpec


@dataclass(frozen=True)
class FoldAnswer:
    """The scores and predictions of the part held out, numbers that the fit reports, and the first fold's map."""

    scores: Scores
    predictions: HeldOutPredictions
    latent: LatentMap | None = None
    summary: Mapping[str, float] | None = None

    def parcel(self) -> Parcel:
        """Return the answer as facts and arrays."""
        facts = {name: plain.to_json(getattr(self, name)) for name in ("scores", "latent", "summary")}
        facts["scores"] = {name: value for name, value in facts["scores"].items() if _is_number(value)}
        arrays = {own.name: getattr(self.predictions, own.name) for own in fields(self.predictions)}
        return Parcel(facts, {name: array for name, array in arrays.items() if array is not None})

    @classmethod
    def of(cls, parcel: Parcel, name: str) -> FoldAnswer:
        """Return the answer of a parcel, the model called by its name in the evaluation."""
        facts = parcel.facts
        latent = plain.from_json(LatentMap, {**facts["latent"], "model": name}) if facts["latent"] else None
        predictions = HeldOutPredictions(**parcel.arrays)
        return cls(plain.from_json(Scores, facts["scores"]), predictions, latent, facts["summary"])


def answer(
    predictor: Predictor, data: Dataset, part: Fold, split: Split, seed: int, *, name: str = "", mapped: bool = True
) -> FoldAnswer:
    """Return what a model that is not fitted yet scores on a fold, with its latent map where that is wanted."""
    order, _ = metrics.most_common_order(data.log_time_wp) or (None, None)
    scores, own = score_fold(predictor, data, part, split, order)
    latent = None
    if mapped and isinstance(predictor.fitted_.part, LatentSpace):
        known = replace(data, features=data.features.matched(predictor.fitted_.columns))
        latent = LatentMap.of(name, predictor.fitted_.part, known, part.test_n, seed)
    numbers = {name: value for name, value in predictor.summary_.items() if _is_number(value)}
    return FoldAnswer(scores, own, latent, numbers)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and bool(np.isfinite(value))


def score(table: Parcel, question: Mapping[str, Any]) -> Parcel:
    """Return the answer to a question about a table; what workers are sent."""
    data, asked = unpack(table), plain.from_json(FoldQuestion, question)
    part = folds(data, asked.split, asked.folds, asked.seed)[asked.fold]
    if rows_of(part) != asked.rows:
        raise WorkerError(
            f"fold {asked.fold + 1} of the split {asked.split!r} has other rows here than where it was asked."
        )
    predictor = asked.model()
    if "n_jobs" in predictor.get_params() and "n_jobs" not in asked.model.settings:
        predictor.set_params(n_jobs=here())
    return answer(predictor, data, part, asked.split, asked.seed, mapped=asked.fold == 0).parcel()


def rows_of(part: Fold) -> str:
    """Return a digest of the rows of a fold."""
    return hashlib.sha256(part.train_n.tobytes() + b"|" + part.test_n.tobytes()).hexdigest()[:16]


#: The numbers of an answer follow from the models and from what scores them; a table is known by its numbers.
_CODE = ("model", *(f"evaluation/{name}.py" for name in ("heldout", "latent", "metrics", "scoring")))
STUDY = Study(score, _CODE)
