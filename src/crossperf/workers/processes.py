"""Workers that are processes of this machine, by loky: a process that is killed costs its own piece, and no other.

Each slot is a pool of one process: loky gives up a whole pool when one of its processes dies.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from crossperf.errors import SettingsError, WorkerError
from crossperf.workers import threads as threading_of
from crossperf.workers.calls import Function, Shared, WorkCall, name_of, run
from crossperf.workers.parcels import Parcel

#: How often a piece is begun whose process was killed: a piece that takes more memory than there is kills each.
_MOST_STARTS = 3


class Processes:
    """Worker processes of this machine, each with its own threads; made by `processes`."""

    def __init__(self, count: int, threads: int, folder: Path) -> None:
        self.count, self.threads, self._folder = count, threads, folder
        self._slots: SimpleQueue[_Slot] = SimpleQueue()
        self._all = [_Slot(threads) for _ in range(count)]
        for slot in self._all:
            self._slots.put(slot)
        self._drivers = ThreadPoolExecutor(count, thread_name_prefix="crossperf-worker")

    def capacity(self) -> int:
        """Return the number of processes."""
        return self.count

    def share(self, parcel: Parcel) -> Shared:
        """Return what stands for a parcel, which workers read from a file."""
        path = self._folder / f"{parcel.fingerprint}.npz"
        if not path.exists():
            parcel.write(path)
        return Shared(parcel.fingerprint, str(path))

    def submit(self, function: Function, *arguments: Any) -> Future[Parcel]:
        """Have a function called in the next process that is free."""
        return self._drivers.submit(self._run, WorkCall(name_of(function), arguments, self.threads))

    def start(self) -> None:
        """Do nothing: each call is sent at once."""

    def _run(self, call: WorkCall) -> Parcel:
        slot = self._slots.get()
        try:
            return slot.run(call)
        finally:
            self._slots.put(slot)

    def close(self) -> None:
        """End the processes, whatever they are at."""
        for slot in self._all:
            slot.close()
        self._drivers.shutdown(wait=True, cancel_futures=True)


class _Slot:
    """One process at a time: the next takes the place of one that was killed."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool: Any = None
        self._closed = False

    def run(self, call: WorkCall) -> Parcel:
        """Return the answer of a call; begun again where the process was killed, a few times."""
        from joblib.externals.loky.process_executor import BrokenProcessPool

        for _ in range(_MOST_STARTS):
            try:
                answer: Parcel = self._open().submit(run, call).result()
            except BrokenProcessPool as error:
                self._pool, reason = None, error
                if self._closed:
                    break
            else:
                return answer
        raise WorkerError(
            f"the process of a piece ended {_MOST_STARTS} times before its answer ({type(reason).__name__}), expected "
            "it to stay. Mostly memory ran out: take fewer jobs, or fewer cells with --sample. Finished pieces stay."
        ) from reason

    def _open(self) -> Any:
        from joblib.externals.loky import ProcessPoolExecutor

        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                1, initializer=_follow, initargs=(os.getpid(),), env=threading_of.environment(self._threads)
            )
        return self._pool

    def close(self) -> None:
        self._closed = True
        if self._pool is not None:
            self._pool.shutdown(wait=True, kill_workers=True)


def _follow(parent: int) -> None:
    """End this process soon after its parent, however that ended."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def processes(count: int, *, threads: int = 1) -> Iterator[Processes]:
    """Yield worker processes of this machine, which end with the context.

    Parameters
    ----------
    count
        The number of processes: as many pieces are worked on at a time.
    threads
        Threads of the numerical libraries in each.

    >>> from crossperf.workers.calls import name_of
    >>> with processes(1) as workers:
    ...     workers.capacity()
    1
    """
    for name, value in (("jobs", count), ("threads", threads)):
        if value < 1:
            raise SettingsError(f"{name}: found {value}, expected 1 or more.", argument=name)
    with tempfile.TemporaryDirectory(prefix="crossperf-") as folder:
        workers = Processes(count, threads, Path(folder))
        try:
            yield workers
        finally:
            workers.close()
