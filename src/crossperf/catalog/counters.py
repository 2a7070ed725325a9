"""The counters of the vocabulary, each by one name with its unit, group and meaning.

The vocabulary is Table I of the seed paper. A runs table may hold other counters as well: they are used
unchanged, and what the catalog adds for its own is a unit, a meaning and a range to check against.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Group = Literal["memory and locality", "control flow and parallelism", "I/O"]


@dataclass(frozen=True)
class Counter:
    """One counter as crossperf names it."""

    name: str
    unit: str
    group: Group
    meaning: str
    at_most: float | None = None


_MEMORY: Group = "memory and locality"
_CONTROL: Group = "control flow and parallelism"
_IO: Group = "I/O"

COUNTERS: dict[str, Counter] = {
    counter.name: counter
    for counter in (
        Counter(
            "instructions", "count", _CONTROL, "Instructions executed, over all processes and threads, or kernels."
        ),
        Counter("int_ratio", "ratio", _CONTROL, "Integer arithmetic to all instructions.", 1.0),
        Counter("float_ratio", "ratio", _CONTROL, "Floating-point arithmetic to all instructions.", 1.0),
        Counter("mem_ratio", "ratio", _MEMORY, "Instructions that load or store to all instructions.", 1.0),
        Counter("control_ratio", "ratio", _CONTROL, "Branches, calls and returns to all instructions.", 1.0),
        Counter(
            "independent_ratio",
            "ratio",
            _CONTROL,
            "Instructions that wait for no earlier one of their block, to all instructions.",
            1.0,
        ),
        Counter("cache_miss_ratio", "ratio", _MEMORY, "Misses to hits of the first data cache."),
        Counter("l2_miss_ratio", "ratio", _MEMORY, "Misses to hits of the second-level cache."),
        Counter("llc_miss_ratio", "ratio", _MEMORY, "Misses to hits of the last-level cache."),
        Counter("branch_miss_ratio", "ratio", _CONTROL, "Mispredicted to all branch instructions.", 1.0),
        Counter("page_levels", "count", _MEMORY, "Levels of the page table in use."),
        Counter("page_faults", "count", _MEMORY, "Page faults, minor and major."),
        Counter("threads", "count", _CONTROL, "Threads of all processes, or streams on a GPU."),
        Counter("warp_blocks", "count", _CONTROL, "Thread blocks launched on a GPU."),
        Counter("bytes_host_to_gpu", "bytes", _MEMORY, "Bytes copied from the host to the GPU."),
        Counter("bytes_gpu_to_host", "bytes", _MEMORY, "Bytes copied from the GPU to the host."),
        Counter("bandwidth_host_to_gpu", "bytes/s", _MEMORY, "Bandwidth of the copies to the GPU."),
        Counter("bandwidth_gpu_to_host", "bytes/s", _MEMORY, "Bandwidth of the copies from the GPU."),
        Counter("io_bytes_read", "bytes", _IO, "Bytes read through system calls."),
        Counter("io_bytes_written", "bytes", _IO, "Bytes written through system calls."),
        Counter("io_files_opened", "count", _IO, "Files opened, by system calls that succeeded."),
    )
}
