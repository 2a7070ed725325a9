"""Training a small convolutional network to tell ten noisy patterns apart."""

import harness
import numpy as np
import torch
from descent import Descent
from torch import Tensor
from torch.nn import functional

CLASSES = 10
BATCH = 32


def set_up(draw: np.random.Generator, *, images: int, side: int) -> tuple[np.ndarray, ...]:
    label = draw.integers(CLASSES, size=images)
    pattern = draw.standard_normal((CLASSES, 1, side, side), dtype=np.float32)
    image = pattern[label] + draw.standard_normal((images, 1, side, side), dtype=np.float32)
    shapes = ((8, 1, 5, 5), (16, 8, 3, 3), (CLASSES, 16 * (side // 4) ** 2))
    weights = [
        draw.standard_normal(shape, dtype=np.float32) / np.float32(np.prod(shape[1:]) ** 0.5) for shape in shapes
    ]
    return image, label, *weights


def work(image: Tensor, label: Tensor, *weights: Tensor, epochs: int) -> Tensor:
    first, second, last = weights
    descent = Descent(weights, rate=0.005)
    losses = []
    for _ in range(epochs):
        for inputs, targets in zip(image.split(BATCH), label.split(BATCH), strict=True):
            hidden = functional.avg_pool2d(functional.gelu(functional.conv2d(inputs, first, padding=2)), 2)
            hidden = functional.avg_pool2d(functional.gelu(functional.conv2d(hidden, second, padding=1)), 2)
            loss = functional.cross_entropy(functional.linear(hidden.flatten(1), last), targets)
            losses.append(descent.step(loss))
    return torch.stack(losses)


if __name__ == "__main__":
    harness.run(set_up, work)
