"""The default model learns: trees, a Gaussian process and small networks, weighted by their out-of-fold errors.

Each predicts the *contrast* of a cell, its log time on every platform less their mean: the same for every source,
and all that a relative time depends on. The members differ in where they err: networks are ahead on inputs of known
applications, trees and the process on applications never seen.

Every network is blind to a fold of its own: most to some applications, the rest to some workloads (the process is so
in closed form, and a few trees are grown for it). These out-of-fold predictions set the weights of the blend
(`fitted.blend`, stacking after Wolpert 1992 with two weights each) and calibrate the intervals (`fitted.confidence`).
"""

# N cells, F features, E features and their rates, P platforms, M members, R two ways of holding out, D indicators

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from crossperf.arrays import Floats, Integers, Mask
from crossperf.dataset.cells import Split
from crossperf.dataset.features import Features
from crossperf.dataset.pairing import Dataset
from crossperf.errors import MissingDependencyError
from crossperf.model.base import Groups, Predictor
from crossperf.model.fitted.blend import Blend, Patterns, Weighting, difficulty
from crossperf.model.fitted.confidence import Intervals
from crossperf.model.fitted.model import Part
from crossperf.model.fitted.peers import Forest
from crossperf.model.fitted.scales import Encoder, Limits, contrast
from crossperf.model.learn.together import common_contrast, grow

try:
    from crossperf.model.learn.ensemble import Plan, fit_ensemble
    from crossperf.model.learn.process import fit_process
    from crossperf.model.learn.vae import fit_novelty
except ImportError as error:
    raise MissingDependencyError("Training 'crossperf' needs PyTorch: pip install 'crossperf[torch]'") from error

#: Members that are blind to whole applications; the others are blind to workloads of applications they know.
_APP_MEMBERS = 6
#: Weights of networks, trees and process, near what is known and far from it, before their out-of-fold errors count;
#: a member that erred more counts for less, by this power of the ratio. Out of fold, the process is whole, the trees
#: are few and a network is alone: the more a member lacks there, the larger its weight to begin with.
_NEAR, _FAR, _POWER = np.array([3.0, 1.5, 1.0]), np.array([2.0, 2.0, 1.0]), 4.0
#: Trees that are blind to a fold, for each member.
_BLIND_TREES = 12
_BACKGROUND_EACH, _BACKGROUND_ALL = 24, 512


@dataclass(frozen=True, eq=False)
class _Folds:
    """Which member is blind to which cells, by application (r = 0, far) and by workload (r = 1, near)."""

    fold_rn: Integers
    blind_mn: Mask
    count_r: tuple[int, int]

    @classmethod
    def of(cls, groups: Groups, members: int, rng: np.random.Generator) -> _Folds:
        by_app = min(_APP_MEMBERS, max(members - 2, 1))
        count_r = (by_app, members - by_app)
        folds = []
        for names_n, count in zip((groups.app_n, groups.workload_n), count_r, strict=True):
            fold_n = _even_folds(names_n, members, rng)
            # With a single name a member that is blind to it would have nothing to learn from.
            folds.append(np.where((fold_n < count) & (len(np.unique(fold_n)) > 1), fold_n, -1))
        blind = [fold_n == np.arange(count)[:, None] for fold_n, count in zip(folds, count_r, strict=True)]
        return cls(np.stack(folds), np.concatenate(blind), count_r)

    def out_of_fold(self, predicted_mnp: Floats) -> Floats:
        """Return for each way of holding out the prediction of the member blind to each cell; NaN where none is."""
        picked_rnp, start = [], 0
        for count in self.count_r:
            blind_mn, part_mnp = self.blind_mn[start : start + count], predicted_mnp[start : start + count]
            picked_np = np.where(blind_mn[:, :, None], part_mnp, 0.0).sum(axis=0)
            picked_rnp.append(np.where(np.asarray(blind_mn.any(axis=0))[:, None], picked_np, np.nan))
            start += count
        return np.stack(picked_rnp)


@dataclass(eq=False, repr=False)
class Crossperf(Predictor):
    """The default model.

    Parameters
    ----------
    trees
        Extremely randomised trees, of all members together.
    members
        Small networks, trained as one.
    width, steps
        Units of a hidden layer of a network, and optimizer steps (fewer for short tables, more for long ones).
    latent_dim, vae_steps
        The latent space that novelty is judged in, and the steps it is trained for.

    Examples
    --------
    >>> from crossperf.dataset import build
    >>> from crossperf.datasets import toy
    >>> data = build(toy.make_table(apps=3, inputs=2, seed=1))
    >>> model = Crossperf(trees=8, members=3, width=16, steps=20, vae_steps=20).fit(data.X, data.y)
    >>> model.predict(data.X).shape
    (24, 4)
    """

    name: ClassVar[str] = "crossperf"
    needs_names: ClassVar[bool] = True
    trees: int = 96
    members: int = 8
    width: int = 192
    steps: int = 700
    latent_dim: int = 16
    vae_steps: int = 400
    n_jobs: int = -1
    device: str = "auto"
    seed: int = 0

    def _learn(self, features: Features, target_np: Floats, groups: Groups, limits: Limits) -> Part:
        for name in ("trees", "members", "width", "steps", "latent_dim", "vae_steps"):
            if getattr(self, name) < 1:
                raise self._unfit(name, "1 or more")
        contrast_np, base_p = common_contrast(target_np)
        rated_ne = features.derived().values_nf
        encoder = Encoder.fit(rated_ne)
        standard_ne = encoder(rated_ne)
        rng = np.random.default_rng(self.seed)
        folds = _Folds.of(groups, self.members, rng)

        forest, trees_rnp = self._grow(encoder.log(rated_ne), target_np, folds, base_p)
        where: dict[str, Any] = {"device": self.device, "seed": self.seed}
        plan = Plan(width=self.width, steps=self.steps)
        ensemble = fit_ensemble(standard_ne, contrast_np, folds.blind_mn, plan, **where)
        networks_rnp = folds.out_of_fold(ensemble.predict_each(standard_ne))
        process, left_out = fit_process(
            np.nan_to_num(standard_ne), contrast_np, groups.workload_n, folds.fold_rn, self.seed
        )
        plain_nf, cells = standard_ne[:, : len(features.columns)], (groups.workload_n, groups.cpu_n)
        novelty = fit_novelty(plain_nf, *cells, latent_dim=self.latent_dim, steps=self.vae_steps, **where)
        members_r3np = np.stack([networks_rnp, trees_rnp, left_out.predicted_rnp], axis=1)
        # Held out by application is far (r = 0), held out by workload is near (r = 1).
        gap_far, gap_near = _median(left_out.gap_rn[0], 0.8), _median(left_out.gap_rn[1], 0.2)
        far_3, near_3 = (_weights(members_r3np[r], contrast_np, prior_3) for r, prior_3 in enumerate((_FAR, _NEAR)))
        weighting = Weighting(gap_near, gap_far, near_3, far_3)
        pairs = zip(members_r3np, left_out.gap_rn, strict=True)
        blended_rnp = np.stack([weighting.blend(part_3np, gap_n) for part_3np, gap_n in pairs])
        blended_rnp = np.stack([limited(limits, blended_np, base_p) for blended_np in blended_rnp])
        intervals = self._intervals(features, contrast_np, blended_rnp, left_out.gap_rn, groups.app_n)
        active = novelty.active_units
        self.fit_summary_ = {"active_units": active, "latent_dim": self.latent_dim, "collapsed": active == 0}
        members, trust = (encoder, forest, ensemble, process), (weighting, novelty, intervals)
        known_workload_b = groups.workload_n[novelty.row_b]
        return Blend(*members, *trust, Patterns.of(features), _background(features, rng), known_workload_b, base_p)

    def learn(self, data: Dataset, split: Split = "workload") -> Self:
        """Learn from a dataset; what is held out inside is the same whatever the model is asked for later."""
        return self.fit(data.X, data.y)

    def _grow(self, log_ne: Floats, target_np: Floats, folds: _Folds, base_p: Mask | None) -> tuple[Forest, Floats]:
        """Return trees grown on all cells, and the out-of-fold contrasts of a few grown for each member.

        Trees learn times relative to the source, and contrasts through them: with cells of one workload that differ
        in their target, a tree does not stop at the workload.
        """

        def grown(count: int, rows: Any, seed: int) -> Forest:
            settings = {"max_features": 0.5, "n_jobs": self.n_jobs, "random_state": seed}
            return grow(lambda: ExtraTreesRegressor(count, **settings), log_ne[rows], target_np[rows])

        forest = grown(self.trees, np.arange(len(log_ne)), self.seed)
        predicted_mnp = np.full((len(folds.blind_mn), *target_np.shape), np.nan)
        for member, blind_n in enumerate(folds.blind_mn):
            if blind_n.any() and not blind_n.all():
                blind_np = grown(_BLIND_TREES, ~blind_n, self.seed + member + 1).predict(log_ne[blind_n])
                predicted_mnp[member, blind_n] = contrast(blind_np, base_p)[0]
        return forest, folds.out_of_fold(predicted_mnp)

    def _intervals(
        self,
        features: Features,
        contrast_np: Floats,
        blended_rnp: Floats,
        gap_rn: Floats,
        app_n: Integers,
    ) -> Intervals:
        """Return intervals calibrated on out-of-fold residuals, those of unseen applications first."""
        errors, indicators, groups, unseen_app = [], [], [], []
        for r, blended_np in enumerate(blended_rnp):
            known_n = ~np.isnan(blended_np).any(axis=1)
            errors.append(contrast_np[known_n] - blended_np[known_n])
            indicators.append(difficulty(features[known_n], gap_rn[r, known_n]))
            groups.append(app_n[known_n])
            unseen_app.append(np.full(known_n.sum(), r == 0))
        if not sum(map(len, errors)):
            # Nothing could be held out: all that is known is how much the targets differ.
            errors = [contrast_np - np.nanmean(contrast_np, axis=0)]
            indicators = [difficulty(features, np.zeros(len(app_n)))]
            groups, unseen_app = [app_n], [np.ones(len(app_n), bool)]
        cells = np.concatenate(groups), np.concatenate(unseen_app)
        return Intervals.fit(np.concatenate(errors), np.concatenate(indicators), *cells, self.seed)


def limited(limits: Limits, contrast_np: Floats, base_p: Mask | None) -> Floats:
    """Return contrasts clipped to the training range, which is that of contrasts to the mean over all platforms."""
    if base_p is None:
        return limits.clip_contrast(contrast_np)
    return contrast(limits.clip_contrast(contrast(contrast_np)[0]), base_p)[0]


def _background(features: Features, rng: np.random.Generator) -> Features:
    """Return known cells of each source, which predictions are explained with."""
    sources = np.unique(features.source_n)
    drawn = [rng.permutation(np.flatnonzero(features.source_n == s))[:_BACKGROUND_EACH] for s in sources]
    rows = rng.permutation(np.concatenate(drawn))[:_BACKGROUND_ALL]
    return features[np.sort(rows)]


def _even_folds(names_n: Integers, folds: int, rng: np.random.Generator) -> Integers:
    """Return a fold for each name, with about as many cells in each: the largest name first, to the emptiest fold."""
    names, count = np.unique(names_n, return_counts=True)
    filled, fold_of = np.zeros(folds), np.zeros(len(names), np.int64)
    for name in sorted(range(len(names)), key=lambda i: (-count[i], rng.random())):
        fold_of[name] = filled.argmin()
        filled[fold_of[name]] += count[name]
    return np.asarray(fold_of[np.searchsorted(names, names_n)])


def _weights(predicted_3np: Floats, truth_np: Floats, prior_3: Floats) -> Floats:
    """Return the weights of networks, trees and process: prior times (least error / own error) to a power."""
    known_n = ~np.isnan(predicted_3np).any(axis=(0, 2))
    if not known_n.any():
        return np.asarray(prior_3 / prior_3.sum())
    error_3 = np.nanmean(np.abs(predicted_3np[:, known_n] - truth_np[known_n]), axis=(1, 2))
    weights_3 = prior_3 * ((error_3.min() + 1e-9) / (error_3 + 1e-9)) ** _POWER
    return np.asarray(weights_3 / weights_3.sum())


def _median(values_n: Floats, otherwise: float) -> float:
    known = values_n[~np.isnan(values_n)]
    return float(np.median(known)) if len(known) else otherwise
