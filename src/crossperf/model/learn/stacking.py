"""What out-of-fold predictions teach: how near a run is to known ones, whom to trust there, and how far."""

# N cells, P platforms, M members, R ways of holding out from near to far, H cells held out, Z signs,
# D signs and their products

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch.nn import functional

from crossperf.arrays import Floats, Integers, Mask
from crossperf.dataset.features import Features
from crossperf.model.fitted.blend import LEAST_WEIGHT, REACH, Gate, Nearness, blended, difficulty, with_products
from crossperf.model.fitted.confidence import Intervals, Residuals

#: A member that erred more counts for less, by this power of the ratio; by half of it where this many groups were held
#: out: what few applications say of the members need not hold for the next.
_POWER, _SOME_GROUPS = 4.0, 40
#: With more groups than this held out, the weights that would have been best for them count for more than that.
_MANY_GROUPS = 100
#: Steps and rate of the search for the weights that would have been best.
_STEPS, _RATE = 300, 0.3
_MOST_ERRORS = 20_000
#: The same for how signs move the weights, what keeps them where they were, and from where on errors count linearly.
_MOVE_STEPS, _MOVE_RATE, _MOVE_PENALTY, _MOVE_HUBER = 200, 0.05, 0.03, 0.02
#: Signs are trusted by half where this many groups were held out.
_FEW_GROUPS = 30
_MOST_MOVED = 60_000
#: How many signs of nearness there are, more than any can be, and the quantiles that bound them.
_SIGNS, _NO_SIGN, _NEARLY_ALL = 4, 1e6, (0.05, 0.95)
#: A score that no cell reaches: a way in which nothing was held out is never the nearest one.
_NEVER = -1e3


@dataclass(frozen=True, eq=False)
class HeldBack:
    """Out-of-fold predictions of each member, for each way of holding out; NaN for cells in no fold.

    ``apart_rn`` is how far the trees differ that look a workload up, ``gap_rn`` how far the process is from the nearest
    cell it has seen, ``away_rn`` how far the nearest workload is of which a cell was seen, ``lead_rn`` its lead over
    the next one, ``group_rn`` what a cell was held out with: itself, its workload, its application. ``recognises_m``
    are the members that say what a known workload took, which predicts no other: they count as far as a run looks like
    one of a known workload. ``moved_as_m`` is the member whose weight the signs move in the same way, for most of them
    itself.
    """

    predicted_rmnp: Floats
    apart_rn: Floats
    gap_rn: Floats
    away_rn: Floats
    lead_rn: Floats
    group_rn: Integers
    recognises_m: Mask
    moved_as_m: Integers

    @cached_property
    def known_rn(self) -> Mask:
        """Which cells were held out in each way."""
        signs_rn = self.apart_rn + self.gap_rn + self.away_rn + self.lead_rn
        return np.asarray(~(np.isnan(self.predicted_rmnp).any(axis=(1, 3)) | np.isnan(signs_rn)))

    @cached_property
    def ways(self) -> list[int]:
        """The ways in which any cell was held out."""
        return [int(r) for r in np.flatnonzero(self.known_rn.any(axis=1))]

    def nearness(self) -> Nearness:
        """Return how to tell from signs in which way a cell counts as held out, all ways being as likely."""
        from sklearn.linear_model import LogisticRegression

        ways, ways_in_all = self.ways, len(self.known_rn)
        positive = np.concatenate([self.apart_rn[r, self.known_rn[r]] for r in ways] or [np.zeros(1)])
        positive = positive[positive > 0]
        unit = float(np.quantile(positive, 0.05)) if len(positive) else 1.0
        bias_r = np.full(ways_in_all, _NEVER)
        bias_r[ways or slice(None)] = 0.0
        products = with_products(np.zeros((1, _SIGNS))).shape[1]
        blank = Nearness(
            unit=unit,
            low_z=np.full(_SIGNS, -_NO_SIGN),
            high_z=np.full(_SIGNS, _NO_SIGN),
            mean_d=np.zeros(products),
            spread_d=np.ones(products),
            weights_rd=np.zeros((ways_in_all, products)),
            bias_r=bias_r,
        )
        if not ways:
            return blank
        ends = np.stack([np.quantile(self._signs(blank, r), _NEARLY_ALL, axis=0) for r in ways])
        blank = replace(blank, low_z=ends[:, 0].min(axis=0), high_z=ends[:, 1].max(axis=0))
        signs_hd = with_products(np.concatenate([self._signs(blank, r) for r in ways]))
        mean_d, spread_d = signs_hd.mean(axis=0), np.maximum(signs_hd.std(axis=0), 1e-9)
        weights_rd = blank.weights_rd.copy()
        if len(ways) > 1:
            way_h = np.repeat(ways, [self.known_rn[r].sum() for r in ways])
            regression = LogisticRegression(class_weight="balanced", max_iter=1000)
            fitted = regression.fit((signs_hd - mean_d) / spread_d, way_h)
            scored = ways if len(ways) > 2 else ways[1:]  # of two, scikit-learn scores the second against the first
            weights_rd[scored], bias_r[scored] = fitted.coef_, fitted.intercept_
        return replace(blank, mean_d=mean_d, spread_d=spread_d, weights_rd=weights_rd, bias_r=bias_r)

    def _signs(self, nearness: Nearness, way: int) -> Floats:
        """Return the signs of the cells held out in one way."""
        return nearness.signs(
            *(own_rn[way, self.known_rn[way]] for own_rn in (self.apart_rn, self.gap_rn, self.away_rn, self.lead_rn))
        )

    def gate(self, truth_np: Floats, nearness: Nearness) -> Gate:
        """Return the weights of the members by nearness, moved by the signs as has the least error on cells held out.

        A way counts by how far its signs are trusted. Signs that tell nothing leave the weights as each way has them.
        """
        weights_rm, groups_r = self.weights(truth_np), np.array([self._groups(r) for r in range(len(self.known_rn))])
        trust_r = groups_r / (groups_r + _FEW_GROUPS)
        members, products = weights_rm.shape[1], len(nearness.mean_d)
        still = Gate(weights_rm, np.zeros((products, members)), np.zeros(members), trust_r)
        if not self.ways:
            return still
        signs = [self._signs(nearness, r) for r in self.ways]
        share_hr = np.concatenate([nearness(own) for own in signs])
        log_hm, trust_h = np.log(share_hr @ weights_rm + LEAST_WEIGHT), share_hr @ trust_r
        signs_hd = np.clip(np.concatenate([nearness.standard(own) for own in signs]), -REACH, REACH)
        error_mhp = np.concatenate(
            [self.predicted_rmnp[r][:, self.known_rn[r]] - truth_np[self.known_rn[r]] for r in self.ways], axis=1
        )
        counts_h = np.concatenate(
            [np.full(len(own), trust_r[r] / len(own)) for r, own in zip(self.ways, signs, strict=True)]
        )
        some = slice(None, None, max(1, error_mhp[0].size // _MOST_MOVED))
        cells = {"trust_h": trust_h[some], "counts_h": counts_h[some]}
        moved = _moves(error_mhp[:, some], log_hm[some], signs_hd[some], **cells, moved_as_m=self.moved_as_m)
        return Gate(weights_rm, *moved, trust_r)

    def weights(self, truth_np: Floats) -> Floats:
        """Return the weights of the members for each way of holding out, R x M; all the same where none was."""
        ways_in_all, members = self.predicted_rmnp.shape[:2]
        weights_rm = np.zeros((ways_in_all, members))
        for r in range(ways_in_all):
            asked_m = np.ones(members, bool) if r == 0 else ~self.recognises_m
            if r not in self.ways:
                weights_rm[r, asked_m] = 1.0 / asked_m.sum()
                continue
            known_n = self.known_rn[r]
            error_mhp = self.predicted_rmnp[r][np.ix_(asked_m, known_n)] - truth_np[known_n]
            groups = self._groups(r)
            many, power = groups / (groups + _MANY_GROUPS), _POWER * groups / (groups + _SOME_GROUPS)
            best_m, cautious_m = _best_weights(error_mhp), _cautious_weights(error_mhp, power)
            weights_rm[r, asked_m] = many * best_m + (1.0 - many) * cautious_m
        return weights_rm

    def _groups(self, way: int) -> int:
        """Return how many groups were held out in one way."""
        return len(np.unique(self.group_rn[way, self.known_rn[way]]))

    def intervals(
        self, features: Features, truth_np: Floats, noise_np: Floats, nearness: Nearness, gate: Gate, seed: int
    ) -> Intervals:
        """Return intervals calibrated on the out-of-fold residuals of each way of holding out.

        Runs of a workload share its measured times, noise and all, so that a held-out cell of a known workload is met
        better than the next measurement will be: there the noise between two measurements is added.
        """
        residuals = []
        for r in range(len(self.known_rn)):
            way = r if r in self.ways else (self.ways[-1] if self.ways else None)
            if way is None:
                # Nothing could be held out: all that is known is how much the targets differ.
                error_np, signs_nz = truth_np - np.nanmean(truth_np, axis=0), np.zeros((len(truth_np), _SIGNS))
                residuals.append(Residuals.fit(error_np, difficulty(features, signs_nz), self.group_rn[r], seed))
                continue
            known_n = self.known_rn[way]
            signs_nz = self._signs(nearness, way)
            weights_nm = gate(nearness(signs_nz), nearness.standard(signs_nz))
            error_np = truth_np[known_n] - blended(self.predicted_rmnp[way][:, known_n], weights_nm)
            if way == 0:
                error_np = error_np + noise_np[known_n] - noise_np[known_n].mean(axis=1, keepdims=True)
            signs_nd = difficulty(features[known_n], signs_nz)
            residuals.append(Residuals.fit(error_np, signs_nd, self.group_rn[way, known_n], seed))
        return Intervals(tuple(residuals))


def _moves(
    error_mhp: Floats, log_hm: Floats, signs_hd: Floats, *, trust_h: Floats, counts_h: Floats, moved_as_m: Integers
) -> tuple[Floats, Floats]:
    """Return how signs move the logarithms of the weights so that the blend errs least, by gradient descent."""
    known_mhp = ~np.isnan(error_mhp)
    weight_hp = known_mhp[0] * (counts_h / counts_h.sum() / np.maximum(known_mhp[0].sum(axis=1), 1))[:, None]
    numbers = (np.nan_to_num(error_mhp), log_hm, signs_hd, trust_h[:, None], weight_hp)
    error, log, signs, trust, weight = (torch.tensor(values, dtype=torch.float64) for values in numbers)
    moves = torch.zeros(signs.shape[1], log.shape[1], dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(log.shape[1], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([moves, bias], lr=_MOVE_RATE)
    for _ in range(_MOVE_STEPS):
        moved = (signs @ moves + bias)[:, moved_as_m]
        blend = torch.einsum("mhp,hm->hp", error, torch.softmax(log + trust * moved, dim=1))
        huber = functional.huber_loss(blend, torch.zeros_like(blend), reduction="none", delta=_MOVE_HUBER)
        loss = (huber * weight).sum() / _MOVE_HUBER
        loss = loss + _MOVE_PENALTY * (moves.square().mean() + bias.square().mean())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return moves[:, moved_as_m].detach().numpy(), bias[moved_as_m].detach().numpy()


def _cautious_weights(error_mhp: Floats, power: float) -> Floats:
    """Return weights by (least error / own error) to a power: nobody is left out for being a little behind."""
    error_m = np.nanmean(np.abs(error_mhp), axis=(1, 2)) + 1e-9
    weights_m = (error_m.min() / error_m) ** power
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
