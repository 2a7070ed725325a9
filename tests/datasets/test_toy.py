from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from crossperf.datasets import toy
from crossperf.errors import SettingsError


def one_program(**traits: float) -> toy.Programs:
    plain = {
        "instructions_w": 1e9,
        "float_ratio_w": 0.3,
        "int_ratio_w": 0.3,
        "mem_ratio_w": 0.5,
        "control_ratio_w": 0.1,
        "parallel_share_w": 0.5,
        "cache_miss_ratio_w": 1.0,
        "branch_miss_ratio_w": 0.01,
        "bytes_to_gpu_w": 1e8,
        "io_bytes_w": 0.0,
    }
    return toy.Programs(**{name: np.array([value]) for name, value in (plain | traits).items()})


PLATFORM = toy.ToyPlatform(
    "p",
    "gpu",
    instructions_per_s=1e9,
    lanes=2,
    bytes_per_s=1e11,
    branch_miss_s=1e-8,
    link_bytes_per_s=1e10,
    overhead_s=0.25,
)


def test_the_law_gives_the_seconds_worked_out_by_hand() -> None:
    # Half parallel on 2 lanes: 1 / (0.5 + 0.25) = 4/3 lanes in use. Compute: 1e9 / (1e9 * 4/3) = 0.75 s.
    # Memory: 1e9 * 0.5 * 1/2 missed * 64 bytes / 1e11 = 0.16 s, hidden behind compute.
    # Branches: 1e9 * 0.1 * 0.01 * 1e-8 s / (4/3) = 0.0075 s. Copies: 2 * 1e8 / 1e10 = 0.02 s. Overhead 0.25 s.
    assert toy.law(one_program(), PLATFORM) == pytest.approx([0.75 + 0.0075 + 0.02 + 0.25])


def test_the_law_is_bound_by_memory_where_that_takes_longer() -> None:
    # All of it misses, nearly: 1e9 * 1.0 * 99/100 * 64 / 1e11 = 0.6336 s; serial compute on a fast core 0.1 s.
    fast = toy.ToyPlatform("p", "cpu", 1e10, 1, 1e11, 0.0, np.inf, 0.0)
    assert toy.law(one_program(mem_ratio_w=1.0, cache_miss_ratio_w=99.0), fast) == pytest.approx([0.6336])


def test_the_same_seed_gives_the_same_runs_and_another_seed_does_not() -> None:
    first, again, other = (toy.make_runs(apps=2, inputs=2, repeats=1, seed=seed) for seed in (5, 5, 6))
    assert first == again
    assert first != other


def test_without_noise_every_repeat_is_the_law_itself() -> None:
    table = toy.make_table(apps=3, inputs=2, platforms=4, repeats=2, noise=0.0, seed=4)
    programs = toy.draw_programs(3, 2, np.random.default_rng(4))
    for platform in toy.PLATFORMS:
        runtime_s = table.frame.filter(pl.col("platform") == platform.name)["runtime_s"].to_numpy()
        np.testing.assert_allclose(runtime_s, toy.law(programs, platform).repeat(2), rtol=1e-12)


def test_noise_is_the_standard_deviation_of_log_runtime() -> None:
    exact, noisy = (
        np.log(toy.make_table(apps=10, inputs=10, repeats=10, noise=noise, seed=2).frame["runtime_s"].to_numpy())
        for noise in (0.0, 0.1)
    )
    assert np.std(noisy - exact) == pytest.approx(0.1, rel=0.05)  # 4,000 draws: 1.1 % standard error


def test_a_platform_class_lacks_the_counters_it_cannot_measure() -> None:
    frame = toy.make_table(apps=1, inputs=1, repeats=1).frame
    on = {row["platform_class"]: row for row in frame.iter_rows(named=True)}
    assert on["cpu"]["counter.warp_blocks"] is None
    assert on["cpu"]["counter.page_faults"] > 0
    assert on["gpu"]["counter.page_faults"] is None
    assert on["gpu"]["counter.warp_blocks"] > 0


def test_more_platforms_than_are_named_get_names_and_classes_of_their_own() -> None:
    frame = toy.make_table(apps=1, inputs=1, platforms=7, repeats=1).frame
    assert frame["platform"].to_list() == ["cpu-a", "cpu-b", "gpu-a", "gpu-b", "cpu-4", "cpu-5", "gpu-6"]
    assert frame["platform_class"].to_list() == ["cpu", "cpu", "gpu", "gpu", "cpu", "cpu", "gpu"]


@pytest.mark.parametrize("setting", [{"apps": 0}, {"repeats": 0}, {"platforms": 0}, {"noise": -0.1}])
def test_settings_out_of_range_are_refused(setting: dict[str, int]) -> None:
    with pytest.raises(
        SettingsError, match=r"expected counts of 1 or more, 10,000,000 runs at most, and noise of 0 or more"
    ):
        toy.make_table(**setting)
