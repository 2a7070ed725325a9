"""How sure a prediction is: intervals that hold for applications never seen, and how novel a run looks.

Every cell of a calibration was predicted by members that had not seen its application. The vectors of these
out-of-fold residuals, each divided by how hard its cell looked, are the distribution around new predictions: one
mechanism for an interval against any reference, for the chance to be fastest, and for the chance that one platform
beats another. Nominal levels are corrected so that coverage holds for applications left out (compare conformal
prediction, Vovk et al. 2005, with groups for the exchangeable unit). Novelty is a VAE's likelihood, and the distance to
known cells in its latent space.
"""

# N cells, F features, K latent units, B known cells or errors kept, D signs of difficulty, P platforms, L levels

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crossperf.arrays import Floats, Integers, Mask
from crossperf.dataset.cells import relative_to
from crossperf.model.fitted.network import Mlp, seen_beside
from crossperf.records import looks

#: What a feature that must agree weighs beside the others.
_MUST_AGREE = 1e3
_ROWS = 512
#: Nominal levels at which the coverage on left-out groups is known.
_LEVELS = np.array([0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99, 0.995])
_MOST_ERRORS = 400
_PENALTY = 10.0
#: No cell counts as much easier or harder than these quantiles of the calibration cells.
_SCALE_RANGE = (0.02, 0.98)


@dataclass(frozen=True)
class NoveltyScores:
    """How novel runs are: two measures, each 1 at the edge of the ordinary, and the share of each feature in them."""

    surprise_n: Floats
    distance_n: Floats
    by_feature_nf: Floats

    @property
    def score_n(self) -> Floats:
        """The greater of the two measures: up to 1 is ordinary."""
        return np.maximum(self.surprise_n, self.distance_n)

    @property
    def words(self) -> tuple[str, ...]:
        """A plain word for each run."""
        return tuple(looks(score) for score in self.score_n.tolist())


@dataclass(frozen=True)
class Novelty:
    """A VAE of standard features, the latent places of known cells, and what is ordinary among held-out workloads.

    ``row_b`` numbers the known cells among the training cells; ``sigma`` is the decoder's calibrated one.
    """

    encoder: Mlp
    decoder: Mlp
    sigma: float
    known_bk: Floats
    known_bf: Floats
    row_b: Integers
    ordinary_surprise: float
    ordinary_distance: float
    active_units: int

    @cached_property
    def _known_square_b(self) -> Floats:
        return np.asarray(np.square(self.known_bk).sum(axis=1))

    def latent(self, standard_nf: Floats) -> Floats:
        """Return the latent mean of each cell: the first half of the encoder's outputs."""
        return self.encoder(seen_beside(standard_nf))[:, : self.known_bk.shape[1]].astype(np.float64)

    def impute(self, standard_nf: Floats, exact_f: Mask) -> Floats:
        """Return the cells with the values of the nearest known cell where nothing was measured.

        Nearest is meant in the features that were measured; those marked `exact` (the source) must agree before
        any other counts. Values of a real cell go together; what the decoder expects, feature by feature, does not.
        """
        completed_nf = standard_nf.copy()
        seen_nf = ~np.isnan(standard_nf)
        weight_f = np.where(exact_f, _MUST_AGREE, 1.0)
        first_u, number_n = distinct(seen_nf)
        for pattern, seen_f in enumerate(seen_nf[first_u]):
            rows = np.flatnonzero(number_n == pattern)
            asked, known = ((values * weight_f)[:, seen_f] for values in (standard_nf[rows], self.known_bf))
            near_n = np.concatenate(
                [_square_distance(asked[i : i + _ROWS], known).argmin(axis=1) for i in range(0, len(asked), _ROWS)]
            )
            completed_nf[np.ix_(rows, ~seen_f)] = self.known_bf[near_n][:, ~seen_f]
        return completed_nf

    def scores(self, standard_nf: Floats) -> NoveltyScores:
        """Return how each cell differs from what is known."""
        error_nf, latent_nk = self.surprise(standard_nf)
        nearest_n, distance_n = self.nearest(latent_nk)
        apart_nf = np.nan_to_num(standard_nf - self.known_bf[nearest_n]) ** 2
        return NoveltyScores(
            error_nf.mean(axis=1) / self.ordinary_surprise,
            distance_n / self.ordinary_distance,
            error_nf / self.ordinary_surprise + apart_nf,
        )

    def surprise(self, standard_nf: Floats) -> tuple[Floats, Floats]:
        """Return the squared error of the decoder in its own sigmas (twice its negative log likelihood), and places."""
        latent_nk = self.latent(standard_nf)
        decoded_nf = self.decoder(latent_nk.astype(np.float32)).astype(np.float64)
        return np.nan_to_num((standard_nf - decoded_nf) / self.sigma) ** 2, latent_nk

    def nearest(
        self, latent_nk: Floats, own_n: Integers | None = None, group_b: Integers | None = None
    ) -> tuple[Integers, Floats]:
        """Return the nearest known cell of each, and its distance; cells of a run's own group can be left out."""
        nearest, distance = [], []
        for start in range(0, len(latent_nk), _ROWS):
            rows = slice(start, start + _ROWS)
            apart_nb = _square_distance(latent_nk[rows], self.known_bk, self._known_square_b)
            if own_n is not None and group_b is not None:
                apart_nb[own_n[rows, None] == group_b[None]] = np.inf
            nearest.append(apart_nb.argmin(axis=1))
            distance.append(np.sqrt(apart_nb.min(axis=1)))
        return np.concatenate(nearest), np.nan_to_num(np.concatenate(distance), posinf=0.0)


def _square_distance(left_nf: Floats, right_bf: Floats, right_square_b: Floats | None = None) -> Floats:
    square_nb = left_nf @ right_bf.T
    square_nb *= -2.0
    square_nb += np.square(left_nf).sum(axis=1)[:, None]
    square_nb += np.square(right_bf).sum(axis=1) if right_square_b is None else right_square_b
    return np.maximum(square_nb, 0.0, out=square_nb)


def distinct(rows_nf: Mask) -> tuple[Integers, Integers]:
    """Return the number of one row of each pattern, and the pattern of each row."""
    packed_nb = np.packbits(rows_nf, axis=1)
    patterns = np.ascontiguousarray(packed_nb).view(f"V{packed_nb.shape[1]}").ravel()
    _, first_u, number_n = np.unique(patterns, return_index=True, return_inverse=True)
    return first_u, number_n


@dataclass(frozen=True)
class Intervals:
    """Residuals to surround a prediction with, and how to scale them to a cell."""

    error_bp: Floats
    sign_mean_d: Floats
    sign_spread_d: Floats
    weights_d: Floats
    bias: float
    scale_limits: Floats
    coverage_l: Floats

    @classmethod
    def fit(cls, error_np: Floats, signs_nd: Floats, groups_n: Integers, new_n: Mask, seed: int) -> Intervals:
        """Learn from out-of-fold errors, truth minus prediction in logarithms.

        ``signs_nd`` tell before the fact how hard a cell is; ``groups_n`` is its application. Cells of ``new_n`` had
        their whole application left out: their errors are the distribution. The others, whose workload alone was left
        out, help to learn how difficulty shows. An error that cannot be known is NaN, and drawn from those that can.
        """
        size_n = np.log(np.nanmean(np.abs(error_np), axis=1) + 1e-3)
        mean_d, spread_d = signs_nd.mean(axis=0), np.maximum(signs_nd.std(axis=0), 1e-9)
        standard_nd = (signs_nd - mean_d) / spread_d
        bias = float(size_n.mean())
        gram_dd = standard_nd.T @ standard_nd + _PENALTY * np.eye(signs_nd.shape[1])
        weights_d = np.linalg.solve(gram_dd, standard_nd.T @ (size_n - bias))
        log_scale_n = standard_nd @ weights_d + bias
        limits = np.quantile(log_scale_n, _SCALE_RANGE)
        scale_n = np.exp(np.clip(log_scale_n, *limits))
        rows = np.flatnonzero(new_n) if new_n.any() else np.arange(len(new_n))
        rng = np.random.default_rng(seed)
        relative_np = _drawn(error_np[rows] / scale_n[rows, None], rng)
        coverage_l = _left_out_coverage(relative_np, groups_n[rows], rng)
        kept = np.arange(len(rows))
        if len(rows) > _MOST_ERRORS:
            kept = np.sort(rng.choice(kept, _MOST_ERRORS, replace=False))
        return cls(relative_np[kept], mean_d, spread_d, weights_d, bias, limits, coverage_l)

    def scale(self, signs_nd: Floats) -> Floats:
        """Return how large errors are expected to be for each cell, beside the calibration's."""
        log_scale_n = (signs_nd - self.sign_mean_d) / self.sign_spread_d @ self.weights_d + self.bias
        return np.asarray(np.exp(np.clip(log_scale_n, *self.scale_limits)))

    @property
    def _increasing_l(self) -> Floats:
        return np.asarray(np.maximum.accumulate(self.coverage_l + 1e-12 * np.arange(len(self.coverage_l))))

    def nominal(self, level: float) -> float:
        """Return the level to take quantiles at, so that intervals cover `level` of applications left out."""
        return float(np.interp(level, self._increasing_l, _LEVELS))

    def level(self, nominal_n: Floats) -> Floats:
        """Return the lowest level whose `nominal` is at least this: 0 for the narrowest, infinite beyond all."""
        level_n = np.interp(nominal_n, _LEVELS, self._increasing_l)
        return np.where(nominal_n <= _LEVELS[0], 0.0, np.where(nominal_n > _LEVELS[-1], np.inf, level_n))

    def errors(self, scale_n: Floats) -> Floats:
        """Return errors in log times that each cell's prediction may have (N x B x P), each as likely as the others."""
        return np.asarray(scale_n[:, None, None] * self.error_bp)


@dataclass(frozen=True)
class Forecast:
    """Predictions with the errors they may have, and how novel each run looks."""

    log_relative_np: Floats
    error_nbp: Floats
    intervals: Intervals
    novelty: NoveltyScores

    @property
    def _drawn_nbp(self) -> Floats:
        """Equally likely log times of each cell."""
        return self.log_relative_np[:, None, :] + self.error_nbp

    def _relative(self, reference_n: Integers) -> Floats:
        drawn_nbp = self._drawn_nbp
        return np.asarray(drawn_nbp - np.take_along_axis(drawn_nbp, reference_n[:, None, None], axis=2))

    def between(self, level: float, reference_n: Integers) -> tuple[Floats, Floats]:
        """Return low and high log time on each platform over that on each cell's reference platform."""
        nominal = self.intervals.nominal(level)
        low_np, high_np = np.quantile(self._relative(reference_n), [(1 - nominal) / 2, (1 + nominal) / 2], axis=1)
        return low_np, high_np

    def level_needed(self, log_truth_np: Floats, reference_n: Integers) -> Floats:
        """Return the level of the interval that just holds each true log time over that on the reference.

        A calibrated model needs a level up to L for a share L of the platforms. NaN on the reference and where the
        truth is not known.
        """
        quantile_np = _quantile_of(log_truth_np, self._relative(reference_n))
        needed_np = self.intervals.level(np.abs(2.0 * quantile_np - 1.0))
        left_out_np = np.isnan(log_truth_np) | (np.arange(log_truth_np.shape[1]) == reference_n[:, None])
        return np.where(left_out_np, np.nan, needed_np)

    def chance_fastest(self, offered_np: Mask | None = None) -> Floats:
        """Return how likely each platform is the fastest, of all or of those offered."""
        drawn_nbp = self._drawn_nbp
        if offered_np is not None:
            drawn_nbp = np.where(offered_np[:, None, :], drawn_nbp, np.inf)
        fastest_nb = drawn_nbp.argmin(axis=2)
        platforms = self.log_relative_np.shape[1]
        return np.asarray((fastest_nb[:, :, None] == np.arange(platforms)).mean(axis=1))

    def chance_faster(self) -> Floats:
        """Return how likely the platform of each row is faster than that of each column (N x P x P)."""
        drawn_nbp = self._drawn_nbp
        return np.asarray((drawn_nbp[:, :, :, None] < drawn_nbp[:, :, None, :]).mean(axis=1))


def _quantile_of(value_np: Floats, drawn_nbp: Floats) -> Floats:
    """Return which quantile of the draws each value is, between draws as `numpy.quantile` has it; infinite outside."""
    ordered_nbp, last = np.sort(drawn_nbp, axis=1), drawn_nbp.shape[1] - 1
    next_np = (ordered_nbp < value_np[:, None, :]).sum(axis=1)
    right_np = np.clip(next_np, min(1, last), last)
    left_np = np.maximum(right_np - 1, 0)
    low_np, high_np = (np.take_along_axis(ordered_nbp, at[:, None, :], axis=1)[:, 0] for at in (left_np, right_np))
    step_np = np.divide(value_np - low_np, high_np - low_np, out=np.zeros(value_np.shape), where=high_np > low_np)
    inside_np = (ordered_nbp[:, 0] <= value_np) & (value_np <= ordered_nbp[:, -1])
    return np.where(inside_np, (left_np + step_np) / max(last, 1), np.inf)


def _drawn(error_np: Floats, rng: np.random.Generator) -> Floats:
    """Return errors with those of a platform that a cell cannot run on drawn from the cells that can."""
    complete_np = error_np.copy()
    for error_n in complete_np.T:
        gap_n = np.isnan(error_n)
        if gap_n.any():
            error_n[gap_n] = rng.choice(error_n[~gap_n], int(gap_n.sum())) if not gap_n.all() else 0.0
    return complete_np


def _left_out_coverage(relative_np: Floats, groups_n: Integers, rng: np.random.Generator) -> Floats:
    """Return the coverage of the intervals of each nominal level on each group, made from the other groups."""
    groups = np.unique(groups_n)
    if len(groups) < 2:
        return _LEVELS.copy()
    platforms = relative_np.shape[1]
    inside_l, count = np.zeros(len(_LEVELS)), 0
    for group in rng.permutation(groups)[:40]:
        own, others = np.flatnonzero(groups_n == group), np.flatnonzero(groups_n != group)
        own, others = (rng.choice(r, min(len(r), most), replace=False) for r, most in ((own, 100), (others, 600)))
        reference = rng.integers(platforms, size=len(own))
        own_np = relative_to(relative_np[own], reference)
        differs_np = np.arange(platforms) != reference[:, None]
        difference_bpp = relative_np[others][:, :, None] - relative_np[others][:, None, :]
        shares = np.concatenate([(1 - _LEVELS) / 2, (1 + _LEVELS) / 2])
        low_lpp, high_lpp = np.split(np.quantile(difference_bpp, shares, axis=0), 2)
        low_lnp, high_lnp = low_lpp[:, :, reference].swapaxes(1, 2), high_lpp[:, :, reference].swapaxes(1, 2)
        inside_lnp = (own_np >= low_lnp) & (own_np <= high_lnp)
        weight = (groups_n == group).sum() / len(own)
        inside_l += weight * (inside_lnp & differs_np).sum(axis=(1, 2))
        count += weight * differs_np.sum()
    return inside_l / max(count, 1)
