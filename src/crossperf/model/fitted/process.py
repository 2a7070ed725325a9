"""A Gaussian process as it answers: a weighted sum of kernels around known cells."""

# N cells asked about or known, B asked at a time, F features, P platforms

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crossperf.arrays import Floats
from crossperf.model.fitted.network import Singles

#: Squared distance below which two cells coincide.
COINCIDE = 1e-10
#: Kernel values computed at a time: few enough that they stay in the caches from the product to the exponential.
_CACHED = 500_000


@dataclass(frozen=True)
class GaussianProcess:
    """The posterior mean under the kernel ``exp(-distance)``: rough, as times of programs are, and bounded.

    ``mean(x) = sum_n k(x, x_n) w_n + mean_p`` with ``w = inv(K + noise) (y - mean_p)`` (Rasmussen and Williams 2006,
    eq. 2.25); far from every known cell it returns to the mean of training.
    """

    length_f: Floats
    known_nf: Singles
    weights_np: Singles
    mean_p: Floats

    @cached_property
    def _known_square_n(self) -> Singles:
        return np.asarray(np.square(self.known_nf).sum(axis=1))

    def predict(self, standard_nf: Floats) -> tuple[Floats, Floats]:
        """Return predictions, and each cell's gap to what is known: 0 on a known cell, 1 far away."""
        asked_bf = (standard_nf / self.length_f).astype(np.float32)
        rows = max(1, _CACHED // len(self.known_nf))
        parts, gaps = [], []
        for start in range(0, len(asked_bf), rows):
            near_bn = self._kernel(asked_bf[start : start + rows])
            parts.append(near_bn @ self.weights_np)
            gaps.append(1.0 - near_bn.max(axis=1))
        return np.concatenate(parts) + self.mean_p, np.concatenate(gaps).astype(np.float64)

    def _kernel(self, asked_bf: Singles) -> Singles:
        near_bn = asked_bf @ self.known_nf.T
        near_bn *= -2.0
        near_bn += self._known_square_n
        near_bn += np.square(asked_bf).sum(axis=1)[:, None]
        np.maximum(near_bn, COINCIDE, out=near_bn)
        np.sqrt(near_bn, out=near_bn)
        np.negative(near_bn, out=near_bn)
        np.exp(near_bn, out=near_bn)
        return near_bn
