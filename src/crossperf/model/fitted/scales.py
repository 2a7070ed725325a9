"""The scales that models learn on: features on a log scale, targets without gaps, as contrasts, and within limits."""

# N cells, F features, P platforms

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from crossperf.arrays import Floats

#: How far beyond the training targets a prediction may go, as a share of their range.
MARGIN = 0.1


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
        log_nf = _log(features_nf, scale_f)
        mean_f = np.nan_to_num(_quietly(np.nanmean, log_nf, axis=0))
        spread_f = np.nan_to_num(_quietly(np.nanstd, log_nf, axis=0))
        return cls(scale_f, mean_f, np.where(spread_f > 1e-9, spread_f, 1.0))

    def log(self, features_nf: Floats) -> Floats:
        """Return the features on their log scale."""
        return _log(features_nf, self.scale_f)

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


def _log(features_nf: Floats, scale_f: Floats) -> Floats:
    """Return features on their log scale; one too large for it is as far as can be, and not as if never measured."""
    with np.errstate(over="ignore"):
        scaled_nf = features_nf / scale_f
    most = np.finfo(np.float64).max
    return np.asarray(np.arcsinh(np.clip(scaled_nf, -most, most)))


def _quietly(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Floats:
    """Call a NaN-aware reduction; a feature that is missing everywhere gives NaN and no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(function(*args, **kwargs))


@dataclass(frozen=True)
class Limits:
    """The least and greatest log relative time of each platform, and of its contrast to the mean of all."""

    target_2p: Floats
    contrast_2p: Floats

    @classmethod
    def of(cls, target_np: Floats) -> Limits:
        """Return the limits that training targets set; a platform without any raises."""
        return cls(_limits(target_np), _limits(_contrast(fill_targets(target_np))))

    def __call__(self, predicted_np: Floats) -> Floats:
        """Return predictions clipped to the training range, first between platforms, then for each."""
        level_n1 = predicted_np.mean(axis=1, keepdims=True)
        contrast_np = np.clip(predicted_np - level_n1, *self.contrast_2p)
        return np.asarray(np.clip(level_n1 + contrast_np, *self.target_2p))

    def clip_contrast(self, contrast_np: Floats) -> Floats:
        """Return contrasts clipped to the training range; with a single platform, its own times."""
        return np.clip(contrast_np, *(self.contrast_2p if contrast_np.shape[1] > 1 else self.target_2p))


def _limits(target_np: Floats) -> Floats:
    measured_p = ~np.isnan(target_np).all(axis=0)
    if not measured_p.all():
        column = int(np.flatnonzero(~measured_p)[0])
        raise ValueError(f"y has no value in column {column}; expected one in every column")
    low_p, high_p = np.nanmin(target_np, axis=0), np.nanmax(target_np, axis=0)
    return np.stack([low_p - MARGIN * (high_p - low_p), high_p + MARGIN * (high_p - low_p)])


def _contrast(log_time_np: Floats) -> Floats:
    """Return log times less their mean over the platforms; a single column stays."""
    return log_time_np - log_time_np.mean(axis=1, keepdims=True) if log_time_np.shape[1] > 1 else log_time_np


def fill_targets(target_np: Floats) -> Floats:
    """Return the targets with gaps filled by row effect plus platform effect, for models that need all.

    The effects are the least-squares fit of ``row + platform`` to the known targets, by alternation.

    >>> fill_targets(np.array([[0.0, 1.0], [2.0, np.nan], [5.0, 6.0]]))[1]
    array([2., 3.])
    """
    gap_np = np.isnan(target_np)
    if not gap_np.any():
        return target_np
    platform_p = np.zeros(target_np.shape[1])
    row_n1 = np.zeros((len(target_np), 1))
    for _ in range(100):
        row_n1 = np.nan_to_num(_nanmean(target_np - platform_p, axis=1))[:, None]
        before_p, platform_p = platform_p, _nanmean(target_np - row_n1, axis=0)
        if np.abs(platform_p - before_p).max() < 1e-9:
            break
    return np.where(gap_np, row_n1 + platform_p, target_np)


def _nanmean(values: Floats, axis: int) -> Floats:
    count = (~np.isnan(values)).sum(axis=axis)
    return np.asarray(np.nansum(values, axis=axis) / np.maximum(count, 1))
