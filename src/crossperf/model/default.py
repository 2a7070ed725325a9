"""The default model learns: small networks, a Gaussian process and two look-ups, weighted by out-of-fold errors.

Each predicts the *contrast* of a cell, its log time on every platform less their mean: the same for every source,
and all that a relative time depends on. The members differ in where they err: runs of known workloads are recognised
(`fitted.recognition`), or looked up by trees in which a leaf is a workload; the process and the networks are ahead on
workloads never seen. What each is worth: ``benchmarks/members.md``.

Cells are held out in three ways, by cell, by workload and by application, from the nearest to the farthest. Every
network is blind to a fold of its own (the process is so in closed form, and a few trees are grown for it). These
out-of-fold predictions set the weights of the blend (`fitted.blend`, stacking after Wolpert 1992 with weights by
nearness) and calibrate the intervals (`fitted.confidence`), whose width is proved on a second model (`learn.proof`).
"""

# N cells, F features, E features and their rates, P platforms, M members, R ways of holding out, D indicators

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from crossperf.arrays import Floats, Integers, Mask
from crossperf.dataset.cells import Split
from crossperf.dataset.features import MEASURED, Features
from crossperf.dataset.pairing import Dataset
from crossperf.errors import MissingDependencyError
from crossperf.model.base import Groups, Predictor
from crossperf.model.fitted.blend import Blend, Patterns
from crossperf.model.fitted.model import Part
from crossperf.model.fitted.peers import Forest
from crossperf.model.fitted.recognition import Recognised, Recognition, Runs
from crossperf.model.fitted.scales import Encoder, Limits
from crossperf.model.learn.proof import HeldOutParts, scales
from crossperf.model.learn.recognition import fit_recognition, time_spread
from crossperf.model.learn.stacking import HeldBack
from crossperf.model.learn.together import grow_whole

try:
    from crossperf.model.learn.ensemble import Plan, fit_ensemble
    from crossperf.model.learn.process import fit_process
    from crossperf.model.learn.vae import fit_novelty
except ImportError as error:
    raise MissingDependencyError("Training 'crossperf' needs PyTorch: pip install 'crossperf[torch]'") from error

#: Networks that are blind to some cells, to some workloads and to some applications, of every eight.
_BLIND_TO = np.array([1, 2, 5])
#: Trees that are blind to a fold, for each member.
_BLIND_TREES = 12
_BACKGROUND_EACH, _BACKGROUND_ALL = 24, 512


@dataclass(frozen=True, eq=False)
class _Folds:
    """Which network is blind to which cells: by cell (r = 0, near), by workload, and by application (far)."""

    fold_rn: Integers
    blind_mn: Mask
    count_r: tuple[int, ...]

    @classmethod
    def of(cls, groups: Groups, members: int, rng: np.random.Generator) -> _Folds:
        cell_n = np.arange(len(groups.app_n))
        folds, blind, count_r = [], [], _shared_out(members)
        for names_n, count in zip((cell_n, groups.workload_n, groups.app_n), count_r, strict=True):
            fold_n = _even_folds(names_n, members, rng)
            # With a single name a member that is blind to it would have nothing to learn from.
            fold_n = np.where((fold_n < count) & (len(np.unique(fold_n)) > 1), fold_n, -1)
            folds.append(fold_n)
            blind.append(fold_n == np.arange(count)[:, None])
        return cls(np.stack(folds), np.concatenate(blind), count_r)

    def out_of_fold(self, predicted_mn: Floats) -> Floats:
        """Return for each way of holding out what the member blind to each cell says; NaN where none is."""
        picked, start = [], 0
        for count in self.count_r:
            blind_mn, part_mn = self.blind_mn[start : start + count], predicted_mn[start : start + count]
            fits_mn = blind_mn.reshape(*blind_mn.shape, *[1] * (part_mn.ndim - 2))
            picked_n = np.where(fits_mn, part_mn, 0.0).sum(axis=0)
            picked.append(np.where(fits_mn.any(axis=0), picked_n, np.nan))
            start += count
        return np.stack(picked)


def _shared_out(members: int) -> tuple[int, ...]:
    """Return how many members are blind in each way; the farthest way comes first where there are few.

    >>> _shared_out(8), _shared_out(3), _shared_out(1)
    ((1, 2, 5), (1, 1, 1), (0, 0, 1))
    """
    count_r = np.maximum(members * _BLIND_TO // _BLIND_TO.sum(), 1)
    count_r[-1] += members - count_r.sum()
    while count_r[-1] < 1:
        count_r[np.flatnonzero(count_r[:-1])[0]] -= 1
        count_r[-1] += 1
    return tuple(count_r.tolist())


@dataclass(eq=False, repr=False)
class Crossperf(Predictor):
    """The default model.

    Parameters
    ----------
    trees
        Extremely randomised trees that look workloads up.
    members
        Small networks, trained as one.
    width, steps
        Units of a hidden layer of a network, and optimizer steps (fewer for short tables, more for long ones).
    latent_dim, vae_steps
        The latent space that novelty is judged in, and the steps it is trained for.
    prove
        Whether a second model, made without a sixth of the applications and of the workloads of the others, tells how
        wide intervals have to be (`learn.proof`). Off: out-of-fold predictions alone tell, in about half the time.

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
    target = "workload"
    trees: int = 32
    members: int = 8
    width: int = 64
    steps: int = 700
    latent_dim: int = 16
    vae_steps: int = 400
    n_jobs: int = -1
    prove: bool = True
    device: str = "auto"
    seed: int = 0

    def _learn(self, features: Features, target_np: Floats, groups: Groups, limits: Limits) -> Part:
        for name in ("trees", "members", "width", "steps", "latent_dim", "vae_steps"):
            if getattr(self, name) < 1:
                raise self._unfit(name, "1 or more")
        blend = self._blend(features, target_np, groups)
        if not self.prove:
            return blend
        rng = np.random.default_rng([self.seed, 1])
        parts = HeldOutParts.drawn(groups.workload_n, groups.app_n, rng)

        def fit(seen_n: Mask) -> Blend:
            rows_n = np.flatnonzero(seen_n)
            return self._blend(features[rows_n], target_np[rows_n], groups[rows_n])

        summary = self.summary_
        scale_r = scales(fit, features, target_np, parts, rng)
        self.fit_summary_ = summary | {"interval_scales": [round(float(scale), 3) for scale in scale_r]}
        return replace(blend, intervals=blend.intervals.scaled(scale_r))

    def _blend(self, features: Features, contrast_np: Floats, groups: Groups) -> Blend:
        """Return all members, and what their out-of-fold predictions teach."""
        rated_ne = features.derived().values_nf
        encoder = Encoder.fit(rated_ne)
        standard_ne = encoder(rated_ne)
        rng = np.random.default_rng(self.seed)
        folds = _Folds.of(groups, self.members, rng)

        log_ne = encoder.log(rated_ne)
        lookup, blind_lookups = self._grow(log_ne, contrast_np, folds)
        known, apart = zip(*(own.predict_median(log_ne) for own in blind_lookups), strict=True)
        known_mnp = np.stack(known)
        lookup_rnp, apart_rn = folds.out_of_fold(known_mnp), folds.out_of_fold(np.stack(apart))
        where: dict[str, Any] = {"device": self.device, "seed": self.seed}
        plan = Plan(width=self.width, steps=self.steps)
        ensemble = fit_ensemble(standard_ne, contrast_np, folds.blind_mn, plan, **where)
        networks_rnp = folds.out_of_fold(ensemble.predict_each(standard_ne))
        process, left_out = fit_process(
            np.nan_to_num(standard_ne), contrast_np, groups.workload_n, folds.fold_rn, self.seed
        )
        plain_nf, cells = standard_ne[:, : len(features.columns)], (groups.workload_n, groups.cpu_n)
        novelty = fit_novelty(plain_nf, *cells, latent_dim=self.latent_dim, steps=self.vae_steps, **where)
        runs = Runs(plain_nf[:, features.columns.mask(*MEASURED)], features.source_n, features.log_time_n)
        gap_np = np.isnan(contrast_np)
        own_np = lookup.predict_median(log_ne)[0] if gap_np.any() else contrast_np
        filled = [np.where(gap_np, guess_np, contrast_np) for guess_np in (own_np, *known_mnp)]
        sources = len(features.columns.sources)
        workloads, recognised = self._know(runs, groups, filled, folds, sources)
        predicted_rmnp = np.stack([networks_rnp, left_out.predicted_rnp, lookup_rnp, recognised.contrast_np], axis=1)
        held = HeldBack(
            predicted_rmnp,
            apart_rn,
            left_out.gap_rn,
            recognised.away_n,
            recognised.lead_n,
            np.stack([np.arange(len(features)), groups.workload_n, groups.app_n]),
            recognises_m=np.array([False, False, False, True]),
            moved_as_m=np.array([0, 1, 2, 2]),  # whoever looks workloads up, by trees or by recognising them
        )
        nearness = held.nearness()
        gate = held.gate(contrast_np, nearness)
        intervals = held.intervals(features, contrast_np, groups.noise_np, nearness, gate, self.seed)
        active = novelty.active_units
        self.fit_summary_ = {"active_units": active, "latent_dim": self.latent_dim, "collapsed": active == 0}
        return Blend(
            encoder=encoder,
            lookup=lookup,
            ensemble=ensemble,
            process=process,
            workloads=workloads,
            nearness=nearness,
            gate=gate,
            novelty=novelty,
            intervals=intervals,
            patterns=Patterns.of(features),
            background=_background(features, rng),
            known_workload_b=groups.workload_n[novelty.row_b],
        )

    def learn(self, data: Dataset, split: Split = "workload") -> Self:
        """Learn from a dataset; what is held out inside is the same whatever the model is asked for later."""
        return self.fit(data.X, data.y)

    def _grow(self, log_ne: Floats, contrast_np: Floats, folds: _Folds) -> tuple[Forest, Iterator[Forest]]:
        """Return trees grown on all cells, and a few for each member, as blind as it, one member's at a time.

        Cells of one workload have the same contrast, and a tree stops at the workload.
        """

        def grown(count: int, seen_n: Mask, seed: int) -> Forest:
            settings = {"max_features": 0.5, "n_jobs": self.n_jobs, "random_state": seed}
            return grow_whole(ExtraTreesRegressor(count, **settings), log_ne[seen_n], contrast_np[seen_n])

        all_n = np.ones(len(log_ne), bool)
        seen = [all_n if blind_n.all() else ~blind_n for blind_n in folds.blind_mn]
        blind = (grown(_BLIND_TREES, seen_n, self.seed + m + 1) for m, seen_n in enumerate(seen))
        return grown(self.trees, all_n, self.seed), blind

    def _know(
        self, runs: Runs, groups: Groups, contrasts: Sequence[Floats], folds: _Folds, sources: int
    ) -> tuple[Recognition, Recognised]:
        """Return the known workloads, and what a member that is as blind to each cell recognises, R x N.

        The contrasts have their gaps filled, first as the whole model would, then as each blind member.
        """
        spread_p = time_spread(groups.noise_np)

        def fit(seen_n: Mask, contrast_np: Floats) -> Recognition:
            known = runs[seen_n], groups.workload_n[seen_n], contrast_np[seen_n]
            return fit_recognition(*known, sources=sources, spread_p=spread_p)

        def blind(blind_n: Mask, contrast_np: Floats) -> Recognised:
            known = fit(blind_n if blind_n.all() else ~blind_n, contrast_np)
            recognised = Recognised(np.full(contrast_np.shape, np.nan), *np.full((2, len(blind_n)), np.nan))
            asked = runs[blind_n]
            for part, own in zip(recognised, known.look(asked.standard_nf, asked), strict=True):
                part[blind_n] = own
            return recognised

        each = zip(*map(blind, folds.blind_mn, contrasts[1:]), strict=True)
        out_of_fold = Recognised(*(folds.out_of_fold(np.stack(part)) for part in each))
        return fit(np.ones(len(runs), bool), contrasts[0]), out_of_fold


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
