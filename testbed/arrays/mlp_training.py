"""Training a small multilayer perceptron: stochastic gradient descent on a regression."""

import harness
import numpy as np
import torch
from descent import Descent
from torch import Tensor
from torch.nn import functional

FEATURES = 32
BATCH = 256


def set_up(draw: np.random.Generator, *, samples: int, hidden: int) -> tuple[np.ndarray, ...]:
    x = draw.standard_normal((samples, FEATURES), dtype=np.float32)
    teacher = draw.standard_normal((FEATURES, 1), dtype=np.float32) / FEATURES**0.5
    weights = [
        draw.standard_normal(shape, dtype=np.float32) / np.float32(shape[1] ** 0.5)
        for shape in ((hidden, FEATURES), (hidden, hidden), (1, hidden))
    ]
    return x, np.sin(2 * x @ teacher).astype(np.float32), *weights


def work(x: Tensor, y: Tensor, *weights: Tensor, epochs: int) -> Tensor:
    first, second, last = weights
    descent = Descent(weights, rate=0.02)
    losses = []
    for _ in range(epochs):
        for inputs, targets in zip(x.split(BATCH), y.split(BATCH), strict=True):
            hidden = torch.tanh(functional.linear(inputs, first))
            hidden = torch.tanh(functional.linear(hidden, second))
            loss = functional.mse_loss(functional.linear(hidden, last), targets)
            losses.append(descent.step(loss))
    return torch.stack(losses)


if __name__ == "__main__":
    harness.run(set_up, work)
