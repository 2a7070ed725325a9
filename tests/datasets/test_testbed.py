from __future__ import annotations

import itertools

import polars as pl
import pytest

from crossperf import catalog, dataset
from crossperf.datasets import testbed


def test_the_testbed_has_every_input_on_every_platform() -> None:
    frame = testbed.load().frame
    assert frame["app"].n_unique() >= 40
    cells = frame.group_by("app", "input").agg(pl.col("platform").n_unique())
    assert cells.height >= 640
    assert cells["platform"].min() == 6
    assert (frame["status"] == "ok").all()


def test_counters_are_missing_only_where_their_class_of_platform_has_none() -> None:
    table = testbed.load()
    frame = table.frame
    names = {name.removeprefix("counter.") for name in table.counters}
    assert (
        {name for name, counter in catalog.COUNTERS.items() if not counter.optional} <= names <= set(catalog.COUNTERS)
    )
    for kind in ("cpu", "gpu"):
        part = frame.filter(pl.col("platform_class") == kind)
        for name in names:
            missing = part[f"counter.{name}"].null_count()
            # A pass without a parallel region has no instructions in one.
            assert missing in (0, part.height) or name == "region_instructions", (kind, name)
    gpu = frame.filter(pl.col("platform_class") == "gpu")
    assert gpu["counter.warp_blocks"].min() > 0  # type: ignore[operator]


def one_repeat(platform: str, app: str, input_: str) -> dict[str, float]:
    """Return the counters of an input on a platform."""
    frame = testbed.load().frame.filter(pl.col("repeat") == 0, platform=platform, app=app, input=input_)
    (row,) = frame.iter_rows(named=True)
    return {name.removeprefix("counter."): value for name, value in row.items() if name.startswith("counter.")}


def test_every_second_access_of_a_triad_of_floats_misses_the_first_cache() -> None:
    """32 bytes an access and lines of 64, three arrays of 4 MB that no first cache holds and every last one does."""
    for platform in ("epyc-1t", "xeon-16t"):
        counters = one_repeat(platform, "triad", "size=1000000 sweeps=1 precision=float")
        assert counters["cache_miss_ratio"] == pytest.approx(1.0, rel=0.1)
        assert counters["cache_miss_rate"] == pytest.approx(0.5, rel=0.05)
        assert counters["bytes_beyond_l1"] == pytest.approx(12e6, rel=0.05)
        assert counters["bytes_beyond_llc"] < 0.01 * 12e6


def test_data_that_fits_the_last_cache_is_found_there_as_it_is_when_passes_are_timed() -> None:
    """Lines of 134 MB: the Xeon's cache holds them, the EPYC's does not, in one sweep as in ten."""
    for sweeps in (1, 10):
        work = ("daxpy", f"size=700000 stride=12 sweeps={sweeps}")
        assert one_repeat("xeon-1t", *work)["llc_miss_rate"] < 0.01
        assert one_repeat("epyc-1t", *work)["llc_miss_rate"] > 0.99


def test_larger_caches_miss_less_and_ask_less_of_what_lies_beyond() -> None:
    cpu = testbed.load().frame.filter(pl.col("platform_class") == "cpu")
    curve = [f"counter.{name}" for name in catalog.COUNTERS if name.startswith("miss_rate_")]
    for smaller, larger in itertools.pairwise(curve):
        assert (cpu[smaller] >= cpu[larger]).all()
    assert (cpu["counter.bytes_beyond_l1"] >= cpu["counter.bytes_beyond_llc"]).all()


def test_no_timing_covers_less_than_five_milliseconds_and_repeats_vary_little() -> None:
    frame = testbed.load().frame
    assert (frame["runtime_s"] * frame["passes"]).min() >= 4.99e-3  # type: ignore[operator]
    assert frame["spread"].median() < 0.05  # type: ignore[operator]


def test_every_result_is_the_same_on_all_platforms() -> None:
    frame = testbed.load().frame
    apart = frame.group_by("app", "input").agg(
        ((pl.col("checksum").max() - pl.col("checksum").min()) / pl.col("checksum").abs().max().clip(1e-30)).alias(
            "apart"
        )
    )
    single = apart["input"].str.contains("precision=float")
    assert apart.filter(single)["apart"].max() <= 2e-4  # type: ignore[operator]
    assert apart.filter(~single)["apart"].max() <= 1e-8  # type: ignore[operator]


def test_no_order_of_the_platforms_dominates() -> None:
    data = dataset.build(testbed.load())
    orders = [tuple(row) for row in data.log_time_wp.argsort(axis=1)]
    assert max(orders.count(order) for order in set(orders)) < 0.5 * len(orders)


def test_facts_of_all_platforms_come_along() -> None:
    by_name = {entry.name: entry for entry in testbed.platforms()}
    assert set(by_name) == set(testbed.load().frame["platform"])
    assert by_name["h200"].facts.gpus[0].model == "NVIDIA H200"
    assert by_name["xeon-16t"].facts.cores == 16
