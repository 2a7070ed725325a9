"""Measured cells: plain Python and the query engine agree, whatever the table."""

from __future__ import annotations

import numpy as np
import pytest

from crossperf.dataset import Columns
from crossperf.dataset.measured import Measured, measured_runs, measured_table
from crossperf.errors import PredictError
from crossperf.records import Run
from crossperf.runs.table import from_runs

COUNTERS = ("x", "y", "z", "never")


def random_runs(rng: np.random.Generator) -> list[Run]:
    """Return runs with repeats, gaps, failures, counters that one platform lacks, and repeats in any order."""
    runs = []
    for app, input_, platform in [(a, i, p) for a in "ab" for i in "12" for p in "pqr"]:
        for repeat in rng.permutation(rng.integers(0, 5)).tolist():
            ok = rng.random() < 0.8
            counters = {
                name: None if name == "never" or rng.random() < 0.3 or (name == "y" and platform == "q") else value
                for name, value in zip(COUNTERS, rng.lognormal(size=4).tolist(), strict=True)
            }
            runtime_s = float(rng.lognormal()) if ok else None
            status = "ok" if ok else str(rng.choice(["timeout", "oom", "failed"]))
            runs.append(Run(app, input_, platform, runtime_s, repeat=repeat, counters=counters, status=status))
    return [runs[i] for i in rng.permutation(len(runs))]


@pytest.mark.parametrize("seed", range(20))
def test_a_few_runs_in_plain_python_are_what_the_table_gives(seed: int) -> None:
    runs = random_runs(np.random.default_rng(seed))
    few, table = measured_runs(runs), measured_table(from_runs(runs, need_runtime=False))
    assert few.workload_of_n == table.workload_of_n
    assert few.platform_n == table.platform_n
    assert few.failed_runs == table.failed_runs
    assert few.counters == table.counters
    np.testing.assert_allclose(few.runtime_s_n, table.runtime_s_n, rtol=1e-15)
    np.testing.assert_allclose(few.values_nc, table.values_nc, rtol=1e-15)


def test_runs_without_a_runtime_agree_too() -> None:
    runs = [Run("a", "1", "p", None, counters={"x": 1.0}), Run("a", "2", "p", 2.0, counters={"x": 3.0})]
    few, table = measured_runs(runs), measured_table(from_runs(runs, need_runtime=False))
    np.testing.assert_array_equal(few.runtime_s_n, [np.nan, 2.0])
    np.testing.assert_array_equal(table.runtime_s_n, [np.nan, 2.0])


def test_runs_that_all_failed_leave_no_cell() -> None:
    runs = [Run("a", "1", "p", None, status="oom", counters={"x": 1.0})]
    few, table = measured_runs(runs), measured_table(from_runs(runs, need_runtime=False))
    assert len(few) == len(table) == 0
    assert few.counters == table.counters
    assert few.values_nc.shape == table.values_nc.shape
    assert few.failed_runs == table.failed_runs == 1


@pytest.fixture
def measured() -> Measured:
    return measured_runs(
        [
            Run("a", "1", "p", 1.0, counters={"x": 4.0, "extra": 9.0}),
            Run("a", "1", "q", 2.0, counters={"x": 5.0, "extra": 9.0}),
        ],
        "mine",
    )


def test_features_come_in_the_columns_of_a_model_and_lack_what_was_not_measured(measured: Measured) -> None:
    columns = Columns.of(["gone", "x"], ["r", "q", "p"])
    features = measured.features(columns)
    assert features.columns == columns
    np.testing.assert_array_equal(features.measured_nc, [[np.nan, 4.0], [np.nan, 5.0]])
    np.testing.assert_array_equal(features.source_n, [2, 1])
    np.testing.assert_array_equal(features.column("runtime_s"), [1.0, 2.0])


def test_cells_without_any_counter_of_a_model_are_refused(measured: Measured) -> None:
    with pytest.raises(
        PredictError, match=r"^mine: found none of the 2 counters .*expected extras, y \(did you mean 'extra'\?\)"
    ):
        measured.features(Columns.of(["extras", "y"], ["p", "q"]))


def test_taking_cells_keeps_everything_in_step(measured: Measured) -> None:
    part = measured.take([1])
    assert (part.workload_of_n, part.platform_n, part.runtime_s_n.tolist()) == ([("a", "1")], ("q",), [2.0])
    np.testing.assert_array_equal(part.values_nc, measured.values_nc[[1]])
    assert part.runtime_s_halves_hn.shape == (2, 1)


def run_with(cycles: float | None, platform: str = "p", **facts: object) -> Run:
    """Return a run with one counter and, unless it was not counted, one event."""
    events = {} if cycles is None else {"events": {"perf": {"cycles": cycles}}}
    return Run("a", "1", platform, 1.0, counters={"x": 4.0}, metadata={**events, **facts})


def test_events_are_medians_over_runs_like_counters_and_stand_after_them() -> None:
    runs = [run_with(2.0), run_with(8.0), run_with(4.0), run_with(None, "q")]
    for cells in (measured_runs(runs), measured_table(from_runs(runs))):
        assert cells.names == ("x", "event.perf.cycles")
        assert cells.counters == ("x",)
        np.testing.assert_array_equal(cells.values_nc, [[4.0, 4.0], [4.0, np.nan]])


def test_a_view_of_counters_leaves_events_out() -> None:
    runs = [Run("a", "1", "p", 1.0, counters={"x": 4.0, "instructions": 6.0}, metadata={"events": {"t": {"e": 1.0}}})]
    table = from_runs(runs)
    assert measured_table(table).names == ("instructions", "x", "event.t.e")
    assert measured_table(table, features="counters").names == ("instructions", "x")
    assert measured_table(table, features="table1").names == ("instructions",)


def test_a_run_without_events_is_asked_with_gaps() -> None:
    columns = Columns.of(["x", "event.perf.cycles"], ["p"])
    np.testing.assert_array_equal(measured_runs([run_with(None)]).features(columns).measured_nc, [[4.0, np.nan]])
