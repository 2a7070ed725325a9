"""What a dataset, a model or an evaluation remembers of the runs table it was made from."""

from __future__ import annotations

from dataclasses import dataclass

from crossperf.runs.summary import TableInfo


@dataclass(frozen=True)
class TableFacts:
    """The facts of a runs table: where it came from, what it holds, and how its runs can be recognised.

    Parameters
    ----------
    fingerprint
        A digest of everything that can change an answer.
    warnings
        How many warnings `runs check` gives for it.
    """

    path: str
    fingerprint: str
    runs: int
    failed_runs: int
    warnings: int
    apps: int
    workloads: int
    platforms: tuple[str, ...]
    info: TableInfo | None = None
