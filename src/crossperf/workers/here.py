"""The worker that is this process: calls are answered one after another, with the threads that it has."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from crossperf.workers import threads
from crossperf.workers.calls import Function
from crossperf.workers.parcels import Parcel


class Here:
    """A worker that is this process.

    >>> worker = Here()
    >>> answer = worker.submit(Parcel, {"fold": 0})
    >>> worker.start()
    >>> answer.result().facts
    {'fold': 0}
    """

    def __init__(self) -> None:
        self.threads = threads.here()
        self._waiting: list[tuple[Future[Parcel], Function, tuple[Any, ...]]] = []

    def capacity(self) -> int:
        """Return 1: a call is answered before the next is asked."""
        return 1

    def share(self, parcel: Parcel) -> Parcel:
        """Return the parcel itself."""
        return parcel

    def submit(self, function: Function, *arguments: Any) -> Future[Parcel]:
        """Have a function called at the next `start`."""
        future: Future[Parcel] = Future()
        self._waiting.append((future, function, arguments))
        return future

    def start(self) -> None:
        """Call what was submitted; what it raises is raised here."""
        for future, function, arguments in self._waiting:
            future.set_result(function(*arguments))
        self._waiting.clear()
