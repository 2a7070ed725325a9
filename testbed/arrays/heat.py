"""The heat equation on a square plate: an explicit five-point stencil by slices."""

import harness
import numpy as np
from torch import Tensor


def set_up(draw: np.random.Generator, *, side: int) -> tuple[np.ndarray, ...]:
    return (draw.random((side, side)),)


def work(plate: Tensor, *, steps: int) -> Tensor:
    for _ in range(steps):
        around = plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]
        inner = plate[1:-1, 1:-1]
        inner += 0.2 * (around - 4 * inner)
    return plate


if __name__ == "__main__":
    harness.run(set_up, work)
