"""A chain of dense matrix products, each scaled to keep its size."""

import harness
import numpy as np
from torch import Tensor


def set_up(draw: np.random.Generator, *, size: int) -> tuple[np.ndarray, ...]:
    factor = draw.standard_normal((size, size), dtype=np.float32) / np.float32(size**0.5)
    return factor, draw.standard_normal((size, size), dtype=np.float32)


def work(factor: Tensor, state: Tensor, *, products: int) -> Tensor:
    for _ in range(products):
        state = factor @ state
        state = state / state.abs().mean()
    return state


if __name__ == "__main__":
    harness.run(set_up, work)
