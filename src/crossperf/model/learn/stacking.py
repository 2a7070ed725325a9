"""What out-of-fold predictions teach: how near a run is to known ones, whom to trust there, and how far."""

# N cells, P platforms, M members, R ways of holding out from near to far, H cells held out, D signs and products

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crossperf.arrays import Floats, Integers, Mask
from crossperf.dataset.features import Features
from crossperf.model.fitted.blend import Nearness, blended, difficulty, with_products
from crossperf.model.fitted.confidence import Intervals, Residuals

#: A member that erred more counts for less, by this power of the ratio.
_POWER = 4.0
#: With more groups than this held out, the weights that would have been best for them count for more than that.
_MANY_GROUPS = 20
#: Steps and rate of the search for the weights that would have been best.
_STEPS, _RATE = 300, 0.3
_MOST_ERRORS = 20_000
#: A score that no cell reaches: a way in which nothing was held out is never the nearest one.
_NEVER = -1e3


@dataclass(frozen=True, eq=False)
class HeldBack:
    """Out-of-fold predictions of each member, for each way of holding out; NaN for cells in no fold.

    ``apart_rn`` is how far the trees differ that look a workload up, ``gap_rn`` how far the process is from the nearest
    cell it has seen, ``group_rn`` what a cell was held out with: itself, its workload, its application.
    """

    predicted_rmnp: Floats
    apart_rn: Floats
    gap_rn: Floats
    group_rn: Integers

    @cached_property
    def known_rn(self) -> Mask:
        """Which cells were held out in each way."""
        return np.asarray(~(np.isnan(self.predicted_rmnp).any(axis=(1, 3)) | np.isnan(self.apart_rn + self.gap_rn)))

    @cached_property
    def ways(self) -> list[int]:
        """The ways in which any cell was held out."""
        return [int(r) for r in np.flatnonzero(self.known_rn.any(axis=1))]

    def nearness(self) -> Nearness:
        """Return how to tell from two signs in which way a cell counts as held out, all ways being as likely."""
        from sklearn.linear_model import LogisticRegression

        ways, ways_in_all = self.ways, len(self.known_rn)
        apart_h, gap_h = (
            np.concatenate([own_rn[r, self.known_rn[r]] for r in ways] or [np.zeros(1)])
            for own_rn in (self.apart_rn, self.gap_rn)
        )
        positive = apart_h[apart_h > 0]
        unit = float(np.quantile(positive, 0.05)) if len(positive) else 1.0
        bias_r = np.full(ways_in_all, _NEVER)
        bias_r[ways or slice(None)] = 0.0
        blank = Nearness(unit, np.zeros(5), np.ones(5), np.zeros((ways_in_all, 5)), bias_r)
        if len(ways) < 2:
            return blank
        signs_hd = with_products(blank.signs(apart_h, gap_h))
        mean_d, spread_d = signs_hd.mean(axis=0), np.maximum(signs_hd.std(axis=0), 1e-9)
        way_h = np.repeat(ways, [self.known_rn[r].sum() for r in ways])
        fitted = LogisticRegression(class_weight="balanced", max_iter=1000).fit((signs_hd - mean_d) / spread_d, way_h)
        weights_rd = blank.weights_rd.copy()
        scored = ways if len(ways) > 2 else ways[1:]  # of two, scikit-learn scores the second against the first
        weights_rd[scored], bias_r[scored] = fitted.coef_, fitted.intercept_
        return Nearness(unit, mean_d, spread_d, weights_rd, bias_r)

    def weights(self, truth_np: Floats) -> Floats:
        """Return the weights of the members for each way of holding out, R x M; all the same where none was."""
        ways_in_all, members = self.predicted_rmnp.shape[:2]
        weights_rm = np.full((ways_in_all, members), 1.0 / members)
        for r in self.ways:
            known_n = self.known_rn[r]
            error_mhp = self.predicted_rmnp[r][:, known_n] - truth_np[known_n]
            groups = len(np.unique(self.group_rn[r, known_n]))
            many = groups / (groups + _MANY_GROUPS)
            weights_rm[r] = many * _best_weights(error_mhp) + (1.0 - many) * _cautious_weights(error_mhp)
        return weights_rm

    def intervals(
        self, features: Features, truth_np: Floats, nearness: Nearness, weights_rm: Floats, seed: int
    ) -> Intervals:
        """Return intervals calibrated on the out-of-fold residuals of each way of holding out."""
        residuals = []
        for r in range(len(self.known_rn)):
            way = r if r in self.ways else (self.ways[-1] if self.ways else None)
            if way is None:
                # Nothing could be held out: all that is known is how much the targets differ.
                error_np, signs_n2 = truth_np - np.nanmean(truth_np, axis=0), np.zeros((len(truth_np), 2))
                residuals.append(Residuals.fit(error_np, difficulty(features, signs_n2), self.group_rn[r], seed))
                continue
            known_n = self.known_rn[way]
            signs_n2 = nearness.signs(self.apart_rn[way, known_n], self.gap_rn[way, known_n])
            weights_nm = nearness(signs_n2) @ weights_rm
            error_np = truth_np[known_n] - blended(self.predicted_rmnp[way][:, known_n], weights_nm)
            signs_nd = difficulty(features[known_n], signs_n2)
            residuals.append(Residuals.fit(error_np, signs_nd, self.group_rn[way, known_n], seed))
        return Intervals(tuple(residuals))


def _cautious_weights(error_mhp: Floats) -> Floats:
    """Return weights by (least error / own error) to a power: nobody is left out for being a little behind."""
    error_m = np.nanmean(np.abs(error_mhp), axis=(1, 2)) + 1e-9
    weights_m = (error_m.min() / error_m) ** _POWER
    return np.asarray(weights_m / weights_m.sum())


def _best_weights(error_mhp: Floats) -> Floats:
    """Return the weights, none negative and with the sum 1, whose blend has the least mean absolute error.

    Found by exponentiated gradients (Kivinen and Warmuth 1997), which never leave that set.
    """
    error_me = error_mhp[:, ~np.isnan(error_mhp).any(axis=0)]
    error_me = error_me[:, :: max(1, error_me.shape[1] // _MOST_ERRORS)]
    unit = np.abs(error_me).mean() + 1e-9
    score_m = np.zeros(len(error_me))
    for step in range(_STEPS):
        weights_m = np.exp(score_m - score_m.max())
        weights_m /= weights_m.sum()
        slope_m = (np.sign(weights_m @ error_me) * error_me).mean(axis=1)
        score_m -= _RATE * (1.0 - step / _STEPS) * slope_m / unit
    return np.asarray(weights_m)
