"""Checksums of the testbed's linear algebra and grids, computed anew in numpy: one function for each workload."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.testbed.random_numbers import random_bits, random_unit

Array = NDArray[Any]


def stream(n: int, seed: int, precision: str = "double") -> Array:
    """Return the first n random numbers of a stream, rounded as the workload stores them."""
    return random_unit(np.arange(n), seed).astype(np.float32 if precision == "float" else np.float64)


def weighted(values: Array, period: int = 7) -> float:
    """Return the mean of the values times weights that go with their position: 1, 2, ... period, 1, 2, ..."""
    flat = values.astype(np.float64).ravel()
    return float((flat * (np.arange(flat.size) % period + 1)).mean())


def triad(parameters: dict[str, Any]) -> float:
    n, precision = parameters["size"], parameters["precision"]
    a = stream(n, 1, precision) + parameters["sweeps"] * stream(n, 2, precision)
    return float(a.astype(np.float64).mean())


def daxpy(parameters: dict[str, Any]) -> float:
    n = parameters["size"]
    factor = sum(1 / (sweep + 1) for sweep in range(parameters["sweeps"]))
    return weighted(stream(n, 2) + factor * stream(n, 1))


def dot(parameters: dict[str, Any]) -> float:
    n, sweeps, precision = parameters["size"], parameters["sweeps"], parameters["precision"]
    x, y = stream(n, 1, precision), stream(n + sweeps, 2, precision)
    products = [(x * y[shift : shift + n]).astype(np.float64).mean() for shift in range(sweeps)]
    return float(sum((shift + 1) * product for shift, product in enumerate(products)))


def transpose(parameters: dict[str, Any]) -> float:
    n = parameters["size"]
    a = stream(n * n, 1).reshape(n, n)
    return weighted(a.T if parameters["sweeps"] % 2 else a, period=101)


def dgemm_naive(parameters: dict[str, Any]) -> float:
    n, depth, precision = parameters["size"], parameters["depth"], parameters["precision"]
    a, b = stream(n * depth, 1, precision), stream(depth * n, 2, precision)
    return weighted(a.reshape(n, depth) @ b.reshape(depth, n))


def dgemm_blocked(parameters: dict[str, Any]) -> float:
    n = parameters["size"]
    return weighted(stream(n * n, 1).reshape(n, n) @ stream(n * n, 2).reshape(n, n))


def batched_gemm(parameters: dict[str, Any]) -> float:
    m = parameters["m"]
    count = max(parameters["size"] // m**2, 1)
    a, b = (stream(count * m * m, seed).reshape(count, m, m) for seed in (1, 2))
    return weighted(np.einsum("nik,nkj->nij", a, b))


def power(matrix: Array, sweeps: int) -> float:
    """Return the checksum of the random vector after some products with the matrix."""
    x = stream(len(matrix), 1)
    for _ in range(sweeps):
        x = matrix @ x
    return weighted(x)


def spmv_csr(parameters: dict[str, Any]) -> float:
    n, nonzeros = parameters["size"], parameters["nonzeros"]
    width = max(1.0, parameters["spread"] * n)
    counts = 1 + (random_bits(np.arange(n), 4) % np.uint64(2 * nonzeros - 1)).astype(int)
    rows = np.repeat(np.arange(n), counts)
    columns = (rows + np.floor(stream(rows.size, 2) * width).astype(int)) % n
    matrix = np.zeros((n, n))
    np.add.at(matrix, (rows, columns), stream(rows.size, 3) * 2 / counts[rows])
    return power(matrix, parameters["sweeps"])


def spmv_ell(parameters: dict[str, Any]) -> float:
    n, width = parameters["size"], parameters["nonzeros"]
    spread = max(1.0, parameters.get("spread", 0.1) * n)
    rows = np.tile(np.arange(n), width)
    columns = (rows + np.floor(stream(rows.size, 2) * spread).astype(int)) % n
    matrix = np.zeros((n, n))
    np.add.at(matrix, (rows, columns), stream(rows.size, 3) * 2 / width)
    return power(matrix, parameters["sweeps"])


def poisson(n: int) -> Array:
    """Return the matrix of the five-point star on n x n cells, zero around them."""
    line = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    return np.kron(line, np.eye(n)) + np.kron(np.eye(n), line)


def cg(parameters: dict[str, Any]) -> float:
    n = parameters["size"]
    a = poisson(n)
    r = stream(n * n, 1, parameters["precision"]).astype(np.float64)
    p, x = r.copy(), np.zeros(n * n)
    for _ in range(parameters["iterations"]):
        alpha = (r @ r) / (p @ a @ p)
        x += alpha * p
        rest = r - alpha * (a @ p)
        p = rest + (rest @ rest) / (r @ r) * p
        r = rest
    return weighted(x)


def jacobi2d(parameters: dict[str, Any]) -> float:
    n = parameters["size"] + 2
    u = stream(n * n, 1).reshape(n, n)
    for _ in range(parameters["sweeps"]):
        before = u.copy()
        u[1:-1, 1:-1] = (before[:-2, 1:-1] + before[2:, 1:-1] + before[1:-1, :-2] + before[1:-1, 2:]) / 4
    return weighted(u)


def jacobi3d(parameters: dict[str, Any]) -> float:
    n = parameters["size"] + 2
    u = stream(n**3, 1, parameters["precision"]).reshape(n, n, n)
    inside = (slice(1, -1),) * 3
    for _ in range(parameters["sweeps"]):
        around = sum(np.roll(u, shift, axis)[inside] for shift in (-1, 1) for axis in range(3))
        after = u.copy()
        after[inside] = 0.4 * u[inside] + 0.1 * around
        u = after
    return weighted(u)


def stencil_highorder(parameters: dict[str, Any]) -> float:
    n, radius = parameters["size"], parameters["radius"]
    edge = n + 2 * radius
    cube = stream(edge**3, 1).reshape(edge, edge, edge)
    out = np.zeros_like(cube)
    for axis in range(3):
        for d in range(1, radius + 1):
            out += (np.roll(cube, d, axis) + np.roll(cube, -d, axis)) / (d + 1) ** 2
    return weighted((cube + out)[(slice(radius, -radius),) * 3])


def multigrid(parameters: dict[str, Any]) -> float:
    """Return the checksum of V-cycles made of matrices: interpolation P, restriction P^T, damped Jacobi."""
    n = parameters["size"]
    f = stream(n * n, 1)
    u = np.zeros(n * n)

    def smooth(a: Array, u: Array, f: Array, sweeps: int) -> Array:
        for _ in range(sweeps):
            u = u + 0.8 * (f - a @ u) / 4
        return u

    def interpolation(n: int) -> Array:
        line = np.zeros((n, n // 2))
        for coarse in range(n // 2):
            line[2 * coarse : 2 * coarse + 3, coarse] = [0.5, 1, 0.5]
        return np.kron(line, line)

    def cycle(n: int, u: Array, f: Array, levels: int) -> Array:
        a = poisson(n)
        if levels == 1:
            return smooth(a, u, f, 4)
        u = smooth(a, u, f, 2)
        p = interpolation(n)
        # The weights of nine cells are a quarter of P^T; the coarse cells are twice as wide, which makes up for it.
        correction = cycle(n // 2, np.zeros((n // 2) ** 2), p.T @ (f - a @ u), levels - 1)
        return smooth(a, u + p @ correction, f, 2)

    for _ in range(parameters["cycles"]):
        u = cycle(n, u, f, parameters["levels"])
    return weighted(np.pad(u.reshape(n, n), 1))


def lu(parameters: dict[str, Any]) -> float:
    n = parameters["size"]
    a = stream(n * n, 1).reshape(n, n) + n * np.eye(n)
    for k in range(n):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return weighted(a) * float(n)
