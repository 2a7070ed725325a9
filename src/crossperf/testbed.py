"""The measured runs that ship with the package: proxy workloads on two CPUs and a GPU (docs/testbed.md)."""

from __future__ import annotations

from importlib.resources import as_file, files

from crossperf.runs.table import RunsTable, read

NAME = "testbed.parquet"


def load() -> RunsTable:
    """Return the testbed's runs: every counter of Table I, five repeats, six platforms."""
    with as_file(files("crossperf") / "data" / NAME) as path:
        return read(path)
