"""A multilayer perceptron as its weights: what a trained network is once it no longer learns."""

# N cells, I inputs, O outputs

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Singles = NDArray[np.float32]


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
