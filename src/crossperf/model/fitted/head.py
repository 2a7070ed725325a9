"""The column of a platform that was added to a trained model, as it answers."""

# N runs, K workloads measured on the new platform, F features, P known platforms, S sources (the same platforms)

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crossperf.arrays import Floats
from crossperf.dataset.features import Features
from crossperf.model.fitted.encoding import Encoder

#: How many spreads of the features apart two workloads are before they are no longer similar.
_REACH = 2.0


@dataclass(frozen=True)
class Head:
    """A new platform's contrast as a function of a run's predicted contrasts and its features, for each source.

    For source s: ``offset + contrast . a + features . b + sum_k exp(-|features - shot_k| / reach) w_k``: the posterior
    mean of a Gaussian process whose kernel has these four parts, averaged over settings and starting points.
    """

    encoder: Encoder
    mean_sf: Floats
    gain_sf: Floats
    centre_p: Floats
    scale: float
    limits_2: Floats
    offset_s: Floats
    contrast_weights_sp: Floats
    feature_weights_sf: Floats
    shots_skf: Floats
    shot_weights_sk: Floats
    #: The weight of each kernel setting in the average.
    setting_weights_g: Floats
    #: log(predicted / measured) of each workload from all the others.
    left_out_k: Floats

    def predict(self, features: Features, log_relative_np: Floats) -> Floats:
        """Return log(time on the new platform / time on the source) of each run.

        Parameters
        ----------
        log_relative_np
            The base model's prediction for the known platforms.
        """
        level_n = log_relative_np.mean(axis=1)
        contrast_np = (log_relative_np - level_n[:, None] - self.centre_p) / self.scale
        encoded_nf = self.encoder(features.values_nf)
        predicted_n = np.empty(len(features))
        for source in np.unique(features.source_n):
            rows = features.source_n == source
            seen_nf = np.nan_to_num((encoded_nf[rows] - self.mean_sf[source]) * self.gain_sf[source])
            predicted_n[rows] = (
                self.offset_s[source]
                + contrast_np[rows] @ self.contrast_weights_sp[source]
                + seen_nf @ self.feature_weights_sf[source]
                + similarity(seen_nf, self.shots_skf[source]) @ self.shot_weights_sk[source]
            )
        return np.asarray(level_n + np.clip(predicted_n, *self.limits_2) * self.scale)


def similarity(left_nf: Floats, right_kf: Floats) -> Floats:
    """Return ``exp(-distance / reach)`` between the rows of two matrices."""
    square_nk = (left_nf**2).sum(axis=1)[:, None] + (right_kf**2).sum(axis=1) - 2.0 * left_nf @ right_kf.T
    return np.asarray(np.exp(-np.sqrt(np.maximum(square_nk, 0.0)) / _REACH))
