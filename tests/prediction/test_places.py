"""The map of known workloads: like programs lie together, whatever platform they were measured on."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from crossperf.datasets import toy
from crossperf.model import store, train
from crossperf.model.trained import TrainedModel
from crossperf.prediction import places


@pytest.fixture(scope="module")
def model() -> TrainedModel:
    return train(toy.make_runs(apps=6, inputs=5, seed=2), "ridge")


def test_the_effect_of_the_source_platform_is_removed(model: TrainedModel) -> None:
    """Of a workload's cells, each less the mean of its source, the sum over all workloads is 0 on every source."""
    known = places._Known.of(model)
    for source in range(len(model.platforms)):
        own_nf = known.standard_nf[model.cells.source_n == source]
        np.testing.assert_allclose(np.nansum(own_nf, axis=0), 0.0, atol=1e-9)


def test_inputs_of_an_application_lie_together(model: TrainedModel) -> None:
    drawn = places.draw(model)
    by_chance = 4 / 29  # the other inputs of the application, among the other workloads
    assert places.share_of_same(drawn.xy_w2, model.cells.app_w, 4) > 3 * by_chance


def test_a_known_run_is_placed_where_its_workload_lies(model: TrainedModel) -> None:
    drawn = places.draw(model)
    placed_n2 = places.place(drawn, model, model.features)
    np.testing.assert_allclose(placed_n2, drawn.xy_w2[model.cells.workload_n], atol=1e-6)


def test_a_run_without_most_counters_still_finds_its_own_workload(model: TrainedModel) -> None:
    features = model.features[:1]
    values_nf = features.values_nf.copy()
    values_nf[0, 3:10] = np.nan
    workload_nk, distance_nk = places.near(model, type(features)(values_nf, features.columns), 2)
    assert workload_nk[0, 0] == model.cells.workload_n[0]
    assert distance_nk[0, 0] < distance_nk[0, 1]


def test_two_workloads_are_a_map_too() -> None:
    tiny = train(toy.make_runs(apps=1, inputs=2, seed=1), "median")
    assert places.places(tiny).xy_w2.shape == (2, 2)


def test_the_map_that_ships_is_that_of_the_model_that_ships() -> None:
    """If this fails, the model learned from another table: run tools/release_map.py."""
    model = store.load()
    drawn = places._shipped(model)
    assert drawn is not None
    assert len(drawn) == len(model.workloads)
    share = places.share_of_same(drawn.xy_w2, model.cells.app_w, 10)
    assert share > 0.40  # 0.13 for cells on two principal components of the latent space, 0.44 when it was drawn


def test_the_map_that_ships_needs_no_learning_library() -> None:
    code = (
        "import sys\nfrom crossperf.model import store\nfrom crossperf.prediction import places\n"
        "model = store.load()\ndrawn = places.places(model)\nplaces.place(drawn, model, model.features[:1])\n"
        "assert 'sklearn' not in sys.modules, 'sklearn was loaded'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
