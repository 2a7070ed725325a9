"""Further peers, each behind a package of its own: pip install 'crossperf[more-peers]'."""

# N cells, F features, P platforms

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import random
import tempfile
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from crossperf.errors import CrossperfError, MissingDependencyError
from crossperf.model.base import Floats, Predictor, State, fill_targets
from crossperf.model.boosting import Boosted, Candidate, Groups, Mask, Rows, Settings, deal
from crossperf.model.encoding import Encoder

#: The share of the groups that the networks stop on: one in so many.
_STOPPING_PARTS = 5
#: The last line of a text of LightGBM's that is whole.
_LIGHTGBM_END = "pandas_categorical:null"


class LightGBM(Boosted):
    """LightGBM's boosted trees; see `Boosted` for how leaves, columns, rate and rounds are chosen."""

    name: ClassVar[str] = "lightgbm"
    tunable: ClassVar[tuple[str, ...]] = ("num_leaves", "learning_rate", "colsample_bytree")
    candidates: ClassVar[tuple[Candidate, ...]] = (
        Candidate({"num_leaves": 8, "learning_rate": 0.1, "colsample_bytree": 0.3}, rounds=2.0),
        Candidate({"num_leaves": 8, "learning_rate": 0.1, "colsample_bytree": 0.8}, rounds=2.0),
        Candidate({"num_leaves": 31, "learning_rate": 0.1, "colsample_bytree": 0.8}),
    )

    def __init__(
        self,
        n_estimators: int = 300,
        num_leaves: int = 31,
        learning_rate: float = 0.05,
        subsample: float = 0.8,
        colsample_bytree: float = 0.5,
        min_child_samples: int = 5,
        n_jobs: int | None = None,
        seed: int = 0,
        tune: bool = True,
    ) -> None:
        self.n_estimators = n_estimators
        self.num_leaves = num_leaves
        self.learning_rate = learning_rate
        self.subsample = subsample
        self.colsample_bytree = colsample_bytree
        self.min_child_samples = min_child_samples
        self.n_jobs = n_jobs
        self.seed = seed
        self.tune = tune

    def _train(self, settings: Settings, rounds: int, rows: Rows) -> Any:
        lightgbm = _package("lightgbm", self.name, "LightGBM")
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
        _refuse_one(rows)
        return lightgbm.train(parameters, lightgbm.Dataset(*rows), num_boost_round=rounds)

    def _answer(self, booster: Any, features_nf: Floats, rounds: int | None = None) -> Floats:
        return np.asarray(booster.predict(features_nf, num_iteration=rounds, num_threads=self.n_jobs or 0), np.float64)

    def _get_state(self) -> State:
        texts = (booster.model_to_string(num_iteration=-1).encode() for booster in self.boosters_)
        return {f"booster.{i}": np.frombuffer(text, np.uint8) for i, text in enumerate(texts)}

    def _set_state(self, state: State) -> None:
        lightgbm = _package("lightgbm", self.name, "LightGBM")
        texts = [state[f"booster.{i}"].tobytes().decode() for i in range(self.n_outputs_)]
        # LightGBM does not raise on a text that is cut short: it ends the process.
        if not all(text.rstrip().endswith(_LIGHTGBM_END) for text in texts):
            raise ValueError("a LightGBM text is cut short")
        try:
            self.boosters_ = [lightgbm.Booster(model_str=text) for text in texts]
        except lightgbm.basic.LightGBMError as error:
            raise ValueError(str(error)) from error  # what the reader of model folders knows as damage


class CatBoost(Boosted):
    """CatBoost's symmetric trees; see `Boosted` for how depth, columns, rate and rounds are chosen."""

    name: ClassVar[str] = "catboost"
    tunable: ClassVar[tuple[str, ...]] = ("max_depth", "learning_rate", "colsample_bylevel")
    candidates: ClassVar[tuple[Candidate, ...]] = (
        Candidate({"max_depth": 4, "learning_rate": 0.1}),
        Candidate({"max_depth": 6, "learning_rate": 0.05}),
        Candidate({"max_depth": 6, "learning_rate": 0.1, "colsample_bylevel": 0.3}),
    )

    def __init__(
        self,
        n_estimators: int = 500,
        max_depth: int = 6,
        learning_rate: float = 0.1,
        colsample_bylevel: float = 1.0,
        n_jobs: int | None = None,
        seed: int = 0,
        tune: bool = True,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.colsample_bylevel = colsample_bylevel
        self.n_jobs = n_jobs
        self.seed = seed
        self.tune = tune

    def _train(self, settings: Settings, rounds: int, rows: Rows) -> Any:
        catboost = _package("catboost", self.name, "CatBoost")
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
        _refuse_one(rows)
        return booster.fit(*rows)

    def _answer(self, booster: Any, features_nf: Floats, rounds: int | None = None) -> Floats:
        answer_n = booster.predict(features_nf, ntree_end=rounds or 0, thread_count=self.n_jobs or -1)
        return np.asarray(answer_n, np.float64)

    def _get_state(self) -> State:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "booster.cbm"
            state: State = {}
            for i, booster in enumerate(self.boosters_):
                booster.save_model(str(path), format="cbm")
                state[f"booster.{i}"] = np.frombuffer(path.read_bytes(), np.uint8)
        return state

    def _set_state(self, state: State) -> None:
        catboost = _package("catboost", self.name, "CatBoost")
        blobs = (state[f"booster.{i}"].tobytes() for i in range(self.n_outputs_))
        try:
            self.boosters_ = [catboost.CatBoostRegressor().load_model(blob=blob, format="cbm") for blob in blobs]
        except catboost.CatBoostError as error:
            raise ValueError(str(error)) from error  # what the reader of model folders knows as damage


class _Tabular(Predictor):
    """What pytabkit's networks share: encoded features, a missing one at its mean, and groups to stop on.

    A fifth of the groups is held back whole to choose the best epoch on. These models cannot be saved.
    """

    n_jobs: int | None
    seed: int
    device: str | None

    def _fit(self, features_nf: Floats, target_np: Floats, groups_n: Groups, cpu_n: Mask) -> None:
        self.encoder_ = Encoder.fit(features_nf)
        _package("pytabkit", self.name, "pytabkit")
        with _quiet():
            self._learn(self._encode(features_nf), target_np, groups_n)

    def _encode(self, features_nf: Floats) -> Floats:
        return np.nan_to_num(self.encoder_(features_nf))

    def _predict(self, features_nf: Floats) -> Floats:
        with _quiet():
            return self._answer(self._encode(features_nf))

    @abstractmethod
    def _learn(self, encoded_nf: Floats, target_np: Floats, groups_n: Groups) -> None:
        """Learn from encoded features."""

    @abstractmethod
    def _answer(self, encoded_nf: Floats) -> Floats:
        """Return predictions for encoded features."""

    def _common(self) -> dict[str, Any]:
        return {"device": self.device, "n_threads": self.n_jobs, "random_state": self.seed}

    def _stopping(self, groups_n: Groups) -> Groups:
        """Return the rows to stop on: a fifth of the groups, or of the cells where there is one group alone."""
        if len(np.unique(groups_n)) == 1:
            groups_n = np.arange(len(groups_n))
        return np.flatnonzero(deal(groups_n, _STOPPING_PARTS, self.seed) == 0)

    def refuse_unless_savable(self) -> None:
        """Refuse: what these networks learn comes out of the library as a pickle alone."""
        raise CrossperfError(
            f"The model {self.name!r} cannot be saved: pytabkit offers a pickle alone, which crossperf neither writes "
            "nor reads. Compare it with 'crossperf evaluate', and train another model to keep.",
            model=self.name,
        )

    def _get_state(self) -> State:
        self.refuse_unless_savable()
        return {}

    def _set_state(self, state: State) -> None:
        self.refuse_unless_savable()


class TabM(_Tabular):
    """TabM with its authors' settings, one a platform: 32 networks that share most of their weights.

    Made for a GPU; on a few CPU cores a table of some thousand cells takes the better part of an hour.
    """

    name: ClassVar[str] = "tabm"

    def __init__(
        self,
        n_epochs: int = 500,
        patience: int = 16,
        width: int = 512,
        members: int = 32,
        device: str | None = None,
        n_jobs: int | None = None,
        seed: int = 0,
    ) -> None:
        self.n_epochs = n_epochs
        self.patience = patience
        self.width = width
        self.members = members
        self.device = device
        self.n_jobs = n_jobs
        self.seed = seed

    def _learn(self, encoded_nf: Floats, target_np: Floats, groups_n: Groups) -> None:
        pytabkit = _package("pytabkit", self.name, "pytabkit")
        self.networks_ = []
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
            self.networks_.append(network.fit(encoded_nf[known_n], target_n[known_n], val_idxs=stopping))

    def _answer(self, encoded_nf: Floats) -> Floats:
        return np.stack([network.predict(encoded_nf) for network in self.networks_], axis=1).astype(np.float64)


class RealMLP(_Tabular):
    """RealMLP with its authors' tuned defaults, all platforms in one network.

    With ``refit`` the best epoch is found on the groups held back, and a second network learns from all cells
    up to there.
    """

    name: ClassVar[str] = "realmlp"

    def __init__(
        self,
        n_epochs: int = 256,
        width: int = 256,
        refit: bool = True,
        device: str | None = None,
        n_jobs: int | None = None,
        seed: int = 0,
    ) -> None:
        self.n_epochs = n_epochs
        self.width = width
        self.refit = refit
        self.device = device
        self.n_jobs = n_jobs
        self.seed = seed

    def _learn(self, encoded_nf: Floats, target_np: Floats, groups_n: Groups) -> None:
        pytabkit = _package("pytabkit", self.name, "pytabkit")
        self.network_ = pytabkit.RealMLP_TD_Regressor(
            n_epochs=self.n_epochs, hidden_sizes=[self.width] * 3, n_refit=int(self.refit), **self._common()
        )
        self.network_.fit(encoded_nf, np.array(fill_targets(target_np)), val_idxs=self._stopping(groups_n))

    def _answer(self, encoded_nf: Floats) -> Floats:
        return np.asarray(self.network_.predict(encoded_nf), np.float64).reshape(len(encoded_nf), -1)


def _refuse_one(rows: Rows) -> None:
    if len(rows.target_n) < 2:
        raise ValueError("Found 1 sample with a target for a platform, expected 2 or more to grow trees from.")


def _package(module: str, model: str, title: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"The model {model!r} needs {title}: pip install 'crossperf[more-peers]'"
        ) from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep pytabkit's talk away and leave the caller's random states as they were."""
    import torch

    talkers = [logging.getLogger(name) for name in ("pytorch_lightning", "lightning", "lightning.pytorch")]
    levels = [talker.level for talker in talkers]
    numpy_state, python_state = np.random.get_state(), random.getstate()
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(torch.random.fork_rng())
        for talker in talkers:
            talker.setLevel(logging.ERROR)
        try:
            yield
        finally:
            np.random.set_state(numpy_state)
            random.setstate(python_state)
            for talker, level in zip(talkers, levels, strict=True):
                talker.setLevel(level)
