"""The peers that a prediction is measured against, from the constant answer to boosted trees."""

# N cells, F features, P platforms, S sources

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from crossperf.arrays import Floats
from crossperf.dataset.features import Features
from crossperf.model.base import Groups, Predictor
from crossperf.model.boosting import Boosted, Candidate, Rows, Settings
from crossperf.model.fitted.boosters import Boosters, XGBoosters, package
from crossperf.model.fitted.model import Part
from crossperf.model.fitted.peers import Linear, Medians, Trees
from crossperf.model.fitted.scales import Encoder, Limits
from crossperf.model.learn.together import grow, together


class Median(Predictor):
    """The median relative time of the training cells with the same source platform: no counters at all.

    >>> Median().fit([[3.0], [1.0], [2.0]], [0.0, 1.0, 5.0]).predict([[9.0]])
    array([1.])
    """

    name: ClassVar[str] = "median"

    def _learn(self, features: Features, target_np: Floats, groups: Groups, limits: Limits) -> Part:
        overall_p = np.nanmedian(target_np, axis=0)
        by_source = [target_np[features.source_n == source] for source in range(len(features.columns.sources))]
        return Medians(np.stack([*(_median(rows_np, overall_p) for rows_np in by_source), overall_p]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


def _median(target_np: Floats, otherwise_p: Floats) -> Floats:
    known_p = ~np.isnan(target_np).all(axis=0)
    if not known_p.any():
        return otherwise_p
    return np.where(known_p, np.nanmedian(np.where(known_p, target_np, 0.0), axis=0), otherwise_p)


@dataclass(eq=False, repr=False)
class Ridge(Predictor):
    """Linear least squares with an L2 penalty on log-scaled features; a missing one counts as its mean.

    The penalty is chosen among `penalties` by leave-one-out error on the training rows.

    >>> Ridge().fit([[1.0], [10.0], [100.0]], [[0.0, 1.0]] * 3).predict([[10.0]]).round(6).tolist()
    [[0.0, 1.0]]
    """

    name: ClassVar[str] = "ridge"
    sees_derived: ClassVar[bool] = True
    penalties: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0, 1000.0)
    target: str = "workload"

    def _learn(self, features: Features, target_np: Floats, groups: Groups, limits: Limits) -> Part:
        from sklearn.linear_model import RidgeCV

        encoder = Encoder.fit(features.values_nf)
        standard_nf = np.nan_to_num(encoder(features.values_nf))
        weights_pf, bias_p = np.zeros((target_np.shape[1], standard_nf.shape[1])), np.zeros(target_np.shape[1])
        for own in together(target_np):
            linear = RidgeCV(alphas=list(self.penalties)).fit(standard_nf[own.rows_n], own.of(target_np))
            weights_pf[own.columns], bias_p[own.columns] = linear.coef_, linear.intercept_
        return Linear(encoder, weights_pf, bias_p)


@dataclass(eq=False, repr=False)
class _Forest(Predictor):
    """What the two forests share: log-scaled features, platforms that ran the same workloads in one tree."""

    sees_derived: ClassVar[bool] = True
    _regressor: ClassVar[Any]
    n_estimators: int = 300
    min_samples_leaf: int = 1
    max_features: float = 1.0
    n_jobs: int = -1
    seed: int = 0
    target: str = "workload"

    def _learn(self, features: Features, target_np: Floats, groups: Groups, limits: Limits) -> Part:
        encoder = Encoder.fit(features.values_nf)
        settings = {
            "n_estimators": self.n_estimators,
            "min_samples_leaf": self.min_samples_leaf,
            "max_features": self.max_features,
            "n_jobs": self.n_jobs,
            "random_state": self.seed,
        }
        return Trees(encoder, grow(lambda: self._regressor(**settings), encoder.log(features.values_nf), target_np))


class RandomForest(_Forest):
    """The seed's baseline: 300 trees grown to the end on bootstrap samples; parameters are scikit-learn's.

    >>> RandomForest(n_estimators=4).fit([[0.0], [1.0]], [0.0, 0.0]).predict([[0.5]])
    array([0.])
    """

    name: ClassVar[str] = "random-forest"
    _regressor = RandomForestRegressor


class ExtraTrees(_Forest):
    """300 trees with random thresholds; usually ahead of the random forest on this kind of data.

    >>> ExtraTrees(n_estimators=4).fit([[0.0], [1.0]], [0.0, 0.0]).predict([[0.5]])
    array([0.])
    """

    name: ClassVar[str] = "extra-trees"
    _regressor = ExtraTreesRegressor


@dataclass(eq=False, repr=False)
class XGBoost(Boosted):
    """XGBoost's boosted trees; see `Boosted` for how depth, columns, rate and rounds are chosen."""

    name: ClassVar[str] = "xgboost"
    library: ClassVar[type[Boosters]] = XGBoosters
    tunable: ClassVar[tuple[str, ...]] = ("max_depth", "learning_rate", "colsample_bytree")
    candidates: ClassVar[tuple[Candidate, ...]] = (
        Candidate({"max_depth": 3, "learning_rate": 0.1, "colsample_bytree": 0.3}, rounds=2.0),
        Candidate({"max_depth": 3, "learning_rate": 0.1, "colsample_bytree": 0.8}, rounds=2.0),
        Candidate({"max_depth": 6, "learning_rate": 0.1, "colsample_bytree": 0.8}),
    )
    n_estimators: int = 300
    max_depth: int = 6
    learning_rate: float = 0.05
    subsample: float = 0.8
    colsample_bytree: float = 0.5
    n_jobs: int | None = None
    seed: int = 0
    tune: bool = True
    target: str = "workload"

    def _train(self, settings: Settings, rounds: int, rows: Rows) -> Any:
        xgboost = package("xgboost")
        parameters = {
            "max_depth": settings["max_depth"],
            "eta": settings["learning_rate"],
            "subsample": self.subsample,
            "colsample_bytree": settings["colsample_bytree"],
            "nthread": self.n_jobs or 0,
            "seed": self.seed,
        }
        return xgboost.train(parameters, xgboost.DMatrix(*rows), num_boost_round=rounds)
