"""What a worker of Dask is given besides calls: tables, and memory that is kept as in an ordinary process."""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import Any

from distributed import WorkerPlugin

from crossperf.workers.calls import HELD
from crossperf.workers.parcels import Parcel

#: glibc's numbers of two thresholds, and the largest values that it would give them by itself.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = (-1, 64 << 20), (-3, 32 << 20)


class HoldTable(WorkerPlugin):
    """A plugin of Dask's workers that gives each a table as it starts; also those that start later, or again."""

    def __init__(self, table: Parcel) -> None:
        self.table = table
        self.name = f"crossperf-{table.fingerprint}"

    def setup(self, worker: Any) -> None:
        """Take the table, and memory as an ordinary process does."""
        HELD[self.table.fingerprint] = self.table
        forgive_trimming()

    def teardown(self, worker: Any) -> None:
        """Let go of the table."""
        HELD.pop(self.table.fingerprint, None)


def forgive_trimming() -> None:
    """Undo what Dask's nanny asks of glibc by MALLOC_TRIM_THRESHOLD_: memory that is given back after each array.

    It makes every fit ask the kernel for the same pages again and again. The C library read the variable when the
    process started, so that removing it now helps no more; the thresholds can still be set.
    """
    if os.environ.pop("MALLOC_TRIM_THRESHOLD_", None) is None:
        return
    with contextlib.suppress(OSError, AttributeError):  # another C library has no such knobs
        for which, size in (_MMAP_THRESHOLD, _TRIM_THRESHOLD):
            ctypes.CDLL(None).mallopt(which, size)
