"""Runs drawn from a law we know, for tests, benchmarks and first steps. Nothing here was measured.

A program is a point in trait space (how many instructions, of which kind, how parallel, how well its data
stays in cache); a platform is a handful of facts. `law` turns both into seconds: a roofline with Amdahl's
share, branch penalties, copies over a link and a fixed overhead. Every trait shows in the counters, so a
model can learn the law; how well it did is known exactly.
"""

# W workloads, P platforms

from __future__ import annotations

import math
from dataclasses import astuple, dataclass

import numpy as np
import polars as pl

from crossperf.arrays import Floats
from crossperf.errors import SettingsError
from crossperf.records import Run
from crossperf.runs.rules import COUNTER_PREFIX
from crossperf.runs.table import RunsTable, from_frame

#: More than anybody tries things out with; they would not fit into memory.
_MOST_RUNS = 10_000_000


@dataclass(frozen=True)
class ToyPlatform:
    """The facts of a made-up platform that the law knows."""

    name: str
    platform_class: str
    instructions_per_s: float
    lanes: float
    bytes_per_s: float
    branch_miss_s: float
    link_bytes_per_s: float
    overhead_s: float


#: A desktop, a server, a small GPU and a large GPU, roughly.
PLATFORMS: tuple[ToyPlatform, ...] = (
    ToyPlatform("cpu-a", "cpu", 4e9, 4, 2e10, 4e-9, np.inf, 1e-3),
    ToyPlatform("cpu-b", "cpu", 3e9, 32, 1.2e11, 5e-9, np.inf, 4e-3),
    ToyPlatform("gpu-a", "gpu", 4e8, 1_500, 3e11, 3e-9, 8e9, 2e-2),
    ToyPlatform("gpu-b", "gpu", 5e8, 10_000, 1.5e12, 2e-9, 2e10, 5e-2),
)

#: Counters that a platform class cannot measure, as on real machines.
NOT_MEASURED = {"cpu": ("warp_blocks", "bytes_host_to_gpu", "bytes_gpu_to_host"), "gpu": ("page_faults",)}


@dataclass(frozen=True)
class Programs:
    """The traits of workloads, one array each."""

    instructions_w: Floats
    float_ratio_w: Floats
    int_ratio_w: Floats
    mem_ratio_w: Floats
    control_ratio_w: Floats
    parallel_share_w: Floats
    cache_miss_ratio_w: Floats
    branch_miss_ratio_w: Floats
    bytes_to_gpu_w: Floats
    io_bytes_w: Floats

    def __len__(self) -> int:
        return len(self.instructions_w)


def law(programs: Programs, platform: ToyPlatform) -> Floats:
    """Return the seconds that each program takes on a platform, without noise."""
    n = programs
    lanes_used_w = 1.0 / (1.0 - n.parallel_share_w + n.parallel_share_w / platform.lanes)
    compute_s_w = n.instructions_w / (platform.instructions_per_s * lanes_used_w)
    missed_w = n.cache_miss_ratio_w / (1.0 + n.cache_miss_ratio_w)
    memory_s_w = n.instructions_w * n.mem_ratio_w * missed_w * 64.0 / platform.bytes_per_s
    branches_w = n.instructions_w * n.control_ratio_w * n.branch_miss_ratio_w
    branch_s_w = branches_w * platform.branch_miss_s / lanes_used_w
    copy_s_w = 2.0 * n.bytes_to_gpu_w / platform.link_bytes_per_s
    return np.asarray(np.maximum(compute_s_w, memory_s_w) + branch_s_w + copy_s_w + platform.overhead_s)


def draw_programs(apps: int, inputs: int, rng: np.random.Generator) -> Programs:
    """Return `apps` x `inputs` workloads; the inputs of an application differ mostly in size."""

    def trait(low: float, high: float, jitter: float = 0.05) -> Floats:
        centre_a = rng.uniform(low, high, apps)
        spread_ai = centre_a[:, None] + jitter * (high - low) * rng.standard_normal((apps, inputs))
        return np.clip(spread_ai, low, high).ravel()

    size_ai = rng.uniform(8.0, 10.0, apps)[:, None] + np.linspace(0.0, 2.5, inputs) + rng.normal(0, 0.1, (apps, inputs))
    instructions_w = 10.0 ** size_ai.ravel()
    mix_w4 = np.stack([trait(0.05, 1.0) for _ in range(4)], axis=1)
    float_w, int_w, mem_w, control_w = (mix_w4 / (mix_w4.sum(axis=1, keepdims=True) * 1.1)).T
    return Programs(
        *(instructions_w, float_w, int_w, mem_w, control_w * 0.5),
        parallel_share_w=1.0 - 10.0 ** trait(-4.0, -0.5),
        cache_miss_ratio_w=10.0 ** trait(-3.0, 0.3, jitter=0.1),
        branch_miss_ratio_w=10.0 ** trait(-3.5, -0.8),
        bytes_to_gpu_w=instructions_w * 10.0 ** trait(-3.0, -0.5),
        io_bytes_w=instructions_w * 10.0 ** trait(-4.0, -2.0),
    )


def make_platforms(n: int, rng: np.random.Generator) -> tuple[ToyPlatform, ...]:
    """Return the first `n` of the named platforms, and variations of them where more are asked for."""
    made = list(PLATFORMS[:n])
    while len(made) < n:
        pattern = PLATFORMS[len(made) % len(PLATFORMS)]
        facts = [f * rng.uniform(0.5, 2.0) for f in astuple(pattern)[2:]]
        made.append(ToyPlatform(f"{pattern.platform_class}-{len(made)}", pattern.platform_class, *facts))
    return tuple(made)


def make_table(
    apps: int = 12, inputs: int = 8, platforms: int = 4, repeats: int = 3, noise: float = 0.03, seed: int = 0
) -> RunsTable:
    """Return a runs table drawn from the law.

    Parameters
    ----------
    noise
        Standard deviation of the logarithm of a runtime around the law's; counters get a fifth of it.
    """
    count = apps * inputs * platforms * repeats
    if min(apps, inputs, platforms, repeats) < 1 or count > _MOST_RUNS or not 0 <= noise < math.inf:
        raise SettingsError(
            f"toy runs: found apps={apps}, inputs={inputs}, platforms={platforms}, repeats={repeats}, noise={noise}, "
            f"expected counts of 1 or more, {_MOST_RUNS:,} runs at most, and noise of 0 or more. Correct them."
        )
    rng = np.random.default_rng(seed)
    programs = draw_programs(apps, inputs, rng)
    app_names = [f"app{a:0{len(str(apps - 1))}d}" for a in range(apps)]
    cells = pl.DataFrame(
        {
            "app": np.repeat(app_names, inputs * repeats),
            "input": np.tile(np.repeat([f"n{i}" for i in range(inputs)], repeats), apps),
            "repeat": np.tile(np.arange(repeats), apps * inputs),
        }
    )
    frames = []
    for platform in make_platforms(platforms, rng):
        log_s_w = np.log(law(programs, platform)).repeat(repeats)
        runtime_s_w = np.exp(log_s_w + noise * rng.standard_normal(len(log_s_w)))
        counters = draw_counters(programs, platform, repeats, noise / 5, rng)
        names = {"platform": platform.name, "platform_class": platform.platform_class, "source_tool": "toy"}
        facts = {name: pl.lit(text) for name, text in names.items()}
        frames.append(cells.with_columns(*counters, **facts, runtime_s=pl.Series(runtime_s_w)))
    return from_frame(pl.concat(frames), name="toy")


def make_runs(
    apps: int = 12, inputs: int = 8, platforms: int = 4, repeats: int = 3, noise: float = 0.03, seed: int = 0
) -> list[Run]:
    """Return the runs of `make_table` as records.

    >>> make_runs(apps=1, inputs=1, platforms=2, repeats=1, seed=3)[1].platform
    'cpu-b'
    """
    return make_table(apps, inputs, platforms, repeats, noise, seed).runs()


def draw_counters(
    programs: Programs, platform: ToyPlatform, repeats: int, noise: float, rng: np.random.Generator
) -> list[pl.Series]:
    """Return the counters as this platform's tools would report them, each repeat with its own error."""
    n = programs
    exact = {
        "instructions": n.instructions_w,
        "float_ratio": n.float_ratio_w,
        "int_ratio": n.int_ratio_w,
        "mem_ratio": n.mem_ratio_w,
        "control_ratio": n.control_ratio_w,
        "independent_ratio": n.parallel_share_w,
        "cache_miss_ratio": n.cache_miss_ratio_w,
        "branch_miss_ratio": n.branch_miss_ratio_w,
        "page_levels": np.full(len(n), 4.0),
        "page_faults": n.instructions_w / 1e5,
        "threads": np.full(len(n), platform.lanes),
        # How the parallel share shows on a GPU: blocks for every instruction that can run at once.
        "warp_blocks": n.instructions_w * n.parallel_share_w / 1e4,
        "bytes_host_to_gpu": n.bytes_to_gpu_w,
        "bytes_gpu_to_host": n.bytes_to_gpu_w,
        "io_bytes_read": n.io_bytes_w,
        "io_bytes_written": n.io_bytes_w / 2,
        "io_files_opened": 3.0 + np.log10(n.io_bytes_w),
    }
    columns = []
    for name, values_w in exact.items():
        measured_n = values_w.repeat(repeats) * np.exp(noise * rng.standard_normal(len(n) * repeats))
        if name.endswith("_ratio") and name != "cache_miss_ratio":
            measured_n = np.minimum(measured_n, 1.0)
        values = [None] * len(measured_n) if name in NOT_MEASURED[platform.platform_class] else measured_n
        columns.append(pl.Series(COUNTER_PREFIX + name, values, dtype=pl.Float64))
    return columns
