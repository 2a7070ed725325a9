"""The default model as it answers: networks, a process and look-ups, blended by how near a run is to known ones.

Each member predicts the *contrast* of a cell, its log times on the platforms less their mean. A look-up is made of
trees: for a run of a known workload most of them lead to that workload, and agree. How far they differ, how far the
process is from the nearest known cell, and how far the run is from the nearest known workload, tell how likely it is a
run of a known workload, another input of a known application, or neither; and that sets the weights of the members and
the width of the intervals.
"""

# N cells (known, or asked about B at a time), F features, E features and their rates, K directions of them,
# P platforms, M members, R ways of holding out from near to far, Z signs, D signs and their products,
# T patterns of measured features

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from crossperf.arrays import Floats, Integers, Mask
from crossperf.dataset.features import MEASURED, SOURCE, Features
from crossperf.model.fitted.confidence import Forecast, Intervals, Novelty, distinct
from crossperf.model.fitted.network import Ensemble, Singles
from crossperf.model.fitted.peers import Forest
from crossperf.model.fitted.recognition import Recognition, Runs
from crossperf.model.fitted.scales import Encoder
from crossperf.model.fitted.threads import in_threads

#: Cells that a thread predicts at a time.
_CHUNK = 512
#: Squared distance below which two cells coincide.
COINCIDE = 1e-10
#: Squared distance below which it is not taken from a matrix product.
_CLOSE = 0.1
#: Kernel values computed at a time: few enough that they stay in the caches from the product to the exponential.
_CACHED = 500_000
#: A distance to a known workload that says no more than 0, in the spread of its runs.
_SAME_WORKLOAD = 1e-3
#: How many spreads from their mean the signs count, and what a member weighs before the signs speak.
REACH, LEAST_WEIGHT = 4.0, 1e-3
#: How far apart members are, in log times, from where on they disagree; and how often they are weighed again for that.
AGREE, ROUNDS = 0.02, 6


@dataclass(frozen=True)
class GaussianProcess:
    """The posterior mean under the kernel ``exp(-distance)``: rough, as times of programs are, and bounded.

    ``mean(x) = sum_n k(x, x_n) w_n + mean_p`` with ``w = inv(K + noise) (y - mean_p)`` (Rasmussen and Williams 2006,
    eq. 2.25); far from every known cell it returns to the mean of training. Distances are those of features over
    their length scales, in the directions in which known cells differ: ``axes_ek`` leads from features to these.
    """

    axes_ek: Floats
    known_nk: Singles
    weights_np: Singles
    mean_p: Floats

    @cached_property
    def _squaring_gn(self) -> Singles:
        """Known cells such that their product with a cell, its square and 1 is the squared distance."""
        square_n = np.square(self.known_nk).sum(axis=1)
        return np.vstack([-2.0 * self.known_nk.T, np.ones_like(square_n), square_n], dtype=np.float32)

    def predict(self, standard_ne: Floats) -> tuple[Floats, Floats]:
        """Return predictions, and each cell's gap to what is known: 0 on a known cell, 1 far away."""
        asked_bk = (standard_ne @ self.axes_ek).astype(np.float32)
        rows = max(1, _CACHED // len(self.known_nk))
        parts, gaps = [], []
        for start in range(0, len(asked_bk), rows):
            near_bn = self._square_distance(asked_bk[start : start + rows])
            gaps.append(-np.expm1(-np.sqrt(near_bn.min(axis=1))))
            np.sqrt(near_bn, out=near_bn)
            np.negative(near_bn, out=near_bn)
            np.exp(near_bn, out=near_bn)
            parts.append(near_bn @ self.weights_np)
        return np.concatenate(parts) + self.mean_p, np.concatenate(gaps).astype(np.float64)

    def _square_distance(self, asked_bk: Singles) -> Singles:
        square_b1, one_b1 = np.square(asked_bk).sum(axis=1, keepdims=True), np.ones((len(asked_bk), 1), np.float32)
        apart_bn = np.hstack([asked_bk, square_b1, one_b1]) @ self._squaring_gn
        # Squares of close cells cancel in single precision, by how the product was summed: these are computed directly.
        close = np.flatnonzero(apart_bn.min(axis=1) < _CLOSE)
        row_m, known_m = np.nonzero(apart_bn[close] < _CLOSE)
        row_m = close[row_m]
        apart_bn[row_m, known_m] = np.square(asked_bk[row_m] - self.known_nk[known_m]).sum(axis=1)
        return np.maximum(apart_bn, COINCIDE, out=apart_bn)


@dataclass(frozen=True)
class Nearness:
    """How likely a cell is as near to known ones as those held out in each way: logistic regression on four signs."""

    #: What the disagreement of trees is measured in, so that its logarithm is finite where they agree.
    unit: float
    #: What signs lay between among nearly all cells held out. A run that is known already is nearer than these, and
    #: beyond them squares of signs may say anything.
    low_z: Floats
    high_z: Floats
    mean_d: Floats
    spread_d: Floats
    weights_rd: Floats
    bias_r: Floats

    def signs(self, apart_n: Floats, gap_n: Floats, away_n: Floats, lead_n: Floats) -> Floats:
        """Return how far trees differ, the gap to the nearest cell, how far the nearest workload is, and its lead."""
        signs_nz = np.column_stack([np.log1p(apart_n / self.unit), gap_n, np.log(away_n + _SAME_WORKLOAD), lead_n])
        return np.asarray(np.clip(signs_nz, self.low_z, self.high_z))

    def standard(self, signs_nz: Floats) -> Floats:
        """Return the signs and their products, standard among the cells held out."""
        return (with_products(signs_nz) - self.mean_d) / self.spread_d

    def __call__(self, signs_nz: Floats) -> Floats:
        """Return the share of each way of holding out, N x R."""
        return _softmax(self.standard(signs_nz) @ self.weights_rd.T + self.bias_r)


@dataclass(frozen=True)
class Gate:
    """Whom to trust for a cell: weights for each way of holding out, mixed by nearness, then moved by the signs.

    With mixed weights ``w``, member m counts in proportion to ``(w_m + a little) exp(t (signs . moves_m + bias_m))``,
    a mixture of experts (Jacobs et al. 1991) that starts from what each way taught; ``t`` is how far to trust the signs
    where a cell is: little where few groups were held out.
    """

    weights_rm: Floats
    moves_dm: Floats
    bias_m: Floats
    trust_r: Floats

    def __call__(self, share_nr: Floats, standard_nd: Floats) -> Floats:
        """Return the weights of the members, N x M."""
        moved_nm = np.clip(standard_nd, -REACH, REACH) @ self.moves_dm + self.bias_m
        trust_n = share_nr @ self.trust_r
        return _softmax(np.log(share_nr @ self.weights_rm + LEAST_WEIGHT) + trust_n[:, None] * moved_nm)


def _softmax(score_nm: Floats) -> Floats:
    share_nm = np.exp(score_nm - score_nm.max(axis=1, keepdims=True))
    return np.asarray(share_nm / share_nm.sum(axis=1, keepdims=True))


def with_products(signs_nz: Floats) -> Floats:
    """Return the signs, their squares and their products."""
    first, second = np.triu_indices(signs_nz.shape[1])
    return np.column_stack([signs_nz, signs_nz[:, first] * signs_nz[:, second]])


@dataclass(frozen=True)
class Blended:
    """What the members say of cells: contrasts, signs of nearness, and the share of each way."""

    predicted_np: Floats
    signs_nz: Floats
    share_nr: Floats


@dataclass(frozen=True)
class Patterns:
    """Which features the training cells of each source had, the most common sets first."""

    source_t: Integers
    seen_tf: Mask

    @classmethod
    def of(cls, features: Features, most: int = 64) -> Patterns:
        """Return the patterns of training cells."""
        keys_nf = np.column_stack([features.source_n, ~np.isnan(features.values_nf)])
        keys_tf, count_t = np.unique(keys_nf, axis=0, return_counts=True)
        keys_tf = keys_tf[np.argsort(-count_t, kind="stable")][:most]
        return cls(keys_tf[:, 0].astype(np.int64), keys_tf[:, 1:].astype(bool))

    def lacking(self, features: Features) -> Mask:
        """Return the features that each cell lacks and training cells of its source had.

        Of the sets of features seen on the same source, the one nearest to the cell's own counts.
        """
        seen_nf = ~np.isnan(features.values_nf)
        source_bits = np.eye(len(features.columns.sources) + 1, dtype=bool)[features.source_n]
        first_u, number_n = distinct(np.column_stack([source_bits, seen_nf]))
        lacking_uf = np.stack([self._lacking(int(features.source_n[u]), seen_nf[u]) for u in first_u])
        return np.asarray(lacking_uf[number_n])

    def _lacking(self, source: int, seen_f: Mask) -> Mask:
        same_t = self.source_t == source
        seen_tf = self.seen_tf[same_t] if same_t.any() else self.seen_tf
        return np.asarray(seen_tf[(seen_tf != seen_f).sum(axis=1).argmin()] & ~seen_f)


@dataclass(frozen=True)
class Blend:
    """Everything the default model has learned."""

    kind: ClassVar[str] = "blend"
    encoder: Encoder
    lookup: Forest
    ensemble: Ensemble
    process: GaussianProcess
    workloads: Recognition
    nearness: Nearness
    gate: Gate
    novelty: Novelty
    intervals: Intervals
    patterns: Patterns
    background: Features
    known_workload_b: Integers

    @property
    def known_latent_bk(self) -> Floats:
        """The latent places of known cells."""
        return self.novelty.known_bk

    def predict(self, features: Features) -> Floats:
        """Return contrasts."""
        return self.ask(features).predicted_np

    def forecast(self, features: Features) -> Forecast:
        """Return predictions with the errors they may have; ask for some hundred cells at a time."""
        answer = self.ask(features)
        error_nbp = self.intervals.errors(difficulty(features, answer.signs_nz), answer.share_nr)
        scores = self.novelty.scores(self._standard(features))
        return Forecast(answer.predicted_np, error_nbp, self.intervals.coverage(answer.share_nr), scores)

    def latent(self, features: Features) -> Floats:
        """Return the latent places of cells."""
        return self.novelty.latent(self._standard(features))

    def _standard(self, features: Features) -> Floats:
        """Return the encoded features without their rates."""
        return self.encoder(features.derived().values_nf)[:, : len(features.columns)]

    def ask(self, features: Features) -> Blended:
        """Return contrasts, not limited to what training has seen, and how near the cells are."""
        parts = in_threads(lambda rows: self._ask_chunk(features[rows]), len(features), _CHUNK)
        return Blended(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _ask_chunk(self, features: Features) -> tuple[Floats, Floats, Floats]:
        rated_ne = self._completed(features).derived().values_nf
        standard_ne, log_ne = self.encoder(rated_ne), self.encoder.log(rated_ne)
        known_np, apart_n = self.lookup.predict_median(log_ne)
        process_np, gap_n = self.process.predict(np.nan_to_num(standard_ne))
        measured_f = np.flatnonzero(features.columns.mask(*MEASURED))
        measured_nf, completed_nf = self._standard(features)[:, measured_f], standard_ne[:, measured_f]
        runs = Runs(completed_nf, features.source_n, features.log_time_n)
        recognised = self.workloads.look(measured_nf, runs)
        members_mnp = np.stack([self.ensemble.predict(standard_ne), process_np, known_np, recognised.contrast_np])
        signs_nz = self.nearness.signs(apart_n, gap_n, recognised.away_n, recognised.lead_n)
        share_nr = self.nearness(signs_nz)
        weights_nm = self.gate(share_nr, self.nearness.standard(signs_nz))
        return blended(members_mnp, weights_nm), signs_nz, share_nr

    def _completed(self, features: Features) -> Features:
        """Return cells with the nearest known run's value for counters that their source offers and they lack."""
        lacking_nf = self.patterns.lacking(features)
        rows = np.flatnonzero(lacking_nf.any(axis=1))
        if not len(rows):
            return features
        standard_nf = self._standard(features[rows])
        guessed_nf = self.encoder.inverse(self.novelty.impute(standard_nf, features.columns.mask(SOURCE)))
        values_nf = features.values_nf.copy()
        values_nf[rows] = np.where(lacking_nf[rows], guessed_nf, values_nf[rows])
        return Features(values_nf, features.columns)


def blended(contrast_mnp: Floats, weights_nm: Floats) -> Floats:
    """Return the centre of the members' predictions of each cell: their weighted median, made smooth.

    It has the least ``sum_m w_m sqrt(1 + ((member - centre) / AGREE)^2)``: members that agree are averaged, and one
    that is far from the others counts for less, however far. Found by reweighting (Huber 1981, 7.8).
    """
    weight_mn1 = weights_nm.T[:, :, None]
    centre_np = (contrast_mnp * weight_mn1).sum(axis=0)
    for _ in range(ROUNDS):
        counts_mnp = weight_mn1 / np.sqrt(1.0 + np.square((contrast_mnp - centre_np) / AGREE))
        centre_np = (contrast_mnp * counts_mnp).sum(axis=0) / counts_mnp.sum(axis=0)
    return np.asarray(centre_np)


def difficulty(features: Features, signs_nz: Floats) -> Floats:
    """Return what indicates how hard a cell is: signs of nearness, and the source it was measured on."""
    return np.column_stack([signs_nz, features.values_nf[:, features.columns.mask(SOURCE)]])
