"""Fitted networks: the regressor alone, and the seed's regressor on the latent space of a VAE."""

# N cells, F features, K latent units, P platforms

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crossperf.arrays import Floats
from crossperf.dataset.features import Features
from crossperf.model.fitted.encoding import Encoder
from crossperf.model.fitted.mlp import Mlp, Singles, seen_beside

#: Cells predicted at a time: large enough for the matrix units, small enough for the caches.
_ROWS = 512


@dataclass(frozen=True)
class Network:
    """A regressor from encoded features to standardised targets."""

    kind: ClassVar[str] = "network"
    encoder: Encoder
    mean_p: Floats
    scale_p: Floats
    regressor: Mlp

    def predict(self, features: Features) -> Floats:
        """Return log relative times."""
        standard_np = self._in_chunks(self._forward, features)
        return np.asarray(standard_np * self.scale_p + self.mean_p)

    def _forward(self, inputs_ni: Singles) -> Singles:
        return self.regressor(inputs_ni)

    def _in_chunks(self, forward: Callable[[Singles], Singles], features: Features) -> Floats:
        chunks = (features.values_nf[start : start + _ROWS] for start in range(0, len(features), _ROWS))
        return np.concatenate([forward(seen_beside(self.encoder(rows_nf))) for rows_nf in chunks]).astype(np.float64)


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
