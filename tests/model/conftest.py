"""Small tables, quick settings and a measure of error for the tests of the models."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from crossperf import dataset
from crossperf.arrays import Floats
from crossperf.dataset import Columns, Dataset, Features
from crossperf.datasets import toy

#: Settings with which each model fits in about a second.
QUICK: dict[str, dict[str, Any]] = {
    "crossperf": {"trees": 24, "members": 4, "width": 32, "steps": 80, "latent_dim": 4, "vae_steps": 40, "n_jobs": 1},
    "vae-dnn": {
        "width": 64,
        "vae_width": 64,
        "latent_dim": 8,
        "epochs": 40,
        "batch_size": 32,
        "dropout": 0.1,
        "learning_rate": 3e-3,
        "tune": False,
    },
    "dnn": {"width": 64, "epochs": 30, "batch_size": 32, "dropout": 0.1, "learning_rate": 3e-3, "tune": False},
    "random-forest": {"n_estimators": 10},
    "extra-trees": {"n_estimators": 10},
    "xgboost": {"n_estimators": 20},
    "ridge": {},
    "median": {},
}


def with_values(features: Features, values_nf: Floats) -> Features:
    """Return the same columns and groups with other numbers."""
    return replace(features, values_nf=values_nf)


def with_gaps(features: Features, share: float = 0.2, seed: int = 0) -> Features:
    """Return features of which a share was not measured."""
    gap_nf = np.random.default_rng(seed).random(features.shape) < share
    return with_values(features, np.where(gap_nf, np.nan, features.values_nf))


def with_flag(data: Dataset, seed: int) -> Dataset:
    """Return a dataset with one more counter, `uses_avx`: 0 or 1 at random in every cell."""
    features = data.features
    flag_n1 = np.random.default_rng(seed).integers(2, size=(len(data), 1)).astype(np.float64)
    counters_nc = np.column_stack([features.measured_nc, flag_n1])
    columns = Columns.of([*data.counters, "uses_avx"], data.platforms)
    return replace(data, features=Features.of(counters_nc, features.column("runtime_s"), data.source_n, columns))


def factor_elsewhere(data: Dataset, predicted_np: Floats) -> float:
    """Return the typical factor between prediction and truth on all platforms but each cell's own."""
    other_np = np.arange(len(data.platforms)) != data.source_n[:, None]
    own_n1 = np.take_along_axis(predicted_np, data.source_n[:, None], axis=1)
    return float(np.exp(np.abs(predicted_np - own_n1 - data.y)[other_np].mean()))


def held_out_factor(make: Callable[[], Any], data: Dataset, n_folds: int = 3, scored: int | None = None) -> float:
    """Return the typical factor of a model on workloads that it has never seen."""
    factors = []
    for fold in dataset.folds(data, "workload", n_folds, seed=0)[:scored]:
        test = data.take(fold.test_n)
        factors.append(factor_elsewhere(test, make().learn(data.take(fold.train_n)).predict(test.X)))
    return float(np.mean(factors))


@pytest.fixture(scope="session")
def toy_data() -> Dataset:
    return dataset.build(toy.make_table(apps=6, inputs=5, repeats=2, seed=1))
