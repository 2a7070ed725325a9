"""Turns files of any known profiler into runs: which format is which file's, and what was left out and why."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from crossperf.errors import ProfileFileError, SettingsError, did_you_mean, some_of
from crossperf.importers import (
    caliper,
    cross_modeling,
    google_benchmark,
    hpctoolkit,
    likwid,
    ncu,
    nsys,
    nvprof,
    papi,
    perf,
    perf_data,
    rocprof,
    scorep,
    tau,
    vtune,
)
from crossperf.importers import mapping as mapping_files
from crossperf.importers.caliper import Regions
from crossperf.importers.files import unusable
from crossperf.importers.mapping import TableMap
from crossperf.importers.measurement import Measurement, to_run
from crossperf.importers.tabular import ProfileReading, Rejected
from crossperf.records import Run
from crossperf.runs.rules import failed

AUTO, TABLE = "auto", "table"
_NAMES = ("app", "input", "platform")
#: Globals of a Caliper profile that make another program of one source.
_BUILD = ("variant", "tuning", "compiler", "cmake_cxx_flags")
_NO_COUNTERS = "no counter could be made of what the profile holds: its runs have a runtime alone"


@dataclass(frozen=True)
class Importer:
    """A format of profiles by the word that chooses it: `reads` tells by a cheap look whether a file is of it."""

    name: str
    reads: Callable[[Path], bool]
    read: Callable[[Path], ProfileReading]


def importers(regions: Regions = "whole", mapping: TableMap | None = None) -> dict[str, Importer]:
    """Return the importer of each format by name; see `import_runs` for `regions` and `mapping`.

    >>> list(importers())  # doctest: +NORMALIZE_WHITESPACE
    ['hpctoolkit', 'caliper', 'papi', 'perf', 'ncu', 'nvprof', 'rocprof', 'nsys', 'likwid', 'tau', 'perf-data',
    'scorep', 'vtune', 'google-benchmark', 'cross-modeling', 'table']
    """

    def used_whole(name: str, reads: Callable[[Path], bool], read: Callable[[Path], list[Measurement]]) -> Importer:
        return Importer(name, reads, lambda path: ProfileReading(read(path), []))

    known = (
        used_whole("hpctoolkit", hpctoolkit.reads, hpctoolkit.read),
        used_whole("caliper", caliper.reads, partial(caliper.read, regions=regions)),
        used_whole("papi", papi.reads, papi.read),
        used_whole("perf", perf.reads, perf.read),
        used_whole("ncu", ncu.reads, ncu.read),
        used_whole("nvprof", nvprof.reads, nvprof.read),
        used_whole("rocprof", rocprof.reads, rocprof.read),
        used_whole("nsys", nsys.reads, nsys.read),
        used_whole("likwid", likwid.reads, likwid.read),
        used_whole("tau", tau.reads, tau.read),
        used_whole("perf-data", perf_data.reads, perf_data.read),
        used_whole("scorep", scorep.reads, scorep.read),
        used_whole("vtune", vtune.reads, vtune.read),
        used_whole("google-benchmark", google_benchmark.reads, google_benchmark.read),
        Importer("cross-modeling", cross_modeling.reads, cross_modeling.read),
        Importer(TABLE, mapping_files.reads, partial(mapping_files.read, mapping=mapping or TableMap())),
    )
    return {importer.name: importer for importer in known}


FORMATS = tuple(importers())


@dataclass(frozen=True)
class Imported:
    """Runs that were made of files; notes as (path or platform, text); what was left out, with reasons."""

    runs: list[Run] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)


def guess(path: Path, among: Mapping[str, Importer] | None = None) -> str:
    """Return the one format that a file or folder is of; none, or several, is an error with the candidates.

    A table is of no format by its looks: any CSV could be one.
    """
    if not path.exists():
        raise _absent(path)
    known = [importer for name, importer in (among or importers()).items() if name != TABLE]
    claims = [importer.name for importer in known if importer.reads(path)]
    if len(claims) == 1:
        return claims[0]
    if claims:
        problem = f"found a file that could be {' or '.join(claims)}, expected one format. Name it instead of 'auto'."
        raise unusable(path, problem, formats=claims)
    problem = f"found no format that crossperf knows, expected one of {', '.join(each.name for each in known)}"
    advice = "Name the format to learn what is wrong; any CSV or JSONL is read as format 'table' by a mapping file."
    raise unusable(path, f"{problem}. {advice}", formats=claims)


def _absent(path: Path) -> ProfileFileError:
    return unusable(path, "found nothing there, expected a file or folder. Check the name.")


def import_runs(
    format: str,  # noqa: A002
    paths: Sequence[str | Path],
    *,
    app: str | None = None,
    input: str | None = None,  # noqa: A002
    platform: str | None = None,
    platform_class: str | None = None,
    mapping: str | Path | None = None,
    regions: Regions = "whole",
    runtime_s: float | None = None,
) -> Imported:
    """Return the runs of files and folders; what cannot be read is left out, with its reason.

    A folder that is no profile itself is searched for some. Nothing readable at all is an error, and so is a
    run whose application, input or platform neither its file nor an argument names.

    Parameters
    ----------
    format
        One of `FORMATS`, or ``auto`` to tell each file by its looks.
    app, input, platform, platform_class
        Names that stand above those in the files.
    mapping
        The mapping file of format ``table``.
    regions
        For Caliper: ``leaf`` makes a run of each innermost region, named after it; with `app` given, the region
        starts the input instead.
    runtime_s
        The runtime of the one run that the files hold, above what they tell.
    """
    _check(format, mapping, regions, runtime_s)
    table_map = None if mapping is None else mapping_files.load(Path(mapping))
    names = {"app": app, "input": input, "platform": platform, "platform_class": platform_class}
    given = {key: name for key, name in names.items() if name}
    importing = _Importing(format, importers(regions, table_map), given, runtime_s)
    for path in map(Path, paths):
        importing.add(path)
    return importing.result(paths)


def _check(format: str, mapping: str | Path | None, regions: Regions, runtime_s: float | None) -> None:  # noqa: A002
    if format not in (AUTO, *FORMATS):
        choice = f"{did_you_mean(format, FORMATS)}, expected {', '.join((AUTO, *FORMATS))}"
        raise SettingsError(f"format: found {format!r}{choice}.", argument="format")
    if regions not in ("whole", "leaf"):
        raise SettingsError(f"regions: found {regions!r}, expected whole or leaf.", argument="regions")
    if runtime_s is not None and not 0 < runtime_s < math.inf:
        raise SettingsError(f"runtime_s: found {runtime_s:g}, expected seconds above 0.", argument="runtime_s")
    if format == TABLE and mapping is None:
        raise SettingsError("mapping: found nothing, but format 'table' needs a mapping file.", argument="mapping")
    if format != TABLE and mapping is not None:
        problem = f"mapping: found {str(mapping)!r}, expected none: it is for format 'table', not {format!r}."
        raise SettingsError(problem, argument="mapping")


@dataclass
class _Importing:
    """One import under way; `names` stand above those in the files."""

    format: str
    known: Mapping[str, Importer]
    names: Mapping[str, str]
    runtime_s: float | None = None
    imported: Imported = field(default_factory=Imported)
    #: What is lacking in each file whose runs have no name.
    nameless: dict[str, list[str]] = field(default_factory=dict)

    def add(self, path: Path) -> None:
        """Import the profiles at a path: itself, or those in a folder, outermost first."""
        if not path.exists():
            self._reject(path, str(_absent(path)))
            return
        if not path.is_file() and not path.is_dir():  # a pipe would be waited for
            self._reject(path, str(unusable(path, "found no regular file, expected a file or folder. Check the name.")))
            return
        inside = list(self._inside(path)) if path.is_dir() and not self._is_profile(path) else []
        for profile in inside or [path]:  # where there is none, the reader of a folder knows what is missing
            self._import(profile)

    def _inside(self, folder: Path) -> Iterator[Path]:
        try:
            entries = sorted(folder.iterdir())
        except OSError:
            return
        for path in entries:
            if self._is_profile(path):
                yield path
            elif path.is_dir() and not path.is_symlink():
                yield from self._inside(path)

    def _is_profile(self, path: Path) -> bool:
        formats = [name for name in FORMATS if name != TABLE] if self.format == AUTO else [self.format]
        return any(self.known[name].reads(path) for name in formats)

    def _reject(self, path: Path, reason: str, row: int | None = None) -> None:
        self.imported.rejected.append(Rejected(str(path), reason, row))

    def _import(self, path: Path) -> None:
        try:
            name = guess(path, self.known) if self.format == AUTO else self.format
            reading = self.known[name].read(path)
        except ProfileFileError as error:
            self._reject(path, str(error))
            return
        except OSError as error:
            why = f"cannot be read ({error.strerror or error}), expected a profile. Check its permissions."
            self._reject(path, f"{path}: {why}")
            return
        self.imported.rejected.extend(reading.rejected)
        notes = [note for measurement in reading.measurements for note in self._run(path, measurement, reading)]
        self.imported.notes.extend((str(path), note) for note in dict.fromkeys(notes))

    def _run(self, path: Path, measurement: Measurement, reading: ProfileReading) -> list[str]:
        """Add the run of one measurement, and return the notes on it."""
        names = self._names_of(measurement)
        lacking = [name for name in _NAMES if names.get(name) in (None, "")]
        row = measurement.facts.get("imported_row")
        if lacking and row is not None and all(self._named(name, reading.measurements) for name in lacking):
            reason = f"found no {' and no '.join(lacking)}, expected what a run is known by. Fill it in."
            self._reject(path, reason, row)
        elif lacking:
            self.nameless[str(path)] = lacking
        else:
            # No name that reads like a column of a run: 'source_file' would look like a typing error.
            measurement = self._timed(measurement)
            run = to_run([measurement], **names, imported_from=str(path))
            self.imported.runs.append(run)
            bare = not run.counters and not failed(run.status)
            return [*measurement.notes, *([_NO_COUNTERS] if bare else [])]
        return []

    def _names_of(self, measurement: Measurement) -> dict[str, str]:
        """Return the names of a run; those given stand above the file's, and leave its regions apart."""
        names = {name: measurement.facts[name] for name in _NAMES if name in measurement.facts} | dict(self.names)
        if "region" in measurement.facts and "app" in self.names:
            words = (measurement.facts["app"], names.get("input"))
            names["input"] = " ".join(str(word) for word in words if word)
        return names

    def _timed(self, measurement: Measurement) -> Measurement:
        """Return a measurement with the runtime that was given, where there is one."""
        if self.runtime_s is None:
            return measurement
        notes = [note for note in measurement.notes if not note.startswith(("runtime ", "no runtime"))]
        return replace(measurement, runtime_s=self.runtime_s, notes=(*notes, "runtime is the one given by hand"))

    def _named(self, name: str, measurements: Sequence[Measurement]) -> bool:
        return name in self.names or any(each.facts.get(name) not in (None, "") for each in measurements)

    def result(self, paths: Sequence[str | Path]) -> Imported:
        """Return all that was imported; nothing at all, or runs without a name, is an error."""
        if self.nameless:
            lacking = [name for name in _NAMES if any(name in names for names in self.nameless.values())]
            problem = f"found no {' and no '.join(lacking)} in the file, expected what a run is known by"
            advice = f"Give {' and '.join(lacking)} yourself."
            where, first = some_of(self.nameless, 3), next(iter(self.nameless))
            raise ProfileFileError(f"{where}: {problem}. {advice}", path=first, arguments=lacking)
        if not self.imported.runs:
            raise _nothing(paths, self.imported)
        if self.runtime_s is not None and len(self.imported.runs) > 1:
            problem = f"found one runtime for {len(self.imported.runs)} runs, expected it for one alone"
            raise SettingsError(f"runtime_s: {problem}. Import the files one by one.", argument="runtime_s")
        self.imported.notes.extend(_mixed(self.imported.runs))
        return self.imported


def _mixed(runs: Sequence[Run]) -> Iterator[tuple[str, str]]:
    """Yield a note for each way in which runs that count as repeats of each other were built or tuned differently."""
    built: dict[tuple[str, str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for run in runs:
        for name in _BUILD:
            value = (run.metadata.get("globals") or {}).get(name)
            if value is not None:
                built[run.app, run.input, run.platform][name].add(str(value).strip())
    for platform, name in dict.fromkeys((cell[2], name) for cell in built for name in _BUILD):
        values = {value for cell in built if cell[2] == platform for value in built[cell][name]}
        if any(cell[2] == platform and len(names[name]) > 1 for cell, names in built.items()):
            problem = f"runs of one workload differ in {name} ({some_of(sorted(values), 3)}) and will count as repeats"
            advice = "import the files one by one, each with a platform of its own, to keep them apart"
            yield platform, f"{problem}; {advice}"


def _nothing(paths: Sequence[str | Path], imported: Imported) -> ProfileFileError:
    reasons = [str(rejected) for rejected in imported.rejected]
    if not reasons:
        where = some_of(map(str, paths), 3) or "no path"
        reasons = [f"{where}: found no profile, expected at least one. Name the files."]
    more = f" ({len(reasons) - 3} more were left out)" if len(reasons) > 3 else ""
    return ProfileFileError(" ".join(reasons[:3]) + more, path=str(next(iter(paths), "")), rejected=imported.rejected)
