"""Fitted networks: a perceptron as its weights, regressors on features or on a latent space, many in one batch."""

# N cells, F features, V features that some cells lack, Q bins of a feature, B bins of all features, I inputs,
# O outputs, K latent units, M members, P platforms

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from crossperf.arrays import Floats, Integers, Mask
from crossperf.dataset.features import Features
from crossperf.model.fitted.scales import Encoder

Singles = NDArray[np.float32]
#: Cells predicted at a time: large enough for the matrix units, small enough for the caches.
_ROWS = 512
#: Bins are no narrower than this, in spreads of a feature: single precision would not tell places in them apart.
NARROWEST_BIN = 1e-5


@dataclass(frozen=True)
class Mlp:
    """Linear layers with ReLU between them, in single precision as they were trained."""

    weights: tuple[Singles, ...]
    biases: tuple[Singles, ...]

    def __call__(self, x_ni: Singles) -> Singles:
        """Return the outputs of the last layer, N x O."""
        hidden = x_ni
        for layer, (weight_oi, bias_o) in enumerate(zip(self.weights, self.biases, strict=True)):
            if layer:
                np.maximum(hidden, 0.0, out=hidden)
            hidden = hidden @ weight_oi.T
            hidden += bias_o
        return hidden


def seen_beside(standard_nf: NDArray[np.float64]) -> Singles:
    """Return features with zeros where nothing was measured, and beside them which were measured.

    A zero that was measured and a counter that was not are so two different inputs.
    """
    seen_nf = ~np.isnan(standard_nf)
    return np.concatenate([np.where(seen_nf, standard_nf, 0.0), seen_nf], axis=1, dtype=np.float32)


@dataclass(frozen=True)
class Bins:
    """Where in each of its bins a feature lies: its piecewise-linear encoding (Gorishniy et al. 2022).

    The edges are quantiles of training cells. A feature of at most two values needs no bins and has none.

    >>> bins = Bins.fit(np.array([[0.0, 1.0], [1.0, 0.0], [5.0, 1.0]]), most=2)
    >>> bins.feature_b.tolist(), bins(np.array([[3.0, 1.0]], np.float32)).tolist()
    ([0, 0], [[1.0, 0.5]])
    """

    feature_b: Integers
    lower_b: Singles
    width_b: Singles

    @classmethod
    def fit(cls, standard_nf: Floats, most: int) -> Bins:
        """Return at most `most` bins for each feature, by the quantiles of what was measured."""
        edges = [_edges(values_n[~np.isnan(values_n)], most) for values_n in standard_nf.T]
        feature_b = np.repeat(np.arange(len(edges)), [max(len(own) - 1, 0) for own in edges])
        lower = np.concatenate([np.empty(0), *(own[:-1] for own in edges)])
        width = np.concatenate([np.empty(0), *(np.diff(own) for own in edges)])
        return cls(feature_b, lower.astype(np.float32), width.astype(np.float32))

    def __call__(self, x_nf: Singles) -> Singles:
        """Return the position in each bin, from 0 to 1, N x B; 0 where the feature was not measured."""
        position_nb = np.clip((x_nf[:, self.feature_b] - self.lower_b) / self.width_b, 0.0, 1.0)
        return np.asarray(np.nan_to_num(position_nb), np.float32)


def _edges(values_n: Floats, most: int) -> Floats:
    """Return the edges of a feature's bins, none where there would be a single one."""
    if not len(values_n):
        return np.empty(0)
    edges = np.quantile(values_n, np.linspace(0, 1, most + 1), method="nearest")
    edges = edges[np.concatenate([[True], np.diff(edges) > NARROWEST_BIN])]
    return edges if len(edges) > 2 else np.empty(0)


@dataclass(frozen=True)
class Network:
    """A regressor from encoded features to standardised targets."""

    kind: ClassVar[str] = "network"
    encoder: Encoder
    mean_p: Floats
    scale_p: Floats
    regressor: Mlp
    bins: Bins | None = field(default=None, kw_only=True)

    def predict(self, features: Features) -> Floats:
        """Return targets as they were learned."""
        return self._in_chunks(self._forward, features) * self.scale_p + self.mean_p

    def _forward(self, inputs_ni: Singles) -> Singles:
        return self.regressor(inputs_ni)

    def _in_chunks(self, forward: Callable[[Singles], Singles], features: Features) -> Floats:
        chunks = (features.values_nf[start : start + _ROWS] for start in range(0, len(features), _ROWS))
        return np.concatenate([forward(self.inputs(self.encoder(rows_nf))) for rows_nf in chunks]).astype(np.float64)

    def inputs(self, standard_nf: Floats) -> Singles:
        """Return what the first layer sees: the features, which were measured, and their places in their bins."""
        inputs_ni = seen_beside(standard_nf)
        if self.bins is None:
            return inputs_ni
        return np.concatenate([inputs_ni, self.bins(standard_nf.astype(np.float32))], axis=1)


def to_source(log_time_np: Floats, source_n: Integers) -> Floats:
    """Return log times less that on the source; a row whose source is not known (-1) stays.

    >>> to_source(np.array([[1.0, 3.0], [1.0, 3.0]]), np.array([1, -1])).tolist()
    [[-2.0, 0.0], [1.0, 3.0]]
    """
    own_n = np.take_along_axis(log_time_np, np.maximum(source_n, 0)[:, None], axis=1)[:, 0]
    return np.asarray(log_time_np - np.where(source_n < 0, 0.0, own_n)[:, None])


@dataclass(frozen=True)
class LatentNetwork(Network):
    """A regressor on the latent mean of a VAE's encoder."""

    kind: ClassVar[str] = "latent-network"
    vae_encoder: Mlp

    def _forward(self, inputs_ni: Singles) -> Singles:
        return self.regressor(self._mean(inputs_ni))

    def _mean(self, inputs_ni: Singles) -> Singles:
        """Return the latent mean: the first half of the encoder's outputs; the second is the log variance."""
        outputs = self.vae_encoder(inputs_ni)
        return outputs[:, : outputs.shape[1] // 2]

    def latent(self, features: Features) -> Floats:
        """Return the latent mean of each cell."""
        return self._in_chunks(self._mean, features)


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
