"""Sorting: rows of a table by value, all records by key, and a search for quantiles."""

import harness
import numpy as np
import torch
from torch import Tensor


def set_up(draw: np.random.Generator, *, rows: int, columns: int) -> tuple[np.ndarray, ...]:
    value = draw.standard_normal((rows, columns), dtype=np.float32)
    key = draw.integers(1 << 20, size=rows * columns)
    return value, key


def work(value: Tensor, key: Tensor) -> Tensor:
    ordered, _ = value.sort(dim=1)
    _, order = key.sort(stable=True)
    by_key = value.reshape(-1)[order]
    edges = torch.searchsorted(ordered, by_key[: ordered.shape[1]].expand(len(ordered), -1).contiguous())
    return torch.cat([ordered.reshape(-1), by_key, edges.reshape(-1) / ordered.shape[1]])


if __name__ == "__main__":
    harness.run(set_up, work)
