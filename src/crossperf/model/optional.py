"""Further peers, each behind a package of its own: pip install 'crossperf[more-peers]'."""

# N cells, F features, P platforms

from __future__ import annotations

import contextlib
import io
import logging
import random
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from crossperf.arrays import Floats, Integers
from crossperf.dataset.features import Features
from crossperf.errors import CrossperfError
from crossperf.model.base import Groups, Predictor
from crossperf.model.boosting import Boosted, Candidate, Rows, Settings, deal
from crossperf.model.fitted.boosters import Boosters, CatBoosters, LightGBMs, package
from crossperf.model.fitted.model import Part
from crossperf.model.fitted.scales import Encoder, Limits

#: The share of the groups that the networks stop on: one part of this number.
_STOPPING_PARTS = 5


@dataclass(eq=False, repr=False)
class LightGBM(Boosted):
    """LightGBM's boosted trees; see `Boosted` for how leaves, columns, rate and rounds are chosen."""

    name: ClassVar[str] = "lightgbm"
    library: ClassVar[type[Boosters]] = LightGBMs
    tunable: ClassVar[tuple[str, ...]] = ("num_leaves", "learning_rate", "colsample_bytree")
    candidates: ClassVar[tuple[Candidate, ...]] = (
        Candidate({"num_leaves": 8, "learning_rate": 0.1, "colsample_bytree": 0.3}, rounds=2.0),
        Candidate({"num_leaves": 8, "learning_rate": 0.1, "colsample_bytree": 0.8}, rounds=2.0),
        Candidate({"num_leaves": 31, "learning_rate": 0.1, "colsample_bytree": 0.8}),
    )
    n_estimators: int = 300
    num_leaves: int = 31
    learning_rate: float = 0.05
    subsample: float = 0.8
    colsample_bytree: float = 0.5
    min_child_samples: int = 5
    n_jobs: int | None = None
    seed: int = 0
    tune: bool = True
    target: str = "workload"

    def _train(self, settings: Settings, rounds: int, rows: Rows) -> Any:
        lightgbm = package("lightgbm")
        parameters = {
            "objective": "regression",
            "num_leaves": settings["num_leaves"],
            "learning_rate": settings["learning_rate"],
            "feature_fraction": settings["colsample_bytree"],
            "bagging_fraction": self.subsample,
            "bagging_freq": 1,
            "min_data_in_leaf": self.min_child_samples,
            "num_threads": self.n_jobs or 0,
            "seed": self.seed,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
        }
        _refuse_single(rows)
        return lightgbm.train(parameters, lightgbm.Dataset(*rows), num_boost_round=rounds)


@dataclass(eq=False, repr=False)
class CatBoost(Boosted):
    """CatBoost's symmetric trees; see `Boosted` for how depth, columns, rate and rounds are chosen."""

    name: ClassVar[str] = "catboost"
    library: ClassVar[type[Boosters]] = CatBoosters
    tunable: ClassVar[tuple[str, ...]] = ("max_depth", "learning_rate", "colsample_bylevel")
    candidates: ClassVar[tuple[Candidate, ...]] = (
        Candidate({"max_depth": 4, "learning_rate": 0.1}),
        Candidate({"max_depth": 6, "learning_rate": 0.05}),
        Candidate({"max_depth": 6, "learning_rate": 0.1, "colsample_bylevel": 0.3}),
    )
    n_estimators: int = 500
    max_depth: int = 6
    learning_rate: float = 0.1
    colsample_bylevel: float = 1.0
    n_jobs: int | None = None
    seed: int = 0
    tune: bool = True
    target: str = "workload"

    def _train(self, settings: Settings, rounds: int, rows: Rows) -> Any:
        catboost = package("catboost")
        booster = catboost.CatBoostRegressor(
            iterations=rounds,
            depth=settings["max_depth"],
            learning_rate=settings["learning_rate"],
            rsm=settings["colsample_bylevel"],
            thread_count=self.n_jobs or -1,
            random_seed=self.seed,
            allow_const_label=True,
            allow_writing_files=False,
            verbose=False,
        )
        _refuse_single(rows)
        return booster.fit(*rows)


@dataclass(frozen=True)
class _Networks:
    """Fitted networks of pytabkit, which live in memory alone."""

    kind: ClassVar[str] = "pytabkit"
    encoder: Encoder
    networks: list[Any]

    def predict(self, features: Features) -> Floats:
        encoded_nf = np.nan_to_num(self.encoder(features.values_nf))
        with _quiet():
            parts = [np.asarray(network.predict(encoded_nf), np.float64) for network in self.networks]
        return np.column_stack(parts)


class _Tabular(Predictor):
    """What pytabkit's networks share: encoded features, a missing one at its mean, and groups to stop on.

    A fifth of the groups is held out whole to choose the best epoch on. These models cannot be saved.
    """

    sees_derived: ClassVar[bool] = True
    n_jobs: int | None
    seed: int
    device: str | None

    def _learn(self, features: Features, target_np: Floats, groups: Groups, limits: Limits) -> Part:
        encoder = Encoder.fit(features.values_nf)
        package("pytabkit", self.name)
        with _quiet():
            networks = self._networks(np.nan_to_num(encoder(features.values_nf)), target_np, groups.workload_n)
        return _Networks(encoder, networks)

    @abstractmethod
    def _networks(self, encoded_nf: Floats, target_np: Floats, groups_n: Integers) -> list[Any]:
        """Return networks fitted on encoded features."""

    def _common(self) -> dict[str, Any]:
        return {"device": self.device, "n_threads": self.n_jobs, "random_state": self.seed}

    def _stopping(self, groups_n: Integers) -> Integers:
        """Return the rows to stop on: a fifth of the groups, or of the cells where there is a single group."""
        if len(np.unique(groups_n)) == 1:
            groups_n = np.arange(len(groups_n))
        return np.flatnonzero(deal(groups_n, _STOPPING_PARTS, self.seed) == 0)

    def refuse_unless_savable(self) -> None:
        raise CrossperfError(
            f"The model {self.name!r} cannot be saved: pytabkit offers a pickle alone, which crossperf neither writes "
            "nor reads. Compare it with 'crossperf evaluate', and train another model to keep.",
            model=self.name,
        )


@dataclass(eq=False, repr=False)
class TabM(_Tabular):
    """TabM with its authors' settings, one a platform: 32 networks that share most of their weights.

    Made for a GPU; on a few CPU cores a table of some thousand cells takes the better part of an hour.
    """

    name: ClassVar[str] = "tabm"
    n_epochs: int = 500
    patience: int = 16
    width: int = 512
    members: int = 32
    device: str | None = None
    n_jobs: int | None = None
    seed: int = 0
    target: str = "workload"

    def _networks(self, encoded_nf: Floats, target_np: Floats, groups_n: Integers) -> list[Any]:
        pytabkit = package("pytabkit")
        networks = []
        for target_n in target_np.T:
            known_n = ~np.isnan(target_n)
            network = pytabkit.TabM_D_Regressor(
                n_epochs=self.n_epochs,
                patience=self.patience,
                d_block=self.width,
                tabm_k=self.members,
                **self._common(),
            )
            stopping = self._stopping(groups_n[known_n])
            networks.append(network.fit(encoded_nf[known_n], target_n[known_n], val_idxs=stopping))
        return networks


@dataclass(eq=False, repr=False)
class RealMLP(_Tabular):
    """RealMLP with its authors' tuned defaults, all platforms in one network; one each where some have gaps.

    With ``refit`` the best epoch is found on the groups held out, and a second network learns from all cells up to it.
    """

    name: ClassVar[str] = "realmlp"
    n_epochs: int = 256
    width: int = 256
    refit: bool = True
    device: str | None = None
    n_jobs: int | None = None
    seed: int = 0
    target: str = "workload"

    def _networks(self, encoded_nf: Floats, target_np: Floats, groups_n: Integers) -> list[Any]:
        pytabkit = package("pytabkit")
        parts = [np.arange(target_np.shape[1])] if not np.isnan(target_np).any() else np.arange(target_np.shape[1])
        networks = []
        for columns in parts:
            target = target_np[:, columns]
            rows_n = np.flatnonzero(~np.isnan(target_np[:, np.atleast_1d(columns)]).any(axis=1))
            network = pytabkit.RealMLP_TD_Regressor(
                n_epochs=self.n_epochs, hidden_sizes=[self.width] * 3, n_refit=int(self.refit), **self._common()
            )
            stopping = self._stopping(groups_n[rows_n])
            networks.append(network.fit(encoded_nf[rows_n], np.array(target[rows_n]), val_idxs=stopping))
        return networks


def _refuse_single(rows: Rows) -> None:
    if len(rows.target_n) < 2:
        raise ValueError("Found 1 sample with a target for a platform, expected 2 or more to grow trees from.")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep pytabkit's talk away and leave the caller's random states as they were."""
    import torch

    talkers = [logging.getLogger(name) for name in ("pytorch_lightning", "lightning", "lightning.pytorch")]
    levels = [talker.level for talker in talkers]
    numpy_state, python_state = np.random.get_state(), random.getstate()
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        for talker in talkers:
            talker.setLevel(logging.ERROR)
        try:
            yield
        finally:
            np.random.set_state(numpy_state)
            random.setstate(python_state)
            for talker, level in zip(talkers, levels, strict=True):
                talker.setLevel(level)
