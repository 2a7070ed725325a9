from __future__ import annotations

import itertools
import statistics

import polars as pl
import pytest

from crossperf import catalog, dataset
from crossperf.datasets import testbed
from crossperf.errors import SettingsError

CPUS = ("epyc-1t", "epyc-2t", "xeon-1t", "xeon-4t", "xeon-16t")


def rows(kind: str) -> pl.DataFrame:
    """Return the rows of whole programs of a kind."""
    return testbed.load().frame.filter(kind=kind)


def counters_of(platform: str, app: str, input_: str) -> dict[str, float]:
    """Return the counters of a pass on a platform."""
    frame = testbed.load("passes").frame.filter(pl.col("repeat") == 0, platform=platform, app=app, input=input_)
    (row,) = frame.iter_rows(named=True)
    return {name.removeprefix("counter."): value for name, value in row.items() if name.startswith("counter.")}


def test_the_testbed_has_1500_programs_of_proxies_on_every_platform() -> None:
    frame = rows("proxy")
    assert frame["app"].n_unique() == 46
    cells = frame.group_by("app", "input").agg(pl.col("platform").n_unique())
    assert cells.height >= 1500
    assert cells["platform"].min() == 6


def test_real_applications_ran_on_every_cpu_and_can_run_on_no_gpu() -> None:
    frame = rows("application")
    assert frame["app"].n_unique() >= 25
    inputs = frame.group_by("app").agg(pl.col("input").n_unique())
    assert inputs.filter(pl.col("input") >= 6).height >= 25
    assert set(frame["platform"]) == set(CPUS)
    assert set(frame["runnable"]) == {"cpu"}
    assert set(testbed.load().frame.filter(pl.col("platform") == "h200")["runnable"]) == {"cpu gpu"}


def test_every_cell_was_visited_in_rounds_apart() -> None:
    frame = testbed.load().frame.filter(status="ok")
    visits = frame.group_by("kind", "app", "input", "platform").agg(pl.col("measured_in").n_unique().alias("n"))
    shares = dict(visits.group_by("kind").agg((pl.col("n") >= 2).mean()).iter_rows())
    assert shares["proxy"] == 1.0
    assert shares["application"] > 0.99
    assert shares["array program"] > 0.3  # twice on the EPYC, once elsewhere


def test_programs_are_whole_processes_from_a_twentieth_of_a_second_on() -> None:
    """They start, fault pages in and open files; one thread of the EPYC takes 0.05 to 20 s, or one pass longer."""
    frame = rows("proxy").filter(platform="epyc-1t")
    seconds = frame.group_by("app", "input").agg(pl.col("runtime_s").median())["runtime_s"]
    assert seconds.quantile(0.02) > 0.03  # type: ignore[operator]
    assert seconds.quantile(0.98) < 25.0  # type: ignore[operator]
    assert frame["counter.page_faults"].min() > 100  # type: ignore[operator]
    assert frame["counter.startup_instructions"].min() > 1e5  # type: ignore[operator]
    assert frame["counter.io_files_opened"].min() >= 1  # type: ignore[operator]


def test_counters_are_missing_only_where_their_class_of_platform_has_none() -> None:
    frame = rows("proxy")
    table_i = [name for name, counter in catalog.COUNTERS.items() if not counter.optional]
    for kind in ("cpu", "gpu"):
        part = frame.filter(platform_class=kind)
        if kind == "gpu":  # not every input was counted there
            part = part.filter(pl.col("counter.warp_blocks").is_not_null())
        for name in table_i:
            missing = part[f"counter.{name}"].null_count()
            assert missing in (0, part.height), (kind, name)


def test_every_second_access_of_a_triad_of_floats_misses_the_first_cache() -> None:
    """32 bytes an access and lines of 64, three arrays of 4 MB that no first cache holds and every last one does."""
    for platform in ("epyc-1t", "xeon-16t"):
        counters = counters_of(platform, "triad", "size=1000000 sweeps=1 precision=float")
        assert counters["cache_miss_ratio"] == pytest.approx(1.0, rel=0.1)
        assert counters["cache_miss_rate"] == pytest.approx(0.5, rel=0.05)
        assert counters["bytes_beyond_l1"] == pytest.approx(12e6, rel=0.05)
        assert counters["bytes_beyond_llc"] < 0.01 * 12e6


def test_data_that_fits_the_last_cache_is_found_there_as_it_is_when_passes_are_timed() -> None:
    """Lines of 134 MB: the Xeon's cache holds them, the EPYC's does not, in one sweep as in ten."""
    for sweeps in (1, 10):
        work = ("daxpy", f"size=700000 stride=12 sweeps={sweeps}")
        assert counters_of("xeon-1t", *work)["llc_miss_rate"] < 0.01
        assert counters_of("epyc-1t", *work)["llc_miss_rate"] > 0.9


def test_a_program_of_many_passes_has_the_instructions_of_as_many() -> None:
    """Set-up and start are a few passes' worth of the smallest triad, which makes millions."""
    name = "size=1000 sweeps=1 precision=double"
    of_pass = counters_of("epyc-1t", "triad", name)["instructions"]
    whole = rows("proxy").filter(pl.col("input").str.starts_with(f"{name} passes="), app="triad", platform="epyc-1t")
    passes = int(whole["input"][0].rpartition("=")[2])
    assert whole["counter.instructions"][0] == pytest.approx(passes * of_pass, rel=0.01)
    assert whole["counter.parallel_regions"][0] == passes


def test_larger_caches_miss_less_and_ask_less_of_what_lies_beyond() -> None:
    cpu = testbed.load().frame.filter(platform_class="cpu")
    curve = [f"counter.{name}" for name in catalog.COUNTERS if name.startswith("miss_rate_")]
    for smaller, larger in itertools.pairwise(curve):
        assert (cpu[smaller] >= cpu[larger]).all()
    assert (cpu["counter.bytes_beyond_l1"] >= cpu["counter.bytes_beyond_llc"]).all()


def test_every_result_of_a_proxy_is_the_same_on_all_platforms() -> None:
    frame = rows("proxy")
    apart = frame.group_by("app", "input").agg(
        ((pl.col("checksum").max() - pl.col("checksum").min()) / pl.col("checksum").abs().max().clip(1e-30)).alias(
            "difference"
        )
    )
    limit = pl.when(pl.col("input").str.contains("precision=float")).then(2e-4).otherwise(1e-8)
    assert apart.filter(pl.col("difference") > limit).is_empty()


def test_passes_are_shorter_than_the_programs_that_make_them() -> None:
    passes, programs = testbed.load("passes").frame, rows("proxy")
    assert passes.height == programs.height
    of_passes, of_programs = (
        statistics.median(frame.filter(platform="epyc-1t")["runtime_s"]) for frame in (passes, programs)
    )
    assert of_passes < 0.01 < of_programs
    with pytest.raises(SettingsError, match="'hot', expected 'programs' or 'passes'"):
        testbed.load("hot")  # type: ignore[arg-type]


def test_no_order_of_the_platforms_dominates() -> None:
    data = dataset.build(testbed.load())
    orders = [tuple(row) for row in data.log_time_wp.argsort(axis=1)]
    assert max(orders.count(order) for order in set(orders)) < 0.5 * len(orders)
    assert 0.5 < data.runnable_wp[:, data.platforms.index("h200")].mean() < 1.0


def test_facts_of_all_platforms_come_along() -> None:
    by_name = {entry.name: entry for entry in testbed.platforms()}
    assert set(by_name) == set(testbed.load().frame["platform"])
    assert by_name["h200"].facts.gpus[0].model == "NVIDIA H200"
    assert by_name["xeon-16t"].facts.cores == 16
