"""How much memory a model takes to learn, known before the work starts; measured, see ``docs/limits.md``.

`drawn` is the rule for tables that are too long: a part that fits, of whole workloads.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crossperf.dataset.pairing import Dataset

GIGABYTE = 10**9


@dataclass(frozen=True)
class MemoryNeed:
    """Bytes that a fit takes: whatever the table, for each cell, each number of a cell, and each pair of cells.

    The numbers of a cell are its features and its times. Pairs are of the first `paired` cells. From `most_cells` on a
    fit takes more than about half an hour on two cores.
    """

    base: float
    each_cell: float = 0.0
    each_number: float = 8.0
    each_pair: float = 0.0
    paired: int = 0
    most_cells: int = 10**9

    def bytes_for(self, cells: int, features: int, platforms: int) -> float:
        """Return about how many bytes a fit takes at its peak.

        >>> MemoryNeed(1e9, 1000.0, 10.0).bytes_for(1_000_000, 90, 10) / 1e9
        3.0
        """
        each = self.each_cell + self.each_number * (features + platforms)
        return self.base + cells * each + self.each_pair * min(cells, self.paired) ** 2

    def cells_within(self, most: float, features: int, platforms: int) -> int:
        """Return about how many cells take no more than a number of bytes; 0 where none do."""
        sizes = range(0, 10**9)
        return max(0, bisect_right(sizes, most, key=lambda cells: self.bytes_for(cells, features, platforms)) - 1)


#: By model, as measured (``docs/limits.md``); one that is not here takes what `_OTHERS` tells.
_NEEDS = {
    # Trees take most; the Gaussian process of up to 10,000 cells takes 2 GB. Half an hour is worked out from 3.9 ms of
    # CPU a cell at 103,296 cells of 8 platforms, with room for growth.
    "crossperf": MemoryNeed(0.5e9, 28_000.0, 350.0, 20.0, 10_000, most_cells=400_000),
    "random-forest": MemoryNeed(0.4e9, 12_000.0, 200.0),
    "extra-trees": MemoryNeed(0.4e9, 12_000.0, 200.0),
}
_OTHERS = MemoryNeed(0.5e9, 0.0, 40.0)


def need_of(name: str) -> MemoryNeed:
    """Return what a model takes."""
    return _NEEDS.get(name, _OTHERS)


def drawn(data: Dataset, name: str, *, most_bytes: float | None = None, seed: int = 0) -> Dataset:
    """Return what a model learns from by default: the dataset, or of a long one whole workloads drawn in strata.

    As many cells are kept as fit into the memory, and no more than the model learns from in about half an hour on two
    cores; see `crossperf.dataset.sample` for how they are drawn.

    Parameters
    ----------
    most_bytes
        The memory that the fit may take; by default what is free on this machine.
    """
    from crossperf.dataset.sampling import sample

    need, free = need_of(name), free_bytes() if most_bytes is None else most_bytes
    most = need.most_cells
    if free is not None:
        most = min(most, need.cells_within(free, len(data.features.columns), len(data.platforms)))
    return sample(data, max(most, _FEWEST), seed=seed)


def free_bytes() -> float | None:
    """Return the memory that a process can still have here, as the kernel and a container's limit tell; or ``None``."""
    free = [number for number in (_available(), _within_container()) if number is not None]
    return min(free) if free else None


def held_bytes() -> float:
    """Return the memory that this process has now."""
    try:
        return float(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * 4096
    except (OSError, ValueError, IndexError):
        return 0.0


def _available() -> float | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, IndexError, StopIteration):
        return None


def _within_container() -> float | None:
    folder = Path("/sys/fs/cgroup")
    try:
        most, used = ((folder / name).read_text(encoding="utf-8") for name in ("memory.max", "memory.current"))
        return max(0.0, float(most) - float(used))
    except (OSError, ValueError):  # no limit is the word "max"
        return None


def advice(name: str, cells: int, features: int, platforms: int, free: float | None) -> str | None:
    """Return a sentence about the memory that a fit takes; ``None`` where it is little, and there is more than enough.

    >>> advice("crossperf", 200_000, 40, 6, 4e9)
    'crossperf on 200,000 cells takes about 11 GB of memory, and 4 GB are free: use --sample 30000, or fewer platforms.'
    >>> advice("ridge", 1000, 40, 6, 4e9) is None
    True
    """
    need = need_of(name)
    wanted = need.bytes_for(cells, features, platforms)
    if free is not None and wanted > free:
        most = need.cells_within(free, features, platforms)
        few = f"use --sample {_rounded(most)}" if most >= _FEWEST else "use another model, or a machine with more"
        words = f"{name} on {cells:,} cells takes about {_size(wanted)} of memory, and {_size(free)} are free"
        return f"{words}: {few}, or fewer platforms."
    if wanted > _WORTH_SAYING:
        return f"{name} on {cells:,} cells takes about {_size(wanted)} of memory."
    return None


_FEWEST = 1000
_WORTH_SAYING = 4 * GIGABYTE


def _size(number: float) -> str:
    return f"{max(1, round(number / GIGABYTE)):,} GB"


def _rounded(cells: int) -> int:
    """Return a number with one digit that counts.

    >>> _rounded(58_123)
    50000
    """
    step = int(10 ** (len(str(cells)) - 1))
    return cells // step * step
