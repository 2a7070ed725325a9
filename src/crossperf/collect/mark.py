"""Marks the part of a Python program that ``crossperf profile`` measures; `crossperf.h` does it for C and C++."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: Names the library that knows what a mark does, where crossperf runs the program.
LIBRARY = "CROSSPERF_REGION_LIBRARY"


@contextmanager
def region() -> Iterator[None]:
    """Mark what runs inside as the part that counts: a context manager, and a decorator.

    Without ``crossperf profile`` it does nothing. Regions may repeat; where they nest, the outermost counts.

    Examples
    --------
    >>> import crossperf
    >>> with crossperf.region():
    ...     total = sum(range(1000))
    >>> @crossperf.region()
    ... def solve() -> int:
    ...     return total
    >>> solve()
    499500
    """
    _mark(1)
    try:
        yield
    finally:
        _mark(0)


def include_path() -> Path:
    """Return the folder of ``crossperf.h``, for a compiler's ``-I``; ``crossperf include`` prints it.

    >>> (include_path() / "crossperf.h").is_file()
    True
    """
    return Path(__file__).parents[1] / "include"


def _mark(begins: int) -> None:
    if os.environ.get(LIBRARY):
        _library(os.environ[LIBRARY]).crossperf_region_mark(begins)


@functools.cache
def _library(path: str) -> Any:
    import ctypes

    return ctypes.CDLL(path)
