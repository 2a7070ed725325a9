"""Learns to recognise runs of known workloads: what varies together within one, and in which views to look."""

# N cells, F measured features (standard), W known workloads, P platforms, V views

from __future__ import annotations

import numpy as np

from crossperf.arrays import Floats, Integers, Mask
from crossperf.model.fitted.recognition import Recognition, Runs
from crossperf.model.fitted.workloads import FEWEST_COMMON, WorkloadProfiles

#: Sets of features in which runs are compared: those of the most pairs of a cell and a workload.
_MOST_VIEWS = 32
#: The standard deviation of a normal distribution over its median absolute deviation.
_NORMAL = 1.4826
#: How far apart log times lie at least, and where fewer were measured twice than the last number.
_LEAST_SPREAD, _USUAL_SPREAD, _FEWEST_TWICE = 5e-3, 0.1, 20


def fit_recognition(
    runs: Runs, workload_n: Integers, contrast_np: Floats, *, sources: int, spread_p: Floats
) -> Recognition:
    """Return what it takes to recognise runs of the workloads of known ones.

    The correlations within workloads are shrunk as Ledoit and Wolf (2004) have it. What was not measured counts as no
    difference: features that are never measured together are not correlated. Contrasts must have no gaps.
    """
    from sklearn.covariance import ledoit_wolf

    known = WorkloadProfiles.fit(runs.standard_nf, runs.source_n, workload_n, sources)
    _, number_n = np.unique(workload_n, return_inverse=True)
    rest_nf, free_f = known.rest(runs.standard_nf, runs.source_n, number_n)
    # Of unit variance where the spread is that of the residuals, below where the spread has its floor.
    within_ff, _ = ledoit_wolf(rest_nf * np.sqrt(len(rest_nf) / free_f), assume_centered=True)
    scale_f = np.sqrt(np.maximum(np.diag(within_ff), 1.0))
    within_ff = within_ff / scale_f / scale_f[:, None]
    np.fill_diagonal(within_ff, 1.0)
    contrast_wp = np.stack([_mean_by(number_n, own_n) for own_n in contrast_np.T], axis=1)
    here_n = np.where(runs.source_n < 0, np.nan, contrast_np[np.arange(len(runs)), runs.source_n])
    log_time_w = _mean_by(number_n, runs.log_time_n - here_n)
    views_vf = _views(~np.isnan(runs.standard_nf), known.seen_wf)
    counted = known, within_ff.astype(np.float32), views_vf, contrast_wp.astype(np.float32)
    return Recognition(*counted, np.nan_to_num(log_time_w).astype(np.float32), ~np.isnan(log_time_w), spread_p)


def time_spread(noise_np: Floats) -> Floats:
    """Return how far apart the log times of two measurements lie on each platform, from the halves of the visits.

    It is a standard deviation, from the median, since some lie very far apart; that of all platforms where little was
    measured twice.

    >>> time_spread(np.array([[0.1, 0.0], [-0.1, 0.0]] * 10)).round(5), time_spread(np.zeros((2, 2)))
    (array([0.14826, 0.14826]), array([0.1, 0.1]))
    """
    apart_np = np.where(noise_np == 0, np.nan, np.abs(noise_np))

    def spread(apart: Floats, otherwise: float) -> float:
        known = apart[~np.isnan(apart)]
        return max(_NORMAL * float(np.median(known)), _LEAST_SPREAD) if len(known) >= _FEWEST_TWICE else otherwise

    overall = spread(apart_np, _USUAL_SPREAD)
    return np.array([spread(apart_n, overall) for apart_n in apart_np.T])


def _mean_by(number_n: Integers, value_n: Floats) -> Floats:
    """Return the mean of the known values with each number; NaN where there is none."""
    known_n = ~np.isnan(value_n)
    count_w = np.bincount(number_n, known_n)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.bincount(number_n, np.where(known_n, value_n, 0.0)) / count_w)


def _views(seen_nf: Mask, seen_wf: Mask) -> Mask:
    """Return the sets of features that cells and workloads have in common, those with the most features first."""
    cells_uf, count_u = np.unique(seen_nf, axis=0, return_counts=True)
    workloads_xf, count_x = np.unique(seen_wf, axis=0, return_counts=True)
    most_u, most_x = (np.argsort(-count, kind="stable")[:_MOST_VIEWS] for count in (count_u, count_x))
    common_vf = (cells_uf[most_u][:, None] & workloads_xf[most_x]).reshape(-1, seen_nf.shape[1])
    pairs_v = np.outer(count_u[most_u], count_x[most_x]).ravel()
    views_vf, number_v = np.unique(common_vf, axis=0, return_inverse=True)
    pairs_v = np.bincount(number_v.ravel(), weights=pairs_v)
    order_v = np.lexsort([-pairs_v])[:_MOST_VIEWS]
    kept_vf = views_vf[order_v][views_vf[order_v].sum(axis=1) >= FEWEST_COMMON]
    return np.asarray(kept_vf[np.argsort(-kept_vf.sum(axis=1), kind="stable")])
