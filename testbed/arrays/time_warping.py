"""Dynamic time warping of pairs of series: dynamic programming along the antidiagonals of the table."""

import harness
import numpy as np
import torch
from torch import Tensor


def set_up(draw: np.random.Generator, *, pairs: int, length: int) -> tuple[np.ndarray, ...]:
    return tuple(draw.standard_normal((pairs, length), dtype=np.float32) for _ in range(2))


def work(left: Tensor, right: Tensor) -> Tensor:
    pairs, length = left.shape
    # Column i + 1 of an antidiagonal belongs to row i of the table; what lies outside is infinite.
    before = torch.full((pairs, length + 1), torch.inf, device=left.device)
    last = before.clone()
    before[:, 0] = 0
    flipped = right.flip(1)
    for diagonal in range(2 * length - 1):
        first, end = max(0, diagonal - length + 1), min(diagonal + 1, length)
        shift = length - 1 - diagonal
        cost = (left[:, first:end] - flipped[:, first + shift : end + shift]).abs()
        nearest = torch.minimum(before[:, first:end], torch.minimum(last[:, first:end], last[:, first + 1 : end + 1]))
        now = torch.full_like(last, torch.inf)
        now[:, first + 1 : end + 1] = cost + nearest
        before, last = last, now
    return last[:, length]


if __name__ == "__main__":
    harness.run(set_up, work)
