"""Inference of a small transformer encoder: attention and feed-forward layers over batches of token sequences."""

import harness
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

VOCABULARY = 2000
HEAD = 32
BATCH = 8
MATRICES_PER_LAYER = 4


def set_up(
    draw: np.random.Generator, *, sequences: int, length: int, width: int, layers: int
) -> tuple[np.ndarray, ...]:
    tokens = draw.integers(VOCABULARY, size=(sequences, length))
    embedding = draw.standard_normal((VOCABULARY, width), dtype=np.float32)
    shapes = ((3 * width, width), (width, width), (4 * width, width), (width, 4 * width)) * layers
    weights = [draw.standard_normal(shape, dtype=np.float32) / np.float32(shape[1] ** 0.5) for shape in shapes]
    return tokens, embedding, *weights


def attention(x: Tensor, mix: Tensor, out: Tensor) -> Tensor:
    batch, length, width = x.shape
    parts = functional.linear(x, mix).view(batch, length, 3, width // HEAD, HEAD).permute(2, 0, 3, 1, 4)
    seen = functional.scaled_dot_product_attention(parts[0], parts[1], parts[2])
    return functional.linear(seen.transpose(1, 2).reshape(batch, length, width), out)


def encode(x: Tensor, weights: tuple[Tensor, ...]) -> Tensor:
    shape = x.shape[-1:]
    for at in range(0, len(weights), MATRICES_PER_LAYER):
        mix, out, wide, narrow = weights[at : at + MATRICES_PER_LAYER]
        x = x + attention(functional.layer_norm(x, shape), mix, out)
        x = x + functional.linear(functional.gelu(functional.linear(functional.layer_norm(x, shape), wide)), narrow)
    return functional.layer_norm(x, shape).mean(dim=1)


def work(tokens: Tensor, embedding: Tensor, *weights: Tensor) -> Tensor:
    with torch.no_grad():
        return torch.cat([encode(functional.embedding(batch, embedding), weights) for batch in tokens.split(BATCH)])


if __name__ == "__main__":
    harness.run(set_up, work)
