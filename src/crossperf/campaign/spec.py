"""What a campaign is to measure: inputs, platforms and ways to count, from one TOML file."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from crossperf import plain
from crossperf.collect.backends import AUTO
from crossperf.collect.measuring import COUNT_LIMIT_S
from crossperf.collect.valgrind import CacheShape, parse_caches
from crossperf.documents import MEGABYTE, parse_toml, read_bytes
from crossperf.errors import SettingsError, did_you_mean, shortened

_MOST_BYTES = 16 * MEGABYTE
#: Visits, repeats, and inputs of a workload.
_MOST = 1_000_000
_LARGEST_SEED = 2**63
TOOLS = ("valgrind", "qemu", "ncu")


@dataclass(frozen=True)
class Work:
    """One workload with one input, as the program takes it; its parameters fill the placeholders of a command."""

    workload: str
    input: str
    parameters: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def line(self) -> str:
        """The words that name it on the program's command line, and in a batch."""
        return f"{self.workload} {self.input}".strip()


@dataclass(frozen=True)
class Mode:
    """One platform: a program or a command with a number of threads here, and the ways in which it is counted.

    A program takes its inputs from a file and times itself. A `command` is executed anew for each repeat; with `check`
    a digest of what it prints is kept. A platform with neither profiles the spec's programs. `launcher` are words
    before whatever is executed, such as ``srun -n 4``.
    """

    name: str
    platform_class: str
    program: Path | None
    threads: int
    counts: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    check: bool = False
    launcher: tuple[str, ...] = ()

    def alone(self) -> Mode:
        """Return the same platform with its program executed for each input, as a command."""
        words = (str(self.program).replace("{", "{{").replace("}", "}}"), "{workload}", "{input}")
        return replace(self, program=None, command=(*words, "--threads", "{threads}"))

    def line(self, work: Work) -> list[str]:
        """Return the command for an input, with placeholders filled in; no shell sees it.

        A word that is ``{input}`` alone becomes the words of the input.
        """
        return [*self.launcher, *self.filled(self.command, work)]

    def filled(self, command: Sequence[str], work: Work) -> list[str]:
        """Return the words of a command for an input."""
        values = {**work.parameters, "input": work.input, "workload": work.workload, "threads": str(self.threads)}
        line: list[str] = []
        for word in command:
            filled = _PLACEHOLDER.sub(lambda match: _value(match, values), word)
            line += work.input.split() if word == "{input}" else [filled]
        return line

    def needs(self) -> set[str]:
        """Return the parameters that an input must have to be executed."""
        return _needs(self.command)


#: Doubled braces stand for themselves.
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{(?P<name>\w+)\}")


def _needs(command: Sequence[str]) -> set[str]:
    names = {match["name"] for word in command for match in _PLACEHOLDER.finditer(word)}
    return {name for name in names if name} - {"input", "workload", "threads"}


def _value(match: re.Match[str], values: Mapping[str, str]) -> str:
    return values[match["name"]] if match["name"] else match[0][0]


@dataclass(frozen=True)
class Program:
    """An application that is profiled as it is: a command for each input, counted by the tools of `backend`.

    Its inputs are counted in the first visit of each platform alone, within `count_limit` seconds; `success` are the
    exit statuses that are no failure.
    """

    name: str
    command: tuple[str, ...]
    inputs: tuple[str, ...]
    backend: str = AUTO
    count_limit: float = COUNT_LIMIT_S
    success: tuple[int, ...] = (0,)


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
    """A campaign: each of `visits` rounds times every work on every mode once, with `repeats` in a row.

    The inputs of `calibration` are timed at both ends of a round, and so are whole processes of the program with the
    input `start`, which does nothing. The order of a round follows from `seed`. A program that gives no answer for
    `limit_s` seconds has hung.
    """

    works: tuple[Work, ...]
    modes: Mapping[str, Mode]
    counts: Mapping[str, CountSet]
    repeats: int
    visits: int
    calibration: tuple[Work, ...] = ()
    seed: int = 0
    limit_s: float = 600.0
    start: Work | None = None
    programs: Mapping[str, Program] = field(default_factory=dict)

    def line(self, mode: Mode, work: Work) -> list[str]:
        """Return the command that is executed for an input on a platform."""
        program = self.programs.get(work.workload)
        return [*mode.launcher, *mode.filled(program.command, work)] if program else mode.line(work)

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
    folder = path.parent.absolute()  # a program named without a folder would be looked for on PATH
    programs = _programs(table.get("programs"), folder, problems)
    inputs = table.get("inputs", [] if programs else None)
    if not isinstance(inputs, list) or not (inputs or programs) or not all(isinstance(name, str) for name in inputs):
        problems.append(f"inputs is {inputs!r}, expected a list of files")
        inputs = []
    if programs and inputs:
        problems.append("it has both inputs and [[programs]], expected one of the two; make two campaigns of it")
    works = [work for name in inputs for work in _works(folder / name, problems)]
    works += [Work(own.name, text, _parameters(text)) for own in programs.values() for text in own.inputs]
    counts = {name: _counts(name, facts, folder, problems) for name, facts in _tables(table, "counts", problems)}
    platforms = _tables(table, "platforms", problems)
    modes = {name: _mode(name, facts, folder, counts, problems, bool(programs)) for name, facts in platforms}
    visits, repeats = (_whole(table, name, default, problems) for name, default in (("visits", 1), ("repeats", 2)))
    seed, limit_s = _whole(table, "seed", 0, problems, least=0), table.get("limit_s", 600.0)
    if not isinstance(limit_s, int | float) or not limit_s > 0:
        problems.append(f"limit_s is {limit_s!r}, expected seconds above 0")
    calibration = _calibration(table.get("calibration", []), problems)
    problems += _unfilled(modes.values(), [*works, *calibration])
    problems += _unfilled_programs(programs.values())
    if "spread" in table:
        problems.append("spread is no more a setting: take it out, and ask for several visits instead")
    start = _calibration(table.get("start", []), problems, "start")[:1]
    known = {"inputs", "counts", "platforms", "visits", "repeats", "seed", "limit_s", "calibration", "start", "spread"}
    known |= {"programs"}
    if programs and (calibration or start):
        problems.append("it has [[programs]] and a calibration or start, which are inputs of a platform's own program")
    problems += [
        f"{name!r} is no setting of a campaign{did_you_mean(name, known)}" for name in sorted({*table} - known)
    ]
    if problems:
        raise SettingsError(f"{path}: {'; '.join(problems)}. Correct the spec.", path=str(path), problems=problems)
    first = start[0] if start else None
    return Spec(tuple(works), modes, counts, repeats, visits, calibration, seed, float(limit_s), first, programs)


def _whole(table: Mapping[str, Any], name: str, default: int, problems: list[str], least: int = 1) -> int:
    value, most = table.get(name, default), _LARGEST_SEED if name == "seed" else _MOST
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        problems.append(f"{name} is {shortened(repr(value), 60)}, expected a whole number from {least} to {most:,}")
        return default
    return value


def _calibration(value: Any, problems: list[str], setting: str = "calibration") -> tuple[Work, ...]:
    """Return the inputs that are timed at both ends of a round: one as a text, several as a list."""
    lines = [value] if isinstance(value, str) else value
    if not isinstance(lines, list) or not all(isinstance(line, str) and line.strip() for line in lines):
        expected = "workloads with their inputs, such as ['triad size=100000']"
        problems.append(f"{setting} is {value!r}, expected {expected}")
        return ()
    return tuple(_work(*line.split(maxsplit=1)) for line in lines)


def _work(workload: str, text: str = "") -> Work:
    pairs = [word.partition("=") for word in text.split()]
    return Work(workload, text, {name: value for name, _, value in pairs})


def _unfilled(modes: Iterable[Mode], works: Sequence[Work]) -> list[str]:
    """Return for each platform the first placeholder of its command that an input has no value for."""
    problems = []
    for mode in modes:
        lacking = [(work, name) for work in works for name in sorted(mode.needs() - set(work.parameters))]
        for work, name in lacking[:1]:
            problems.append(f"platform {mode.name} has {{{name}}} in its command, which {work.line!r} has no value for")
    return problems


def _toml(path: Path) -> dict[str, Any]:
    try:
        data = read_bytes(path, _MOST_BYTES)
        return _without_zeros(parse_toml(data), data)
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read ({error.strerror}), expected a TOML file.") from error
    except ValueError as error:
        raise SettingsError(f"{path}: is not TOML ({error}). Correct it.") from error


def _without_zeros(table: dict[str, Any], data: bytes) -> dict[str, Any]:
    if any(zero in data for zero in (b"\\u0000", b"\\U00000000")):  # TOML has no other way to write it
        raise ValueError("it holds a zero character, which no command line can hold")
    return table


def _tables(table: Mapping[str, Any], name: str, problems: list[str]) -> list[tuple[str, Mapping[str, Any]]]:
    value = table.get(name, {})
    if not isinstance(value, dict) or not all(isinstance(item, dict) for item in value.values()):
        problems.append(f"{name} is {value!r}, expected tables [{name}.NAME]")
        return []
    if name == "platforms" and not value:
        problems.append("no platforms, expected at least one table [platforms.NAME]")
    return list(value.items())


def _works(path: Path, problems: list[str]) -> list[Work]:
    """Return the inputs of a file: for each workload a table of lists, of which every combination is one.

    A table with the list ``inputs`` holds whole inputs as texts; what else is in it is for others.
    """
    try:
        tables = _toml(path)
    except SettingsError as error:
        problems.append(str(error).rstrip("."))
        return []
    works = []
    for workload, parameters in tables.items():
        if isinstance(parameters, dict) and _are_texts(parameters.get("inputs")):
            works += [Work(workload, text, _parameters(text)) for text in parameters["inputs"]]
            continue
        lists: list[Any] = list(parameters.values()) if isinstance(parameters, dict) else [None]
        if not all(isinstance(values, list) and values for values in lists):
            problems.append(f"{path.name}: {workload} is no table of lists")
            continue
        if (count := math.prod(map(len, lists))) > _MOST:
            problems.append(f"{path.name}: {workload} has {count:,} inputs, expected {_MOST:,} at most")
            continue
        for values in itertools.product(*lists):
            of_input = {name: str(value) for name, value in zip(parameters, values, strict=True)}
            works.append(Work(workload, " ".join(map("=".join, of_input.items())), of_input))
    return works


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(text, str) for text in value)


def _parameters(text: str) -> dict[str, str]:
    """Return the words NAME=VALUE of an input.

    >>> _parameters("size=3 fast")
    {'size': '3'}
    """
    pairs = (word.partition("=") for word in text.split())
    return {name: value for name, mark, value in pairs if mark}


def _mode(
    name: str,
    facts: Mapping[str, Any],
    folder: Path,
    counts: Mapping[str, CountSet],
    problems: list[str],
    profiles: bool = False,
) -> Mode:
    threads, counted = facts.get("threads", 1), facts.get("counts", [])
    counted = tuple(counted) if isinstance(counted, list) else (counted,)
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        problems.append(f"platform {name} has threads {threads!r}, expected 1 or more")
    problems += [
        f"platform {name} names counts {unknown!r}, which the spec does not have"
        for unknown in counted
        if not isinstance(unknown, str) or unknown not in counts
    ]
    command = facts.get("command", [])
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        problems.append(f"platform {name} has the command {command!r}, expected a list of words")
        command = []
    if profiles and (command or "program" in facts):
        problems.append(f"platform {name} names a program or a command, which [[programs]] have already")
    elif not profiles and bool(command) == ("program" in facts):
        problems.append(f"platform {name} must name either a program or a command")
    if (check := facts.get("check")) not in (None, "stdout"):
        problems.append(f"platform {name} has check {check!r}, expected 'stdout'")
    program = folder / str(facts["program"]) if "program" in facts else None
    kind = str(facts.get("class", "cpu"))
    return Mode(name, kind, program, threads, counted, _beside(folder, command), check is not None)


def _beside(folder: Path, command: Sequence[str]) -> tuple[str, ...]:
    """Return a command whose program, where it is a path, counts from a folder, which ``{folder}`` stands for."""
    words = list(command)
    here = str(folder).replace("{", "{{").replace("}", "}}")
    if words and "/" in words[0] and not words[0].startswith(("{folder}", "/")):
        words[0] = f"{{folder}}/{words[0]}"
    return tuple(word.replace("{folder}", here) for word in words)


def _programs(value: Any, folder: Path, problems: list[str]) -> dict[str, Program]:
    """Return the applications that are to be profiled, by name."""
    if value is None:
        return {}
    if not isinstance(value, list) or not value or not all(isinstance(facts, dict) for facts in value):
        problems.append(f"programs is {plain.shown(value)}, expected tables [[programs]]")
        return {}
    kinds = {own.name for own in fields(Program)}
    programs: dict[str, Program] = {}
    for number, facts in enumerate(value, start=1):
        where = f"program {number}" + (f" ({facts['name']})" if isinstance(facts.get("name"), str) else "")
        unknown = sorted({*facts} - kinds)
        problems += [f"{where} has {name!r}, which is no setting{did_you_mean(name, kinds)}" for name in unknown]
        try:
            own = plain.from_json(Program, facts)
        except ValueError as error:
            problems.append(f"{where} {error}")
            continue
        if not own.name.strip() or own.name in programs or own.name != " ".join(own.name.split()):
            problems.append(f"{where} has the name {plain.shown(own.name)}, expected one of its own")
        if not own.command or not own.inputs or not own.count_limit > 0:
            problems.append(f"{where} has no command, no inputs or no time to count, expected all of them")
        if len(set(own.inputs)) < len(own.inputs):
            problems.append(f"{where} has an input twice, expected each once")
        programs[own.name] = replace(own, command=_beside(folder, own.command))
    return programs


def _unfilled_programs(programs: Iterable[Program]) -> Iterator[str]:
    for own in programs:
        lacking = ((text, name) for text in own.inputs for name in sorted(_needs(own.command) - {*_parameters(text)}))
        for text, name in itertools.islice(lacking, 1):
            yield f"program {own.name} has {{{name}}} in its command, which its input {text!r} has no value for"


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
