"""The measured runs that ship with the package: programs on two CPUs and a GPU (docs/testbed.md)."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import as_file, files
from typing import Literal, get_args

from crossperf.errors import SettingsError
from crossperf.platforms import Platform
from crossperf.platforms import read as read_platforms
from crossperf.runs.table import RunsTable, read

View = Literal["programs", "passes"]
_FILES = {"programs": "testbed", "passes": "passes"}


def load(view: View = "programs") -> RunsTable:
    """Return the testbed's runs, one for each visit of an input on a platform.

    Parameters
    ----------
    view
        ``programs``: whole processes, from their start to their end. ``passes``: single hot passes of the proxy
        workloads, without start and set-up.
    """
    if view not in _FILES:
        expected = " or ".join(map(repr, get_args(View)))
        raise SettingsError(f"view: found {view!r}, expected {expected}.", argument="view")
    with as_file(files("crossperf.datasets") / "data" / f"{_FILES[view]}.parquet") as path:
        return replace(read(path), path="testbed" if view == "programs" else f"testbed ({view})")


def platforms() -> list[Platform]:
    """Return the facts of the testbed's platforms; a platform is a machine with a number of threads, or its GPU."""
    with as_file(files("crossperf.datasets") / "data" / "platforms.json") as path:
        return read_platforms(path)
