"""What counting will take, before it is tried: typical slowdowns by tool, from ``costs.toml``."""

from __future__ import annotations

import contextlib
import os
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from crossperf.collect.process import Execution


@cache
def _table() -> dict[str, dict[str, Any]]:
    return tomllib.loads((files(__package__) / "costs.toml").read_text("utf-8"))


def crowding() -> float:
    """Return how many are waiting for each processor of this machine; 1 where none has to wait."""
    with contextlib.suppress(OSError):
        return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    return 1.0


def estimate_s(tool: str, executions: Sequence[Execution], crowded: float = 1.0) -> float:
    """Return the seconds that a command takes under a tool, from its native executions; right within a factor of 3.

    Parameters
    ----------
    crowded
        How many share a processor, as `crowding` tells; what the tool adds takes that much longer.

    >>> half_idle = Execution(0, 2.0, 1.0, 0.0, None, 0, 0, None)
    >>> estimate_s("valgrind", [half_idle]), estimate_s("a tool of which nothing is known", [half_idle])
    (62.5, 2.0)
    """
    cost = _table().get(tool, {})
    native = sorted(executions, key=lambda done: done.wall_s)[len(executions) // 2]
    busy_s = native.user_s + native.system_s
    work_s = busy_s if cost.get("serial") else min(busy_s, native.wall_s)
    waiting_s = max(0.0, native.wall_s - busy_s)
    added_s = (cost.get("times", 1.0) - 1.0) * work_s + cost.get("plus_s", 0.0)
    return float(waiting_s + work_s + crowded * added_s)


def in_words(seconds: float) -> str:
    """Return a time as people say it.

    >>> in_words(0.4), in_words(45), in_words(124), in_words(9000)
    ('1 s', '45 s', '2 min', '2.5 h')
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.2g} h"
