"""Turns files of any known profiler into runs: which reader is which file's, and what was left out and why."""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from crossperf.collect.measurement import Measurement, to_run
from crossperf.errors import MissingDependencyError, ProfileFileError, SettingsError, did_you_mean, some_of
from crossperf.importers.caliper import Regions
from crossperf.importers.tabular import Rejected
from crossperf.records import Run
from crossperf.runs.rules import failed

AUTO = "auto"
_NAMES = ("app", "input", "platform")
#: Globals of a Caliper profile that make another program of one source.
_BUILD = ("variant", "tuning", "compiler", "cmake_cxx_flags")
_NO_COUNTERS = "no counter could be made of what the profile holds: its runs tell runtimes alone"


@dataclass(frozen=True)
class Reader:
    """One file format: a module with ``reads(path)`` and ``read(path)``, loaded when first needed."""

    name: str
    module: str
    what: str

    def load(self) -> ModuleType | None:
        """Return the module, or ``None`` where this build of crossperf has none."""
        name = f"crossperf.collect.{self.module}"
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name == name:
                return None
            raise

    def reads(self, path: Path) -> bool:
        """Tell by a cheap look whether a file or folder is of this format."""
        module = self.load()
        return module is not None and bool(module.reads(path))

    def read(self, path: Path, **options: Any) -> tuple[list[Measurement], list[Rejected]]:
        """Return the measurements of a file, and the rows that could not be used."""
        module = self.load()
        if module is None:
            raise SettingsError(f"Format {self.name!r} is not part of this build of crossperf. Choose another format.")
        if hasattr(module, "read_rows"):
            measurements, rejected = module.read_rows(path, **options)
            return list(measurements), list(rejected)
        return list(module.read(path, **options)), []


READERS: dict[str, Reader] = {
    reader.name: reader
    for reader in (
        Reader("hpctoolkit", "hpctoolkit", "HPCToolkit databases of versions 3 and 4 (a folder made by hpcprof)"),
        Reader("caliper", "caliper", "Caliper .cali, json-split and JSON records"),
        Reader("papi", "papi", "PAPI's high-level JSON"),
        Reader("perf", "perf", "perf stat, as CSV (-x) or JSON (-j)"),
        Reader("ncu", "ncu", "Nsight Compute, CSV or .ncu-rep"),
        Reader("rocprof", "rocprof", "rocprof's CSV"),
        Reader("cross-modeling", "cross_modeling", "results.json and data.csv of the seed paper's scripts"),
        Reader("table", "mapping", "any CSV or JSONL, by a mapping file"),
    )
}


@dataclass(frozen=True)
class Imported:
    """Runs that were made of files; notes as (path or platform, text); what was left out, with reasons."""

    runs: list[Run] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)


def guess(path: Path) -> str:
    """Return the one format that a file or folder is of; none, or several, is an error that says so."""
    if not path.exists():
        raise _absent(path)
    found = [name for name, reader in READERS.items() if reader.reads(path)]
    if len(found) == 1:
        return found[0]
    if found:
        raise ProfileFileError(
            f"{path}: found a file that could be {' or '.join(found)}, expected one format. Name it instead of 'auto'.",
            path=str(path),
            formats=found,
        )
    others = [name for name in READERS if name != "table"]
    raise ProfileFileError(
        f"{path}: found no format that crossperf knows, expected one of {', '.join(others)}. "
        "Name the format to learn what is wrong; any CSV or JSONL is read by 'crossperf import table FILE --map MAP'.",
        path=str(path),
        formats=[],
    )


def _absent(path: Path) -> ProfileFileError:
    return ProfileFileError(f"{path}: found nothing there, expected a file or folder. Check the name.", path=str(path))


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
) -> Imported:
    """Return the runs of files and folders; what cannot be read is left out, with its reason.

    A folder that is no profile itself is searched for some. Nothing readable at all is an error, and so is a
    run whose application, input or platform neither its file nor an option names.

    Parameters
    ----------
    format
        One of `READERS`, or ``auto`` to tell each file by its looks.
    app, input, platform, platform_class
        Names that stand above what the files tell.
    mapping
        The mapping file of format ``table``.
    regions
        For Caliper: ``leaf`` makes a run of each innermost region.
    """
    options = _options(format, mapping, regions)
    columns = {"app": app, "input": input, "platform": platform, "platform_class": platform_class}
    result = Imported()
    nameless: dict[str, str] = {}
    for given in map(Path, paths):
        for path in _profiles(format, given, result):
            _import(format, path, options, columns, result, nameless)
    if nameless:
        lacking = [name for name in _NAMES if any(name in text.split() for text in nameless.values())]
        wanted = " ".join(f"--{name} {name.upper()}" for name in lacking)
        raise ProfileFileError(
            f"{some_of(nameless, 3)}: found no {' and no '.join(lacking)} in the file, "
            f"expected what a run is known by. Give {wanted}.",
            path=next(iter(nameless)),
            lacking=lacking,
        )
    if not result.runs:
        raise _nothing(paths, result)
    result.notes.extend(_mixed(result.runs))
    return result


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
            yield (
                platform,
                f"runs of one workload differ in {name} ({some_of(sorted(values), 3)}) and will count as repeats; "
                "import the files one by one with a --platform for each to keep them apart",
            )


def _options(format: str, mapping: str | Path | None, regions: Regions) -> dict[str, dict[str, Any]]:  # noqa: A002
    if format != AUTO and format not in READERS:
        known = (AUTO, *READERS)
        raise SettingsError(f"Format {format!r} is not known{did_you_mean(format, known)}; choose {', '.join(known)}.")
    if regions not in ("whole", "leaf"):
        raise SettingsError(f"Regions {regions!r} are not known; choose whole or leaf.")
    if format == "table" and mapping is None:
        raise SettingsError("Format 'table' needs a mapping file that says what the columns are. Give --map MAPPING.")
    if format != "table" and mapping is not None:
        raise SettingsError(f"A mapping file is for format 'table', not {format!r}. Leave --map out, or give 'table'.")
    options: dict[str, dict[str, Any]] = {"caliper": {"regions": regions}}
    if mapping is not None:
        from crossperf.importers.mapping import load

        options["table"] = {"mapping": load(Path(mapping))}
    return options


def _profiles(format: str, given: Path, result: Imported) -> Iterator[Path]:  # noqa: A002
    """Yield the profiles at a path: itself, or those in a folder, outermost first."""
    if not given.exists():
        result.rejected.append(Rejected(str(given), str(_absent(given))))
    elif not given.is_dir() or _is_profile(format, given):
        yield given
    else:
        found = list(_inside(format, given))
        if found:
            yield from found
        else:
            yield given  # its reader says what is missing


def _inside(format: str, folder: Path) -> Iterator[Path]:  # noqa: A002
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for path in entries:
        if _is_profile(format, path):
            yield path
        elif path.is_dir() and not path.is_symlink():
            yield from _inside(format, path)


def _is_profile(format: str, path: Path) -> bool:  # noqa: A002
    if format == "table":
        return path.is_file() and path.suffix in (".csv", ".tsv", ".jsonl", ".ndjson")
    readers = READERS.values() if format == AUTO else [READERS[format]]
    return any(reader.reads(path) for reader in readers)


def _import(
    format: str,  # noqa: A002
    path: Path,
    options: Mapping[str, Mapping[str, Any]],
    columns: Mapping[str, str | None],
    result: Imported,
    nameless: dict[str, str],
) -> None:
    try:
        name = guess(path) if format == AUTO else format
        measurements, rejected = READERS[name].read(path, **options.get(name, {}))
    except MissingDependencyError:
        raise
    except ProfileFileError as error:
        result.rejected.append(Rejected(str(path), str(error)))
        return
    except OSError as error:
        reason = f"{path}: cannot be read ({error.strerror or error}), expected a profile. Check its permissions."
        result.rejected.append(Rejected(str(path), reason))
        return
    result.rejected.extend(rejected)
    notes: list[str] = []
    told = [
        {**measurement.facts, **{key: value for key, value in columns.items() if value is not None}}
        for measurement in measurements
    ]
    for measurement, facts in zip(measurements, told, strict=True):
        lacking = [key for key in _NAMES if facts.get(key) in (None, "")]
        row = facts.get("source_row")
        if lacking and row is not None and all(any(other.get(key) for other in told) for key in lacking):
            reason = f"found no {' and no '.join(lacking)}, expected what a run is known by. Fill it in."
            result.rejected.append(Rejected(str(path), reason, row))
        elif lacking:
            nameless[str(path)] = " ".join(lacking)
        else:
            run = to_run([measurement], **columns, source_file=str(path))
            result.runs.append(run)
            bare = not run.counters and not failed(run.status)
            notes += [*measurement.notes, *([_NO_COUNTERS] if bare else [])]
    result.notes.extend((str(path), note) for note in dict.fromkeys(notes))


def _nothing(paths: Sequence[str | Path], result: Imported) -> ProfileFileError:
    reasons = [str(rejected) for rejected in result.rejected]
    if not reasons:
        where = some_of(map(str, paths), 3) or "no path"
        reasons = [f"{where}: found no profile, expected at least one. Name the files."]
    more = f" ({len(reasons) - 3} more were left out)" if len(reasons) > 3 else ""
    return ProfileFileError(" ".join(reasons[:3]) + more, path=str(next(iter(paths), "")), rejected=result.rejected)
