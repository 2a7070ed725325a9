"""Inference of a recommender: sums over rows of a large embedding table, then a small network."""

import harness
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

WIDTH = 32
LOOKUPS = 40
BATCH = 4096


def set_up(draw: np.random.Generator, *, items: int, users: int) -> tuple[np.ndarray, ...]:
    table = draw.standard_normal((items, WIDTH), dtype=np.float32)
    history = draw.integers(items, size=(users, LOOKUPS))
    first = draw.standard_normal((128, WIDTH), dtype=np.float32) / np.float32(WIDTH**0.5)
    last = draw.standard_normal((16, 128), dtype=np.float32) / np.float32(128**0.5)
    return table, history, first, last


def work(table: Tensor, history: Tensor, first: Tensor, last: Tensor) -> Tensor:
    with torch.no_grad():
        scores = []
        for batch in history.split(BATCH):
            taste = functional.embedding_bag(batch, table, mode="mean")
            scores.append(functional.linear(functional.relu(functional.linear(taste, first)), last))
        return torch.cat(scores)


if __name__ == "__main__":
    harness.run(set_up, work)
