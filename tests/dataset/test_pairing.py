from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from crossperf.dataset.build import SPLITS, Dataset, Split

from crossperf import dataset
from crossperf.errors import DatasetError
from crossperf.records import Run
from crossperf.runs import table
from crossperf.runs.table import RunsTable


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
    np.testing.assert_array_equal(tiny.runtime_s_n, [3.0, 6.0, 5.0])  # median of 1, 2, 4, 9
    assert tiny.counters == ("x", "y")  # z was never measured
    np.testing.assert_array_equal(tiny.counters_nc, [[30.0, 7.0], [60.0, np.nan], [50.0, 7.0]])


def test_features_are_counters_runtime_and_the_source_platform_in_named_order(tiny: Dataset) -> None:
    assert tiny.features == ("x", "y", "runtime_s", "source=p", "source=q")
    np.testing.assert_array_equal(
        tiny.features_nf, [[30.0, 7.0, 3.0, 1, 0], [60.0, np.nan, 6.0, 0, 1], [50.0, 7.0, 5.0, 1, 0]]
    )


def test_relative_time_is_time_there_over_time_here_and_nan_where_it_never_ran(tiny: Dataset) -> None:
    expected_np = [[1.0, 6 / 3], [3 / 6, 1.0], [1.0, np.nan]]
    np.testing.assert_allclose(np.exp(tiny.log_relative_time_np), expected_np, rtol=1e-14)
    np.testing.assert_array_equal(tiny.complete_w, [True, False])


def test_repeats_fall_alternately_into_two_halves_in_their_own_order(tiny: Dataset) -> None:
    # Repeats 0 and 2 of (a, 1) on p: 1 and 2; repeats 1 and 3: 9 and 4. A single run has no second half.
    even_wp, odd_wp = np.exp(tiny.log_time_halves_hwp)
    np.testing.assert_allclose(even_wp, [[1.5, 6.0], [5.0, np.nan]])
    np.testing.assert_allclose(odd_wp, [[6.5, np.nan], [np.nan, np.nan]])


def test_failed_runs_are_counted_and_not_used(tiny: Dataset) -> None:
    assert (tiny.table.runs, tiny.table.failed_runs) == (7, 1)
    assert (tiny.table.workloads, tiny.table.apps, tiny.table.platforms) == (2, 2, ("p", "q"))


def test_cells_know_whether_they_were_measured_on_a_cpu(tiny: Dataset) -> None:
    assert tiny.platform_classes == ("cpu", "unknown")
    np.testing.assert_array_equal(tiny.cpu_n, [True, False, True])


def test_taking_cells_keeps_features_and_times_in_step(toy_data: Dataset) -> None:
    rows_n = np.array([5, 0, 17])
    part = toy_data.take(rows_n)
    np.testing.assert_array_equal(part.features_nf, toy_data.features_nf[rows_n])
    np.testing.assert_array_equal(part.log_relative_time_np, toy_data.log_relative_time_np[rows_n])


def test_records_a_frame_a_table_and_a_path_build_the_same_dataset(toy_table: RunsTable, tmp_path: Path) -> None:
    toy_table.write(tmp_path / "runs.parquet")
    one, *others = (
        dataset.build(source) for source in (toy_table, toy_table.runs(), toy_table.frame, tmp_path / "runs.parquet")
    )
    for other in others:
        assert other.features == one.features
        np.testing.assert_array_equal(other.features_nf, one.features_nf)
        np.testing.assert_array_equal(other.log_relative_time_np, one.log_relative_time_np)


def test_the_order_of_the_rows_does_not_matter(toy_table: RunsTable, toy_data: Dataset) -> None:
    shuffled = dataset.build(toy_table.frame.sample(fraction=1.0, shuffle=True, seed=1))
    assert shuffled.workloads == toy_data.workloads
    np.testing.assert_array_equal(shuffled.features_nf, toy_data.features_nf)
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
    np.testing.assert_array_equal(data.features_nf, [[2.0, 1, 0], [2.0, 0, 1]])


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
        dataset.build(table.from_runs(runs, need_runtime=False))


def test_an_unknown_platform_is_refused_with_a_suggestion(toy_table: RunsTable) -> None:
    with pytest.raises(DatasetError, match=r"platform 'gpu_a' \(did you mean 'gpu-a'\?\)") as caught:
        dataset.build(toy_table, platforms=["cpu-a", "gpu_a"])
    assert caught.value.facts["platform"] == "gpu_a"


@pytest.mark.parametrize("split", SPLITS)
def test_every_row_is_held_out_exactly_once_and_never_trained_on_at_that_time(toy_data: Dataset, split: Split) -> None:
    parts = dataset.folds(toy_data, split, n_folds=4, seed=3)
    held_out_n = np.concatenate([part.test_n for part in parts])
    np.testing.assert_array_equal(np.sort(held_out_n), np.arange(len(toy_data)))
    for part in parts:
        np.testing.assert_array_equal(np.sort(np.r_[part.train_n, part.test_n]), np.arange(len(toy_data)))


@pytest.mark.parametrize(
    ("split", "of"),
    [
        ("workload", lambda data, n: data.workloads[data.workload_n[n]]),
        ("app", lambda data, n: data.workloads[data.workload_n[n]][0]),
    ],
)
def test_a_workload_or_an_application_is_never_on_both_sides(
    toy_data: Dataset, split: Split, of: Callable[[Dataset, int], object]
) -> None:
    for part in dataset.folds(toy_data, split, n_folds=4):
        assert not {of(toy_data, n) for n in part.train_n} & {of(toy_data, n) for n in part.test_n}


def test_the_row_split_does_put_siblings_on_both_sides(toy_data: Dataset) -> None:
    (part, *_) = dataset.folds(toy_data, "row", n_folds=4)
    assert set(toy_data.workload_n[part.train_n]) & set(toy_data.workload_n[part.test_n])


@pytest.mark.parametrize("split", SPLITS)
def test_the_same_seed_gives_the_same_folds_and_another_seed_others(toy_data: Dataset, split: Split) -> None:
    first, again, *others = (
        [part.test_n.tolist() for part in dataset.folds(toy_data, split, n_folds=2, seed=seed)]
        for seed in (0, 0, 1, 2, 3, 4)
    )
    assert first == again
    assert any(one != other for one, other in pairwise([first, *others]))


@pytest.mark.parametrize(("split", "n_folds"), [("app", 5), ("workload", 13), ("row", 49), ("row", 1)])
def test_more_folds_than_groups_are_refused_with_the_range_to_choose_from(
    toy_data: Dataset, split: Split, n_folds: int
) -> None:
    n_groups = {"app": 4, "workload": 12, "row": 48}[split]
    with pytest.raises(DatasetError, match=f"expected between 2 and {n_groups}") as caught:
        dataset.folds(toy_data, split, n_folds)
    assert caught.value.facts == {"split": split, "groups": n_groups}


def test_the_median_over_repeats_agrees_with_a_second_road(toy_table: RunsTable, toy_data: Dataset) -> None:
    n = 7
    app, size = toy_data.workloads[toy_data.workload_n[n]]
    rows = toy_table.frame.filter(
        (pl.col("app") == app)
        & (pl.col("input") == size)
        & (pl.col("platform") == toy_data.platforms[toy_data.source_n[n]])
    )
    assert toy_data.runtime_s_n[n] == np.median(rows["runtime_s"].to_numpy())
    instructions = toy_data.features.index("instructions")
    assert toy_data.features_nf[n, instructions] == np.median(rows["counter.instructions"].to_numpy())
