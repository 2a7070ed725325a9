"""What handlers share: the service, its limits, the batches of predictions, and the figures of operation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool

from crossperf.serve.batching import Batches
from crossperf.serve.metrics import Metrics
from crossperf.serve.problems import RequestError
from crossperf.serve.readers import BusyError
from crossperf.serve.service import Service

T = TypeVar("T")


@dataclass(frozen=True)
class ServerLimits:
    """What one request may bring, and how many may wait.

    `walks` counts those of one request to /explain, of all its runs, 10 to 20 ms each; `waiting` the slow requests
    (explanations, maps, uploads, large batches) that are worked on or wait, beyond which a server is busy.
    """

    body_bytes: int = 32 * 2**20
    runs: int = 50_000
    walks: int = 1_280
    waiting: int = 32
    body_seconds: float = 30.0


@dataclass(eq=False)
class Context:
    """The service with what a server adds to it."""

    service: Service
    limits: ServerLimits = field(default_factory=ServerLimits)
    metrics: Metrics = field(default_factory=Metrics)
    batches: Batches = field(default_factory=Batches)
    #: Set when a signal asks the server to end: streams then end too.
    ending: bool = False
    _waiting: int = 0

    def refuse_many(self, count: int) -> None:
        """Raise where a request brings more runs than one may."""
        if count > self.limits.runs:
            raise RequestError(
                413, f"Found {count:,} runs, expected at most {self.limits.runs:,} in one request. Send them in parts."
            )

    def refuse_empty(self, data: bytes) -> None:
        """Raise where a body holds nothing."""
        if not data.strip():
            raise RequestError(422, "The body is empty, expected one run at least.")

    async def slowly(self, function: Callable[..., T], *arguments: Any, **settings: Any) -> T:
        """Return what a slow function returns, called in a thread; where too many wait already, raise `BusyError`."""
        if self._waiting >= self.limits.waiting:
            raise BusyError("Too many slow requests are waiting. Ask again in a moment.")
        self._waiting += 1
        try:
            return await run_in_threadpool(function, *arguments, **settings)
        finally:
            self._waiting -= 1
