"""Learns a Gaussian process: its length scales by how well whole groups are predicted without them."""

# N cells, F features, K directions of them, P platforms, G groups of one batch, S cells of the largest group,
# B cells of one batch

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from crossperf.arrays import Floats, Integers
from crossperf.model.fitted.blend import COINCIDE, GaussianProcess
from crossperf.model.learn.together import Together, together

#: More cells than this are thinned, whole groups at a time: time grows with the cube of their number.
MOST_CELLS = 10_000
_STEPS, _BATCH, _RATE = 60, 1000, 0.1
#: Holds the length scales near their common start, so that a table with many features cannot overfit them.
_PRIOR = 0.02
_LEAST_NOISE = 1e-3
#: The share of the squared distances that may be left out with the directions in which cells hardly differ.
_LEFT_OUT = 1e-3
#: Where at least this share of the cells has all targets, these alone teach the scales: a kernel for all columns.
_MOSTLY_WHOLE = 0.5


@dataclass(frozen=True)
class LeftOut:
    """The prediction of each cell without its fold, and its gap to the rest; NaN for cells in no fold."""

    predicted_rnp: Floats
    gap_rn: Floats


def fit_process(
    standard_nf: Floats, target_np: Floats, groups_n: Integers, folds_rn: Integers, seed: int
) -> tuple[GaussianProcess, LeftOut]:
    """Return the process of standard features, and its out-of-fold predictions in closed form.

    The cells of a group are left out together while the length scales are learned; ``folds_rn`` are R divisions of
    the cells into folds, -1 for no fold.
    """
    rng = np.random.default_rng(seed)
    kept_n = _thinned(groups_n, rng)
    mean_p = np.nanmean(target_np[kept_n], axis=0)
    spread = max(float(np.nanstd(target_np[kept_n], axis=0).mean()), 1e-9)
    known = torch.from_numpy(np.ascontiguousarray(standard_nf[kept_n]))
    standard_np = (target_np[kept_n] - mean_p) / spread
    groups = together(standard_np)
    log_length_f, log_noise = _learn_scales(known, torch.from_numpy(standard_np), groups, groups_n[kept_n], rng)
    weights_np = np.zeros(standard_np.shape)  # a cell without a target weighs nothing in its column
    predicted_rnp, gap_rn = np.full((len(folds_rn), *target_np.shape), np.nan), np.full(folds_rn.shape, np.nan)
    with torch.no_grad():
        axes_fk = _directions(known / log_length_f.exp()) / log_length_f.exp()[:, None]
        places_nk = known @ axes_fk
        for own in groups:
            rows_n = kept_n[own.rows_n]
            target = torch.from_numpy(standard_np[np.ix_(own.rows_n, own.columns)])
            kernel_nn, inverse_nn, own_np = _solved(places_nk[own.rows_n], target, float(log_noise.exp()))
            weights_np[np.ix_(own.rows_n, own.columns)] = own_np.numpy()
            for r, fold_n in enumerate(folds_rn[:, rows_n]):
                place = np.ix_(rows_n, own.columns)
                error_np, gap_n = _left_out(inverse_nn, kernel_nn, own_np, fold_n)
                predicted_rnp[r][place] = target_np[place] - error_np * spread
                gap_rn[r, rows_n] = np.where(np.isnan(gap_rn[r, rows_n]), gap_n, gap_rn[r, rows_n])
    process = GaussianProcess(
        axes_fk.numpy(), places_nk.float().numpy(), (weights_np * spread).astype(np.float32), mean_p
    )
    if len(groups) > 1:
        # Where a cell has no target the process has not seen it: its own prediction is out of fold.
        seen_np = process.predict(standard_nf)[0]
        lacking_rnp = np.isnan(predicted_rnp) & ~np.isnan(predicted_rnp).all(axis=2, keepdims=True)
        predicted_rnp = np.where(lacking_rnp, seen_np, predicted_rnp)
    return process, LeftOut(predicted_rnp, gap_rn)


def _solved(places_nk: Tensor, target_np: Tensor, noise: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the kernel of cells, its inverse, and the weights of the cells: what takes the most memory, 20 N^2 bytes.

    The kernel and its inverse are in single precision, which the errors of left-out folds need no more than.
    """
    square_n = places_nk.square().sum(1)
    kernel_nn = places_nk @ places_nk.T
    kernel_nn.mul_(-2.0).add_(square_n[:, None]).add_(square_n).clamp_(min=COINCIDE).sqrt_().neg_().exp_()
    single_nn = kernel_nn.float()
    kernel_nn.diagonal().add_(noise + _LEAST_NOISE)
    factor_nn = torch.linalg.cholesky(kernel_nn)
    del kernel_nn
    weights_np = torch.cholesky_solve(target_np, factor_nn)
    factor_nn = factor_nn.float()
    return single_nn, torch.cholesky_inverse(factor_nn), weights_np


def _directions(scaled_nf: Tensor) -> Tensor:
    """Return the leading principal axes of cells, F x K: distances along them are nearly those between the cells."""
    apart_nf = scaled_nf - scaled_nf.mean(dim=0)
    square_f, axes_ff = torch.linalg.eigh(apart_nf.T @ apart_nf)
    left_out_f = square_f.clamp(min=0.0).cumsum(0)
    dropped = int((left_out_f <= _LEFT_OUT * left_out_f[-1]).sum())
    leading_fk: Tensor = axes_ff[:, min(dropped, len(square_f) - 1) :]
    return leading_fk.flip(1).contiguous()


def _thinned(groups_n: Integers, rng: np.random.Generator) -> Integers:
    """Return row numbers of whole groups, all of them or about as many cells as the process can take."""
    if len(groups_n) <= MOST_CELLS:
        return np.arange(len(groups_n))
    groups = rng.permutation(np.unique(groups_n))
    kept = groups[: max(1, int(len(groups) * MOST_CELLS / len(groups_n)))]
    return np.flatnonzero(np.isin(groups_n, kept))[:MOST_CELLS]


def _learn_scales(
    known: Tensor, target: Tensor, columns: Sequence[Together], groups_n: Integers, rng: np.random.Generator
) -> tuple[Tensor, Tensor]:
    """Return the log length scales and log noise that predict whole groups best from the others of a batch.

    The error of a group without its own cells has a closed form, ``inv(inv(K)[g, g]) @ (inv(K) @ y)[g]``, so
    each step is one leave-one-group-out validation of a batch, and follows its gradient.
    """
    known, target = known.float(), target.float()
    features = known.shape[1]
    whole_n = ~torch.isnan(target).any(dim=1).numpy()
    if len(columns) > 1 and whole_n.mean() >= _MOSTLY_WHOLE:
        known, target, groups_n = known[whole_n], target[whole_n], groups_n[whole_n]
        columns = together(target.numpy())
    start = 0.5 * float(np.log(max(features, 1)))
    log_length_f = torch.full((features,), start, dtype=known.dtype, requires_grad=True)
    log_noise = torch.tensor(np.log(0.05), dtype=known.dtype, requires_grad=True)
    optimizer = torch.optim.Adam([log_length_f, log_noise], lr=_RATE)
    later: list[Tensor] = []
    for step in range(_STEPS):
        batch_b = _batch_of_groups(groups_n, rng)
        errors = []
        for own in columns:
            rows_b = batch_b[np.isin(batch_b, own.rows_n)]
            if not len(rows_b):
                continue
            scaled_bf = known[rows_b] / log_length_f.exp()
            noise = log_noise.exp() + _LEAST_NOISE
            kernel_bb = torch.exp(-_distance(scaled_bf, scaled_bf)) + noise * torch.eye(len(rows_b), dtype=known.dtype)
            inverse_bb = torch.cholesky_inverse(torch.linalg.cholesky(kernel_bb))
            target_bp = target[rows_b][:, own.columns]
            errors.append(_left_out_errors(inverse_bb, inverse_bb @ target_bp, groups_n[rows_b]).reshape(-1))
        error = torch.cat(errors)
        loss = torch.nn.functional.huber_loss(error, torch.zeros_like(error))
        loss = loss + _PRIOR * 0.5 * (log_length_f - start).square().mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if step >= _STEPS // 2:
            later.append(torch.cat([log_length_f.detach(), log_noise.detach()[None]]))
    # Each step sees its own batch: the mean of the later ones varies less than the last (Polyak and Juditsky 1992).
    mean = torch.stack(later).double().mean(dim=0)
    return mean[:-1], mean[-1]


def _batch_of_groups(groups_n: Integers, rng: np.random.Generator) -> Integers:
    """Return the rows of whole groups drawn at random, in the order of their groups."""
    groups, size_g = np.unique(groups_n, return_counts=True)
    order_g = rng.permutation(len(groups))
    enough = max(2, int(np.searchsorted(np.cumsum(size_g[order_g]), _BATCH)))
    rows_b = np.flatnonzero(np.isin(groups_n, groups[order_g[:enough]]))
    if len(rows_b) > 2 * _BATCH:
        rows_b = np.sort(rng.choice(rows_b, _BATCH, replace=False))
    return rows_b[np.argsort(groups_n[rows_b], kind="stable")]


def _left_out_errors(inverse_bb: Tensor, weights_bp: Tensor, groups_b: Integers) -> Tensor:
    """Return target minus prediction of each cell, its whole group left out; rows must be sorted by group."""
    edges = np.flatnonzero(np.r_[True, np.diff(groups_b) != 0, True])
    size_g = np.diff(edges)
    place_gs = np.minimum(edges[:-1, None] + np.arange(size_g.max()), len(groups_b) - 1)
    real_gs = torch.from_numpy(np.arange(size_g.max())[None] < size_g[:, None])
    index_gs = torch.from_numpy(place_gs)
    block_gss = inverse_bb[index_gs[:, :, None], index_gs[:, None, :]] * (real_gs[:, :, None] & real_gs[:, None, :])
    block_gss = block_gss + torch.diag_embed((~real_gs).to(block_gss.dtype))
    error_gsp = torch.cholesky_solve(weights_bp[index_gs] * real_gs[:, :, None], torch.linalg.cholesky(block_gss))
    return error_gsp[real_gs]


def _left_out(inverse_nn: Tensor, kernel_nn: Tensor, weights_np: Tensor, fold_n: Integers) -> tuple[Floats, Floats]:
    """Return errors and distances of each cell without its fold; NaN for cells in no fold."""
    error_np = np.full(tuple(weights_np.shape), np.nan)
    gap_n = np.full(len(fold_n), np.nan)
    for fold in np.unique(fold_n[fold_n >= 0]):
        rows, others = np.flatnonzero(fold_n == fold), np.flatnonzero(fold_n != fold)
        block = inverse_nn[rows][:, rows].double()
        error_np[rows] = torch.linalg.solve(block, weights_np[rows]).numpy()
        if len(others):
            gap_n[rows] = 1.0 - kernel_nn[rows][:, others].amax(dim=1).numpy()
    return error_np, gap_n


def _distance(left_af: Tensor, right_bf: Tensor) -> Tensor:
    square_ab = left_af.square().sum(1)[:, None] + right_bf.square().sum(1)[None] - 2.0 * left_af @ right_bf.T
    return square_ab.clamp(min=COINCIDE).sqrt()
