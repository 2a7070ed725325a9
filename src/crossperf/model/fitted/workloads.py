"""Known workloads by what was measured of them: how far a run is from the nearest, whichever platform it ran on.

Of most counters the same workload shows the same number everywhere, but for what the platform and its tool add. So each
feature is a workload's value plus a platform's effect, and a feature counts by how little it varies beyond the two: a
diagonal Mahalanobis distance, as linear discriminant analysis with the workloads for its classes would have it.
"""

# N cells, F measured features (standard), W known workloads, S source platforms

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from crossperf.arrays import Floats, Integers, Mask
from crossperf.model.fitted.network import Singles

#: A feature varies by this share of its spread at least: what never varies within a workload must not decide alone.
_LEAST_SHARE = 0.01
#: With fewer features in common with any known workload than this, a run is as far as can be.
FEWEST_COMMON = 3
#: No distance is greater.
FARTHEST = 1e6
_ROUNDS = 8
_ROWS = 256


@dataclass(frozen=True)
class WorkloadProfiles:
    """The mean of each workload's runs without the effect of their platforms, and the spread of single runs around it.

    ``seen_wf`` tells which features were measured of a workload; the mean of others is 0.
    """

    platform_sf: Floats
    mean_wf: Singles
    seen_wf: Mask
    spread_f: Floats

    @classmethod
    def fit(cls, standard_nf: Floats, source_n: Integers, workload_n: Integers, sources: int) -> Self:
        """Return what cells tell of their workloads: least squares of workload + platform, by alternation."""
        seen_nf = ~np.isnan(standard_nf)
        value_nf = np.where(seen_nf, standard_nf, 0.0)
        names, number_n = np.unique(workload_n, return_inverse=True)
        # A last row for runs of an unknown platform, which have no effect of their own.
        platform_sf, mean_wf = np.zeros((sources + 1, standard_nf.shape[1])), np.zeros((len(names), value_nf.shape[1]))
        count_wf = _sums(number_n, len(names), seen_nf)
        count_sf = _sums(source_n, sources + 1, seen_nf)
        for _ in range(_ROUNDS):
            mean_wf = _sums(number_n, len(names), np.where(seen_nf, value_nf - platform_sf[source_n], 0.0))
            mean_wf /= np.maximum(count_wf, 1)
            platform_sf = _sums(source_n, sources + 1, np.where(seen_nf, value_nf - mean_wf[number_n], 0.0))
            platform_sf /= np.maximum(count_sf, 1)
        own_nf = np.where(seen_nf, value_nf - platform_sf[source_n], 0.0)
        rest_nf, free_f = _rest(own_nf, seen_nf & (count_wf[number_n] > 1), number_n, mean_wf)
        all_f = np.sqrt(np.square(own_nf).sum(axis=0) / np.maximum(seen_nf.sum(axis=0), 1))
        spread_f = np.maximum(np.sqrt(np.square(rest_nf).sum(axis=0) / free_f), _LEAST_SHARE * all_f)
        return cls(platform_sf, mean_wf.astype(np.float32), count_wf > 0, np.where(spread_f > 1e-9, spread_f, 1.0))

    @cached_property
    def _scaled_wf(self) -> Singles:
        return np.asarray(self.mean_wf / self.spread_f * self.seen_wf, np.float32)

    @cached_property
    def _known_wf(self) -> Singles:
        return self.seen_wf.astype(np.float32)

    def own(self, standard_nf: Floats, source_n: Integers) -> Floats:
        """Return cells without the effects of their platforms, in spreads."""
        return np.asarray((standard_nf - self.platform_sf[source_n]) / self.spread_f)

    def rest(self, standard_nf: Floats, source_n: Integers, number_n: Integers) -> tuple[Floats, Floats]:
        """Return how cells differ from the mean of their workloads, in spreads, and how many do so freely by feature.

        0 where a feature was measured in one cell of a workload alone.
        """
        seen_nf = ~np.isnan(standard_nf)
        own_nf = np.where(seen_nf, standard_nf - self.platform_sf[source_n], 0.0)
        several_nf = seen_nf & (_sums(number_n, len(self.mean_wf), seen_nf)[number_n] > 1)
        rest_nf, free_f = _rest(own_nf, several_nf, number_n, self.mean_wf)
        return rest_nf / self.spread_f, free_f

    def distance(self, standard_nf: Floats, source_n: Integers) -> Floats:
        """Return how far each cell is from the nearest workload: the root mean square over features, in spreads."""
        own_nf = self.own(standard_nf, source_n)
        starts = range(0, len(own_nf), _ROWS)
        near = [self._nearest(own_nf[start : start + _ROWS]) for start in starts]
        return np.concatenate(near) if near else np.zeros(0)

    def _nearest(self, own_nf: Floats) -> Floats:
        """Return the distance to the nearest workload, which products in single precision are enough to find."""
        square_nw, common_nw = self.apart(own_nf)
        near_n = (square_nw / common_nw).argmin(axis=1)
        common_n = (~np.isnan(own_nf) & self.seen_wf[near_n]).sum(axis=1)
        distance_n = np.sqrt(self.exact(own_nf, near_n) / np.maximum(common_n, 1))
        return np.where(common_n < FEWEST_COMMON, FARTHEST, np.minimum(distance_n, FARTHEST))

    def exact(self, own_nf: Floats, workload_n: Integers) -> Floats:
        """Return the squared distance of each cell to one workload, summed over the features in common."""
        seen_nf = ~np.isnan(own_nf) & self.seen_wf[workload_n]
        return np.asarray(
            np.square(np.where(seen_nf, own_nf - self.mean_wf[workload_n] / self.spread_f, 0.0)).sum(axis=1)
        )

    def apart(self, own_nf: Floats) -> tuple[Singles, Singles]:
        """Return squared distances to all workloads, summed over the features in common, and how many these are.

        Infinite where next to nothing is in common.
        """
        seen_nf = ~np.isnan(own_nf)
        single_nf, known_nf = np.where(seen_nf, own_nf, 0.0).astype(np.float32), seen_nf.astype(np.float32)
        common_nw = known_nf @ self._known_wf.T
        square_nw = np.square(single_nf) @ self._known_wf.T
        square_nw += known_nf @ np.square(self._scaled_wf).T
        square_nw -= 2.0 * single_nf @ self._scaled_wf.T
        square_nw[common_nw < FEWEST_COMMON] = np.inf
        return square_nw, np.maximum(common_nw, 1.0)


def _rest(own_nf: Floats, several_nf: Mask, number_n: Integers, mean_wf: Any) -> tuple[Floats, Floats]:
    """Return how cells differ from the mean of their workloads, and how many of these differences are free."""
    rest_nf = np.where(several_nf, own_nf - mean_wf[number_n], 0.0)
    averaged_wf = _sums(number_n, len(mean_wf), several_nf) > 0
    return rest_nf, np.maximum(several_nf.sum(axis=0) - averaged_wf.sum(axis=0), 1)


def _sums(number_n: Integers, count: int, values_nf: Any) -> Floats:
    """Return the sums of rows with the same number."""
    sums = np.zeros((count, values_nf.shape[1]))
    np.add.at(sums, number_n, values_nf)
    return sums
