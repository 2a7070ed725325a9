"""Scores any model under any split, beside its peers and the noise of the data."""

# N cells, W workloads, P platforms

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from crossperf import model, plugins
from crossperf.dataset.cells import Split
from crossperf.dataset.features import FeatureSet
from crossperf.dataset.pairing import Dataset, Fold, build, folds
from crossperf.errors import DatasetError, SettingsError, some_of
from crossperf.evaluation import metrics
from crossperf.evaluation.heldout import HeldOut, HeldOutPredictions
from crossperf.evaluation.latent import LatentMap
from crossperf.evaluation.result import Evaluation, caveats
from crossperf.evaluation.scores import ModelScores, Scoreboard, Scores
from crossperf.model.base import Predictor
from crossperf.model.fitted.model import LatentSpace
from crossperf.model.trained import versions
from crossperf.model.wrapped import maker_of
from crossperf.records import LOOKS

#: Called before each fit with the model's name, the number of fits done and the number of all fits.
Progress = Callable[[str, int, int], None]
#: A model by name: made anew, with the same settings, for every fold.
Maker = Callable[[], Predictor]
#: Models to compare: names, or by name whatever `makers_of` can make a model of.
Models = Sequence[str] | Mapping[str, Any]


def evaluate(
    data: Any,
    models: Models = ("crossperf", "random-forest"),
    *,
    split: Split = "workload",
    n_folds: int = 5,
    seed: int = 0,
    scored_folds: int | None = None,
    features: FeatureSet = "all",
    progress: Progress | None = None,
) -> Evaluation:
    """Return the scores of models that all saw the same folds and the same features.

    Parameters
    ----------
    data
        What `crossperf.build` returned, or anything it takes: a path, a table, records, a data frame.
    models
        Names of models with their default settings; or, by whatever name the table should show, a name, an object
        with ``fit`` and ``predict`` (it is copied for each fold), or a function that returns one.
    split
        What is held out: ``row``, ``workload`` or ``app``.
    scored_folds
        How many folds to fit and score: 1 of 5 is a single 80-20 split. ``None`` scores all.
    features
        What models see, as in `crossperf.build`; a `Dataset` brings its own.

    Returns
    -------
    Evaluation
        ``scores`` (with ``to_frame()``), held-out predictions, caveats, ``plot`` and ``write``.

    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> from crossperf.datasets import toy
    >>> runs = toy.make_table(apps=4, inputs=3, seed=1)
    >>> result = evaluate(runs, {"mine": KNeighborsRegressor(), "median": "median"}, n_folds=3)
    >>> sorted(result.scores)
    ['median', 'mine']
    """
    data = data if isinstance(data, Dataset) else build(data, features=features)
    if scored_folds is not None and not 1 <= scored_folds <= n_folds:
        message = f"scored_folds: found {scored_folds}, expected 1 to {n_folds}."
        raise SettingsError(message, argument="scored_folds")
    makers = makers_of(models, seed)
    parts = folds(data, split, n_folds, seed)[:scored_folds]
    for number, part in enumerate(parts, start=1):
        _refuse_unseen_platforms(data, part, number, split)
    order, _ = metrics.most_common_order(data.log_time_wp) or (None, None)
    scores: dict[str, list[Scores]] = {name: [] for name in makers}
    predictions: dict[str, list[HeldOutPredictions]] = {name: [] for name in makers}
    latent: LatentMap | None = None
    for done, (part, name) in enumerate(product(parts, makers)):
        if progress:
            progress(name, done, len(parts) * len(makers))
        predictor = makers[name]()
        of_fold, own = score_fold(predictor, data, part, split, order)
        scores[name].append(of_fold)
        predictions[name].append(own)
        if latent is None and isinstance(predictor.fitted_.part, LatentSpace):
            known = replace(data, features=data.features.matched(predictor.fitted_.columns))
            latent = LatentMap.of(name, predictor.fitted_.part, known, part.test_n, seed)
    held_out = HeldOut.of(data, [part.test_n for part in parts], predictions)
    facts = {"split": split, "folds": n_folds, "scored_folds": len(parts), "seed": seed, "versions": versions()}
    return evaluation_of(data, scores, order, held_out=held_out, latent=latent, **facts)


def evaluation_of(
    data: Dataset, scores: Mapping[str, Sequence[Scores]], order: metrics.Order | None, **facts: Any
) -> Evaluation:
    """Return an evaluation of models on a dataset from their scores of each fold, with what those are compared with."""
    models = {name: ModelScores.of(folds) for name, folds in scores.items()}
    board, constant = Scoreboard(models, metrics.noise_ceiling(data, order)), metrics.ConstantAnswer.of(data)
    evaluation = Evaluation(table=data.table, scores=board, constant=constant, **facts)
    return replace(evaluation, caveats=caveats(evaluation, data))


def makers_of(models: Models, seed: int) -> dict[str, Maker]:
    """Return makers by name: of models with their default settings under a seed, or of what was given."""
    if isinstance(models, str):
        raise SettingsError(f"models: found {models!r}, expected a list of names or a mapping.", argument="models")
    given = models if isinstance(models, Mapping) else {name: name for name in models}
    return {name: _default(own, seed) if isinstance(own, str) else maker_of(own) for name, own in given.items()}


def _default(name: str, seed: int) -> Maker:
    if name not in model.MODELS:
        return maker_of(plugins.load(name, "model", argument="models", known=model.MODELS))

    def maker() -> Predictor:
        made = model.make(name)
        return made.set_params(seed=seed) if "seed" in made.get_params() else made

    maker()  # an unknown name, or a package that is missing, is reported before the first fit
    return maker


def ablation(seed: int = 0) -> dict[str, Maker]:
    """Return makers of `vae-dnn` whole, with each of its stages switched off or changed, and without the VAE."""
    off: dict[str, dict[str, Any]] = {
        "vae-dnn": {},
        "without calibrated sigma": {"calibrated": False},
        "without CPU first": {"cpu_part": 0.0},
        "without KL schedule": {"kl_schedule": "constant"},
        "without feedback": {"feedback_weight": 0.0},
        "with the regressor alone last": {"feedback_part": 0.8, "dnn_part": 0.16},
        "without bins": {"bins": 1},
        "with masking": {"mask_share": 0.1},
    }

    makers = {name: partial(model.make, "vae-dnn", seed=seed, **settings) for name, settings in off.items()}
    return {**makers, "without VAE (dnn)": _default("dnn", seed)}


def score_fold(
    predictor: Predictor, data: Dataset, part: Fold, split: Split, order: metrics.Order | None
) -> tuple[Scores, HeldOutPredictions]:
    """Fit on the training part of a fold; return scores and predictions of the part held out."""
    start = time.perf_counter()
    predictor.learn(data.take(part.train_n), split)
    fitted = time.perf_counter()
    test = data.take(part.test_n)
    predicted_np = predictor.predict(test.features)
    predicted = time.perf_counter()
    own = HeldOutPredictions.by(predictor.fitted_, test.features, test, predicted_np)
    scores = score_cells(own, test, order)
    return replace(scores, fit_s=fitted - start, predict_s=predicted - fitted), own


def score_cells(own: HeldOutPredictions, data: Dataset, order: metrics.Order | None = None) -> Scores:
    """Return the scores of predictions of all cells of a dataset, those of the intervals included.

    Parameters
    ----------
    order
        The order that `order_auc` looks for.
    """
    truth_np = data.log_relative_time_np
    scores = metrics.score(truth_np, own.predicted_np, data.source_n, order, data.noise_pp)
    if own.low_np is None or own.high_np is None:
        return scores
    known_np = ~np.isnan(metrics.without_source(truth_np, data.source_n))
    inside_np = (own.low_np <= truth_np) & (truth_np <= own.high_np)
    truth_np, predicted_np = metrics.to_source(truth_np, own.predicted_np, data.source_n)
    figures: dict[str, float | None] = {
        "coverage": float(inside_np[known_np].mean()),
        "interval_factor": float(np.exp((own.high_np - own.low_np)[known_np].mean() / 2)),
    }
    words_n = np.array(own.words)
    for word in LOOKS:
        rows_n = words_n == word
        figures[f"share_{word}"] = float(rows_n.mean())
        figures[f"factor_{word}"] = metrics.typical_factor(truth_np[rows_n], predicted_np[rows_n])
    return replace(scores, **figures)


def _refuse_unseen_platforms(data: Dataset, part: Fold, number: int, split: Split) -> None:
    """Raise where a fold leaves a platform out of training: nothing could be learned, or scored, about it."""
    measured_p = np.asarray(~np.isnan(data.log_relative_time_np[part.train_n]).all(axis=0))
    unseen = [name for name, measured in zip(data.platforms, measured_p, strict=True) if not measured]
    if unseen:
        raise DatasetError(
            f"{data.table.path}: platform {some_of(unseen)} is seen in no training row of fold {number} of the "
            f"split '{split}', expected each platform in every training part. Measure more workloads there, or "
            "leave it out of the dataset's platforms.",
            platforms=unseen,
        )
