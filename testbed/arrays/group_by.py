"""A histogram of groups, with sums and maxima by group: scattered additions with a skewed choice of groups."""

import harness
import numpy as np
import torch
from torch import Tensor


def set_up(draw: np.random.Generator, *, rows: int, groups: int) -> tuple[np.ndarray, ...]:
    group = (groups * draw.random(rows, dtype=np.float32).astype(np.float64) ** 2).astype(np.int64)
    return group, draw.random(rows, dtype=np.float32)


def work(group: Tensor, value: Tensor, *, groups: int, columns: int) -> Tensor:
    results = [torch.bincount(group, minlength=groups).float()]
    empty = torch.zeros(groups, device=value.device)
    for column in range(columns):
        shifted = value * (column + 1) / columns
        results.append(empty.scatter_add(0, group, shifted))
        results.append(empty.scatter_reduce(0, group, shifted, "amax"))
        group = (group + 1).remainder(groups)
    return torch.stack(results)


if __name__ == "__main__":
    harness.run(set_up, work)
