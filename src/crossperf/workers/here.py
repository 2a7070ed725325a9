"""The worker that is this process: calls are answered one after another, with the threads that it has."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from crossperf.workers import threads
from crossperf.workers.calls import Function
from crossperf.workers.parcels import Parcel


class Here:
    """A worker that is this process.

    >>> Here().submit(lambda parcel: parcel, Parcel({"fold": 0})).result().facts
    {'fold': 0}
    """

    def __init__(self) -> None:
        self.threads = threads.here()

    def capacity(self) -> int:
        """Return 1: a call is answered before the next is asked."""
        return 1

    def share(self, parcel: Parcel) -> Parcel:
        """Return the parcel itself."""
        return parcel

    def submit(self, function: Function, *arguments: Any) -> Future[Parcel]:
        """Call a function now; what it raises is raised here."""
        future: Future[Parcel] = Future()
        future.set_result(function(*arguments))
        return future

    def start(self) -> None:
        """Do nothing: there is nothing left to start."""
