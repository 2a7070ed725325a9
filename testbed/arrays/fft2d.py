"""A reaction-diffusion equation by the spectral method: a forward and an inverse 2D Fourier transform each step."""

import harness
import numpy as np
import torch
from torch import Tensor

STEP = 0.1


def set_up(draw: np.random.Generator, *, side: int) -> tuple[np.ndarray, ...]:
    state = draw.standard_normal((side, side), dtype=np.float32)
    force = draw.standard_normal((side, side), dtype=np.float32)
    rows, columns = np.fft.fftfreq(side) * side, np.fft.rfftfreq(side) * side
    damping = 1 / (1 + STEP * 0.01 * (rows[:, None] ** 2 + columns[None, :] ** 2))
    return state, force, damping.astype(np.float32)


def work(state: Tensor, force: Tensor, damping: Tensor, *, steps: int) -> Tensor:
    for _ in range(steps):
        reacted = state + STEP * (force - state * state * state)
        state = torch.fft.irfft2(torch.fft.rfft2(reacted) * damping, s=reacted.shape)
    return state


if __name__ == "__main__":
    harness.run(set_up, work)
