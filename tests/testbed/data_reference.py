"""Checksums of the sorts, graphs, sequences, images and files, computed anew in numpy: one function for each."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.testbed.random_numbers import random_bits, random_unit

Array = NDArray[Any]
Parameters = dict[str, Any]


def bits(n: int, seed: int, shift: int) -> Array:
    """Return the upper bits of the first n random numbers, those below `shift` dropped, as whole numbers."""
    return (random_bits(np.arange(n), seed) >> np.uint64(shift)).astype(np.int64)


def unit(n: int, seed: int, precision: str = "double") -> Array:
    """Return the first n random numbers from 0 up to 1, rounded as the workload stores them."""
    return random_unit(np.arange(n), seed).astype(np.float32 if precision == "float" else np.float64)


def weighted(values: Array, period: int = 1009) -> float:
    """Return the sum of the values times weights that go with their position: 1, 2, ... period, 1, 2, ..."""
    flat = np.asarray(values).astype(np.float64).ravel()
    return float((flat * (np.arange(flat.size) % period + 1)).sum())


def radix_sort(parameters: Parameters) -> float:
    keys = bits(parameters["size"], 1, 64 - parameters["bits"])
    order = np.argsort(keys, kind="stable")
    return weighted(keys[order] + order)


def merge_sort(parameters: Parameters) -> float:
    n = parameters["size"]
    in_place = unit(n, 2) < parameters["presorted"]
    return weighted(np.sort(np.where(in_place, (np.arange(n) << 32) // n, bits(n, 1, 32))))


def histogram(parameters: Parameters) -> float:
    bins = bits(parameters["size"], 1, 32) * parameters["bins"] >> 32
    return weighted(np.bincount(bins, minlength=parameters["bins"]) ** 2)


def scan(parameters: Parameters) -> float:
    n = parameters["size"]
    return weighted(np.cumsum(unit(n, 1, parameters["precision"]).astype(np.float64)), 7) / n


def hash_table(parameters: Parameters) -> float:
    n = parameters["size"]
    # Keys differ and so do those that are not there: which key it is matters to the slots alone.
    draws = random_bits(np.arange(n), 1)
    entered = ((draws >> np.uint64(1)) % np.uint64(n)).astype(np.int64) + 1
    return weighted(np.where(draws & np.uint64(1), entered, 0))


def bfs(parameters: Parameters) -> float:
    n, mean, kind = parameters["size"], parameters["degree"], parameters["kind"]
    degrees = np.full(n, mean)
    if kind == "skewed":
        degrees = np.minimum(0.5 * mean / np.sqrt(1 - unit(n, 2)), 64 * mean).astype(np.int64)
    sources = np.repeat(np.arange(n), degrees)
    draws = bits(sources.size, 1, 16)
    targets = (sources + 1 + draws % max(n // 16, 1)) % n if kind == "local" else draws % n
    level = np.full(n, n)
    level[0] = 0
    for _ in range(n):  # relaxes every edge until nothing changes
        before = level.copy()
        np.minimum.at(level, targets, before[sources] + 1)
        if (level == before).all():
            break
    return weighted(np.where(level < n, level + 1, 0))


def pagerank(parameters: Parameters) -> float:
    n, degree = parameters["size"], parameters["degree"]
    sources, targets = bits(n * degree, 1, 16) % n, np.arange(n * degree) // degree
    links = np.bincount(sources, minlength=n)
    rank = np.full(n, 1 / n)
    for _ in range(parameters["iterations"]):
        rank = 0.15 / n + 0.85 * np.bincount(targets, rank[sources] / links[sources], minlength=n)
    return weighted(rank, 7)


def triangles(parameters: Parameters) -> float:
    n, degree = parameters["size"], parameters["degree"]
    sources = np.arange(n * degree) // degree
    targets = sources + 1 + bits(n * degree, 1, 16) % parameters["window"]
    edge = np.zeros((n, n))
    edge[sources[targets < n], targets[targets < n]] = 1
    return weighted((edge @ edge * edge).sum(axis=1))


def label_propagation(parameters: Parameters) -> float:
    n, half = parameters["size"], parameters["degree"] // 2
    one, other = np.arange(n * half) // half, bits(n * half, 1, 16) % n
    label = np.arange(n)
    for _ in range(parameters["rounds"]):
        least = label.copy()
        np.minimum.at(least, one, label[other])
        np.minimum.at(least, other, label[one])
        label = label[least]
    return weighted(label + 1)


def floyd_warshall(parameters: Parameters) -> float:
    n, batch = parameters["size"], parameters["batch"]
    cells = batch * n * n
    distance = np.where(unit(cells, 2) < parameters["density"], unit(cells, 1, "float"), np.inf).reshape(batch, n, n)
    distance[:, np.arange(n), np.arange(n)] = 0
    for _ in range(n.bit_length()):  # paths of twice as many edges each time
        distance = np.minimum(distance, (distance[:, :, :, None] + distance[:, None, :, :]).min(axis=2))
    return weighted(np.where(np.isfinite(distance), distance + 1, 0)) / cells


def smith_waterman(parameters: Parameters) -> float:
    pairs, length, band = parameters["pairs"], parameters["length"], parameters["band"]
    letters = pairs * length
    a = bits(letters, 1, 62)
    b = np.where(unit(letters, 2) < parameters.get("alike", 0.7), a, bits(letters, 3, 62))
    a, b = a.reshape(pairs, length), b.reshape(pairs, length)
    score = np.zeros((pairs, length + 1, length + 1))
    for i in range(length):
        for j in range(max(0, i - band), min(length, i + band + 1)):
            match = score[:, i, j] + np.where(a[:, i] == b[:, j], 2, -1)
            gap = np.maximum(score[:, i, j + 1], score[:, i + 1, j]) - 1
            score[:, i + 1, j + 1] = np.maximum(np.maximum(match, gap), 0)
    return weighted(score.max(axis=(1, 2)))


def kmeans(parameters: Parameters) -> float:
    n, clusters, dimensions = parameters["size"], parameters["clusters"], parameters["dimensions"]
    points = bits(n * dimensions, 1, 54).reshape(n, dimensions)
    centres = points[:clusters].copy()
    nearest = np.zeros(n, dtype=np.int64)
    for _ in range(parameters.get("iterations", 2)):
        nearest = ((points[:, None, :] - centres) ** 2).sum(axis=2).argmin(axis=1)
        for c in set(nearest.tolist()):
            members = points[nearest == c]
            centres[c] = members.sum(axis=0) // len(members)
    return weighted(nearest + 1) + weighted(centres, centres.size)


def convolution2d(parameters: Parameters) -> float:
    n, side, precision = parameters["size"], 2 * parameters["radius"] + 1, parameters["precision"]
    wide = n + side - 1
    image = unit(wide * wide, 1, precision).reshape(wide, wide)
    weights = unit(side * side, 2, precision).reshape(side, side)
    windows = np.lib.stride_tricks.sliding_window_view(image, (side, side))
    return weighted(np.einsum("yxab,ab->yx", windows, weights), 7) / (n * n)


def mlp(parameters: Parameters) -> float:
    batch, width, layers = parameters["batch"], parameters["width"], parameters.get("layers", 3)
    kind = np.float32 if parameters["precision"] == "float" else np.float64
    weights = (
        (np.sqrt(6 / width) * (2 * unit(layers * width * width, 1) - 1)).astype(kind).reshape(layers, width, width)
    )
    bias = (0.1 * unit(layers * width, 2)).astype(kind).reshape(layers, width)
    x = unit(batch * width, 3).astype(kind).reshape(batch, width)
    for layer in range(layers):
        x = np.maximum(x @ weights[layer] + bias[layer], 0)
    return weighted(x, 7) / x.size


def pointer_chase(parameters: Parameters) -> float:
    n = parameters["size"]
    at = random_bits(np.arange(parameters["walkers"]), 1) % np.uint64(n)
    sums = np.zeros_like(at)
    for _ in range(parameters["steps"]):
        at = (np.uint64(1664525) * at + np.uint64(1013904223)) % np.uint64(n)
        sums = (np.uint64(3) * sums + at) % np.uint64(2**32)
    return weighted(sums)


def checkpoint(parameters: Parameters) -> float:
    n = parameters["size"]
    target = unit(n, 1)
    state = 1 - target
    for _ in range(parameters["checkpoints"] * parameters["sweeps"]):
        state = state + 0.1 * (target - state**2)
    return weighted(state, 7) / n


def halo(parameters: Parameters) -> float:
    n, w = parameters["size"], parameters["width"]
    side = n + 2 * w
    block = unit(side**3, 1).reshape(side, side, side)  # z, y, x
    inside = block[w:-w, w:-w, w:-w]
    ghosts = []
    for axis in (2, 1, 0):
        # The low ghosts are the last cells of the neighbour below, which looks the same; layers come first.
        for cells in (slice(n - w, n), slice(0, w)):
            ghosts.append(np.moveaxis(inside, axis, 0)[cells])
    return weighted(np.stack(ghosts)) / (6 * w * n * n)
