from __future__ import annotations

import polars as pl

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
    frame = testbed.load().frame
    for kind in ("cpu", "gpu"):
        part = frame.filter(pl.col("platform_class") == kind)
        for name in catalog.COUNTERS:
            missing = part[f"counter.{name}"].null_count()
            assert missing in (0, part.height), (kind, name)
    gpu = frame.filter(pl.col("platform_class") == "gpu")
    assert gpu["counter.warp_blocks"].min() > 0  # type: ignore[operator]


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
