"""How good a prediction of relative times is: the paper's metrics, those a user feels, and what they are compared with.

All metrics take logarithms of times on P platforms, against any common reference: what is constant over
a row cancels. A platform that a workload never ran on is NaN in the truth and counts nowhere. As in the
paper, R2 and MAE are of times relative to the fastest platform of the row: its own fastest for the truth,
the predicted fastest for the prediction. The paper's vector has other forms, each with an R2 of its own: time over the
slowest, and speed over the fastest. The typical factor is of times relative to the source platform.
"""

# N cells, W workloads, P platforms, Q pairs of platforms

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from crossperf.arrays import Floats, Integers, Mask
from crossperf.dataset.cells import relative_to
from crossperf.dataset.pairing import Dataset
from crossperf.evaluation.scores import Scores

Order = tuple[int, ...]
#: Values of one step of a pass over pairs of platforms: they stay in a processor's cache.
_VALUES_AT_ONCE = 1 << 17


def score(
    log_truth_np: Floats,
    log_predicted_np: Floats,
    source_n: Integers,
    common_order: Order | None = None,
    noise_pp: Floats | None = None,
) -> Scores:
    """Return every metric of a prediction; one that the data leaves undefined is ``None``.

    `typical_factor` and `mae` are over the platforms other than the source, whose time the user has measured.

    Parameters
    ----------
    source_n
        The platform that each cell was profiled on.
    common_order
        The order whose presence `order_auc` looks for: the most common one of the whole table.
    noise_pp
        What may lie between two measurements of log(time on p / time on q); ``None``: nothing.
    """
    truth_np, predicted_np = to_fastest(log_truth_np, log_predicted_np)
    noise_pp = np.zeros([truth_np.shape[1]] * 2) if noise_pp is None else noise_pp
    slowdown_n = picked_slowdown(truth_np, predicted_np)
    return Scores(
        r2=r2(np.exp(truth_np), np.exp(predicted_np)),
        r2_slowest=r2(*map(np.exp, to_slowest(log_truth_np, log_predicted_np))),
        r2_speed=r2(np.exp(-truth_np), np.exp(-predicted_np)),
        r2_log=r2(truth_np, predicted_np),
        mae=_mean(without_source(np.abs(np.exp(truth_np) - np.exp(predicted_np)), source_n)),
        typical_factor=typical_factor(*to_source(log_truth_np, log_predicted_np, source_n)),
        same_order=float(same_order(truth_np, predicted_np).mean()),
        order_beyond_noise=float(order_beyond_noise(truth_np, predicted_np, noise_pp).mean()),
        kendall_tau=_mean(kendall_tau(truth_np, predicted_np)),
        top1=float((slowdown_n == 1.0).mean()),
        top1_within_noise=float(top1_within_noise(truth_np, predicted_np, noise_pp).mean()),
        slowdown=float(slowdown_n.mean()),
        order_auc=order_auc(truth_np, predicted_np, common_order),
    )


def to_source(log_truth_np: Floats, log_predicted_np: Floats, source_n: Integers) -> tuple[Floats, Floats]:
    """Return log(time on p / time on the source) of truth and prediction, NaN on the source itself.

    The prediction is pinned to exactly 1x on the source, as the seconds are that a user reads.

    >>> truth_np, predicted_np = to_source(np.log([[1.0, 4.0]]), np.log([[2.0, 2.0]]), np.array([0]))
    >>> np.exp(truth_np).round(9).tolist(), np.exp(predicted_np).round(9).tolist()
    ([[nan, 4.0]], [[nan, 1.0]])
    """
    truth_np, predicted_np = (
        without_source(relative_to(log_np, source_n), source_n) for log_np in (log_truth_np, log_predicted_np)
    )
    return truth_np, np.where(np.isnan(truth_np), np.nan, predicted_np)


def without_source(values_np: Floats, source_n: Integers) -> Floats:
    """Return values by cell and platform, NaN on the platform that each cell was profiled on."""
    return np.where(np.arange(values_np.shape[1]) == source_n[:, None], np.nan, values_np)


def to_fastest(log_truth_np: Floats, log_predicted_np: Floats) -> tuple[Floats, Floats]:
    """Return truth and prediction relative to the fastest platform of each, over the platforms measured."""
    predicted_np = np.where(np.isnan(log_truth_np), np.nan, log_predicted_np)
    return (
        np.asarray(log_truth_np - np.nanmin(log_truth_np, axis=1, keepdims=True)),
        np.asarray(predicted_np - np.nanmin(predicted_np, axis=1, keepdims=True)),
    )


def to_slowest(log_truth_np: Floats, log_predicted_np: Floats) -> tuple[Floats, Floats]:
    """Return truth and prediction relative to the slowest platform of each, over the platforms measured."""
    truth_np, predicted_np = to_fastest(-log_truth_np, -log_predicted_np)
    return -truth_np, -predicted_np


def typical_factor(log_truth_np: Floats, log_predicted_np: Floats) -> float | None:
    """Return exp(mean |log error|), the typical factor between prediction and truth; ``None`` of nothing but NaN.

    >>> round(typical_factor(np.log([[1.0, 4.0]]), np.log([[2.0, 2.0]])), 12)
    2.0
    """
    mean = _mean(np.abs(log_predicted_np - log_truth_np))
    return None if mean is None else float(np.exp(mean))


def r2(truth_np: Floats, predicted_np: Floats) -> float | None:
    """Return the mean over platforms of R2, over those platforms whose truth varies.

    >>> r2(np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([[1.0, 5.0], [2.0, 5.0]]))
    0.5
    """
    residual_p = np.nansum((truth_np - predicted_np) ** 2, axis=0)
    count_p = (~np.isnan(truth_np)).sum(axis=0)
    mean_p = np.nansum(truth_np, axis=0) / np.maximum(count_p, 1)
    total_p = np.nansum((truth_np - mean_p) ** 2, axis=0)
    varies_p = (count_p > 1) & (total_p > 1e-12 * np.maximum(count_p, 1))
    return float(np.mean(1.0 - residual_p[varies_p] / total_p[varies_p])) if varies_p.any() else None


def picked_slowdown(log_truth_np: Floats, log_predicted_np: Floats) -> Floats:
    """Return time on the platform that the prediction would pick, over time on the best one, of each cell."""
    predicted_np = np.where(np.isnan(log_truth_np), np.inf, log_predicted_np)
    picked_n = predicted_np.argmin(axis=1)
    picked_log_n = np.take_along_axis(log_truth_np, picked_n[:, None], axis=1)[:, 0]
    return np.asarray(np.exp(picked_log_n - np.nanmin(log_truth_np, axis=1)))


def same_order(log_truth_np: Floats, log_predicted_np: Floats) -> Mask:
    """Return for each cell whether the whole ranking of its platforms is right."""
    truth_np, predicted_np = np.broadcast_arrays(*to_fastest(log_truth_np, log_predicted_np))
    order_np = np.argsort(truth_np, axis=1, kind="stable")  # what was not measured, NaN on both sides, is last
    # Neighbours in the true order, ties among them, stand for all pairs; a pair that was not measured has sign 0.
    ordered = (np.take_along_axis(times_np, order_np, axis=1) for times_np in (truth_np, predicted_np))
    truth_nq, predicted_nq = (_signs(times_np[:, :-1], times_np[:, 1:]) for times_np in ordered)
    return np.asarray((truth_nq == predicted_nq).all(axis=1))


def order_beyond_noise(log_truth_np: Floats, log_predicted_np: Floats, noise_pp: Floats) -> Mask:
    """Return for each cell whether every pair of platforms that differs by more than the noise is ranked right.

    >>> noise_pp = np.full((2, 2), np.log(1.1))
    >>> order_beyond_noise(np.log([[1.0, 1.05], [1.0, 2.0]]), np.log([[2.0, 1.0], [2.0, 1.0]]), noise_pp).tolist()
    [True, False]
    """
    right_n = np.ones(len(log_truth_np), bool)
    for rows, p in _pairs(log_truth_np):
        truth_nq = log_truth_np[rows, p, None] - log_truth_np[rows, p + 1 :]
        clear_nq = np.abs(truth_nq) > noise_pp[p, p + 1 :]  # NaN, which was not measured, is never clear
        slower_nq = _signs(log_predicted_np[rows, p, None], log_predicted_np[rows, p + 1 :])
        right_n[rows] &= (~clear_nq | (np.sign(truth_nq) == slower_nq)).all(axis=1)
    return right_n


def top1_within_noise(log_truth_np: Floats, log_predicted_np: Floats, noise_pp: Floats) -> Mask:
    """Return for each cell whether the platform picked is the fastest, or within the noise of it."""
    picked_n = np.where(np.isnan(log_truth_np), np.inf, log_predicted_np).argmin(axis=1)
    fastest_n = np.nanargmin(log_truth_np, axis=1)
    rows = np.arange(len(picked_n))
    behind_n = log_truth_np[rows, picked_n] - log_truth_np[rows, fastest_n]
    return np.asarray(behind_n <= noise_pp[picked_n, fastest_n])


def kendall_tau(log_truth_np: Floats, log_predicted_np: Floats) -> Floats:
    """Return Kendall's tau-b between truth and prediction of each cell; NaN where a side is all ties."""
    truth_np, predicted_np = np.broadcast_arrays(*to_fastest(log_truth_np, log_predicted_np))
    agreement_n, truth_n, predicted_n = np.zeros((3, len(truth_np)))
    for rows, p in _pairs(truth_np):
        truth_nq, predicted_nq = (
            _signs(times[rows, p, None], times[rows, p + 1 :]) for times in (truth_np, predicted_np)
        )
        agreement_n[rows] += (truth_nq * predicted_nq).sum(axis=1)
        truth_n[rows] += np.count_nonzero(truth_nq, axis=1)
        predicted_n[rows] += np.count_nonzero(predicted_nq, axis=1)
    untied_n = np.sqrt(truth_n * predicted_n)
    return np.asarray(np.divide(agreement_n, untied_n, out=np.full(len(untied_n), np.nan), where=untied_n > 0))


def _pairs(values_np: Floats) -> Iterator[tuple[slice, int]]:
    """Yield some rows and a platform to be paired with those behind it, until all pairs of all rows were named.

    So memory grows with cells and with platforms, not with cells times pairs.
    """
    cells, platforms = values_np.shape
    at_once = max(1, _VALUES_AT_ONCE // platforms)
    for start in range(0, cells, at_once):
        for p in range(platforms - 1):
            yield slice(start, start + at_once), p


def _signs(left: Floats, right: Floats) -> NDArray[np.int8]:
    """Return which of two times is larger: 1 the left, -1 the right, 0 a tie or not measured."""
    return (left > right).view(np.int8) - (left < right).view(np.int8)


def _mean(values: Floats) -> float | None:
    return None if np.isnan(values).all() else float(np.nanmean(values))


def most_common_order(log_time_np: Floats) -> tuple[Order, float] | None:
    """Return the most common order of the platforms, fastest first, and its share of the complete rows.

    >>> most_common_order(np.array([[0.0, 1.0], [0.0, 2.0], [3.0, 0.0]]))[0]
    (0, 1)
    """
    complete_np = log_time_np[~np.isnan(log_time_np).any(axis=1)]
    if not len(complete_np):
        return None
    orders, counts = np.unique(np.argsort(complete_np, axis=1, kind="stable"), axis=0, return_counts=True)
    best = int(counts.argmax())
    return tuple(int(i) for i in orders[best]), float(counts[best] / counts.sum())


def order_margin(log_time_np: Floats, order: Sequence[int]) -> Floats:
    """Return by how much each row keeps an order: its smallest step, above 0 when the whole order holds."""
    return np.asarray(np.diff(log_time_np[:, list(order)], axis=1).min(axis=1))


def order_auc(log_truth_np: Floats, log_predicted_np: Floats, order: Order | None) -> float | None:
    """Return the area under the ROC curve for "this row has the common order" (the paper's Figure 5).

    The score is the margin by which the prediction keeps that order. ``None`` where the rows that were
    measured everywhere all have the order, or none has.
    """
    complete_n = ~np.isnan(log_truth_np).any(axis=1)
    if order is None or not complete_n.any():
        return None
    positive_n = order_margin(log_truth_np[complete_n], order) > 0
    if positive_n.all() or not positive_n.any():
        return None
    return float(roc_auc_score(positive_n, order_margin(log_predicted_np[complete_n], order)))


@dataclass(frozen=True)
class ConstantAnswer:
    """How often always giving the same answer is right: the same order, the same fastest platform.

    ``order`` is empty and ``order_share`` is ``None`` where no workload ran on every platform. A workload that did not
    run on the ``fastest`` takes the next of ``otherwise``, and has the order where the platforms that it ran on do.
    """

    fastest: str
    fastest_share: float
    order: tuple[str, ...] = ()
    order_share: float | None = None
    otherwise: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: Dataset) -> ConstantAnswer:
        """Return the constant answers that are right most often."""
        log_time_wp, names = data.log_time_wp, data.platforms
        count_p = np.bincount(np.nanargmin(log_time_wp, axis=1), minlength=len(names))
        preferred = np.argsort(-count_p, kind="stable").tolist()
        order, _ = most_common_order(log_time_wp) or ((), None)
        return cls(
            fastest=names[preferred[0]],
            fastest_share=float((picked_slowdown(log_time_wp, _ranks(preferred)) == 1.0).mean()),
            order=tuple(names[i] for i in order),
            order_share=float(same_order(log_time_wp, _ranks(order)).mean()) if order else None,
            otherwise=() if data.runnable_wp.all() else tuple(names[i] for i in preferred[1:]),
        )


def _ranks(order: Sequence[int]) -> Floats:
    """Return the place of each platform in an order, as the same prediction for every cell."""
    return np.argsort(np.asarray(order, np.int64)).astype(np.float64)[None]


def noise_ceiling(data: Dataset, order: Order | None = None) -> Scores:
    """Return what one half of the visits scores in predicting the other half, from every measured source.

    No model can be expected to do better: beyond this the truth itself is not known. Each half holds half the
    visits, so the ceiling is a little lower than that of the medians which the models are scored on. Where a table
    has repeats in a row alone, they stand in for visits, and the ceiling flatters.
    All are ``None`` where no workload has repeats on two platforms.
    """
    truth_wp, other_wp = data.log_time_halves_hwp
    both_wp = ~np.isnan(truth_wp) & ~np.isnan(other_wp)
    workload_n, source_n = np.nonzero(both_wp & (both_wp.sum(axis=1, keepdims=True) >= 2))
    if not len(workload_n):
        return Scores()
    truth_wp = np.where(both_wp, truth_wp, np.nan)
    return score(truth_wp[workload_n], other_wp[workload_n], source_n, order, data.noise_pp)
