"""PageRank: products of a sparse matrix (CSR) of a skewed random graph with a vector."""

import harness
import numpy as np
import torch
from torch import Tensor

DAMPING = 0.85


def set_up(draw: np.random.Generator, *, nodes: int, degree: int) -> tuple[np.ndarray, ...]:
    links = nodes * degree
    targets = (nodes * draw.random(links, dtype=np.float32).astype(np.float64) ** 3).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(targets, minlength=nodes))])
    sources = draw.integers(nodes, size=links)
    share = 1 / np.maximum(np.bincount(sources, minlength=nodes), 1)
    return starts, sources, share[sources].astype(np.float32)


def work(starts: Tensor, sources: Tensor, share: Tensor, *, rounds: int) -> Tensor:
    nodes = len(starts) - 1
    matrix = torch.sparse_csr_tensor(starts, sources, share, (nodes, nodes))
    rank = torch.ones((nodes, 1), device=share.device)
    for _ in range(rounds):
        rank = (1 - DAMPING) + DAMPING * (matrix @ rank)
    return rank


if __name__ == "__main__":
    harness.run(set_up, work)
