"""Cells: relative times, groups, and the same workloads in another list."""

from __future__ import annotations

import numpy as np
import pytest

from crossperf.dataset.cells import Cells, relative_to, spread


@pytest.fixture
def cells() -> Cells:
    """(b, 1) never ran on q; (a, 2) has no cell of its own."""
    times = np.log([[1.0, 2.0], [3.0, 9.0], [5.0, np.nan]])
    workloads = (("a", "1"), ("a", "2"), ("b", "1"))
    return Cells(("p", "q"), ("cpu", "gpu"), workloads, times, np.array([0, 0, 2]), np.array([0, 1, 0]))


def test_each_cell_is_relative_to_its_own_source(cells: Cells) -> None:
    np.testing.assert_allclose(np.exp(cells.log_relative_time_np), [[1.0, 2.0], [0.5, 1.0], [1.0, np.nan]])
    assert (cells.log_relative_time_np[np.arange(3), cells.source_n] == 0.0).all()


def test_groups_are_rows_workloads_or_applications(cells: Cells) -> None:
    assert cells.apps == ("a", "b")
    np.testing.assert_array_equal(cells.groups_n("row"), [0, 1, 2])
    np.testing.assert_array_equal(cells.groups_n("workload"), [0, 0, 2])
    np.testing.assert_array_equal(cells.groups_n("app"), [0, 0, 1])


def test_a_workload_is_complete_where_it_ran_everywhere(cells: Cells) -> None:
    np.testing.assert_array_equal(cells.complete_w, [True, True, False])
    np.testing.assert_array_equal(cells.cpu_n, [True, False, True])


def test_compacting_drops_workloads_without_cells_and_changes_no_answer(cells: Cells) -> None:
    small = cells.compact()
    assert small.workloads == (("a", "1"), ("b", "1"))
    np.testing.assert_array_equal(small.workload_n, [0, 0, 1])
    np.testing.assert_array_equal(small.log_relative_time_np, cells.log_relative_time_np)


def test_taking_cells_keeps_the_times_of_all_workloads(cells: Cells) -> None:
    part = cells.take(np.array([2]))
    assert len(part) == 1
    assert part.workloads == cells.workloads
    np.testing.assert_array_equal(part.log_relative_time_np, cells.log_relative_time_np[[2]])


def test_platforms_in_another_list_leave_gaps_for_the_new_ones(cells: Cells) -> None:
    wider = cells.on(("n", "q", "p"), ("gpu", "gpu", "cpu"))
    np.testing.assert_array_equal(wider.source_n, [2, 1, 2])
    assert np.isnan(wider.log_time_wp[:, 0]).all()
    np.testing.assert_array_equal(wider.log_relative_time_np[:, [2, 1]], cells.log_relative_time_np)
    np.testing.assert_array_equal(wider.cpu_n, cells.cpu_n)


def test_the_reference_is_exactly_zero() -> None:
    raw_np = np.array([[0.3, 0.1], [0.2, -0.4]])
    np.testing.assert_allclose(relative_to(raw_np, np.array([1, 0])), [[0.2, 0.0], [0.0, -0.6]])
    log_time_np = np.random.default_rng(0).normal(size=(50, 4))
    reference_n = np.random.default_rng(1).integers(4, size=50)
    relative = relative_to(log_time_np, reference_n)
    assert (relative[np.arange(50), reference_n] == 0.0).all()
    np.testing.assert_allclose(np.diff(relative, axis=1), np.diff(log_time_np, axis=1))


def test_values_are_spread_to_their_places() -> None:
    np.testing.assert_array_equal(spread(np.array([[1.0, 2.0]]), np.array([2, 0]), 3), [[2.0, np.nan, 1.0]])
