"""Piecewise-linear encoding by quantile bins, and times relative to the source from a vector without one."""

import numpy as np
import pytest

from crossperf.model.fitted.network import Bins, to_source


def test_the_places_in_a_features_bins_add_up_to_its_rank() -> None:
    """With as many bins as steps between values, the sum of the places counts the values below."""
    values_n = np.sort(np.random.default_rng(0).normal(size=11))
    bins = Bins.fit(values_n[:, None], most=10)
    places_nb = bins(values_n[:, None].astype(np.float32))
    np.testing.assert_allclose(places_nb.sum(axis=1), np.arange(11), atol=1e-4)


def test_the_feature_itself_is_linear_in_its_places() -> None:
    values_n = np.random.default_rng(0).normal(size=100)
    bins = Bins.fit(values_n[:, None], most=5)
    restored_n = bins.lower_b[0] + bins(values_n[:, None].astype(np.float32)) @ bins.width_b
    np.testing.assert_allclose(restored_n, values_n, atol=1e-5)


@pytest.mark.parametrize("values", [[2.0, 2.0, 2.0], [0.0, 1.0, 1.0, 0.0], [np.nan, np.nan]])
def test_a_feature_without_a_middle_has_no_bins(values: list[float]) -> None:
    assert len(Bins.fit(np.array(values)[:, None], most=8).feature_b) == 0


def test_what_was_not_measured_lies_in_no_bin() -> None:
    bins = Bins.fit(np.linspace(-1, 1, 9)[:, None], most=4)
    assert bins(np.array([[np.nan]], np.float32)).tolist() == [[0.0] * 4]


def test_relative_times_to_any_source_are_differences_of_one_vector() -> None:
    vector_p = np.array([0.3, -1.0, 0.7])
    relative_np = to_source(np.tile(vector_p, (3, 1)), np.arange(3))
    assert (np.diag(relative_np) == 0).all()
    np.testing.assert_allclose(relative_np[0, 1], -relative_np[1, 0])
    np.testing.assert_allclose(relative_np[0, 1] + relative_np[1, 2], relative_np[0, 2])
