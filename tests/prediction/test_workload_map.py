"""The map of known workloads: like programs lie together, whatever platform they were measured on."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from crossperf.datasets import toy
from crossperf.model import store, train
from crossperf.model.trained import TrainedModel
from crossperf.prediction import workload_map as maps
from crossperf.prediction.workload_map import WorkloadMap, WorkloadPlaces


@pytest.fixture(scope="module")
def model() -> TrainedModel:
    return train(toy.make_runs(apps=6, inputs=5, seed=2), "ridge")


@pytest.fixture(scope="module")
def drawn(model: TrainedModel) -> WorkloadMap:
    return maps.workload_map(model)


def test_the_effect_of_the_source_platform_is_removed(model: TrainedModel) -> None:
    """Of a workload's cells, each less the mean of its source, the sum over all workloads is 0 on every source."""
    places = WorkloadPlaces.of(model)
    for source in range(len(model.platforms)):
        own_nf = places.standard_nf[model.cells.source_n == source]
        np.testing.assert_allclose(np.nansum(own_nf, axis=0), 0.0, atol=1e-9)


def test_inputs_of_an_application_lie_together(model: TrainedModel, drawn: WorkloadMap) -> None:
    by_chance = 4 / 29  # the other inputs of the application, among the other workloads
    assert maps.share_of_same(drawn.xy_w2, model.cells.app_w, 4) > 3 * by_chance


def test_a_map_fills_its_axes(drawn: WorkloadMap) -> None:
    np.testing.assert_allclose([drawn.xy_w2.min(axis=0), drawn.xy_w2.max(axis=0)], [[-1, -1], [1, 1]], atol=1e-3)


def test_a_known_run_is_placed_where_its_workload_lies(model: TrainedModel, drawn: WorkloadMap) -> None:
    placed_n2 = WorkloadPlaces.of(model).place(model.features, drawn.xy_w2)
    np.testing.assert_allclose(placed_n2, drawn.xy_w2[model.cells.workload_n], atol=1e-6)


def test_a_run_without_most_counters_still_finds_its_own_workload(model: TrainedModel) -> None:
    features = model.features[:1]
    values_nf = features.values_nf.copy()
    values_nf[0, 3:10] = np.nan
    near_nm, apart_nm = WorkloadPlaces.of(model).near(type(features)(values_nf, features.columns), 2)
    assert near_nm[0, 0] == model.cells.workload_n[0]
    assert apart_nm[0, 0] < apart_nm[0, 1]


def test_two_workloads_are_a_map_too() -> None:
    tiny = train(toy.make_runs(apps=1, inputs=2, seed=1), "median")
    assert maps.workload_map(tiny).xy_w2.shape == (2, 2)


def test_another_model_does_not_get_the_map_that_ships(model: TrainedModel) -> None:
    assert maps.shipped(model) is None


def test_the_map_that_ships_is_that_of_the_model_that_ships() -> None:
    """If this fails, the model learned from another table: run tools/release_map.py."""
    model = store.load()
    drawn = maps.shipped(model)
    assert drawn is not None
    assert drawn.workloads == model.workloads
    # 0.13 for cells on two principal components of the latent space, 0.44 when it was drawn.
    assert maps.share_of_same(drawn.xy_w2, model.cells.app_w, 10) > 0.40


def test_the_map_that_ships_needs_no_learning_library() -> None:
    code = (
        "import sys\nfrom crossperf.model import store\nfrom crossperf.prediction import workload_map as maps\n"
        "model = store.load()\ndrawn = maps.shipped(model)\n"
        "maps.WorkloadPlaces.of(model).place(model.features[:1], drawn.xy_w2)\n"
        "assert 'sklearn' not in sys.modules, 'scikit-learn was loaded'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
