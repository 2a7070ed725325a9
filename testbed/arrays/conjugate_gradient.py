"""Conjugate gradients for Poisson's equation on a square grid, matrix-free; each round asks for its residual."""

import harness
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional


def set_up(draw: np.random.Generator, *, side: int) -> tuple[np.ndarray, ...]:
    return (draw.standard_normal((side, side)),)


def laplacian(x: Tensor) -> Tensor:
    padded = functional.pad(x, (1, 1, 1, 1))
    return 4 * x - padded[:-2, 1:-1] - padded[2:, 1:-1] - padded[1:-1, :-2] - padded[1:-1, 2:]


def work(right: Tensor, *, rounds: int) -> Tensor:
    x = torch.zeros_like(right)
    residual, direction = right, right
    square = float((residual * residual).sum())
    for _ in range(rounds):
        image = laplacian(direction)
        length = square / float((direction * image).sum())
        x = x + length * direction
        residual = residual - length * image
        square, previous = float((residual * residual).sum()), square
        direction = residual + square / previous * direction
    return x


if __name__ == "__main__":
    harness.run(set_up, work)
