"""Runs paired into cells: medians, halves, relative times, and tables that pair nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from crossperf import dataset
from crossperf.dataset import Dataset
from crossperf.errors import DatasetError
from crossperf.records import Run
from crossperf.runs.table import RunsTable, from_runs


def run(app: str, size: str, platform: str, runtime_s: float | None, repeat: int = 0, **facts: object) -> Run:
    counters = {"x": runtime_s and 10 * runtime_s, "y": None if platform == "q" else 7.0, "z": None}
    return Run(app, size, platform, runtime_s, repeat=repeat, counters=counters, **facts)  # type: ignore[arg-type]


#: (a, 1) on p takes 1, 9, 2, 4 seconds in the order of the repeats; on q 6. (b, 1) ran on p alone.
TINY = [
    run("a", "1", "p", 4.0, repeat=3, platform_class="cpu"),
    run("a", "1", "p", 1.0, repeat=0, platform_class="cpu"),
    run("a", "1", "p", 9.0, repeat=1, platform_class="cpu"),
    run("a", "1", "p", 2.0, repeat=2, platform_class="cpu"),
    run("a", "1", "q", 6.0),
    run("b", "1", "p", 5.0, platform_class="cpu"),
    run("b", "1", "q", None, status="timeout"),
]


@pytest.fixture(scope="module")
def tiny() -> Dataset:
    return dataset.build(TINY)


def test_a_cell_holds_the_medians_of_its_repeats(tiny: Dataset) -> None:
    assert tiny.workloads == (("a", "1"), ("b", "1"))
    assert tiny.platforms == ("p", "q")
    np.testing.assert_array_equal(tiny.workload_n, [0, 0, 1])
    np.testing.assert_array_equal(tiny.source_n, [0, 1, 0])
    np.testing.assert_array_equal(tiny.X.column("runtime_s"), [3.0, 6.0, 5.0])  # median of 1, 2, 4, 9
    assert tiny.counters == ("x", "y")  # z was never measured
    np.testing.assert_array_equal(tiny.X.measured_nc, [[30.0, 7.0], [60.0, np.nan], [50.0, 7.0]])


def test_features_are_counters_runtime_and_the_source_platform_in_named_order(tiny: Dataset) -> None:
    assert tiny.X.columns.names == ("x", "y", "runtime_s", "source=p", "source=q")
    np.testing.assert_array_equal(
        tiny.X.values_nf, [[30.0, 7.0, 3.0, 1, 0], [60.0, np.nan, 6.0, 0, 1], [50.0, 7.0, 5.0, 1, 0]]
    )


def test_relative_time_is_time_there_over_time_here_and_nan_where_it_never_ran(tiny: Dataset) -> None:
    expected_np = [[1.0, 6 / 3], [3 / 6, 1.0], [1.0, np.nan]]
    np.testing.assert_allclose(np.exp(tiny.y), expected_np, rtol=1e-14)
    np.testing.assert_array_equal(tiny.complete_w, [True, False])


def test_repeats_fall_into_an_earlier_and_a_later_half(tiny: Dataset) -> None:
    # Repeats 0 and 1 of (a, 1) on p: 1 and 9; repeats 2 and 3: 2 and 4. A single run has no later half.
    earlier_wp, later_wp = np.exp(tiny.log_time_halves_hwp)
    np.testing.assert_allclose(earlier_wp, [[5.0, 6.0], [5.0, np.nan]])
    np.testing.assert_allclose(later_wp, [[3.0, np.nan], [np.nan, np.nan]])


def test_failed_runs_are_counted_and_not_used(tiny: Dataset) -> None:
    assert (tiny.table.runs, tiny.table.failed_runs) == (7, 1)
    assert (tiny.table.workloads, tiny.table.apps, tiny.table.platforms) == (2, 2, ("p", "q"))


def test_cells_know_whether_they_were_measured_on_a_cpu(tiny: Dataset) -> None:
    assert tiny.platform_classes == ("cpu", "unknown")
    np.testing.assert_array_equal(tiny.cpu_n, [True, False, True])


def test_taking_cells_keeps_features_and_times_in_step(toy_data: Dataset) -> None:
    rows_n = np.array([5, 0, 17])
    part = toy_data.take(rows_n)
    np.testing.assert_array_equal(part.X.values_nf, toy_data.X.values_nf[rows_n])
    np.testing.assert_array_equal(part.y, toy_data.y[rows_n])


def test_records_a_frame_a_table_and_a_path_build_the_same_dataset(toy_table: RunsTable, tmp_path: Path) -> None:
    toy_table.write(tmp_path / "runs.parquet")
    first, *others = (
        dataset.build(source) for source in (toy_table, toy_table.runs(), toy_table.frame, tmp_path / "runs.parquet")
    )
    for other in others:
        assert other.X.columns == first.X.columns
        np.testing.assert_array_equal(other.X.values_nf, first.X.values_nf)
        np.testing.assert_array_equal(other.y, first.y)


def test_the_order_of_the_rows_does_not_matter(toy_table: RunsTable, toy_data: Dataset) -> None:
    shuffled = dataset.build(toy_table.frame.sample(fraction=1.0, shuffle=True, seed=1))
    assert shuffled.workloads == toy_data.workloads
    np.testing.assert_array_equal(shuffled.X.values_nf, toy_data.X.values_nf)
    np.testing.assert_array_equal(shuffled.log_time_halves_hwp, toy_data.log_time_halves_hwp)


def test_chosen_platforms_come_in_the_order_asked_for(toy_table: RunsTable, toy_data: Dataset) -> None:
    chosen = dataset.build(toy_table, platforms=["gpu-a", "cpu-a"])
    assert chosen.platforms == ("gpu-a", "cpu-a")
    assert len(chosen) == len(toy_data) / 2
    columns = [toy_data.platforms.index(name) for name in chosen.platforms]
    np.testing.assert_array_equal(chosen.log_time_wp, toy_data.log_time_wp[:, columns])


def test_a_table_without_a_single_measured_counter_still_has_runtime_and_source() -> None:
    runs = [Run("a", "1", platform, 2.0, counters={"x": None}) for platform in ("p", "q")]
    data = dataset.build(runs)
    assert data.counters == ()
    np.testing.assert_array_equal(data.X.values_nf, [[2.0, 1, 0], [2.0, 0, 1]])


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        (TINY[:4], r"one platform only \('p'\)"),
        (
            [run("a", "1", "p", None, status="oom"), run("a", "1", "q", None, status="oom", host="h")],
            "no successful run",
        ),
        ([run("a", "1", "p", 1.0), run("b", "1", "q", 1.0)], "none of 2 workloads ran on all 2 platforms"),
    ],
)
def test_a_table_that_pairs_nothing_is_refused(runs: list[Run], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        dataset.build(from_runs(runs, need_runtime=False))


def test_an_unknown_platform_is_refused_with_a_suggestion(toy_table: RunsTable) -> None:
    with pytest.raises(DatasetError, match=r"platforms: found 'gpu_a' \(did you mean 'gpu-a'\?\)") as caught:
        dataset.build(toy_table, platforms=["cpu-a", "gpu_a"])
    assert caught.value.facts["platform"] == "gpu_a"


def test_the_median_over_repeats_agrees_with_a_second_road(toy_table: RunsTable, toy_data: Dataset) -> None:
    n = 7
    app, size = toy_data.workloads[toy_data.workload_n[n]]
    rows = toy_table.frame.filter(
        (pl.col("app") == app)
        & (pl.col("input") == size)
        & (pl.col("platform") == toy_data.platforms[toy_data.source_n[n]])
    )
    assert toy_data.X.column("runtime_s")[n] == np.median(rows["runtime_s"].to_numpy())
    assert toy_data.X.column("instructions")[n] == np.median(rows["counter.instructions"].to_numpy())


def test_x_knows_the_groups_of_its_rows(tiny: Dataset) -> None:
    X = tiny.X
    assert X.workload_n is not None and X.app_n is not None and X.cpu_n is not None
    np.testing.assert_array_equal(X.workload_n, tiny.workload_n)
    np.testing.assert_array_equal(X.app_n, tiny.groups_n("app"))
    np.testing.assert_array_equal(X.cpu_n, [True, False, True])
    np.testing.assert_array_equal(X.source_n, tiny.source_n)


def test_a_pandas_frame_builds_the_same_dataset_without_pyarrow(toy_table: RunsTable, toy_data: Dataset) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(toy_table.frame.to_dict(as_series=False))
    built = dataset.build(frame)
    assert built.X.columns == toy_data.X.columns
    np.testing.assert_array_equal(built.X.values_nf, toy_data.X.values_nf)
    np.testing.assert_array_equal(built.y, toy_data.y)


def test_a_counter_named_like_the_runtime_or_a_source_stays_a_counter() -> None:
    """A one-hot column is known by its kind, not by its values or its name."""
    runs = [
        Run("a", str(i), platform, 1.0 + i, counters={"uses_avx": float(i % 2), "source=p": 3.0})
        for i in range(3)
        for platform in ("p", "q")
    ]
    data = dataset.build(runs)
    assert data.counters == ("source=p", "uses_avx")
    assert data.X.columns.sources == ("p", "q")
    np.testing.assert_array_equal(data.X.source_n, data.source_n)


def test_dropping_a_platform_drops_its_column_its_cells_and_its_feature(
    toy_table: RunsTable, toy_data: Dataset
) -> None:
    name = toy_data.platforms[2]
    less = toy_data.without(name)
    assert less.platforms == (*toy_data.platforms[:2], *toy_data.platforms[3:])
    built = dataset.build(toy_table.frame.filter(pl.col("platform") != name))
    assert less.X.columns == built.X.columns
    np.testing.assert_array_equal(less.X.values_nf, built.X.values_nf)
    np.testing.assert_array_equal(less.y, built.y)
    assert less.platform_classes == built.platform_classes
    assert less.table.platforms == less.platforms


def test_a_dataset_prints_in_ten_lines_and_escapes_its_names() -> None:
    runs = [Run("<b>", str(i), platform, 1.0 + i, counters={"x": 1.0}) for i in range(3) for platform in ("p", "q")]
    data = dataset.build(runs)
    assert 3 <= len(repr(data).splitlines()) <= 10
    assert "<b>" in repr(data)
    assert "<b>" not in data._repr_html_()
    assert "&lt;b&gt;" in data._repr_html_()
