"""Learns the column of a new platform from the few workloads that were measured on it.

How a workload differs between the known platforms (its contrasts) predicts most of how it does on a new one, and its
features some of the rest. The head is a Gaussian process over both, averaged over settings of its kernel and over the
known platform that it starts from (the new one may be a twin of it, a factor apart, or of none). The weights of the
average are each setting's evidence on what was measured (Rasmussen and Williams 2006, ch. 5, with the scale integrated
out), times how well the setting does when each known platform in turn is treated as new, which takes nothing from the
new platform.
"""

# W workloads, K of them measured on the new platform, P known platforms, S sources (the same platforms, as where a run
# was measured), N runs, F features, G settings, M starting points (none, or one of the known platforms)

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from crossperf.arrays import Floats, Integers, Mask
from crossperf.dataset.cells import Cells
from crossperf.dataset.features import Features
from crossperf.model.fitted.adapted import Head, similarity
from crossperf.model.fitted.scales import Encoder, fill_targets

#: Settings: amplitudes of contrasts, of similarity of features, of a linear part in features, and the noise. All are in
#: units of the spread of the contrasts.
SETTINGS_G4: Floats = np.array(list(product((0.1, 0.3, 1.0), (0.0, 0.3, 1.0), (0.0, 0.3), (0.03, 0.1, 0.3))))
#: The variance of the offset: how fast a new platform is in general is not known beforehand.
_OFFSET = 100.0
#: The scale of what the kernel explains is integrated out under an inverse gamma prior with these parameters.
_SCALE_PRIOR = (1.0, 0.05)
#: What a setting's error on known platforms counts in its weight: as many observations of it.
_PRIOR_WEIGHT = 10.0
#: The penalty of the ridge regression that tells which features matter, for each workload.
_PENALTY = 0.05
#: Beyond this many measured workloads only the settings that did best on known platforms are averaged.
_MANY, _FEW_SETTINGS = 200, 8


@dataclass(frozen=True)
class KnownWorkloads:
    """Workloads on the known platforms: log seconds, and features as each platform shows them."""

    log_time_wp: Floats
    encoder: Encoder
    #: Encoded features; NaN for what was not measured.
    features_swf: Floats

    @classmethod
    def of(cls, cells: Cells, features: Features) -> KnownWorkloads:
        """Return what is known from cells and their features, with rates; platforms that are no source are left out."""
        log_time_wp, rated_nf = cells.log_time_wp[:, : len(features.columns.sources)], features.derived().values_nf
        encoder = Encoder.fit(rated_nf)
        features_swf = np.full((*log_time_wp.T.shape, rated_nf.shape[1]), np.nan)
        features_swf[cells.source_n, cells.workload_n] = encoder(rated_nf)
        return cls(log_time_wp, encoder, features_swf)

    @cached_property
    def filled_wp(self) -> Floats:
        """Log seconds, gaps filled by row and platform effect."""
        return fill_targets(self.log_time_wp)

    @cached_property
    def mean_sf(self) -> Floats:
        """The mean of each encoded feature as each source shows it; 0 where it never does."""
        count_sf = np.maximum((~np.isnan(self.features_swf)).sum(axis=1), 1)
        return np.asarray(np.nansum(self.features_swf, axis=1) / count_sf)

    @cached_property
    def inverse_spread_sf(self) -> Floats:
        """One over the spread of each encoded feature; 0 for one that does not vary, which so takes no part."""
        count_sf = np.maximum((~np.isnan(self.features_swf)).sum(axis=1), 1)
        square_sf = np.nansum((self.features_swf - self.mean_sf[:, None]) ** 2, axis=1) / count_sf
        return np.where(square_sf > 1e-12, 1.0 / np.sqrt(np.maximum(square_sf, 1e-12)), 0.0)

    @cached_property
    def standard_swf(self) -> Floats:
        """Features with zero mean and unit spread within each source; what was not measured is 0."""
        scaled_swf = (self.features_swf - self.mean_sf[:, None]) * self.inverse_spread_sf[:, None]
        return np.nan_to_num(scaled_swf)

    @cached_property
    def seen_sw(self) -> Mask:
        """Which workloads each source has features of."""
        return np.asarray(~np.isnan(self.features_swf).all(axis=2))

    @cached_property
    def _regression_sfw(self) -> Floats:
        """The ridge regression of anything known of the workloads on their standard features."""
        penalty_ff = _PENALTY * len(self.log_time_wp) * np.eye(self.features_swf.shape[2])
        return np.stack([np.linalg.solve(a_wf.T @ a_wf + penalty_ff, a_wf.T) for a_wf in self.standard_swf])

    def relevance_f(self, source: int, contrast_wp: Floats) -> Floats:
        """Return how much each feature counts: by what it says about the contrasts, so that noise counts little."""
        varies_f = self.inverse_spread_sf[source] > 0
        weight_f = np.linalg.norm(self._regression_sfw[source] @ contrast_wp, axis=1)
        if not weight_f.any():
            weight_f = varies_f.astype(np.float64)
        mean = weight_f[varies_f].mean() if varies_f.any() else 1.0
        return np.asarray(np.sqrt(weight_f / mean / max(varies_f.sum(), 1)))


@dataclass(frozen=True)
class _Space:
    """Workloads by their contrasts between some of the known platforms, centred, in units of their spread."""

    platforms: Integers
    level_w: Floats
    centre_p: Floats
    scale: float
    contrast_wp: Floats

    @classmethod
    def of(cls, known: KnownWorkloads, platforms: Integers) -> _Space:
        log_time_wp = known.filled_wp[:, platforms]
        level_w = log_time_wp.mean(axis=1)
        contrast_wp = log_time_wp - level_w[:, None]
        centre_p = contrast_wp.mean(axis=0)
        spread = float((contrast_wp - centre_p).std())
        scale = spread if spread > 1e-9 else 1.0
        return cls(platforms, level_w, centre_p, scale, (contrast_wp - centre_p) / scale)


@dataclass(frozen=True)
class _View:
    """What the kernel sees of workloads from one source: contrasts, and weighted features."""

    contrast_wp: Floats
    features_wf: Floats
    seen_w: Mask

    @classmethod
    def of(cls, known: KnownWorkloads, space: _Space, source: int) -> _View:
        relevance_f = known.relevance_f(source, space.contrast_wp)
        return cls(space.contrast_wp, known.standard_swf[source] * relevance_f, known.seen_sw[source])

    def take(self, rows: Integers) -> _View:
        return _View(self.contrast_wp[rows], self.features_wf[rows], self.seen_w[rows])

    def parts(self, other: _View) -> tuple[Floats, Floats, Floats]:
        """Return the parts of the kernel: linear in contrasts, similarity of features, linear in features."""
        both = self.seen_w[:, None] & other.seen_w
        return (
            self.contrast_wp @ other.contrast_wp.T,
            np.where(both, similarity(self.features_wf, other.features_wf), 0.0),
            self.features_wf @ other.features_wf.T,
        )

    def kernel(self, other: _View, settings_g4: Floats) -> Floats:
        """Return the kernel between these workloads and others under each setting."""
        square_g4 = settings_g4**2
        return np.asarray(_OFFSET + np.einsum("gi,iab->gab", square_g4[:, :3], np.stack(self.parts(other))))

    def starts(self) -> Floats:
        """Return what each starting point says of each workload: nothing, or what a known platform does."""
        return np.column_stack([np.zeros(len(self.contrast_wp)), self.contrast_wp])


@dataclass(frozen=True)
class _Solved:
    """The Gaussian processes of one source: dual weights, errors without each workload, evidence."""

    dual_gkm: Floats
    left_out_gkm: Floats
    evidence_gm: Floats

    @classmethod
    def of(cls, view: _View, target_km: Floats, settings_g4: Floats) -> _Solved:
        count = len(target_km)
        kernel_gkk = view.kernel(view, settings_g4) + (settings_g4[:, 3] ** 2)[:, None, None] * np.eye(count)
        inverse_gkk = np.linalg.inv(kernel_gkk)
        dual_gkm = inverse_gkk @ target_km
        left_out_gkm = dual_gkm / np.diagonal(inverse_gkk, axis1=1, axis2=2)[:, :, None]
        quadratic_gm = np.maximum((target_km * dual_gkm).sum(axis=1), 0.0)
        shape, rate = _SCALE_PRIOR
        log_determinant_g = np.linalg.slogdet(kernel_gkk)[1]
        fit_gm = (shape + count / 2) * np.log(rate + quadratic_gm / 2)
        return cls(dual_gkm, left_out_gkm, -0.5 * log_determinant_g[:, None] - fit_gm)


def softmax(log_weights: Floats) -> Floats:
    """Return weights that sum to 1 from their logarithms."""
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())


def log_prior_g(known: KnownWorkloads, shots: int, seed: int = 0) -> Floats:
    """Return the log weight of each setting: how well it does when each known platform in turn is the new one.

    ``shots`` is how many workloads are measured on the platform that counts as new.
    """
    n_platforms = known.log_time_wp.shape[1]
    error_g = np.zeros(len(SETTINGS_G4))
    if n_platforms < 3:  # With one known platform left there are no contrasts to judge a setting by.
        return error_g
    rng = np.random.default_rng(seed)
    for left_out in range(n_platforms):
        space = _Space.of(known, np.delete(np.arange(n_platforms), left_out))
        measured_w = np.flatnonzero(~np.isnan(known.log_time_wp[:, left_out]))
        count = min(shots, len(measured_w) // 2, 100)
        if count < 2:
            continue
        target_w = (known.log_time_wp[:, left_out] - space.level_w) / space.scale
        for _ in range(max(3, 24 // n_platforms)):
            drawn_w = rng.permutation(measured_w)[: count + 100]
            view = _View.of(known, space, int(rng.choice(space.platforms)))
            error_g += _errors(view, target_w, drawn_w[:count], drawn_w[count:]) * space.scale
    return -_PRIOR_WEIGHT * np.log(np.maximum(error_g, 1e-9)) if error_g.any() else error_g


def _errors(view: _View, target_w: Floats, shots: Integers, others: Integers) -> Floats:
    """Return the mean absolute error of each setting on other workloads, averaged over starting points."""
    start_wm = view.starts()
    solved = _Solved.of(view.take(shots), target_w[shots][:, None] - start_wm[shots], SETTINGS_G4)
    weight_gm = np.exp(solved.evidence_gm - solved.evidence_gm.max(axis=1, keepdims=True))
    weight_gm /= weight_gm.sum(axis=1, keepdims=True)
    dual_gk = np.einsum("gkm,gm->gk", solved.dual_gkm, weight_gm)
    kernel_gtk = view.take(others).kernel(view.take(shots), SETTINGS_G4)
    predicted_gt = np.einsum("gtk,gk->gt", kernel_gtk, dual_gk) + weight_gm @ start_wm[others].T
    return np.asarray(np.abs(predicted_gt - target_w[others]).mean(axis=1))


def fit_head(
    known: KnownWorkloads, shots: Integers, log_time_k: Floats, seed: int = 0, *, prior_g: Floats | None = None
) -> Head:
    """Return the head of a platform on which some known workloads, the ``shots``, took ``log_time_k`` log seconds.

    ``prior_g`` is what `log_prior_g` returned for as many workloads, where it is known already.
    """
    platforms = np.arange(known.log_time_wp.shape[1])
    space = _Space.of(known, platforms)
    if prior_g is None:
        prior_g = log_prior_g(known, len(shots), seed)
    if len(shots) > _MANY:
        prior_g = np.where(prior_g >= np.sort(prior_g)[-_FEW_SETTINGS], prior_g, -np.inf)
    used_g = np.isfinite(prior_g)
    settings_g4 = SETTINGS_G4[used_g]
    target_k = (log_time_k - space.level_w[shots]) / space.scale
    views = [_View.of(known, space, int(source)).take(shots) for source in platforms]
    target_km = target_k[:, None] - views[0].starts()
    solved = [_Solved.of(view, target_km, settings_g4) for view in views]
    weight_gm = softmax(prior_g[used_g, None] + np.mean([part.evidence_gm for part in solved], axis=0))
    # Sums over settings and starting points of weight times dual weight, by part of the kernel.
    dual_sgk = np.stack([np.einsum("gkm,gm->gk", part.dual_gkm, weight_gm) for part in solved])
    dual_isk = np.einsum("gi,sgk->isk", settings_g4[:, :3] ** 2, dual_sgk)
    setting_weights_g = np.zeros(len(SETTINGS_G4))
    setting_weights_g[used_g] = weight_gm.sum(axis=1)
    reach = float(np.ptp(space.contrast_wp, axis=0).max())
    start_p = weight_gm.sum(axis=0)[1:]
    return Head(
        encoder=known.encoder,
        mean_sf=known.mean_sf,
        gain_sf=known.inverse_spread_sf * [known.relevance_f(int(s), space.contrast_wp) for s in platforms],
        centre_p=space.centre_p,
        scale=space.scale,
        limits_2=np.array([target_k.min() - reach, target_k.max() + reach]),
        offset_s=_OFFSET * dual_sgk.sum(axis=(1, 2)),
        contrast_weights_sp=dual_isk[0] @ space.contrast_wp[shots] + start_p,
        feature_weights_sf=np.stack([d @ view.features_wf for d, view in zip(dual_isk[2], views, strict=True)]),
        shots_skf=np.stack([view.features_wf for view in views]),
        shot_weights_sk=dual_isk[1] * np.stack([view.seen_w for view in views]),
        setting_weights_g=setting_weights_g,
        left_out_k=-space.scale
        * np.mean([np.einsum("gkm,gm->k", part.left_out_gkm, weight_gm) for part in solved], axis=0),
    )


@dataclass(frozen=True)
class Suggested:
    """A workload to measure next, by its number, and what it brings."""

    workload: int
    #: The share of the remaining variance that measuring it takes away, over all known workloads.
    gain: float
    #: The known platform on which the workload stands out most, and how many spreads slower (or, below 0, faster).
    platform: int
    stands_out: float


def suggest(
    known: KnownWorkloads,
    count: int,
    measured: Integers,
    *,
    candidates: Integers | None = None,
    setting_weights_g: Floats | None = None,
    seed: int = 0,
    most: int = 1500,
) -> list[Suggested]:
    """Return the workloads to measure next on a new platform, the best first.

    Each is the one that takes most away from the variance of the head over all known workloads, given those
    measured already and those chosen before it. Without ``candidates`` all known workloads can be measured; without
    the weights of a fitted head's settings, those learned from the known platforms alone count. Of more known
    workloads than ``most``, a sample stands for all.
    """
    weights_g = setting_weights_g
    if weights_g is None:
        weights_g = softmax(log_prior_g(known, len(measured) + count, seed))
    sample = np.arange(len(known.log_time_wp))
    if len(sample) > most:
        drawn = np.random.default_rng(seed).choice(sample, most, replace=False)
        sample = np.union1d(drawn, measured).astype(np.int64)
    platforms = np.arange(known.log_time_wp.shape[1])
    space = _Space.of(known, platforms)
    square_4 = weights_g @ SETTINGS_G4**2
    covariance_ww = np.full((len(sample), len(sample)), _OFFSET)
    for source in platforms:
        view = _View.of(known, space, int(source)).take(sample)
        parts = view.parts(view)
        covariance_ww += sum(square * part for square, part in zip(square_4, parts, strict=False)) / len(platforms)
    noise = float(square_4[3])
    # A few strange workloads hold most of the variance; counted in full they would be all that is measured.
    own_w = np.diagonal(covariance_ww) - _OFFSET
    importance_w = 1.0 / np.maximum(np.median(own_w) + own_w, 1e-12)
    for row in np.flatnonzero(np.isin(sample, measured)):
        covariance_ww = _observed(covariance_ww, int(row), noise)
    spread_wp = space.contrast_wp / np.maximum(space.contrast_wp.std(axis=0), 1e-9)
    free_w = ~np.isin(sample, measured)
    if candidates is not None:
        free_w &= np.isin(sample, candidates)
    chosen: list[Suggested] = []
    for _ in range(min(count, int(free_w.sum()))):
        left = float(importance_w @ np.diagonal(covariance_ww))
        gain_w = importance_w @ covariance_ww**2 / (np.diagonal(covariance_ww) + noise)
        best = int(np.where(free_w, gain_w, -np.inf).argmax())
        free_w[best] = False
        covariance_ww = _observed(covariance_ww, best, noise)
        workload = int(sample[best])
        platform = int(np.abs(spread_wp[workload]).argmax())
        gain = float(gain_w[best] / max(left, 1e-12))
        chosen.append(Suggested(workload, gain, platform, float(spread_wp[workload, platform])))
    return chosen


def _observed(covariance_ww: Floats, row: int, noise: float) -> Floats:
    """Return the covariance that is left once a workload was measured."""
    column_w = covariance_ww[:, row]
    return np.asarray(covariance_ww - np.outer(column_w, column_w) / (column_w[row] + noise))
