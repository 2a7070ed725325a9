"""Gravity between all pairs of bodies, with leapfrog steps."""

import harness
import numpy as np
import torch
from torch import Tensor

STEP, SOFTENING = 0.001, 0.05


def set_up(draw: np.random.Generator, *, bodies: int) -> tuple[np.ndarray, ...]:
    mass = draw.random(bodies, dtype=np.float32) / np.float32(bodies)
    return (
        mass,
        draw.standard_normal((3, bodies), dtype=np.float32),
        draw.standard_normal((3, bodies), dtype=np.float32) / 2,
    )


def acceleration(mass: Tensor, place: Tensor) -> Tensor:
    distance = place[:, None, :] - place[:, :, None]
    square = distance.square().sum(dim=0) + SOFTENING**2
    return (distance * (mass * square.rsqrt() / square)).sum(dim=2)


def work(mass: Tensor, place: Tensor, speed: Tensor, *, steps: int) -> Tensor:
    pull = acceleration(mass, place)
    for _ in range(steps):
        speed = speed + STEP / 2 * pull
        place = place + STEP * speed
        pull = acceleration(mass, place)
        speed = speed + STEP / 2 * pull
    return torch.cat([place, speed])


if __name__ == "__main__":
    harness.run(set_up, work)
