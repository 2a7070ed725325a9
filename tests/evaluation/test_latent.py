"""A latent space on a plane: distances where they should be, and the counters that put runs there."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from crossperf import plain
from crossperf.arrays import Floats
from crossperf.dataset import Columns, Dataset, Features
from crossperf.evaluation.latent import LatentMap


@dataclass
class Space:
    """A latent space that is a function of the matrix of features."""

    place: Callable[[Floats], Floats]

    def latent(self, features: Features) -> Floats:
        return self.place(features.values_nf)


def test_a_flat_latent_space_keeps_its_distances(toy_data: Dataset) -> None:
    """What lies on a plane within five dimensions is only turned round."""
    rng = np.random.default_rng(0)
    flat_nk = rng.standard_normal((len(toy_data), 2)) @ np.linalg.qr(rng.standard_normal((5, 2)))[0].T
    made = LatentMap.of("m", Space(lambda _: flat_nk), toy_data)
    apart = np.linalg.norm(flat_nk[:, None] - flat_nk[None], axis=2)
    on_the_map = np.linalg.norm(made.xy_n2[:, None] - made.xy_n2[None], axis=2)
    np.testing.assert_allclose(on_the_map, apart, atol=1e-9)
    assert sum(made.explained) == pytest.approx(1.0)


def test_the_counter_that_is_the_space_drives_it_most(toy_data: Dataset) -> None:
    column = 3
    made = LatentMap.of("m", Space(lambda x_nf: np.log1p(np.abs(x_nf[:, [column, column]]))), toy_data)
    assert made.drivers[0].counter == toy_data.counters[column]
    assert abs(made.drivers[0].x) == pytest.approx(1.0)


def test_drivers_are_rank_correlations(toy_data: Dataset) -> None:
    rng = np.random.default_rng(1)
    latent_nk = rng.standard_normal((len(toy_data), 3))
    made = LatentMap.of("m", Space(lambda _: latent_nk), toy_data)
    for driver in made.drivers[:5]:
        values_n = toy_data.features.column(driver.counter)
        known = ~np.isnan(values_n)
        assert driver.x == pytest.approx(spearmanr(values_n[known], made.xy_n2[known, 0])[0])


def test_every_counter_that_varies_is_kept_so_that_a_figure_can_count_those_it_leaves_out(toy_data: Dataset) -> None:
    values_nc = np.random.default_rng(2).standard_normal((len(toy_data), 60))
    columns = Columns.of([f"c{i}" for i in range(60)], toy_data.platforms)
    runtime_s_n = toy_data.features.column("runtime_s")
    many = replace(toy_data, features=Features.of(values_nc, runtime_s_n, toy_data.source_n, columns))
    assert len(LatentMap.of("m", Space(lambda x_nf: x_nf[:, :2]), many).drivers) == 61  # the runtime as well


def test_a_space_that_has_collapsed_is_a_point_and_no_error(toy_data: Dataset) -> None:
    made = LatentMap.of("m", Space(lambda x_nf: np.zeros((len(x_nf), 4))), toy_data)
    assert made.explained == (0.0, 0.0)
    assert (made.xy_n2 == 0).all()
    assert all(driver.strength == 0 for driver in made.drivers)


def test_a_space_of_one_dimension_lies_on_a_line(toy_data: Dataset) -> None:
    made = LatentMap.of("m", Space(lambda x_nf: np.arange(len(x_nf), dtype=float)[:, None]), toy_data)
    assert (made.xy_n2[:, 1] == 0).all()
    assert made.explained == (1.0, 0.0)


def test_many_cells_are_thinned_by_the_seed_and_counted(toy_data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crossperf.evaluation.latent.MOST", 10)
    made, again = (
        LatentMap.of("m", Space(lambda x_nf: np.nan_to_num(x_nf[:, :2])), toy_data, unseen=np.arange(5), seed=3)
        for _ in range(2)
    )
    assert (len(made), made.cells) == (10, len(toy_data))
    np.testing.assert_array_equal(made.xy_n2, again.xy_n2)
    assert made.unseen_n.sum() <= 5


def test_a_map_goes_to_json_and_back(toy_data: Dataset) -> None:
    made = LatentMap.of(
        "m", Space(lambda x_nf: np.log1p(np.abs(np.nan_to_num(x_nf[:, :3])))), toy_data, np.array([0, 3])
    )
    again = plain.from_json(LatentMap, json.loads(json.dumps(made.to_json())))
    np.testing.assert_allclose(again.xy_n2, made.xy_n2, atol=1e-4)
    assert again.workloads == made.workloads
    assert np.flatnonzero(again.unseen_n).tolist() == [0, 3]
    assert replace(again.drivers[0], x=0.0, y=0.0) == replace(made.drivers[0], x=0.0, y=0.0)
