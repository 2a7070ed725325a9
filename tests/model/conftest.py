"""Small tables and quick settings for the tests of the models."""

from typing import Any

import pytest

from crossperf import dataset
from crossperf.dataset import Dataset
from crossperf.datasets import toy

#: Settings with which each model fits in about a second.
QUICK: dict[str, dict[str, Any]] = {
    "crossperf": {"trees": 24, "members": 4, "width": 32, "steps": 80, "latent_dim": 4, "vae_steps": 40, "n_jobs": 1},
    "vae-dnn": {
        "width": 64,
        "vae_width": 64,
        "latent_dim": 8,
        "cpu_steps": 5,
        "vae_steps": 5,
        "feedback_steps": 120,
        "dnn_steps": 20,
        "batch_size": 32,
        "dropout": 0.1,
        "learning_rate": 3e-3,
    },
    "dnn": {"width": 64, "dnn_steps": 120, "batch_size": 32, "dropout": 0.1, "learning_rate": 3e-3},
    "random-forest": {"n_estimators": 10},
    "extra-trees": {"n_estimators": 10},
    "xgboost": {"n_estimators": 20},
    "ridge": {},
    "median": {},
}


@pytest.fixture(scope="session")
def toy_data() -> Dataset:
    return dataset.build(toy.make_table(apps=6, inputs=5, repeats=2, seed=1))
