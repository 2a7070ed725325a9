"""The formats that crossperf imports, by name: how each tells its files from others, and reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from crossperf.importers import caliper, hpctoolkit, ncu, papi, perf, rocprof
from crossperf.importers.caliper import Regions
from crossperf.importers.cross_modeling import CrossModelingImporter
from crossperf.importers.mapping import TableImporter, TableMap
from crossperf.importers.measurement import Measurement
from crossperf.importers.tabular import ProfileReading

TABLE = TableImporter.name


class Importer(Protocol):
    """A format of profiles."""

    @property
    def name(self) -> str:
        """The word by which the format is chosen."""

    def reads(self, path: Path, /) -> bool:
        """Tell by a cheap look whether a file or folder is of this format."""

    def read(self, path: Path, /) -> ProfileReading:
        """Return the measurements of a file or folder; one that cannot be used raises `ProfileFileError`."""


@dataclass(frozen=True)
class ProfileImporter:
    """A format whose files are used whole or not at all, by the two functions of its module."""

    name: str
    reads: Callable[[Path], bool]
    measurements: Callable[[Path], list[Measurement]]

    def read(self, path: Path, /) -> ProfileReading:
        """Return the measurements of a file or folder."""
        return ProfileReading(self.measurements(path), [])


def importers(regions: Regions = "whole", mapping: TableMap | None = None) -> dict[str, Importer]:
    """Return the importer of each format by name.

    >>> list(importers())
    ['hpctoolkit', 'caliper', 'papi', 'perf', 'ncu', 'rocprof', 'cross-modeling', 'table']

    Parameters
    ----------
    regions
        For Caliper: ``leaf`` makes a run of each innermost region.
    mapping
        For a table: what its columns are.
    """
    known: tuple[Importer, ...] = (
        ProfileImporter("hpctoolkit", hpctoolkit.reads, hpctoolkit.read),
        ProfileImporter("caliper", caliper.reads, partial(caliper.read, regions=regions)),
        ProfileImporter("papi", papi.reads, papi.read),
        ProfileImporter("perf", perf.reads, perf.read),
        ProfileImporter("ncu", ncu.reads, ncu.read),
        ProfileImporter("rocprof", rocprof.reads, rocprof.read),
        CrossModelingImporter(),
        TableImporter(mapping or TableMap()),
    )
    return {importer.name: importer for importer in known}
