"""What a result remembers of its runs table."""

from __future__ import annotations

from dataclasses import dataclass

from crossperf.runs.summary import TableInfo


@dataclass(frozen=True)
class TableFacts:
    """Which runs table a dataset, a model or an evaluation was made from.

    ``apps`` and ``workloads`` are counts over the ``platforms`` chosen; ``info`` is of the whole table, and ``None``
    where it was not kept.
    """

    path: str
    fingerprint: str = ""
    runs: int = 0
    failed_runs: int = 0
    warnings: int = 0
    apps: int = 0
    workloads: int = 0
    platforms: tuple[str, ...] = ()
    info: TableInfo | None = None
