"""How sure a prediction is: intervals that hold whatever a run is near to, and how novel it looks.

The cells of a calibration were held out in several ways: alone, with their workload, with their application. The
vectors of these out-of-fold residuals, each divided by how hard its cell looked, are the distributions around new
predictions, mixed by how likely a run is as near, or as far, as the cells of each. One mechanism gives an interval
against any reference, the chance to be fastest, and the chance that one platform beats another. Nominal levels are
corrected so that coverage holds for groups left out (compare conformal prediction, Vovk et al. 2005, with groups for
the exchangeable unit). Novelty is a VAE's likelihood, and the distance to known cells in its latent space.
"""

# N cells, F features, K latent units, B known cells or errors kept, D signs of difficulty, P platforms, L levels,
# R ways of holding out

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from crossperf.arrays import Floats, Integers, Mask
from crossperf.dataset.cells import relative_to
from crossperf.model.fitted.network import Mlp, seen_beside
from crossperf.records import looks

#: What a feature that must agree weighs beside the others.
_MUST_AGREE = 1e3
#: Cells whose distances to all known ones are computed at a time: few enough that they stay in the caches.
_ROWS = 32
#: Nominal levels at which the coverage on left-out groups is known.
LEVELS = np.array([0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99, 0.995])
#: Parts that groups are dealt into, to see how well the errors of the others cover each.
_PARTS = 40
#: Errors of each way of holding out that are kept.
KEPT_ERRORS = 400
_PENALTY = 10.0
#: An error counts as this share of the mean at least: what is nearly exact by luck tells nothing of difficulty.
_LEAST_SHARE = 0.1
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

    def __getitem__(self, rows: slice | Integers) -> NoveltyScores:
        return NoveltyScores(self.surprise_n[rows], self.distance_n[rows], self.by_feature_nf[rows])

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

    @cached_property
    def _known_bg(self) -> Floats:
        """Known cells such that their product with what was seen, and its values, is the squared distance.

        Less what is the same for each of them: it tells the nearest, whatever a cell lacks.
        """
        return np.hstack([np.square(self.known_bf), -2.0 * self.known_bf])

    def impute(self, standard_nf: Floats, exact_f: Mask) -> Floats:
        """Return the cells with the values of the nearest known cell where nothing was measured.

        Nearest is meant in the features that were measured; those marked `exact` (the source) must agree before
        any other counts. Values of a real cell go together; what the decoder expects, feature by feature, does not.
        """
        seen_nf, weight_f = ~np.isnan(standard_nf), np.where(exact_f, _MUST_AGREE**2, 1.0)
        asked_ng = np.hstack([seen_nf, np.nan_to_num(standard_nf)]) * np.tile(weight_f, 2)
        chunks = (asked_ng[i : i + _ROWS] for i in range(0, len(asked_ng), _ROWS))
        near_n = np.concatenate([(asked @ self._known_bg.T).argmin(axis=1) for asked in chunks])
        return np.where(seen_nf, standard_nf, self.known_bf[near_n])

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
class Difficulty:
    """How large errors are expected to be: a linear map of signs, on a log scale, within what was seen."""

    mean_d: Floats
    spread_d: Floats
    weights_d: Floats
    bias: float
    limits: Floats

    @classmethod
    def fit(cls, error_np: Floats, signs_nd: Floats) -> Difficulty:
        """Learn from errors, and from signs that tell before the fact how hard a cell is."""
        size_n = np.nanmean(np.abs(error_np), axis=1)
        size_n = np.log(size_n + _LEAST_SHARE * size_n.mean() + 1e-6)
        mean_d, spread_d = signs_nd.mean(axis=0), np.maximum(signs_nd.std(axis=0), 1e-9)
        standard_nd = (signs_nd - mean_d) / spread_d
        bias = float(size_n.mean())
        gram_dd = standard_nd.T @ standard_nd + _PENALTY * np.eye(signs_nd.shape[1])
        weights_d = np.linalg.solve(gram_dd, standard_nd.T @ (size_n - bias))
        return cls(mean_d, spread_d, weights_d, bias, np.quantile(standard_nd @ weights_d + bias, _SCALE_RANGE))

    def __call__(self, signs_nd: Floats) -> Floats:
        """Return the size of the errors to expect of each cell."""
        log_n = (signs_nd - self.mean_d) / self.spread_d @ self.weights_d + self.bias
        return np.asarray(np.exp(np.clip(log_n, *self.limits)))


@dataclass(frozen=True)
class Residuals:
    """Errors of cells held out in one way, in units of their difficulty, and the coverage of their quantiles."""

    error_bp: Floats
    difficulty: Difficulty
    coverage_l: Floats

    @classmethod
    def fit(cls, error_np: Floats, signs_nd: Floats, groups_n: Integers, seed: int) -> Residuals:
        """Learn from out-of-fold errors, truth minus prediction in logarithms.

        ``groups_n`` is what the cells were held out with. An error that cannot be known is NaN, and drawn from those
        that can.
        """
        difficulty, rng = Difficulty.fit(error_np, signs_nd), np.random.default_rng(seed)
        relative_np = _drawn(error_np / difficulty(signs_nd)[:, None], rng)
        coverage_l = _left_out_coverage(relative_np, groups_n, rng)
        # In random order, so that the first of them are as good as any; the same ones again where they are few.
        kept_b = np.resize(rng.permutation(len(relative_np)), KEPT_ERRORS)
        return cls(relative_np[kept_b], difficulty, np.maximum.accumulate(coverage_l + 1e-12 * np.arange(len(LEVELS))))


@dataclass(frozen=True)
class Intervals:
    """Residuals of each way of holding out, to surround a prediction with."""

    residuals: tuple[Residuals, ...]

    def errors(self, signs_nd: Floats, share_nr: Floats) -> Floats:
        """Return errors in log times that each cell's prediction may have (N x B x P), each as likely as the others.

        ``share_nr`` is how likely each cell is as near as those held out in each way, and how many errors are theirs.
        """
        place_b = (np.arange(KEPT_ERRORS) + 0.5) / KEPT_ERRORS
        way_nb = (place_b > np.cumsum(share_nr, axis=1)[:, :-1, None]).sum(axis=1)
        error_rbp = np.stack([own.error_bp for own in self.residuals])
        scale_nr = np.stack([own.difficulty(signs_nd) for own in self.residuals], axis=1)
        scale_nb = np.take_along_axis(scale_nr, way_nb, axis=1)
        return np.asarray(scale_nb[:, :, None] * error_rbp[way_nb, np.arange(KEPT_ERRORS)])

    def scaled(self, scale_r: Floats) -> Intervals:
        """Return intervals with the errors of each way of holding out multiplied by its scale."""
        return Intervals(
            tuple(
                replace(own, error_bp=own.error_bp * scale) for own, scale in zip(self.residuals, scale_r, strict=True)
            )
        )

    def coverage(self, share_nr: Floats) -> Floats:
        """Return how much the intervals of each nominal level cover, N x L."""
        return np.asarray(share_nr @ np.stack([own.coverage_l for own in self.residuals]))


@dataclass(frozen=True)
class Forecast:
    """Predictions with the errors they may have, what intervals of each nominal level cover, and novelty."""

    log_relative_np: Floats
    error_nbp: Floats
    coverage_nl: Floats
    novelty: NoveltyScores

    def __getitem__(self, rows: slice | Integers) -> Forecast:
        return replace(
            self,
            log_relative_np=self.log_relative_np[rows],
            error_nbp=self.error_nbp[rows],
            coverage_nl=self.coverage_nl[rows],
            novelty=self.novelty[rows],
        )

    @property
    def _drawn_nbp(self) -> Floats:
        """Equally likely log times of each cell."""
        return self.log_relative_np[:, None, :] + self.error_nbp

    def drawn(self, reference_n: Integers) -> Floats:
        """Return equally likely log times of each cell over that on its reference platform, N x B x P."""
        drawn_nbp = self._drawn_nbp
        return np.asarray(drawn_nbp - np.take_along_axis(drawn_nbp, reference_n[:, None, None], axis=2))

    def _nominal(self, level: float) -> Floats:
        """Return the level to take the quantiles of each cell at, so that intervals cover `level` of such cells."""
        return np.array([np.interp(level, coverage_l, LEVELS) for coverage_l in self.coverage_nl])

    def between(self, level: float, reference_n: Integers, *, joint: bool = False) -> tuple[Floats, Floats]:
        """Return low and high log time on each platform over that on each cell's reference platform.

        With ``joint``, the ranges of a cell hold all at once for a share `level` of such cells, and are wider.
        """
        ordered_nbp = np.sort(self.drawn(reference_n), axis=1)
        nominal_n = self._nominal(level)
        if joint:
            nominal_n = _joint(self.drawn(reference_n), ordered_nbp, nominal_n)
        return _quantile(ordered_nbp, (1 - nominal_n) / 2), _quantile(ordered_nbp, (1 + nominal_n) / 2)

    def level_needed(self, log_truth_np: Floats, reference_n: Integers) -> Floats:
        """Return the level of the interval that just holds each true log time over that on the reference.

        A calibrated model needs a level up to L for a share L of the platforms. NaN on the reference and where the
        truth is not known.
        """
        nominal_np = np.abs(2.0 * _quantile_of(log_truth_np, self.drawn(reference_n)) - 1.0)
        pairs = zip(nominal_np, self.coverage_nl, strict=True)
        needed_np = np.stack([np.interp(nominal_p, LEVELS, coverage_l) for nominal_p, coverage_l in pairs])
        needed_np = np.where(nominal_np <= LEVELS[0], 0.0, np.where(nominal_np > LEVELS[-1], np.inf, needed_np))
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
        platforms = range(drawn_nbp.shape[2])
        return np.stack([(drawn_nbp[:, :, p, None] < drawn_nbp).mean(axis=1) for p in platforms], axis=1)


def _quantile(ordered_nbp: Floats, share_n: Floats) -> Floats:
    """Return a quantile of each cell's ordered draws, between two as `numpy.quantile` has it."""
    place_n = np.clip(share_n, 0.0, 1.0) * (ordered_nbp.shape[1] - 1)
    below_n = np.floor(place_n).astype(np.int64)
    above_n = np.minimum(below_n + 1, ordered_nbp.shape[1] - 1)
    rows, part_n1 = np.arange(len(ordered_nbp)), (place_n - below_n)[:, None]
    return np.asarray(ordered_nbp[rows, below_n] * (1.0 - part_n1) + ordered_nbp[rows, above_n] * part_n1)


def _joint(drawn_nbp: Floats, ordered_nbp: Floats, nominal_n: Floats) -> Floats:
    """Return the nominal level whose intervals hold a draw on all platforms at once as often as asked."""
    last = max(drawn_nbp.shape[1] - 1, 1)
    needed_nb = np.zeros(drawn_nbp.shape[:2])
    for cell, (drawn_bp, ordered_bp) in enumerate(zip(drawn_nbp, ordered_nbp, strict=True)):
        for drawn_b, ordered_b in zip(drawn_bp.T, ordered_bp.T, strict=True):
            if ordered_b[0] < ordered_b[-1]:  # the reference itself is always as it is
                needed_nb[cell] = np.maximum(
                    needed_nb[cell], np.abs(2 * np.searchsorted(ordered_b, drawn_b) / last - 1)
                )
    return _quantile(np.sort(needed_nb, axis=1)[:, :, None], nominal_n)[:, 0]


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
    """Return the coverage of the intervals of each nominal level on some groups, made from the other groups."""
    groups, number_n = np.unique(groups_n, return_inverse=True)
    if len(groups) < 2:
        return LEVELS.copy()
    part_n = (rng.permutation(len(groups)) % _PARTS)[number_n]
    platforms, shares = relative_np.shape[1], np.concatenate([(1 - LEVELS) / 2, (1 + LEVELS) / 2])
    inside_l, count = np.zeros(len(LEVELS)), 0
    for part in np.unique(part_n):
        own, others = np.flatnonzero(part_n == part), np.flatnonzero(part_n != part)
        own, others = (rng.choice(r, min(len(r), most), replace=False) for r, most in ((own, 100), (others, 600)))
        reference = rng.integers(platforms, size=len(own))
        own_np = relative_to(relative_np[own], reference)
        differs_np = np.arange(platforms) != reference[:, None]
        inside_lnp = np.empty((len(LEVELS), *own_np.shape), bool)
        for p in np.unique(reference):  # each on its own: all pairs of many platforms would not fit into memory
            rows, against_bp = reference == p, relative_np[others] - relative_np[others, p, None]
            low_lp, high_lp = np.split(np.quantile(against_bp, shares, axis=0), 2)
            inside_lnp[:, rows] = (own_np[rows] >= low_lp[:, None]) & (own_np[rows] <= high_lp[:, None])
        weight = (part_n == part).sum() / len(own)
        inside_l += weight * (inside_lnp & differs_np).sum(axis=(1, 2))
        count += weight * differs_np.sum()
    return inside_l / max(count, 1)
