"""The same seed gives the same model: to the last bit with as many threads, and nearly so with others.

Each training has a process of its own: what a process did before, and where its memory lies, must not matter.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crossperf.model import store

pytestmark = pytest.mark.slow
#: Models whose numbers do not depend on the number of threads, and those that add up in another order with others.
WHATEVER_THREADS = ("median", "ridge", "random-forest", "extra-trees", "xgboost")
BY_THREADS = ("dnn", "vae-dnn", "crossperf")
PROGRAM = """
import sys
import numpy as np
from crossperf import dataset, model
from crossperf.datasets import toy

data = dataset.build(toy.make_table(apps=5, inputs=4, repeats=2, seed=1))
settings = {
    "random-forest": {"n_estimators": 20}, "extra-trees": {"n_estimators": 20}, "xgboost": {"n_estimators": 20},
    "dnn": {"epochs": 2, "tune": False}, "vae-dnn": {"epochs": 2, "tune": False},
    "crossperf": {"steps": 40, "vae_steps": 30, "trees": 16},
}
answers = {}
for name in sys.argv[2:]:
    trained = model.train(data, name, seed=3, **settings.get(name, {}))
    answers[name] = trained.fitted.predict(trained.features)
np.savez(sys.argv[1], **answers)
"""


def trained(folder: Path, threads: int, turn: int) -> dict[str, Any]:
    """Train every model in a process of its own, and return what each predicts."""
    path = folder / f"{threads}-{turn}.npz"
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    env = {**os.environ, **dict.fromkeys(names, str(threads)), "PYTHONHASHSEED": str(turn)}
    env |= {"OMP_WAIT_POLICY": "passive", "KMP_BLOCKTIME": "0"}  # on a busy machine threads that spin take minutes
    subprocess.run([sys.executable, "-c", PROGRAM, path, *WHATEVER_THREADS, *BY_THREADS], env=env, check=True)
    with np.load(path) as held:
        return dict(held)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, int], dict[str, Any]]:
    folder = tmp_path_factory.mktemp("models")
    return {(threads, turn): trained(folder, threads, turn) for threads, turn in ((1, 0), (1, 1), (2, 0))}


@pytest.mark.parametrize("name", [*WHATEVER_THREADS, *BY_THREADS])
def test_the_same_seed_gives_the_same_bits_with_as_many_threads(name: str, answers: Any) -> None:
    assert np.array_equal(answers[1, 0][name], answers[1, 1][name])


@pytest.mark.parametrize("name", WHATEVER_THREADS)
def test_trees_and_linear_models_are_the_same_bits_whatever_the_threads(name: str, answers: Any) -> None:
    assert np.array_equal(answers[1, 0][name], answers[2, 0][name])


@pytest.mark.parametrize("name", BY_THREADS)
def test_networks_with_other_threads_differ_by_less_than_a_thousandth(name: str, answers: Any) -> None:
    """Sums are taken in another order, and training carries the last bits on."""
    difference_np = answers[1, 0][name] - answers[2, 0][name]
    assert np.abs(difference_np).max() < 1e-3


def test_the_same_cells_in_another_order_get_the_same_bits() -> None:
    trained = store.load()
    features = trained.features[np.arange(0, len(trained.features), 37)]
    order = np.random.default_rng(1).permutation(len(features))
    assert np.array_equal(trained.fitted.predict(features)[order], trained.fitted.predict(features[order]))
    asked, other = trained.fitted.forecast(features)[order], trained.fitted.forecast(features[order])
    assert np.array_equal(asked.log_relative_np, other.log_relative_np)
    assert np.array_equal(asked.error_nbp, other.error_nbp)
    assert np.array_equal(asked.novelty.by_feature_nf, other.novelty.by_feature_nf)


def test_a_cell_asked_about_alone_differs_by_rounding_alone() -> None:
    trained = store.load()
    features = trained.features[np.arange(0, len(trained.features), 223)]
    alone = np.concatenate([trained.fitted.predict(features[row]) for row in range(len(features))])
    np.testing.assert_allclose(alone, trained.fitted.predict(features), atol=1e-3, rtol=0)
