"""How good a trained model is on a table of runs, scored only on the workloads it was not trained on."""

# N cells, F features, C counters, W workloads, P platforms

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crossperf import plain
from crossperf.dataset.build import Dataset, Source, build, combine, open_table
from crossperf.dataset.facts import TableFacts
from crossperf.errors import ModelFolderError, PredictError, did_you_mean, some_of
from crossperf.evaluation import metrics
from crossperf.evaluation.baselines import ConstantAnswer, noise_ceiling
from crossperf.evaluation.caveats import caveats
from crossperf.evaluation.heldout import HeldOut, HeldOutPredictions
from crossperf.evaluation.latent import LatentMap
from crossperf.evaluation.result import Evaluation
from crossperf.evaluation.run import score_cells
from crossperf.evaluation.scores import ModelScores, Scoreboard
from crossperf.model.store import Saved
from crossperf.prediction.answer import match_counters

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: What stands in place of a split.
NEW = "new"


def assess(saved: Saved, source: Source | None = None, *, seed: int = 0) -> Evaluation:
    """Return the evaluation of a trained model on a table of runs, or on what it was trained on.

    Scores are of the workloads that were not trained on; where there are none, there are no scores.
    """
    data = _of_table(saved, source) if source is not None else _of_training(saved)
    seen = set(saved.workloads)
    unseen_w = np.array([workload not in seen for workload in data.workloads], dtype=bool)
    rows_n = np.flatnonzero(unseen_w[data.workload_n] & (data.source_n < len(saved.sources)))
    asked = _alone(data, rows_n) if len(rows_n) else data
    order = _order(asked)
    predictions, scores = _scored(saved, asked, order) if len(rows_n) else ({}, {})
    evaluation = Evaluation(
        table=data.table,
        split=NEW,
        folds=1,
        seed=seed,
        scores=Scoreboard(scores, noise_ceiling(asked, order)),
        constant=ConstantAnswer.of(asked),
        versions=saved.versions,
        held_out=HeldOut.of(asked, [np.arange(len(asked))], predictions),
        latent=_map(saved, data, rows_n, seed),
    )
    return replace(evaluation, caveats=(*_overlap(data, unseen_w, saved), *caveats(evaluation, asked)))


def _alone(data: Dataset, rows_n: Integers) -> Dataset:
    """Return the dataset with these cells and their workloads alone: a constant answer is judged on the same ones."""
    own_w, workload_n = np.unique(data.workload_n[rows_n], return_inverse=True)
    return replace(
        data.take(rows_n),
        workloads=tuple(data.workloads[w] for w in own_w),
        workload_n=workload_n.astype(np.int64),
        log_time_wp=data.log_time_wp[own_w],
        log_time_halves_hwp=data.log_time_halves_hwp[:, own_w],
    )


def _scored(
    saved: Saved, asked: Dataset, order: metrics.Order | None
) -> tuple[dict[str, list[HeldOutPredictions]], dict[str, ModelScores]]:
    """Return the model's predictions of cells and its scores there, each by the model's name."""
    features_nf = _features(saved, asked.features_nf)
    own = HeldOutPredictions.by(
        saved.model, features_nf, asked.log_relative_time_np, asked.source_n, saved.model.predict(features_nf)
    )
    return {saved.model.name: [own]}, {saved.model.name: ModelScores.of([score_cells(own, asked, order)])}


def _features(saved: Saved, features_nf: Floats) -> Floats:
    """Return the features as the model learned them: platforms that were added later are no sources to it."""
    return features_nf[:, : features_nf.shape[1] - saved.model.n_added]


def _order(data: Dataset) -> metrics.Order | None:
    common = metrics.most_common_order(data.log_time_wp)
    return common[0] if common else None


def _map(saved: Saved, data: Dataset, unseen: Integers, seed: int) -> LatentMap | None:
    if not hasattr(saved.model, "latent"):
        return None
    rows_n = np.flatnonzero(data.source_n < len(saved.sources))
    place = np.full(len(data), -1)
    place[rows_n] = np.arange(len(rows_n))

    def latent(features_nf: Floats) -> Floats:
        return np.asarray(saved.model.latent(_features(saved, features_nf)))

    return LatentMap.of(saved.model.name, latent, data.take(rows_n), place[unseen], seed) if len(rows_n) else None


def _overlap(data: Dataset, unseen_w: NDArray[np.bool_], saved: Saved) -> list[str]:
    seen = int((~unseen_w).sum())
    if not saved.workloads:
        return ["The model does not say which workloads it was trained on; if these are among them, it is flattered."]
    if not unseen_w.any():
        return [
            f"All {seen:,} workloads were trained on, so nothing here tells how good the model is on others; "
            "'crossperf evaluate' does."
        ]
    apps = {app for app, _ in saved.workloads}
    known = sum(data.workloads[w][0] in apps for w in np.flatnonzero(unseen_w))
    shared = f"Of {int(unseen_w.sum()):,} workloads scored, {known:,} belong to applications it was trained on."
    left_out = [f"{seen:,} workloads that the model was trained on were left out of the scores."] if seen else []
    return [*left_out, *([shared] if known else [])]


def _of_training(saved: Saved) -> Dataset:
    """Return what a model was trained on, as far as it was kept."""
    if not len(saved.features_nf):
        raise ModelFolderError(
            f"{saved.training.get('path', 'the model')}: the model kept nothing of what it was trained on, expected "
            "its cells. Name a TABLE of runs beside it, or train it again."
        )
    counters = len(saved.counters)
    return Dataset(
        counters=saved.counters,
        platforms=saved.platforms,
        platform_classes=saved.platform_classes,
        workloads=saved.workloads,
        counters_nc=saved.features_nf[:, :counters],
        runtime_s_n=saved.features_nf[:, counters],
        source_n=saved.source_n,
        workload_n=saved.workload_n,
        log_time_wp=saved.log_time_wp,
        log_time_halves_hwp=np.full((2, *saved.log_time_wp.shape), np.nan),
        table=replace(plain.from_json(TableFacts, saved.training), platforms=saved.platforms),
    )


def _of_table(saved: Saved, source: Source) -> Dataset:
    """Return a table of runs as the model sees it: its counters and its platforms, in its order."""
    table = open_table(source)
    data = build(table)
    unknown = [name for name in data.platforms if name not in saved.platforms]
    if unknown:
        raise PredictError(
            f"{table.path}: platform {unknown[0]!r} is not known to the model"
            f"{did_you_mean(unknown[0], saved.platforms)}, expected runs on {some_of(saved.platforms, 20)}. "
            "Rename it if it is one of these, or train with runs of it.",
            platforms=unknown,
        )
    counters_nc, _ = match_counters(combine(table, data.platforms), saved.counters, table.path)
    number = np.array([saved.platforms.index(name) for name in data.platforms], dtype=np.int64)

    def spread(log_time: Floats) -> Floats:
        every = np.full((*log_time.shape[:-1], len(saved.platforms)), np.nan)
        every[..., number] = log_time
        return every

    return replace(
        data,
        counters=saved.counters,
        platforms=saved.platforms,
        platform_classes=saved.platform_classes,
        counters_nc=counters_nc,
        source_n=number[data.source_n],
        log_time_wp=spread(data.log_time_wp),
        log_time_halves_hwp=spread(data.log_time_halves_hwp),
        table=replace(data.table, platforms=saved.platforms),
    )
