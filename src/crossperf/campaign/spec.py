"""What a campaign is to measure: inputs, platforms and ways to count, from one TOML file."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossperf.collect.valgrind import CacheShape, parse_caches
from crossperf.errors import SettingsError, did_you_mean

TOOLS = ("valgrind", "qemu", "ncu")


@dataclass(frozen=True)
class Work:
    """One workload with one input, as the program takes it."""

    workload: str
    input: str

    @property
    def line(self) -> str:
        """The words that name it on the program's command line, and in a batch."""
        return f"{self.workload} {self.input}".strip()


@dataclass(frozen=True)
class Mode:
    """One platform: a program with a number of threads on this machine, and the ways in which it is counted."""

    name: str
    platform_class: str
    program: Path
    threads: int
    counts: tuple[str, ...] = ()


@dataclass(frozen=True)
class CountSet:
    """One way to count the inputs, shared by the platforms that name it.

    `caches` are what valgrind simulates; qemu, where they are given, looks their sizes up in its miss curve. `launches`
    of a pass are seen by ncu; sums are scaled to all.
    """

    name: str
    tool: str
    program: Path
    caches: Mapping[str, CacheShape]
    launches: int
    note: str


@dataclass(frozen=True)
class Spec:
    """A campaign: every work on every mode, `repeats` times each; noisier ones than `spread` are timed again."""

    works: Sequence[Work]
    modes: Mapping[str, Mode]
    counts: Mapping[str, CountSet]
    repeats: int
    spread: float
    calibration: Work

    def mode(self, name: str) -> Mode:
        """Return a platform by name."""
        if name not in self.modes:
            expected = f"expected one of the spec's: {', '.join(self.modes)}"
            problem = f"platform: found {name!r}{did_you_mean(name, self.modes)}, {expected}."
            raise SettingsError(problem, argument="platform")
        return self.modes[name]


def read(path: Path) -> Spec:
    """Return the campaign of a file; paths in it count from its folder. All problems are named at once."""
    table = _toml(path)
    problems: list[str] = []
    inputs = table.get("inputs")
    if not isinstance(inputs, list) or not inputs or not all(isinstance(name, str) for name in inputs):
        problems.append(f"inputs is {inputs!r}, expected a list of files")
        inputs = []
    works = [work for name in inputs for work in _works(path.parent / name, problems)]
    folder = path.parent
    counts = {name: _counts(name, facts, folder, problems) for name, facts in _tables(table, "counts", problems)}
    platforms = _tables(table, "platforms", problems)
    modes = {name: _mode(name, facts, folder, counts, problems) for name, facts in platforms}
    repeats, spread = table.get("repeats", 5), table.get("spread", 0.05)
    if not isinstance(repeats, int) or repeats < 1:
        problems.append(f"repeats is {repeats!r}, expected a whole number of 1 or more")
    if not isinstance(spread, int | float) or not spread > 0:
        problems.append(f"spread is {spread!r}, expected a number above 0, such as 0.05")
    words = str(table.get("calibration", "")).split(maxsplit=1)
    if not words:
        problems.append("no calibration, expected a workload with its input, such as 'triad size=100000'")
    unknown = set(table) - {"inputs", "counts", "platforms", "repeats", "spread", "calibration"}
    problems += [f"{name!r} is no setting of a campaign" for name in sorted(unknown)]
    if problems:
        raise SettingsError(f"{path}: {'; '.join(problems)}. Correct the spec.", path=str(path), problems=problems)
    return Spec(works, modes, counts, repeats, float(spread), Work(words[0], "".join(words[1:])))


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read ({error.strerror}), expected a TOML file.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: is not TOML ({error}). Correct it.") from error


def _tables(table: Mapping[str, Any], name: str, problems: list[str]) -> list[tuple[str, Mapping[str, Any]]]:
    value = table.get(name, {})
    if not isinstance(value, dict) or not all(isinstance(item, dict) for item in value.values()):
        problems.append(f"{name} is {value!r}, expected tables [{name}.NAME]")
        return []
    if name == "platforms" and not value:
        problems.append("no platforms, expected at least one table [platforms.NAME]")
    return list(value.items())


def _works(path: Path, problems: list[str]) -> list[Work]:
    """Return the inputs of a file: for each workload a table of lists, of which every combination is one."""
    try:
        tables = _toml(path)
    except SettingsError as error:
        problems.append(str(error).rstrip("."))
        return []
    works = []
    for workload, parameters in tables.items():
        lists: list[Any] = list(parameters.values()) if isinstance(parameters, dict) else [None]
        if not all(isinstance(values, list) and values for values in lists):
            problems.append(f"{path.name}: {workload} is no table of lists")
            continue
        for values in itertools.product(*lists):
            words = [f"{name}={value}" for name, value in zip(parameters, values, strict=True)]
            works.append(Work(workload, " ".join(words)))
    return works


def _mode(
    name: str, facts: Mapping[str, Any], folder: Path, counts: Mapping[str, CountSet], problems: list[str]
) -> Mode:
    threads, counted = facts.get("threads", 1), facts.get("counts", [])
    counted = tuple(counted) if isinstance(counted, list) else (counted,)
    if not isinstance(threads, int) or threads < 1:
        problems.append(f"platform {name} has threads {threads!r}, expected 1 or more")
    problems += [
        f"platform {name} names counts {unknown!r}, which the spec does not have"
        for unknown in counted
        if unknown not in counts
    ]
    if "program" not in facts:
        problems.append(f"platform {name} names no program")
    return Mode(name, str(facts.get("class", "cpu")), folder / str(facts.get("program")), threads, counted)


def _counts(name: str, facts: Mapping[str, Any], folder: Path, problems: list[str]) -> CountSet:
    tool = facts.get("tool")
    if tool not in TOOLS:
        problems.append(f"counts {name} have the tool {tool!r}, expected {' or '.join(TOOLS)}")
    if "program" not in facts:
        problems.append(f"counts {name} name no program")
    try:
        caches = parse_caches(str(facts.get("caches", "")))
    except SettingsError as error:
        problems.append(f"counts {name}: {error}")
        caches = {}
    if tool == "valgrind" and set(caches) != {"I1", "D1", "LL"}:
        problems.append(f"counts {name} have no caches I1, D1 and LL, which valgrind needs")
    program = folder / str(facts.get("program"))
    return CountSet(name, str(tool), program, caches, int(facts.get("launches", 0)), str(facts.get("note", "")))
