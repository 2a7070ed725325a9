"""Chunks of cells in threads: NumPy lets go of the interpreter's lock while it computes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from crossperf.workers.threads import here

Answer = TypeVar("Answer")


def in_threads(ask: Callable[[slice], Answer], cells: int, chunk: int) -> list[Answer]:
    """Return the answers for chunks of rows, in their order; how many threads there are changes no bit of them.

    >>> in_threads(lambda rows: rows.stop - rows.start, cells=5, chunk=2)
    [2, 2, 1]
    """
    chunks = [slice(start, min(start + chunk, cells)) for start in range(0, cells, chunk)] or [slice(0, 0)]
    if len(chunks) == 1:
        return [ask(chunks[0])]
    from threadpoolctl import threadpool_limits

    # A BLAS library has one pool of threads, for which callers wait: products in two threads each took twice as long.
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(min(here(), len(chunks) - 1)) as pool:
        # The first is asked alone, so that what is kept for the others is worked out once.
        return [ask(chunks[0]), *pool.map(ask, chunks[1:])]
