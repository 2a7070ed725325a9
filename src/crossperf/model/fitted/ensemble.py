"""Small networks evaluated as one batched network, and their median."""

# N cells, F features, V features that some cells lack, Q bins of a feature, I inputs, M members, P platforms

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crossperf.arrays import Floats, Mask
from crossperf.model.fitted.mlp import Singles

_ROWS = 512


@dataclass(frozen=True)
class Ensemble:
    """M members side by side: the weights of a layer are one array, and a layer is one batched product.

    Inputs are each feature, its position in each of its bins (piecewise-linear encoding: Gorishniy et al. 2022), and
    which features were measured; ``gappy_f`` marks the features that some training cells lack.
    """

    weights: tuple[Singles, ...]
    biases: tuple[Singles, ...]
    lower_fq: Singles
    width_fq: Singles
    gappy_f: Mask
    mean_p: Floats
    spread_p: Floats

    def predict(self, standard_nf: Floats) -> Floats:
        """Return the median over members: a single one that explodes, or never saw an application, is outvoted."""
        return np.asarray(np.median(self.predict_each(standard_nf), axis=0))

    def predict_each(self, standard_nf: Floats) -> Floats:
        """Return the predictions of every member, M x N x P."""
        chunks = (standard_nf[start : start + _ROWS] for start in range(0, len(standard_nf), _ROWS))
        parts = [self._forward(self.inputs(chunk.astype(np.float32))) for chunk in chunks]
        return np.concatenate(parts, axis=1).astype(np.float64) * self.spread_p + self.mean_p

    def inputs(self, x_nf: Singles) -> Singles:
        """Return the inputs of the members, N x I."""
        gap_nv = np.isnan(x_nf[:, self.gappy_f])
        x_nf = np.nan_to_num(x_nf)
        bins_nfq = np.clip((x_nf[:, :, None] - self.lower_fq) / self.width_fq, 0.0, 1.0)
        return np.concatenate([x_nf, bins_nfq.reshape(len(x_nf), -1), gap_nv], axis=1, dtype=np.float32)

    def _forward(self, x_ni: Singles) -> Singles:
        hidden: Singles = np.matmul(x_ni, self.weights[0]) + self.biases[0]
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            np.maximum(hidden, 0.0, out=hidden)
            hidden = np.matmul(hidden, weight) + bias
        return hidden
