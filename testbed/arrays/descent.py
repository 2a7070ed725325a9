"""Gradient descent with momentum, by hand: the first use of ``torch.optim`` loads a compiler, for seconds."""

from collections.abc import Sequence

import torch
from torch import Tensor

MOMENTUM = 0.9


class Descent:
    """Steps of weights against the gradient of a loss."""

    def __init__(self, weights: Sequence[Tensor], rate: float) -> None:
        self.weights = [weight.requires_grad_() for weight in weights]
        self.velocities = [torch.zeros_like(weight) for weight in weights]
        self.rate = rate

    def step(self, loss: Tensor) -> Tensor:
        """Move the weights, and return the loss without its gradient."""
        slopes = torch.autograd.grad(loss, self.weights)
        with torch.no_grad():
            for weight, velocity, slope in zip(self.weights, self.velocities, slopes, strict=True):
                velocity.mul_(MOMENTUM).add_(slope)
                weight.sub_(velocity, alpha=self.rate)
        return loss.detach()
