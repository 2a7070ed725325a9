"""Random whole numbers, words and letters that depend on a name alone, the same on every machine."""

from __future__ import annotations

import hashlib

import numpy as np

Numbers = np.ndarray


class Draws:
    """Random whole numbers that depend on a name alone (splitmix64 of a running number)."""

    def __init__(self, name: str) -> None:
        self.next = int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big")

    def below(self, bound: int, count: int) -> Numbers:
        """Return `count` whole numbers from 0 to `bound` - 1; `bound` is at most 2**31."""
        counter = np.arange(self.next, self.next + count, dtype=np.uint64)
        self.next += count
        word = counter * np.uint64(0x9E3779B97F4A7C15)
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        word ^= word >> np.uint64(31)
        return ((word >> np.uint64(33)) * np.uint64(bound) >> np.uint64(31)).astype(np.int64)

    def skewed(self, bound: int, count: int) -> Numbers:
        """Return numbers below `bound` of which small ones are frequent, as words of a language are."""
        draw = self.below(1 << 16, count)
        return (draw * draw * draw >> 32) * bound >> 16

    def number(self, bound: int) -> int:
        """Return a single number below `bound`."""
        return int(self.below(bound, 1)[0])


def words(draws: Draws, count: int) -> list[str]:
    """Return made-up words, short ones first."""
    syllables = [first + second for first in "bdfgklmnprstvz" for second in ("a", "e", "i", "o", "u", "an", "er", "is")]
    picks = draws.below(len(syllables), 4 * count).reshape(count, 4)
    return sorted(
        ("".join(syllables[i] for i in row[: 1 + n * 3 // count + n % 2]) for n, row in enumerate(picks)), key=len
    )


def letters(alphabet: bytes, picks: Numbers) -> bytes:
    return np.frombuffer(alphabet, dtype=np.uint8)[picks].tobytes()
