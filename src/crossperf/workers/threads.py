"""The number of threads of numerical libraries in a worker process: one each by default.

Several processes that each start as many threads as there are cores take several times the processor time.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

from crossperf.plain import whole

#: What OpenMP, the BLAS libraries, Numba, Polars and joblib take the number of their threads from.
_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "LOKY_MAX_CPU_COUNT",
)
#: One piece at a time: a process has one number of threads.
_ALONE = threading.Lock()


def environment(threads: int) -> dict[str, str]:
    """Return the environment variables that set the number of threads of a new process.

    >>> environment(1)["OMP_NUM_THREADS"]
    '1'
    """
    return dict.fromkeys(_VARIABLES, str(threads))


def here() -> int:
    """Return how many threads numerical libraries take in this process: of the environment, or one a core."""
    return whole(os.environ.get("OMP_NUM_THREADS", "").split(",")[0]) or len(os.sched_getaffinity(0))


@contextlib.contextmanager
def limited(threads: int) -> Iterator[None]:
    """Run with a number of threads, alone in this process, whichever libraries are loaded already or will be."""
    from threadpoolctl import threadpool_limits

    with _ALONE:
        os.environ.update(environment(threads))
        torch = sys.modules.get("torch")
        if torch is not None and torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        with threadpool_limits(threads):
            yield
