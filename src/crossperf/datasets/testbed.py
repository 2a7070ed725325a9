"""The measured runs that ship with the package: proxy workloads on two CPUs and a GPU (docs/testbed.md)."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import as_file, files

from crossperf.platforms import Platform
from crossperf.platforms import read as read_platforms
from crossperf.runs.table import RunsTable, read


def load() -> RunsTable:
    """Return the testbed's runs: every counter of Table I, five repeats, six platforms."""
    with as_file(files("crossperf.datasets") / "data" / "testbed.parquet") as path:
        return replace(read(path), path="testbed")


def platforms() -> list[Platform]:
    """Return the facts of the testbed's platforms; a platform is a machine with a number of threads, or its GPU."""
    with as_file(files("crossperf.datasets") / "data" / "platforms.json") as path:
        return read_platforms(path)
