"""Positive definite linear systems: Cholesky factors, solutions and log-determinants."""

import harness
import numpy as np
import torch
from torch import Tensor

RIGHT_SIDES = 16


def set_up(draw: np.random.Generator, *, systems: int, size: int) -> tuple[np.ndarray, ...]:
    return draw.standard_normal((systems, size, size)), draw.standard_normal((systems, size, RIGHT_SIDES))


def work(root: Tensor, right: Tensor) -> Tensor:
    size = root.shape[-1]
    matrix = root @ root.mT / size + torch.eye(size, dtype=root.dtype, device=root.device)
    factor = torch.linalg.cholesky(matrix)
    solution = torch.cholesky_solve(right, factor)
    log_determinant = factor.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
    return torch.cat([solution.reshape(-1), log_determinant / size])


if __name__ == "__main__":
    harness.run(set_up, work)
