"""Estimated time of arrival: how long what is left of a job will take, from the pace so far."""

from __future__ import annotations

import time
from collections.abc import Callable


class Remaining:
    """The pace of a job since it was first asked about; what was done before does not count.

    >>> ticks = iter([0.0, 60.0])
    >>> pace = Remaining(clock=lambda: next(ticks))
    >>> pace.words(5, 10), pace.words(6, 10)
    ('', 'about 4 min left')
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first: tuple[float, int] | None = None

    def seconds(self, done: int, total: int) -> float | None:
        """Return how long the rest will take; ``None`` until something was done since the first question."""
        now = self._clock()
        if self._first is None:
            self._first = now, done
        start, before = self._first
        return (now - start) / (done - before) * (total - done) if done > before else None

    def words(self, done: int, total: int) -> str:
        """Return the same in words; empty where it is not known."""
        seconds = self.seconds(done, total)
        return "" if seconds is None or done >= total else f"about {span(seconds)} left"


def span(seconds: float) -> str:
    """Return a span of time in words, rounded as an estimate is.

    >>> span(7.2), span(90), span(8000)
    ('8 s', '2 min', '2.2 h')
    """
    if seconds < 60:
        return f"{int(seconds) + 1} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
