"""Figures of operation in Prometheus' text format: requests, a histogram of latencies, cells, models.

Workers are processes that were forked from one, and share one piece of memory with a row each: whichever of them is
asked for the figures adds up all rows. A row is written by its own worker alone, so that no lock is needed.
"""

# W workers, S slots

from __future__ import annotations

import mmap
import time
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

#: Upper ends of the buckets, in seconds: fine around the milliseconds that one answer takes.
BUCKETS = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
#: The status classes that are counted apart.
_STATUSES = (200, 201, 204, 304, 400, 401, 403, 404, 405, 406, 408, 413, 415, 421, 422, 429, 500, 501, 503)
_OTHER = len(_STATUSES)
_EXTRA = ("predicted_cells", "passes", "batched_cells", "reloads", "kept_runs", "in_flight")
#: What a row holds of each route: how often each status was given, the buckets, and the sum of seconds.
_OF_ROUTE = len(_STATUSES) + 1 + len(BUCKETS) + 1 + 1


class Metrics:
    """Counts and sums of all workers, by route.

    >>> metrics = Metrics(["predict"])
    >>> metrics.observe("predict", 200, 0.0015)
    >>> [line for line in metrics.text({}).splitlines() if line.startswith("crossperf_requests_total")]
    ['crossperf_requests_total{route="predict",status="200"} 1']
    """

    def __init__(self, routes: Iterable[str] = (), workers: int = 1) -> None:
        self._routes = {name: number for number, name in enumerate((*routes, "other"))}
        slots = len(self._routes) * _OF_ROUTE + len(_EXTRA)
        # Shared with every process that is forked from this one.
        self._memory = mmap.mmap(-1, 8 * slots * workers)
        self._values_ws = np.frombuffer(self._memory, np.float64).reshape(workers, slots)
        self._status = {status: place for place, status in enumerate(_STATUSES)}
        self._started = time.time()
        self.worker = 0

    def observe(self, route: str, status: int, seconds: float) -> None:
        """Note one request."""
        own_s = self._values_ws[self.worker]
        start = self._routes.get(route, len(self._routes) - 1) * _OF_ROUTE
        own_s[start + self._status.get(status, _OTHER)] += 1
        bucket = next((place for place, end in enumerate(BUCKETS) if seconds <= end), len(BUCKETS))
        own_s[start + _OTHER + 1 + bucket] += 1
        own_s[start + _OF_ROUTE - 1] += seconds

    def add(self, name: str, amount: float = 1.0) -> None:
        """Add to a figure of its own: one of those in `_EXTRA`."""
        self._values_ws[self.worker, _EXTRA.index(name) - len(_EXTRA)] += amount

    def total(self, name: str) -> float:
        """Return a figure of its own over all workers."""
        return float(self._values_ws[:, _EXTRA.index(name) - len(_EXTRA)].sum())

    def text(self, models: Mapping[str, str]) -> str:
        """Return all figures; `models` are fingerprints by id."""
        return "\n".join(self._lines(models)) + "\n"

    def _lines(self, models: Mapping[str, str]) -> Iterator[str]:
        total_s = self._values_ws.sum(axis=0)
        yield from _head("crossperf_requests_total", "counter", "Requests by route and status.")
        for route, number in self._routes.items():
            counts = total_s[number * _OF_ROUTE :][: _OTHER + 1]
            for status, count in zip((*_STATUSES, "other"), counts, strict=True):
                if count:
                    yield f'crossperf_requests_total{{route="{route}",status="{status}"}} {count:.0f}'
        name = "crossperf_request_seconds"
        yield from _head(name, "histogram", "Seconds from the first byte of a request to the last of its answer.")
        for route, number in self._routes.items():
            buckets = total_s[number * _OF_ROUTE + _OTHER + 1 :][: len(BUCKETS) + 1].cumsum()
            if not buckets[-1]:
                continue
            for end, count in zip((*map(str, BUCKETS), "+Inf"), buckets, strict=True):
                yield f'{name}_bucket{{route="{route}",le="{end}"}} {count:.0f}'
            yield f'{name}_sum{{route="{route}"}} {total_s[(number + 1) * _OF_ROUTE - 1]:.6f}'
            yield f'{name}_count{{route="{route}"}} {buckets[-1]:.0f}'
        for extra, kind, text in (
            ("predicted_cells", "counter", "Workloads on a source that were predicted."),
            ("passes", "counter", "Passes of a model for requests that were answered together."),
            ("batched_cells", "counter", "Workloads on a source in these passes."),
            ("reloads", "counter", "Reloads of the models."),
            ("kept_runs", "counter", "Finished runs that were kept."),
            ("in_flight", "gauge", "Requests that are being answered."),
        ):
            own = f"crossperf_{extra}{'_total' if kind == 'counter' else ''}"
            yield from _head(own, kind, text)
            yield f"{own} {self.total(extra):.0f}"
        yield from _head("crossperf_model_info", "gauge", "Models that answer.")
        yield from (f'crossperf_model_info{{model="{id_}",fingerprint="{own}"}} 1' for id_, own in models.items())
        yield from _head("crossperf_start_time_seconds", "gauge", "When the server started, in seconds since 1970.")
        yield f"crossperf_start_time_seconds {self._started:.3f}"


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
