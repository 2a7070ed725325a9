"""k-means by Lloyd's rounds: distances by a matrix product, nearest centres, new means."""

import harness
import numpy as np
import torch
from torch import Tensor


def set_up(draw: np.random.Generator, *, points: int, features: int, clusters: int) -> tuple[np.ndarray, ...]:
    middle = 3 * draw.standard_normal((clusters, features), dtype=np.float32)
    point = middle[draw.integers(clusters, size=points)] + draw.standard_normal((points, features), dtype=np.float32)
    return point, point[:clusters].copy()


def work(point: Tensor, centre: Tensor, *, rounds: int) -> Tensor:
    inertia = []
    square = point.square().sum(dim=1)
    for _ in range(rounds):
        distance = square[:, None] - 2 * point @ centre.T + centre.square().sum(dim=1)
        nearest_distance, nearest = distance.min(dim=1)
        inertia.append(nearest_distance.mean())
        total = torch.zeros_like(centre).index_add(0, nearest, point)
        count = torch.bincount(nearest, minlength=len(centre))
        centre = total / count.clamp(min=1)[:, None]
    return torch.stack(inertia)


if __name__ == "__main__":
    harness.run(set_up, work)
