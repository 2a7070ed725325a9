"""Scores a model on a part of a dataset that was held out from it: fitted and asked, its intervals included."""

# N cells, P platforms

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from crossperf.dataset.cells import Split
from crossperf.dataset.pairing import Dataset, Fold
from crossperf.evaluation import metrics
from crossperf.evaluation.heldout import HeldOutPredictions
from crossperf.evaluation.scores import Scores
from crossperf.model.base import Predictor
from crossperf.records import LOOKS


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
