"""Scores any model under any split, beside its peers and the noise of the data."""

# N cells, W workloads, P platforms

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from crossperf import plain
from crossperf.dataset.cells import Split
from crossperf.dataset.features import FeatureSet
from crossperf.dataset.pairing import Dataset, Fold, build, folds
from crossperf.errors import DatasetError, SettingsError, some_of
from crossperf.evaluation import metrics
from crossperf.evaluation.heldout import HeldOut, HeldOutPredictions
from crossperf.evaluation.parcels import ModelSpec, pack
from crossperf.evaluation.pieces import STUDY, FoldAnswer, FoldQuestion, answer, rows_of
from crossperf.evaluation.result import Evaluation, caveats
from crossperf.evaluation.scores import ModelScores, Scoreboard, Scores
from crossperf.model.base import Predictor
from crossperf.model.wrapped import maker_of
from crossperf.versions import versions
from crossperf.workers import Here, Kept, Parcel, PieceQuestion, Progress, Workers

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
    workers: Workers | None = None,
    kept: Kept | None = None,
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
    workers
        What fits the folds, such as ``crossperf.workers.processes(4)``; ``None`` is this process. Models are then
        names, since names and settings travel and objects do not.
    kept
        A folder of finished folds, which are not fitted again (``crossperf.workers.Kept``).

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
    asked = list(product(range(len(parts)), makers))
    if workers is None and kept is None:
        answers = _answers_here(data, parts, makers, split, seed, asked, progress)
    else:
        specs, table = specs_of(makers), pack(data)
        questions = [
            question_of(table, parts[fold], FoldQuestion(split, n_folds, seed, fold, "", specs[name]), name)
            for fold, name in asked
        ]
        by_place = dict(STUDY.answers(questions, workers or Here(), kept, progress))
        answers = [FoldAnswer.of(by_place[i], name) for i, (_, name) in enumerate(asked)]
    scores: dict[str, list[Scores]] = {name: [] for name in makers}
    predictions: dict[str, list[HeldOutPredictions]] = {name: [] for name in makers}
    for (_, name), own in zip(asked, answers, strict=True):
        scores[name].append(own.scores)
        predictions[name].append(own.predictions)
    latent = next((own.latent for own in answers if own.latent), None)
    held_out = HeldOut.of(data, [part.test_n for part in parts], predictions)
    order, _ = metrics.most_common_order(data.log_time_wp) or (None, None)
    facts = {"split": split, "folds": n_folds, "scored_folds": len(parts), "seed": seed, "versions": versions()}
    return evaluation_of(data, scores, order, held_out=held_out, latent=latent, **facts)


def _answers_here(
    data: Dataset,
    parts: Sequence[Fold],
    makers: Mapping[str, Maker],
    split: Split,
    seed: int,
    asked: Sequence[tuple[int, str]],
    progress: Progress | None,
) -> list[FoldAnswer]:
    """Return the answers of this process, whose models may be any objects."""
    answers: list[FoldAnswer] = []
    mapped = True
    for done, (fold, name) in enumerate(asked):
        if progress:
            progress(name, done, len(asked))
        answers.append(answer(makers[name](), data, parts[fold], split, seed, name=name, mapped=mapped and fold == 0))
        mapped = mapped and answers[-1].latent is None
    return answers


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
    return {name: _maker(own, seed) for name, own in given.items()}


def _maker(own: Any, seed: int) -> Maker:
    if isinstance(own, ModelSpec):
        return own
    return ModelSpec.of(own, seed) if isinstance(own, str) else maker_of(own)


def specs_of(makers: Mapping[str, Maker]) -> dict[str, ModelSpec]:
    """Return models that can travel, by name; an object, which cannot, raises `SettingsError`."""
    objects = [name for name, maker in makers.items() if not isinstance(maker, ModelSpec)]
    if objects:
        raise SettingsError(
            f"models: found an object for {some_of(objects)}, expected names, or FILE.py:NAME for a model of your own: "
            "names and settings travel to workers and into files, objects do not.",
            argument="models",
        )
    return {name: maker for name, maker in makers.items() if isinstance(maker, ModelSpec)}


def question_of(
    table: Parcel, part: Fold, question: FoldQuestion, label: str, notes: Mapping[str, Any] | None = None
) -> PieceQuestion:
    """Return the question of a fold as workers are asked it."""
    asked = replace(question, rows=rows_of(part))
    return PieceQuestion(table, plain.to_json(asked), f"{label} fold {question.fold + 1}", notes or {})


def ablation(seed: int = 0) -> dict[str, ModelSpec]:
    """Return `vae-dnn` whole, with each of its stages switched off or changed, and without the VAE."""
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
    variants = {name: ModelSpec("vae-dnn", {"seed": seed, **settings}) for name, settings in off.items()}
    return {**variants, "without VAE (dnn)": ModelSpec("dnn", {"seed": seed})}


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
