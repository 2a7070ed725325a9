"""Prints inputs between those of the other files, and beyond them, so that data grow by at most 3x from size to size.

    python testbed/inputs/between.py > testbed/inputs/between.toml

The sizes of the other files stay. Between two of them come as many as are needed, spaced evenly in logarithm; each new
size is crossed with a seeded draw of the other parameters.
"""

from __future__ import annotations

import itertools
import json
import math
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

HERE = Path(__file__).resolve().parent
FILES = ("linear.toml", "physics.toml", "data.toml")
#: The most that data grow from one size to the next.
STEP = 3.0


def two_digits(value: float) -> int:
    """Return a whole number of two significant digits.

    >>> two_digits(1234.0)
    1200
    """
    power = 10 ** max(math.floor(math.log10(value)) - 1, 0)
    return max(1, round(value / power)) * power


def power_of_two(value: float) -> int:
    return 2 ** round(math.log2(value))


def below_power_of_two(value: float) -> int:
    return 2 ** round(math.log2(value + 1)) - 1


def multiple_of(factor: int) -> Callable[[float], int]:
    return lambda value: max(1, round(value / factor)) * factor


@dataclass(frozen=True)
class Growth:
    """How the data of a workload grow: with which power of which parameter, and up to which value of it."""

    largest: int
    power: float = 1.0
    parameter: str = "size"
    rounded: Callable[[float], int] = two_digits
    draws: int = 3


GROWTH = {
    "triad": Growth(8_000_000),
    "daxpy": Growth(1_000_000),
    "dot": Growth(12_000_000),
    "transpose": Growth(3504, 2, rounded=multiple_of(8)),
    "dgemm_naive": Growth(400, 2),
    "dgemm_blocked": Growth(600, 2, rounded=multiple_of(8)),
    "batched_gemm": Growth(2_500_000),
    "spmv_csr": Growth(700_000),
    "spmv_ell": Growth(700_000),
    "cg": Growth(1100, 2),
    "jacobi2d": Growth(3400, 2),
    "jacobi3d": Growth(220, 3),
    "stencil_highorder": Growth(200, 3),
    "multigrid": Growth(1023, 2, rounded=below_power_of_two, draws=4),
    "lu": Growth(576, 2, rounded=multiple_of(32)),
    "fft": Growth(1 << 20, rounded=power_of_two),
    "nbody": Growth(3000),
    "lennard_jones": Growth(80_000),
    "pic_push": Growth(2_000_000),
    "pic_deposit": Growth(6_000_000),
    "mc_transport": Growth(100_000),
    "mc_options": Growth(100_000),
    "hydro": Growth(1_000_000),
    "lattice_boltzmann": Growth(1100, 2),
    "fem_mass": Growth(2004, rounded=multiple_of(12)),
    "sweep": Growth(72, 3),
    "mandelbrot": Growth(900, 2),
    "random_numbers": Growth(6_000_000),
    "state_machine": Growth(100_000),
    "radix_sort": Growth(6_000_000),
    "merge_sort": Growth(2_000_000),
    "histogram": Growth(24_000_000),
    "scan": Growth(12_000_000),
    "hash_table": Growth(3_000_000),
    "bfs": Growth(1_000_000),
    "pagerank": Growth(1_000_000),
    "triangles": Growth(100_000),
    "label_propagation": Growth(1_000_000),
    "floyd_warshall": Growth(296, 2, rounded=multiple_of(8)),
    "smith_waterman": Growth(2000, parameter="pairs"),
    "kmeans": Growth(300_000),
    "convolution2d": Growth(3000, 2, rounded=multiple_of(8)),
    "mlp": Growth(2000, parameter="batch"),
    "pointer_chase": Growth(16_777_216, rounded=power_of_two),
    "checkpoint": Growth(3_000_000),
    "halo": Growth(220, 3),
}


def new_sizes(known: list[int], growth: Growth) -> list[int]:
    """Return the sizes that are missing between the known ones and up to the largest.

    >>> new_sizes([10, 100], Growth(300))
    [22, 46, 170, 300]
    """
    step = STEP ** (1 / growth.power)
    ends = [*known, growth.largest] if growth.largest > known[-1] else known
    sizes: list[int] = []
    for low, high in itertools.pairwise(ends):
        n = math.ceil(math.log(high / low) / math.log(step) - 1e-9)
        sizes += [growth.rounded(low * (high / low) ** (number / n)) for number in range(1, n)]
    sizes += [growth.largest] if growth.largest > known[-1] else []
    return sorted({*sizes} - {*known})


def inputs(name: str, parameters: dict[str, list[object]]) -> Iterator[str]:
    """Yield the new inputs of a workload, as its program takes them."""
    growth = GROWTH[name]
    known = sorted(int(str(value)) for value in parameters[growth.parameter])
    others = {key: values for key, values in parameters.items() if key != growth.parameter}
    combinations = list(itertools.product(*others.values()))
    random = Random(name)  # noqa: S311
    for size in new_sizes(known, growth):
        for values in random.sample(combinations, min(growth.draws, len(combinations))):
            given = {growth.parameter: size, **dict(zip(others, values, strict=True))}
            yield " ".join(f"{key}={given[key]}" for key in parameters)


def main() -> None:
    print("# Made by between.py: sizes between those of the other files and beyond them. Do not edit.")
    for file in FILES:
        for name, parameters in tomllib.loads((HERE / file).read_text(encoding="utf-8")).items():
            lines = ",\n".join(f"    {json.dumps(text)}" for text in inputs(name, parameters))
            print(f"\n[{name}]\ninputs = [\n{lines},\n]")


if __name__ == "__main__":
    main()
