"""Targets with gaps, learned without filling any: columns measured for the same cells are learned together."""

# N cells, P platforms

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from crossperf.arrays import Floats, Integers
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
