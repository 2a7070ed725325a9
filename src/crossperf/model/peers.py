"""The peers that a prediction is measured against, from the constant answer to boosted trees."""

# N cells, F features, P platforms

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from crossperf.errors import MissingDependencyError
from crossperf.model.base import Floats, Predictor, State, fill_targets
from crossperf.model.boosting import Boosted, Candidate, Rows, Settings
from crossperf.model.encoding import Encoder
from crossperf.model.forest import Forest

Groups = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Median(Predictor):
    """The median relative time of the cells whose features look like the same source: no counters at all.

    The source platform is read from the one-hot columns, the only ones that hold nothing but 0 and 1; the
    answer is the median of the training cells with the same pattern there.
    """

    name: ClassVar[str] = "median"

    def _fit(self, features_nf: Floats, target_np: Floats, groups_n: Groups, cpu_n: Mask) -> None:
        self.flag_f_ = np.asarray(np.isin(features_nf, (0.0, 1.0)).all(axis=0))
        self.patterns_sf_, number_n = np.unique(features_nf[:, self.flag_f_], axis=0, return_inverse=True)
        overall_p = np.nanmedian(target_np, axis=0)
        rows = [target_np[number_n.ravel() == i] for i in range(len(self.patterns_sf_))]
        self.medians_sp_ = np.stack([_median(rows_np, overall_p) for rows_np in [*rows, target_np]])

    def _predict(self, features_nf: Floats) -> Floats:
        same_ns = (features_nf[:, None, self.flag_f_] == self.patterns_sf_).all(axis=2)
        known_n = same_ns.any(axis=1)
        return np.asarray(self.medians_sp_[np.where(known_n, same_ns.argmax(axis=1), -1)])

    def _get_state(self) -> State:
        return {"flag_f": self.flag_f_, "patterns_sf": self.patterns_sf_, "medians_sp": self.medians_sp_}

    def _set_state(self, state: State) -> None:
        self.flag_f_, self.patterns_sf_, self.medians_sp_ = (
            state[name] for name in ("flag_f", "patterns_sf", "medians_sp")
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


def _median(target_np: Floats, otherwise_p: Floats) -> Floats:
    seen_p = ~np.isnan(target_np).all(axis=0)
    return np.where(seen_p, np.nanmedian(np.where(seen_p, target_np, 0.0), axis=0), otherwise_p)


class Ridge(Predictor):
    """Linear least squares with an L2 penalty on log-scaled features; a missing one counts as its mean.

    The penalty is chosen by leave-one-out error on the training rows.
    """

    name: ClassVar[str] = "ridge"

    def __init__(self, penalties: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0, 1000.0)) -> None:
        self.penalties = penalties

    def _fit(self, features_nf: Floats, target_np: Floats, groups_n: Groups, cpu_n: Mask) -> None:
        from sklearn.linear_model import RidgeCV

        self.encoder_ = Encoder.fit(features_nf)
        linear = RidgeCV(alphas=self.penalties).fit(self._encode(features_nf), fill_targets(target_np))
        self.weights_pf_ = np.atleast_2d(linear.coef_)
        self.bias_p_ = np.atleast_1d(linear.intercept_)

    def _encode(self, features_nf: Floats) -> Floats:
        return np.nan_to_num(self.encoder_(features_nf))

    def _predict(self, features_nf: Floats) -> Floats:
        return np.asarray(self._encode(features_nf) @ self.weights_pf_.T + self.bias_p_)

    def _get_state(self) -> State:
        return {**self.encoder_.state(), "weights_pf": self.weights_pf_, "bias_p": self.bias_p_}

    def _set_state(self, state: State) -> None:
        self.encoder_ = Encoder.from_state(state)
        self.weights_pf_, self.bias_p_ = state["weights_pf"], state["bias_p"]


class _Trees(Predictor):
    """What the two forests share: log-scaled features, all platforms in one tree, arrays for a state."""

    _kind: ClassVar[Any]

    def __init__(
        self,
        n_estimators: int = 300,
        min_samples_leaf: int = 1,
        max_features: float = 1.0,
        n_jobs: int = -1,
        seed: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.n_jobs = n_jobs
        self.seed = seed

    def _fit(self, features_nf: Floats, target_np: Floats, groups_n: Groups, cpu_n: Mask) -> None:
        self.encoder_ = Encoder.fit(features_nf)
        trees = self._kind(
            n_estimators=self.n_estimators,
            min_samples_leaf=self.min_samples_leaf,
            max_features=self.max_features,
            n_jobs=self.n_jobs,
            random_state=self.seed,
        )
        trees.fit(self.encoder_.log(features_nf), fill_targets(target_np))
        self.forest_ = Forest.of(trees.estimators_)

    def _predict(self, features_nf: Floats) -> Floats:
        return self.forest_.predict(self.encoder_.log(features_nf))

    def _get_state(self) -> State:
        return {**self.encoder_.state(), **{f"forest.{name}": a for name, a in self.forest_.state().items()}}

    def _set_state(self, state: State) -> None:
        self.encoder_ = Encoder.from_state(state)
        arrays = {name.removeprefix("forest."): a for name, a in state.items() if name.startswith("forest.")}
        self.forest_ = Forest.from_state(arrays)


class RandomForest(_Trees):
    """The seed's baseline: 300 trees grown to the end on bootstrap samples."""

    name: ClassVar[str] = "random-forest"
    _kind = RandomForestRegressor


class ExtraTrees(_Trees):
    """300 trees with random thresholds; usually ahead of the random forest on this kind of data."""

    name: ClassVar[str] = "extra-trees"
    _kind = ExtraTreesRegressor


class XGBoost(Boosted):
    """XGBoost's boosted trees; see `Boosted` for how depth, columns, rate and rounds are chosen."""

    name: ClassVar[str] = "xgboost"
    tunable: ClassVar[tuple[str, ...]] = ("max_depth", "learning_rate", "colsample_bytree")
    candidates: ClassVar[tuple[Candidate, ...]] = (
        Candidate({"max_depth": 3, "learning_rate": 0.1, "colsample_bytree": 0.3}, rounds=2.0),
        Candidate({"max_depth": 3, "learning_rate": 0.1, "colsample_bytree": 0.8}, rounds=2.0),
        Candidate({"max_depth": 6, "learning_rate": 0.1, "colsample_bytree": 0.8}),
    )

    def __init__(
        self,
        n_estimators: int = 300,
        max_depth: int = 6,
        learning_rate: float = 0.05,
        subsample: float = 0.8,
        colsample_bytree: float = 0.5,
        n_jobs: int | None = None,
        seed: int = 0,
        tune: bool = True,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.subsample = subsample
        self.colsample_bytree = colsample_bytree
        self.n_jobs = n_jobs
        self.seed = seed
        self.tune = tune

    def _train(self, settings: Settings, rounds: int, rows: Rows) -> Any:
        xgboost = _xgboost()
        parameters = {
            "max_depth": settings["max_depth"],
            "eta": settings["learning_rate"],
            "subsample": self.subsample,
            "colsample_bytree": settings["colsample_bytree"],
            "nthread": self.n_jobs or 0,
            "seed": self.seed,
        }
        return xgboost.train(parameters, xgboost.DMatrix(*rows), num_boost_round=rounds)

    def _answer(self, booster: Any, features_nf: Floats, rounds: int | None = None) -> Floats:
        answer_n = booster.predict(_xgboost().DMatrix(features_nf), iteration_range=(0, rounds or 0))
        return np.asarray(answer_n, np.float64)

    def _get_state(self) -> State:
        raw = (np.frombuffer(booster.save_raw("ubj"), np.uint8) for booster in self.boosters_)
        return {f"booster.{i}": array for i, array in enumerate(raw)}

    def _set_state(self, state: State) -> None:
        xgboost = _xgboost()
        self.boosters_ = [
            xgboost.Booster(model_file=bytearray(state[f"booster.{i}"].tobytes())) for i in range(self.n_outputs_)
        ]


def _xgboost() -> Any:
    try:
        import xgboost
    except ImportError as error:
        raise MissingDependencyError("The model 'xgboost' needs XGBoost: pip install 'crossperf[peers]'") from error
    return xgboost
