"""Fitted peers as plain arrays: medians by source platform, a linear map, and a forest."""

# N cells, F features, P platforms, S sources, T trees, M nodes of all trees, L different leaves of all trees,
# W walkers (a cell in a tree)

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crossperf.arrays import Floats, Integers, Mask
from crossperf.dataset.features import Features
from crossperf.model.fitted.scales import Encoder
from crossperf.model.fitted.threads import in_threads

Numbers = NDArray[np.int32]
Singles = NDArray[np.float32]

#: Cells that a thread answers at a time.
_CHUNK = 512
#: Cells that are followed node by node in Python.
_FEW_ROWS = 2
#: Pairs of cell and tree that are followed at once, and the share still on their way below which the others are left.
_WALKERS, _STILL_WALKING = 65_536, 0.7


@dataclass(frozen=True)
class Forest:
    """All trees of a forest end to end; a node's children are node numbers, and a leaf is its own child."""

    root_t: Numbers
    left_m: Numbers
    right_m: Numbers
    feature_m: Numbers
    threshold_m: Singles
    missing_left_m: Mask
    value_row_m: Numbers
    leaf_values_lp: Floats
    #: Which trees know which platforms; ``None``: all know all.
    knows_tp: Mask | None = None

    @classmethod
    def of(cls, trees: Sequence[Any], leaf_values_lp: Floats | None = None, knows_tp: Mask | None = None) -> Forest:
        """Return the arrays of fitted scikit-learn trees, with the values of their leaves or with others."""
        parts = [tree.tree_ for tree in trees]
        root_t = np.cumsum([0, *(part.node_count for part in parts[:-1])]).astype(np.int32)

        def joined(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(part, name) for part in parts])

        offset_m = np.repeat(root_t, [part.node_count for part in parts])
        own_m = np.arange(len(offset_m), dtype=np.int32)
        leaf_m = joined("children_left") == -1
        # Trees that are grown to the end have a leaf for each cell, and so the same leaves: those that differ are kept.
        values_lp = _leaf_values(trees) if leaf_values_lp is None else leaf_values_lp
        different_lp, row_l = np.unique(values_lp, axis=0, return_inverse=True)
        value_row_m = np.zeros(len(own_m), dtype=np.int32)
        value_row_m[leaf_m] = row_l.ravel()
        return cls(
            root_t=root_t,
            left_m=np.where(leaf_m, own_m, joined("children_left") + offset_m).astype(np.int32),
            right_m=np.where(leaf_m, own_m, joined("children_right") + offset_m).astype(np.int32),
            feature_m=np.maximum(joined("feature"), 0).astype(np.int32),
            threshold_m=_rounded_down(joined("threshold")),
            missing_left_m=joined("missing_go_to_left").astype(bool),
            value_row_m=value_row_m,
            leaf_values_lp=different_lp,
            knows_tp=knows_tp,
        )

    @classmethod
    def joined(cls, parts: Sequence[tuple[Integers, Sequence[Any]]], outputs: int) -> Forest:
        """Return forests of some columns each as one: a tree counts for nothing in the columns of the others."""
        every = [tree for _, trees in parts for tree in trees]
        padded, knows = [], []
        for columns, trees in parts:
            own_lp = _leaf_values(trees)
            leaf_values_lp = np.zeros((len(own_lp), outputs))
            # The mean is taken over all trees, and these few must stand for all of them in their columns.
            leaf_values_lp[:, columns] = own_lp * (len(every) / len(trees))
            padded.append(leaf_values_lp)
            knows.append(np.tile(np.isin(np.arange(outputs), columns), (len(trees), 1)))
        return cls.of(every, np.concatenate(padded), np.concatenate(knows))

    def predict(self, features_nf: Floats) -> Floats:
        """Return the mean over trees; trees are followed in groups whose state stays in the caches."""
        return self._in_chunks(self._mean, features_nf)

    def predict_median(self, features_nf: Floats) -> tuple[Floats, Floats]:
        """Return the median over trees, and how far they are from it: the mean over trees and platforms.

        Where most trees lead to cells of one workload, the median is that workload's, whatever the others say.
        """
        both_np = self._in_chunks(self._median, features_nf)
        return both_np[:, :-1], both_np[:, -1]

    def _in_chunks(self, ask: Callable[[Singles], Floats], features_nf: Floats) -> Floats:
        # As in scikit-learn, features are compared in single precision.
        single_nf = features_nf.astype(np.float32)
        return np.concatenate(in_threads(lambda rows: ask(single_nf[rows]), len(single_nf), _CHUNK))

    def _mean(self, single_nf: Singles) -> Floats:
        total_np = np.zeros((len(single_nf), self.leaf_values_lp.shape[1]))
        trees_at_once = max(1, _WALKERS // max(len(single_nf), 1))
        for start in range(0, len(self.root_t), trees_at_once):
            leaf_tn = self._leaves(single_nf, self.root_t[start : start + trees_at_once])
            total_np += self.leaf_values_lp[leaf_tn].sum(axis=0)
        return total_np / len(self.root_t)

    def _median(self, single_nf: Singles) -> Floats:
        """Return the median of each platform, and in a last column the mean distance from it."""
        outputs = self.leaf_values_lp.shape[1]
        rows, parts = max(1, _WALKERS // len(self.root_t)), []
        for start in range(0, max(len(single_nf), 1), rows):
            leaf_tn = self._leaves(single_nf[start : start + rows], self.root_t)
            answer_np = np.zeros((leaf_tn.shape[1], outputs + 1))
            for pattern_t, columns, values_lc in self._patterns:
                # A tree that stands for others as well has its values scaled up: see `joined`.
                value_tnc = values_lc[leaf_tn[pattern_t]] * pattern_t.mean()
                answer_np[:, columns] = np.median(value_tnc, axis=0)
                answer_np[:, -1] += np.abs(value_tnc - answer_np[:, columns]).mean(axis=0).sum(axis=1) / outputs
            parts.append(answer_np)
        return np.concatenate(parts)

    @cached_property
    def _patterns(self) -> list[tuple[Mask, Integers, Floats]]:
        """The sets of trees that know the same columns, with these columns and the values of their leaves.

        A column that no tree knows is in none.
        """
        outputs = self.leaf_values_lp.shape[1]
        knows_tp = np.ones((len(self.root_t), outputs), bool) if self.knows_tp is None else self.knows_tp
        columns_of = (
            (pattern_t, np.flatnonzero((knows_tp == pattern_t[:, None]).all(axis=0)))
            for pattern_t in np.unique(knows_tp, axis=1).T
            if pattern_t.any()
        )
        return [(pattern_t, columns, self.leaf_values_lp[:, columns]) for pattern_t, columns in columns_of]

    @cached_property
    def _views(self) -> tuple[memoryview, ...]:
        """The nodes as Python reads them one by one: feature, left, right, threshold, way of missing values, leaf."""
        numbers = (self.feature_m, self.left_m, self.right_m)
        parts: list[Any] = [*numbers, self.threshold_m, self.missing_left_m, self.value_row_m]
        return tuple(np.ascontiguousarray(part).data for part in parts)

    def _leaves_of_few(self, single_nf: Singles, root_t: Numbers) -> NDArray[np.int32]:
        """Return the same as `_leaves`, node by node: for a few cells a step of Python costs less than one of NumPy."""
        feature, left, right, threshold, missing_left, leaf = self._views
        leaf_tn = np.empty((len(root_t), len(single_nf)), np.int32)
        for number, row in enumerate(single_nf.tolist()):
            for tree, node in enumerate(root_t.tolist()):
                while (down := left[node]) != node:
                    value = row[feature[node]]
                    if not (value <= threshold[node] or (value != value and missing_left[node])):  # noqa: PLR0124 - NaN
                        down = right[node]
                    node = down
                leaf_tn[tree, number] = leaf[node]
        return leaf_tn

    def _leaves(self, single_nf: Singles, root_t: Numbers) -> NDArray[np.int32]:
        """Return the leaf that each cell ends in, in each of some trees."""
        count = len(single_nf)
        if count <= _FEW_ROWS:
            return self._leaves_of_few(single_nf, root_t)
        # A place in the flat array: gathering from one dimension takes half the time of two.
        flat, row_w = single_nf.ravel(), np.tile(np.arange(count) * single_nf.shape[1], len(root_t))
        node_w, walker_w = np.repeat(root_t, count), np.arange(len(root_t) * count)
        end_w = node_w.copy()
        while True:
            left_w = self.left_m.take(node_w)
            inner_w = left_w != node_w
            inner = np.count_nonzero(inner_w)
            if inner < _STILL_WALKING * len(node_w):
                end_w[walker_w] = node_w
                if not inner:
                    return self.value_row_m.take(end_w).reshape(len(root_t), count)
                walker_w, row_w, node_w, left_w = (own_w[inner_w] for own_w in (walker_w, row_w, node_w, left_w))
            value_w = flat.take(row_w + self.feature_m.take(node_w))
            goes_left_w = value_w <= self.threshold_m.take(node_w)
            goes_left_w |= np.isnan(value_w) & self.missing_left_m.take(node_w)
            # A leaf is its own child on both sides.
            node_w = np.where(goes_left_w, left_w, self.right_m.take(node_w))


def _rounded_down(threshold_m: Floats) -> Singles:
    """Return the largest numbers of single precision up to some: a single is below the same of both, or above both.

    >>> _rounded_down(np.array([0.5, 0.1]))[1] <= 0.1 < np.float64(np.float32(0.1))
    np.True_
    """
    nearest_m = threshold_m.astype(np.float32)
    return np.where(nearest_m > threshold_m, np.nextafter(nearest_m, np.float32(-np.inf)), nearest_m)


def _leaf_values(trees: Sequence[Any]) -> Floats:
    """Return the values of all leaves of fitted scikit-learn trees, in their order."""
    return np.concatenate([tree.tree_.value[tree.tree_.children_left == -1, :, 0] for tree in trees])


@dataclass(frozen=True)
class Medians:
    """The median log relative times of each source platform, and in the last row those of all cells."""

    kind: ClassVar[str] = "medians"
    medians_sp: Floats

    def predict(self, features: Features) -> Floats:
        """Return the medians of each cell's source; those of all cells where it has none."""
        return np.asarray(self.medians_sp[features.source_n])


@dataclass(frozen=True)
class Linear:
    """A linear map of encoded features; a missing one counts as its mean."""

    kind: ClassVar[str] = "linear"
    encoder: Encoder
    weights_pf: Floats
    bias_p: Floats

    def predict(self, features: Features) -> Floats:
        """Return log relative times."""
        return np.asarray(np.nan_to_num(self.encoder(features.values_nf)) @ self.weights_pf.T + self.bias_p)


@dataclass(frozen=True)
class Trees:
    """A forest on log-scaled features."""

    kind: ClassVar[str] = "trees"
    encoder: Encoder
    forest: Forest

    def predict(self, features: Features) -> Floats:
        """Return log relative times."""
        return self.forest.predict(self.encoder.log(features.values_nf))
