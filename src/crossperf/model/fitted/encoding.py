"""A log scale for features as measured, fitted on training rows alone."""

# N cells, F features

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from crossperf.arrays import Floats


@dataclass(frozen=True)
class Encoder:
    """A log scale for every feature, whatever its unit and sign, then zero mean and unit spread.

    ``arcsinh(x / scale)`` is a logarithm for values far above the feature's own small scale, is linear
    around zero, and takes negative values, so that counts, ratios, seconds and one-hot columns need no
    special cases. What was not measured stays NaN.

    >>> encoder = Encoder.fit(np.array([[1.0, 5.0], [100.0, np.nan], [10000.0, 5.0]]))
    >>> np.diff(encoder.log(np.array([[1e3, 5.0], [1e5, 5.0]]))[:, 0]).round(2)  # a factor of 100: log(100)
    array([4.61])
    """

    scale_f: Floats
    mean_f: Floats
    spread_f: Floats
    #: How many spreads from the mean a value may lie; beyond, it is drawn in smoothly.
    reach: ClassVar[float] = 3.0

    @classmethod
    def fit(cls, features_nf: Floats) -> Encoder:
        """Learn scale, mean and spread of each feature from training rows."""
        size_nf = np.where(features_nf == 0, np.nan, np.abs(features_nf))
        scale_f = _quietly(np.nanquantile, size_nf, 0.05, axis=0)
        scale_f = np.where(np.isfinite(scale_f) & (scale_f > 0), scale_f, 1.0)
        log_nf = np.arcsinh(features_nf / scale_f)
        mean_f = np.nan_to_num(_quietly(np.nanmean, log_nf, axis=0))
        spread_f = np.nan_to_num(_quietly(np.nanstd, log_nf, axis=0))
        return cls(scale_f, mean_f, np.where(spread_f > 1e-9, spread_f, 1.0))

    def log(self, features_nf: Floats) -> Floats:
        """Return the features on their log scale."""
        return np.asarray(np.arcsinh(features_nf / self.scale_f))

    def __call__(self, features_nf: Floats) -> Floats:
        """Return standard features, drawn in smoothly so that none lies beyond the reach of training.

        A network extrapolates without bounds from an input it has never seen; ``z / sqrt(1 + (z / r)^2)``
        leaves the familiar range nearly as it is and ends at r.
        """
        standard_nf = (self.log(features_nf) - self.mean_f) / self.spread_f
        return np.asarray(standard_nf / np.sqrt(1.0 + (standard_nf / self.reach) ** 2))

    def inverse(self, standard_nf: Floats) -> Floats:
        """Return features as measured from standard ones: the leading columns, where fewer are given."""
        count = standard_nf.shape[1]
        scale_f, mean_f, spread_f = (values[:count] for values in (self.scale_f, self.mean_f, self.spread_f))
        inside_nf = np.clip(standard_nf / self.reach, -0.999, 0.999)
        log_nf = standard_nf / np.sqrt(1.0 - inside_nf**2) * spread_f + mean_f
        return np.asarray(np.sinh(log_nf) * scale_f)


def _quietly(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Floats:
    """Call a NaN-aware reduction; a feature that is missing everywhere gives NaN and no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(function(*args, **kwargs))
