"""The default model: trees, a Gaussian process and small networks, blended by how familiar a run looks.

Each predicts the *contrast* of a cell, its log time on every platform less their mean: the same for every source,
and all that a relative time depends on. The members differ in where they err: networks are ahead on inputs of known
applications, trees and the process on applications never seen.

Every network is blind to a fold of its own: most to some applications, the rest to some workloads (the process is so
in closed form, and a few trees are grown for it). What they say about what they have not seen sets the weights, and
calibrates the ranges.
"""

# N cells, F features, E features and their rates, P platforms, M members, R two ways of holding out, D signs

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.utils.validation import check_is_fitted

from crossperf.dataset.build import Dataset, Split
from crossperf.errors import MissingDependencyError, SettingsError
from crossperf.model.base import Floats, Predictor, State, fill_targets
from crossperf.model.encoding import Encoder
from crossperf.model.forest import Forest
from crossperf.model.ranges import Forecast, Ranges

try:
    from crossperf.model.ensemble import Ensemble, Plan
    from crossperf.model.familiarity import Familiarity, distinct
    from crossperf.model.kernel import Kernel
except ImportError as error:
    raise MissingDependencyError("The model 'crossperf' needs PyTorch: pip install 'crossperf[torch]'") from error

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

#: Members that are blind to whole applications; the others are blind to workloads of applications they know.
_APP_MEMBERS = 6
#: Weights of networks, trees and process, near what is known and far from it, where all erred alike on what they were
#: blind to; one that erred more counts for less, by this power of the ratio. Blind, the process is whole, the trees are
#: few and a network is alone: the more is missing there, the more it weighs to begin with.
_NEAR, _FAR, _POWER = np.array([3.0, 1.5, 1.0]), np.array([2.0, 2.0, 1.0]), 4.0
#: Trees that are blind to a fold, for each member.
_BLIND_TREES = 12
_BACKGROUND_EACH, _BACKGROUND_ALL = 24, 512
_MOST_PATTERNS = 64
_CHUNK = 2048


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
        The latent space that familiarity is judged in, and the steps it is trained for.
    """

    name: ClassVar[str] = "crossperf"

    def __init__(
        self,
        trees: int = 96,
        members: int = 8,
        width: int = 192,
        steps: int = 700,
        latent_dim: int = 16,
        vae_steps: int = 400,
        n_jobs: int = -1,
        device: str = "auto",
        seed: int = 0,
    ) -> None:
        self.trees = trees
        self.members = members
        self.width = width
        self.steps = steps
        self.latent_dim = latent_dim
        self.vae_steps = vae_steps
        self.n_jobs = n_jobs
        self.device = device
        self.seed = seed

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        cpu: ArrayLike | None = None,
        apps: ArrayLike | None = None,
        runtime_column: int | None = None,
    ) -> Self:
        """Learn from cells.

        Parameters
        ----------
        groups, cpu
            As for every model; here the groups are workloads.
        apps
            The application of each cell. ``None``: each group is its own.
        runtime_column
            The column with the runtime on the source. The other measured columns are also seen divided by it.
        """
        for name in ("trees", "members", "width", "steps", "latent_dim", "vae_steps"):
            if getattr(self, name) < 1:
                found = f"{self.name}: found {name}={getattr(self, name)!r}, expected 1 or more."
                raise SettingsError(found, setting=name)
        self._apps_n = None if apps is None else np.unique(np.asarray(apps), return_inverse=True)[1]
        self.runtime_column_ = -1 if runtime_column is None else runtime_column
        return super().fit(X, y, groups=groups, cpu=cpu)

    def learn(self, data: Dataset, split: Split = "workload") -> Self:
        """Learn from a dataset; what is held out inside is the same whatever the model is asked for later."""
        return self.fit(
            data.features_nf,
            data.log_relative_time_np,
            groups=data.workload_n,
            cpu=data.cpu_n,
            apps=data.app_n,
            runtime_column=len(data.counters),
        )

    def _fit(self, features_nf: Floats, target_np: Floats, groups_n: Integers, cpu_n: Mask) -> None:
        apps_n = groups_n if self._apps_n is None else self._apps_n
        del self._apps_n
        all_np = fill_targets(target_np)
        contrast_np, _ = _contrast(all_np)
        self.flag_f_ = np.asarray(np.isin(features_nf, (0.0, 1.0)).all(axis=0))
        rated_ne = self._with_rates(features_nf)
        self.encoder_ = Encoder.fit(rated_ne)
        standard_ne = self.encoder_(rated_ne)
        rng = np.random.default_rng(self.seed)
        folds_rn = self._folds(groups_n, apps_n, rng)
        blind_mn = np.concatenate([folds_rn[r] == np.arange(count)[:, None] for r, count in enumerate(self._counts())])

        held_trees_rnp = self._fit_trees(self.encoder_.log(rated_ne), all_np, blind_mn)
        self.ensemble_ = Ensemble.fit(
            standard_ne, contrast_np, blind_mn, self._plan(), device=self.device, seed=self.seed
        )
        held_networks_rnp = self._pick(self.ensemble_.predict_each(standard_ne), blind_mn)
        self.kernel_, held_kernel = Kernel.fit(np.nan_to_num(standard_ne), contrast_np, groups_n, folds_rn, self.seed)
        base_nf = standard_ne[:, : features_nf.shape[1]]
        self.familiarity_ = Familiarity.fit(
            base_nf,
            groups_n,
            cpu_n,
            latent_dim=self.latent_dim,
            steps=self.vae_steps,
            device=self.device,
            seed=self.seed,
        )
        gap_rn = held_kernel.gap_rn
        held_r3np = np.stack([held_networks_rnp, held_trees_rnp, held_kernel.predicted_rnp], axis=1)
        # Held out by application is far, held out by workload is near.
        self.gap_near_far_ = np.array([_median(gap_rn[1], 0.2), _median(gap_rn[0], 0.8)])
        self.weights_near_far_23_ = np.stack(
            [_weights(held_r3np[1], contrast_np, _NEAR), _weights(held_r3np[0], contrast_np, _FAR)]
        )
        held_rnp = [self._blend(held_3np, gap_n) for held_3np, gap_n in zip(held_r3np, gap_rn, strict=True)]
        self._fit_ranges(features_nf, contrast_np, held_rnp, gap_rn, apps_n)
        self._remember(features_nf, groups_n, rng)

    def _counts(self) -> tuple[int, int]:
        """Return how many members are blind to applications, and how many to workloads."""
        by_app = min(_APP_MEMBERS, max(self.members - 2, 1))
        return by_app, self.members - by_app

    def _folds(self, groups_n: Integers, apps_n: Integers, rng: np.random.Generator) -> Integers:
        """Return the fold of each cell by application and by workload; -1 where no member is blind to it."""
        folds = []
        for names_n, members in zip((apps_n, groups_n), self._counts(), strict=True):
            fold_n = _even_folds(names_n, self.members, rng)
            # With a single name a member that is blind to it would have nothing to learn from.
            folds.append(np.where((fold_n < members) & (len(np.unique(fold_n)) > 1), fold_n, -1))
        return np.stack(folds)

    def _fit_trees(self, log_ne: Floats, target_np: Floats, blind_mn: Mask) -> Floats:
        """Grow the trees on all cells, and a few for each member on what it sees; return what those say blindly.

        Trees learn times relative to the source, and contrasts through them: with cells of one workload that differ
        in their target, a tree does not stop at the workload.
        """

        def grow(count: int, rows: NDArray[Any], seed: int) -> Any:
            trees = ExtraTreesRegressor(count, max_features=0.5, n_jobs=self.n_jobs, random_state=seed)
            return trees.fit(log_ne[rows], target_np[rows])

        self.forest_ = Forest.of(grow(self.trees, np.arange(len(log_ne)), self.seed).estimators_)
        said_mnp = np.full((len(blind_mn), *target_np.shape), np.nan)
        for member, blind_n in enumerate(blind_mn):
            if blind_n.any() and not blind_n.all():
                grown = grow(_BLIND_TREES, ~blind_n, self.seed + member + 1)
                said_mnp[member, blind_n] = _contrast(grown.predict(log_ne[blind_n]).reshape(-1, target_np.shape[1]))[0]
        return self._pick(said_mnp, blind_mn)

    def _pick(self, said_mnp: Floats, blind_mn: Mask) -> Floats:
        """Return for each way of holding out what the blind member says of each cell; NaN where none is blind."""
        picked_rnp, start = [], 0
        for count in self._counts():
            blind, said = blind_mn[start : start + count], said_mnp[start : start + count]
            picked = np.where(blind[:, :, None], said, 0.0).sum(axis=0)
            one_n = np.asarray(blind.any(axis=0))
            picked_rnp.append(np.where(one_n[:, None], picked, np.nan))
            start += count
        return np.stack(picked_rnp)

    def _blend(self, said_3np: Floats, gap_n: Floats) -> Floats:
        """Return the mean of networks, trees and process, weighted by how near a cell is to what is known."""
        near, far = self.gap_near_far_
        away_n1 = np.clip((gap_n - near) / max(far - near, 1e-6), 0.0, 1.0)[:, None]
        weights_n3 = (1.0 - away_n1) * self.weights_near_far_23_[0] + away_n1 * self.weights_near_far_23_[1]
        return np.asarray((said_3np * weights_n3.T[:, :, None]).sum(axis=0))

    def _fit_ranges(
        self, features_nf: Floats, contrast_np: Floats, held_rnp: list[Floats], gap_rn: Floats, apps_n: Integers
    ) -> None:
        errors, signs, groups, new = [], [], [], []
        for r, held_np in enumerate(held_rnp):
            there_n = ~np.isnan(held_np).any(axis=1)
            errors.append(contrast_np[there_n] - self._contrast_within_limits(held_np[there_n]))
            signs.append(self._signs(features_nf[there_n], gap_rn[r, there_n]))
            groups.append(apps_n[there_n])
            new.append(np.full(there_n.sum(), r == 0))
        if not sum(map(len, errors)):
            # Nothing could be held out: all that is known is how much the targets differ.
            errors, signs = [contrast_np - contrast_np.mean(axis=0)], [self._signs(features_nf, np.zeros(len(apps_n)))]
            groups, new = [apps_n], [np.ones(len(apps_n), bool)]
        self.ranges_ = Ranges.fit(
            np.concatenate(errors), np.concatenate(signs), np.concatenate(groups), np.concatenate(new), self.seed
        )

    def _signs(self, features_nf: Floats, gap_n: Floats) -> Floats:
        """Return what tells how hard a cell is: how far from what is known, and which source it was measured on."""
        return np.column_stack([gap_n, features_nf[:, self.flag_f_]])

    def _contrast_within_limits(self, contrast_np: Floats) -> Floats:
        return np.clip(contrast_np, *(self.contrast_limits_2p_ if contrast_np.shape[1] > 1 else self.limits_2p_))

    def _remember(self, features_nf: Floats, groups_n: Integers, rng: np.random.Generator) -> None:
        """Keep what answers are explained with, and which counters each source offers."""
        flags_nf = features_nf[:, self.flag_f_]
        pattern_n = np.unique(flags_nf, axis=0, return_inverse=True)[1].ravel()
        drawn = [rng.permutation(np.flatnonzero(pattern_n == p))[:_BACKGROUND_EACH] for p in range(pattern_n.max() + 1)]
        rows = rng.permutation(np.concatenate(drawn))[:_BACKGROUND_ALL]
        self.background_bf_ = features_nf[np.sort(rows)]
        self.training_workload_n_ = groups_n[self.familiarity_.row_b]
        known_nf = np.column_stack([flags_nf, ~np.isnan(features_nf)])
        patterns_tf, count_t = np.unique(known_nf, axis=0, return_counts=True)
        self.patterns_tf_ = patterns_tf[np.argsort(-count_t, kind="stable")][:_MOST_PATTERNS]

    @property
    def training_latent_nk_(self) -> Floats:
        """The latent places of the known cells."""
        return self.familiarity_.known_bk

    def latent(self, features_nf: Floats) -> Floats:
        """Return the latent places of cells."""
        return self.familiarity_.latent(self.encoder_(self._with_rates(features_nf))[:, : features_nf.shape[1]])

    def _with_rates(self, features_nf: Floats) -> Floats:
        """Return the features, and those measured before the runtime divided by it."""
        if self.runtime_column_ < 0:
            return features_nf
        counters_nf = features_nf[:, : self.runtime_column_]
        runtime_n1 = features_nf[:, [self.runtime_column_]]
        with np.errstate(divide="ignore", invalid="ignore"):
            rates_nf = counters_nf / runtime_n1
        return np.column_stack([features_nf, np.where(np.isfinite(rates_nf), rates_nf, np.nan)])

    def _completed(self, features_nf: Floats) -> Floats:
        """Return cells with what the nearest known run had for counters that their source offers and they lack."""
        seen_nf = ~np.isnan(features_nf)
        keys_nf = np.column_stack([features_nf[:, self.flag_f_] != 0, seen_nf])
        first_u, number_n = distinct(keys_nf)
        keys_uf, flags = keys_nf[first_u], int(self.flag_f_.sum())
        lacking_uf = np.stack([self._lacking(key_f[:flags], key_f[flags:]) for key_f in keys_uf])
        lacking_nf = lacking_uf[number_n]
        rows = np.flatnonzero(lacking_nf.any(axis=1))
        if not len(rows):
            return features_nf
        standard_nf = self.encoder_(self._with_rates(features_nf[rows]))[:, : features_nf.shape[1]]
        guessed_nf = self.encoder_.inverse(self.familiarity_.impute(standard_nf, self.flag_f_))
        completed_nf = features_nf.copy()
        completed_nf[rows] = np.where(lacking_nf[rows], guessed_nf, features_nf[rows])
        return completed_nf

    def _lacking(self, flags: Mask, seen_f: Mask) -> Mask:
        """Return the features that cells with these flags had in training and this one lacks.

        Of the sets of features seen with the same flags, the one that this cell's set is nearest to counts.
        """
        width = len(flags)
        same_t = (self.patterns_tf_[:, :width] == flags).all(axis=1)
        patterns_tf = self.patterns_tf_[same_t if same_t.any() else slice(None), width:].astype(bool)
        apart_t = (patterns_tf != seen_f).sum(axis=1)
        return np.asarray(patterns_tf[apart_t.argmin()] & ~seen_f)

    def _predict(self, features_nf: Floats) -> Floats:
        return self._ask(features_nf)[0]

    def _ask(self, features_nf: Floats) -> tuple[Floats, Floats]:
        """Return log relative times, and how far each cell is from what is known."""
        parts, gaps = [], []
        for start in range(0, len(features_nf), _CHUNK):
            rated_ne = self._with_rates(self._completed(features_nf[start : start + _CHUNK]))
            standard_ne = self.encoder_(rated_ne)
            trees_np, level_n = _contrast(self.forest_.predict(self.encoder_.log(rated_ne)))
            kernel_np, gap_n = self.kernel_.predict(np.nan_to_num(standard_ne))
            networks_np = self.ensemble_.predict(standard_ne)
            parts.append(self._blend(np.stack([networks_np, trees_np, kernel_np]), gap_n) + level_n[:, None])
            gaps.append(gap_n)
        return np.concatenate(parts), np.concatenate(gaps)

    def forecast(self, X: ArrayLike) -> Forecast:
        """Return predictions with the errors they may have; ask for some hundred cells at a time."""
        check_is_fitted(self, "limits_2p_")
        features_nf = np.asarray(X, np.float64)
        predicted_np, gap_n = self._ask(features_nf)
        standard_nf = self.encoder_(self._with_rates(features_nf))[:, : features_nf.shape[1]]
        scale_n = self.ranges_.scale(self._signs(features_nf, gap_n))
        return Forecast(
            self._within_limits(predicted_np),
            self.ranges_.errors(scale_n),
            self.ranges_,
            self.familiarity_.oddness(standard_nf),
        )

    @property
    def summary_(self) -> dict[str, Any]:
        """Active units of the latent space, and how often the ranges held on applications left out."""
        found = getattr(self, "familiarity_", None)
        if found is None:
            return {}
        return {
            "active_units": found.active_units,
            "latent_dim": self.latent_dim,
            "collapsed": found.active_units == 0,
        }

    def _plan(self) -> Plan:
        return Plan(width=self.width, steps=self.steps)

    def _get_state(self) -> State:
        parts: dict[str, Any] = {
            "forest": self.forest_,
            "ensemble": self.ensemble_,
            "kernel": self.kernel_,
            "familiarity": self.familiarity_,
            "ranges": self.ranges_,
        }
        nested = {f"{part}.{name}": array for part, made in parts.items() for name, array in made.state().items()}
        own = {
            "runtime_column": np.array(self.runtime_column_),
            "flag_f": self.flag_f_,
            "gap_near_far": self.gap_near_far_,
            "weights_near_far_23": self.weights_near_far_23_,
            "background_bf": self.background_bf_,
            "training_workload_n": self.training_workload_n_,
            "patterns_tf": self.patterns_tf_,
        }
        return {**self.encoder_.state(), **own, **nested}

    def _set_state(self, state: State) -> None:
        def part(prefix: str) -> State:
            return {n.removeprefix(f"{prefix}."): a for n, a in state.items() if n.startswith(f"{prefix}.")}

        self.encoder_ = Encoder.from_state(state)
        self.runtime_column_ = int(state["runtime_column"])
        for name in (
            "flag_f",
            "gap_near_far",
            "weights_near_far_23",
            "background_bf",
            "training_workload_n",
            "patterns_tf",
        ):
            setattr(self, f"{name}_", state[name])
        self.forest_ = Forest.from_state(part("forest"))
        self.ensemble_ = Ensemble.from_state(part("ensemble"), self._plan(), device=self.device)
        self.kernel_ = Kernel.from_state(part("kernel"))
        self.familiarity_ = Familiarity.from_state(part("familiarity"), device=self.device)
        self.ranges_ = Ranges.from_state(part("ranges"))


def _contrast(log_time_np: Floats) -> tuple[Floats, Floats]:
    """Return log times less their mean over the platforms, and that mean; a single column is kept as it is.

    >>> [part.tolist() for part in _contrast(np.array([[0.0, 2.0]]))]
    [[[-1.0, 1.0]], [1.0]]
    """
    level_n = log_time_np.mean(axis=1) if log_time_np.shape[1] > 1 else np.zeros(len(log_time_np))
    return log_time_np - level_n[:, None], level_n


def _even_folds(names_n: Integers, folds: int, rng: np.random.Generator) -> Integers:
    """Return a fold for each name so that folds hold about as many cells: the largest first, each to the emptiest."""
    names, count = np.unique(names_n, return_counts=True)
    filled, fold_of = np.zeros(folds), np.zeros(len(names), np.int64)
    for name in sorted(range(len(names)), key=lambda i: (-count[i], rng.random())):
        fold_of[name] = filled.argmin()
        filled[fold_of[name]] += count[name]
    return np.asarray(fold_of[np.searchsorted(names, names_n)])


def _weights(said_3np: Floats, truth_np: Floats, to_begin_3: Floats) -> Floats:
    """Return the weights of networks, trees and process from how far each was off where it was blind."""
    there_n = ~np.isnan(said_3np).any(axis=(0, 2))
    if not there_n.any():
        return np.asarray(to_begin_3 / to_begin_3.sum())
    error_3 = np.abs(said_3np[:, there_n] - truth_np[there_n]).mean(axis=(1, 2))
    weights_3 = to_begin_3 * ((error_3.min() + 1e-9) / (error_3 + 1e-9)) ** _POWER
    return np.asarray(weights_3 / weights_3.sum())


def _median(values_n: Floats, otherwise: float) -> float:
    there = values_n[~np.isnan(values_n)]
    return float(np.median(there)) if len(there) else otherwise
