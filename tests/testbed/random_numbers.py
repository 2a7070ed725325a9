"""The random numbers of testbed/testbed.hpp, in numpy: the same bits for the same index and seed."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def random_bits(i: ArrayLike, seed: int = 0) -> NDArray[np.uint64]:
    """Return the i-th 64 bits of the stream `seed` (splitmix64), for each index of an array or for one.

    >>> [hex(bits) for bits in random_bits([0, 1])]
    ['0xe220a8397b1dcdaf', '0x6e789e6aa1b965f4']
    """
    with np.errstate(over="ignore"):
        z = (np.asarray(i).astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = z + np.uint64(seed * 0xD1B54A32D192ED03 % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def random_unit(i: ArrayLike, seed: int = 0) -> NDArray[np.float64]:
    """Return the same numbers as `random_bits`, each from 0 up to 1."""
    return (random_bits(i, seed) >> np.uint64(11)).astype(np.float64) * 2.0**-53
