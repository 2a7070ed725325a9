"""Limits of a prediction: no model leaves the range of its training targets by more than a tenth of it."""

# N cells, P platforms

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crossperf.arrays import Floats

#: How far beyond the training targets a prediction may go, as a share of their range.
MARGIN = 0.1


@dataclass(frozen=True)
class Limits:
    """The least and greatest log relative time of each platform, and of its contrast to the mean of all."""

    target_2p: Floats
    contrast_2p: Floats

    @classmethod
    def of(cls, target_np: Floats) -> Limits:
        """Return the limits that training targets set; a platform without any raises."""
        return cls(_limits(target_np), _limits(contrast(fill_targets(target_np))[0]))

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


def contrast(log_time_np: Floats) -> tuple[Floats, Floats]:
    """Return log times less their mean over the platforms, and that mean; a single column is kept as it is.

    >>> [part.tolist() for part in contrast(np.array([[0.0, 2.0]]))]
    [[[-1.0, 1.0]], [1.0]]
    """
    level_n = log_time_np.mean(axis=1) if log_time_np.shape[1] > 1 else np.zeros(len(log_time_np))
    return log_time_np - level_n[:, None], level_n


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
