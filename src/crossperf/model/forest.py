"""A fitted forest as plain arrays: saved without pickles, and followed without scikit-learn's internals."""

# N cells, T trees, M nodes of all trees, L leaves of all trees, P platforms

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]


@dataclass(frozen=True)
class Forest:
    """All trees of a forest end to end; a node's children are node numbers, and a leaf is its own child."""

    root_t: Integers
    left_m: Integers
    right_m: Integers
    feature_m: Integers
    threshold_m: Floats
    missing_left_m: NDArray[np.bool_]
    value_row_m: Integers
    leaf_values_lp: Floats
    depth: int

    @classmethod
    def of(cls, trees: Sequence[Any]) -> Forest:
        """Return the arrays of fitted scikit-learn trees."""
        parts = [tree.tree_ for tree in trees]
        root_t = np.cumsum([0, *(part.node_count for part in parts[:-1])]).astype(np.int32)

        def joined(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(part, name) for part in parts])

        offset_m = np.repeat(root_t, [part.node_count for part in parts])
        own_m = np.arange(len(offset_m), dtype=np.int32)
        leaf_m = joined("children_left") == -1
        return cls(
            root_t=root_t,
            left_m=np.where(leaf_m, own_m, joined("children_left") + offset_m).astype(np.int32),
            right_m=np.where(leaf_m, own_m, joined("children_right") + offset_m).astype(np.int32),
            feature_m=np.maximum(joined("feature"), 0).astype(np.int32),
            threshold_m=joined("threshold"),
            missing_left_m=joined("missing_go_to_left").astype(bool),
            value_row_m=np.where(leaf_m, np.cumsum(leaf_m) - 1, 0).astype(np.int32),
            leaf_values_lp=joined("value")[leaf_m, :, 0],
            depth=max(part.max_depth for part in parts),
        )

    def predict(self, features_nf: Floats, chunk: int = 256) -> Floats:
        """Return the mean over trees; all trees are followed at once, `chunk` cells at a time."""
        # scikit-learn compares 32-bit features with 64-bit thresholds.
        single_nf = features_nf.astype(np.float32)
        parts = [self._follow(single_nf[i : i + chunk]) for i in range(0, len(single_nf), chunk)]
        return np.concatenate(parts) if parts else np.empty((0, self.leaf_values_lp.shape[1]))

    def _follow(self, features_nf: NDArray[np.float32]) -> Floats:
        node_nt = np.broadcast_to(self.root_t, (len(features_nf), len(self.root_t)))
        for _ in range(self.depth):
            value_nt = np.take_along_axis(features_nf, self.feature_m[node_nt], axis=1)
            goes_left_nt = value_nt <= self.threshold_m[node_nt]
            goes_left_nt |= np.isnan(value_nt) & self.missing_left_m[node_nt]
            node_nt = np.where(goes_left_nt, self.left_m[node_nt], self.right_m[node_nt])
        leaves_nt = self.value_row_m[node_nt]
        return np.asarray(self.leaf_values_lp[leaves_nt].mean(axis=1))

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name."""
        return {name: np.asarray(value) for name, value in vars(self).items()}

    @classmethod
    def from_state(cls, state: dict[str, NDArray[Any]]) -> Forest:
        """Return the forest that `state` described."""
        return cls(**{**state, "depth": int(state["depth"])})  # type: ignore[arg-type]
