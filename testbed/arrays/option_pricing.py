"""Monte Carlo prices of Asian and lookback options, with a random number generator that is the same on every device."""

import harness
import numpy as np
import torch
from torch import Tensor

RATE, VOLATILITY, STRIKE = 0.03, 0.25, 1.0
#: A linear congruential generator modulo 2**32, as in Numerical Recipes; each path has its own state.
MULTIPLIER, INCREMENT, MASK = 1664525, 1013904223, (1 << 32) - 1


def set_up(draw: np.random.Generator, *, paths: int) -> tuple[np.ndarray, ...]:
    return (draw.integers(1 << 32, size=paths),)


def work(random: Tensor, *, steps: int) -> Tensor:
    price = torch.ones(random.shape, device=random.device)
    total, highest = torch.zeros_like(price), price
    drift, scale = (RATE - VOLATILITY**2 / 2) / steps, VOLATILITY / steps**0.5
    for _ in range(steps):
        random = (MULTIPLIER * random + INCREMENT) & MASK
        # The upper 23 bits, so that a float32 holds the number between 0 and 1 exactly.
        uniform = ((random >> 9).float() + 0.5) / (1 << 23)
        normal = torch.erfinv(2 * uniform - 1) * 2**0.5
        price = price * torch.exp(drift + scale * normal)
        total = total + price
        highest = torch.maximum(highest, price)
    asian = (total / steps - STRIKE).clamp(min=0)
    return torch.stack([asian.double().mean(), (highest - STRIKE).double().mean()])


if __name__ == "__main__":
    harness.run(set_up, work)
