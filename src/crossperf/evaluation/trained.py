"""How good a trained model is on a table of runs, scored only on the workloads it was not trained on."""

# N cells, F features, C counters, W workloads, P platforms

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from crossperf.arrays import Integers, Mask
from crossperf.dataset.cells import TableFacts, spread
from crossperf.dataset.features import Columns
from crossperf.dataset.measured import measured_table
from crossperf.dataset.pairing import Dataset, build
from crossperf.errors import ModelFolderError, PredictError, did_you_mean, some_of
from crossperf.evaluation import metrics
from crossperf.evaluation.heldout import HeldOut, HeldOutPredictions
from crossperf.evaluation.latent import LatentMap
from crossperf.evaluation.result import Evaluation
from crossperf.evaluation.run import evaluation_of
from crossperf.evaluation.scoring import score_cells
from crossperf.model.fitted.model import LatentSpace
from crossperf.model.trained import TrainedModel
from crossperf.runs.table import read_runs

#: What stands in place of a split.
NEW = "new"


def assess(model: TrainedModel, runs: Any = None, *, seed: int = 0) -> Evaluation:
    """Return the evaluation of a trained model on a table of runs, or on what it was trained on.

    Scores are of the workloads that were not trained on; where there are none, there are no scores.

    Parameters
    ----------
    runs
        A path, a `RunsTable`, records or a data frame; ``None`` for the cells it was trained on.

    Returns
    -------
    Evaluation
        Its split is ``new``; without unseen workloads its scores are empty, and a caveat gives the reason.

    >>> from crossperf.datasets import toy
    >>> from crossperf.model import train
    >>> model = train(toy.make_table(apps=3, inputs=2, seed=1), "ridge")
    >>> list(assess(model, toy.make_table(apps=3, inputs=3, seed=1)).scores)
    ['ridge']
    """
    data = _of_training(model) if runs is None else _of_table(model, runs)
    seen = set(model.workloads)
    unseen_w = np.array([workload not in seen for workload in data.workloads], dtype=bool)
    sources = data.source_n < len(model.sources)
    rows_n = np.flatnonzero(unseen_w[data.workload_n] & sources)
    # A constant answer is judged on the same workloads as the model.
    asked = data.take(rows_n).compact() if len(rows_n) else data
    order, _ = metrics.most_common_order(asked.log_time_wp) or (None, None)
    predictions, scores = {}, {}
    if len(rows_n):
        own = HeldOutPredictions.by(model.fitted, asked.features, asked, model.fitted.predict(asked.features))
        predictions, scores = {model.name: [own]}, {model.name: [score_cells(own, asked, order)]}
    held_out = HeldOut.of(data, [rows_n if len(rows_n) else np.arange(len(data))], predictions)
    latent = _map(model, data, np.flatnonzero(sources), rows_n, seed)
    facts = {"split": NEW, "folds": 1, "seed": seed, "versions": model.versions}
    evaluation = evaluation_of(asked, scores, order, held_out=held_out, latent=latent, **facts)
    return replace(evaluation, caveats=(*_overlap(data, unseen_w, model), *evaluation.caveats))


def _map(model: TrainedModel, data: Dataset, rows: Integers, unseen: Integers, seed: int) -> LatentMap | None:
    part = model.fitted.part
    if not isinstance(part, LatentSpace) or not len(rows):
        return None
    drawn = data.take(rows)
    known = replace(drawn, features=drawn.features.matched(model.columns))
    return LatentMap.of(model.name, part, known, np.flatnonzero(np.isin(rows, unseen)), seed)


def _overlap(data: Dataset, unseen_w: Mask, model: TrainedModel) -> list[str]:
    seen = int((~unseen_w).sum())
    if not model.workloads:
        return ["The model keeps no list of what it was trained on; if these are among them, it is flattered."]
    if not unseen_w.any():
        return [
            f"All {seen:,} workloads were trained on, so nothing here tells how good the model is on others; "
            "'crossperf evaluate' does."
        ]
    apps = {app for app, _ in model.workloads}
    known = sum(data.workloads[w][0] in apps for w in np.flatnonzero(unseen_w))
    shared = f"Of {int(unseen_w.sum()):,} workloads scored, {known:,} belong to applications it was trained on."
    left_out = [f"{seen:,} workloads that the model was trained on were left out of the scores."] if seen else []
    return [*left_out, *([shared] if known else [])]


def _of_training(model: TrainedModel) -> Dataset:
    """Return what a model was trained on, as far as it was kept."""
    facts = model.training or TableFacts("the model")
    if not len(model.features):
        raise ModelFolderError(
            f"{facts.path}: the model kept nothing of what it was trained on, expected its cells. Name a TABLE of runs "
            "beside it, or train it again."
        )
    return Dataset(
        **model.cells.shared(),
        features=model.features,
        log_time_halves_hwp=np.full((2, *model.cells.log_time_wp.shape), np.nan),
        table=replace(facts, platforms=model.platforms),
    )


def _of_table(model: TrainedModel, runs: Any) -> Dataset:
    """Return a table of runs as the model sees it: its counters and its platforms, in its order."""
    table = read_runs(runs)
    data = build(table)
    unknown = [name for name in data.platforms if name not in model.platforms]
    if unknown:
        raise PredictError(
            f"{table.path}: platform {unknown[0]!r} is not known to the model"
            f"{did_you_mean(unknown[0], model.platforms)}, expected runs on {some_of(model.platforms, 20)}. "
            "Rename it if it is one of these, or train with runs of it.",
            platforms=unknown,
        )
    # A platform that was added later is no source to the model: its column is encoded here and matched away there.
    columns = Columns.of(model.columns.measured, model.platforms)
    place_p = np.array([model.platforms.index(name) for name in data.platforms], dtype=np.int64)
    return replace(
        data.on(model.platforms, model.cells.platform_classes),
        features=measured_table(table, data.platforms).features(columns),
        log_time_halves_hwp=spread(data.log_time_halves_hwp, place_p, len(model.platforms)),
        table=replace(data.table, platforms=model.platforms),
    )
