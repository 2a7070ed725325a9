"""Targets with gaps, of which none is learned from what it was filled with."""

# N cells, F features, P platforms, M nodes of a tree, L leaves of it

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from crossperf.arrays import Floats, Integers
from crossperf.model.fitted.network import Singles
from crossperf.model.fitted.peers import Forest
from crossperf.model.fitted.scales import fill_targets


@dataclass(frozen=True, eq=False)
class Together:
    """Columns of the targets, and the cells for which they were measured."""

    rows_n: Integers
    columns: Integers

    def of(self, target_np: Floats) -> Floats:
        """Return the targets of these cells and columns; of a single column, without its axis."""
        part = target_np[np.ix_(self.rows_n, self.columns)]
        return part[:, 0] if len(self.columns) == 1 else part


def together(target_np: Floats) -> list[Together]:
    """Return the columns that were measured for the same cells, those with the most cells first.

    >>> groups = together(np.array([[0.0, 1.0, 2.0], [0.0, np.nan, 3.0]]))
    >>> [(own.rows_n.tolist(), own.columns.tolist()) for own in groups]
    [([0, 1], [0, 2]), ([0], [1])]
    """
    known_np = ~np.isnan(target_np)
    patterns, number_p = np.unique(known_np.T, axis=0, return_inverse=True)
    groups = [Together(np.flatnonzero(known_n), np.flatnonzero(number_p == u)) for u, known_n in enumerate(patterns)]
    return sorted((own for own in groups if len(own.rows_n)), key=lambda own: -len(own.rows_n))


def grow(make: Callable[[], Any], features_nf: Floats, target_np: Floats) -> Forest:
    """Return the trees of fresh regressors of scikit-learn, one for the columns that can be learned together.

    They answer 0 for a column that was never measured.
    """
    if not np.isnan(target_np).any():
        return Forest.of(make().fit(features_nf, target_np).estimators_)
    learned = together(target_np)
    parts = [(own.columns, make().fit(features_nf[own.rows_n], own.of(target_np)).estimators_) for own in learned]
    return Forest.joined(parts, target_np.shape[1])


def grow_whole(trees: Any, features_nf: Floats, target_np: Floats) -> Forest:
    """Return fresh trees of scikit-learn grown once for all columns, though targets have gaps.

    Gaps are filled with row plus platform effects while trees choose their splits, and no answer is made of what was
    filled in: a leaf answers with the mean of the targets that are known there, in each column, and where none is, as
    the least node above it that has one. Each tree sees all cells (no bootstrap). A column that was never measured is
    answered with 0.
    """
    if not np.isnan(target_np).any():
        return Forest.of(trees.fit(features_nf, target_np).estimators_)
    grown = trees.fit(features_nf, fill_targets(target_np)).estimators_
    single_nf = features_nf.astype(np.float32)  # what scikit-learn compares
    return Forest.of(grown, np.concatenate([_known_means(own.tree_, single_nf, target_np) for own in grown]))


def _known_means(tree: Any, single_nf: Singles, target_np: Floats) -> Floats:
    """Return the mean of the known targets in each leaf, or in the least node above it that has any, L x P."""
    inside = tree.decision_path(single_nf).T.tocsr()
    known_np = ~np.isnan(target_np)
    count_mp, sum_mp = (np.asarray(inside @ values) for values in (known_np.astype(float), np.nan_to_num(target_np)))
    above_m = np.zeros(tree.node_count, np.int64)
    for children in (tree.children_left, tree.children_right):
        inner = np.flatnonzero(children >= 0)
        above_m[children[inner]] = inner
    leaves = np.flatnonzero(tree.children_left < 0)
    node_lp = np.tile(leaves[:, None], target_np.shape[1])
    column_lp = np.broadcast_to(np.arange(target_np.shape[1]), node_lp.shape)
    while True:
        lacking_lp = (count_mp[node_lp, column_lp] == 0) & (node_lp > 0)
        if not lacking_lp.any():
            break
        node_lp[lacking_lp] = above_m[node_lp[lacking_lp]]
    return np.asarray(sum_mp[node_lp, column_lp] / np.maximum(count_mp[node_lp, column_lp], 1.0))


def common_contrast(target_np: Floats) -> Floats:
    """Return targets less their mean over the columns that have no gap.

    A gap stays NaN. Where every column has gaps, the level of a row is that of row plus platform effects.

    >>> common_contrast(np.array([[0.0, 2.0, np.nan], [1.0, 1.0, 5.0]])).tolist()
    [[-1.0, 1.0, nan], [0.0, 0.0, 4.0]]
    """
    if target_np.shape[1] == 1:
        return target_np
    whole_p = ~np.isnan(target_np).any(axis=0)
    level_np = target_np[:, whole_p] if whole_p.any() else fill_targets(target_np)
    return np.asarray(target_np - level_np.mean(axis=1, keepdims=True))
