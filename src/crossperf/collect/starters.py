"""Which program a command really runs: launchers, wrappers, shells and interpreters only start it.

The table of such programs is ``starters.toml``.
"""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from crossperf import plain
from crossperf.plain import whole

#: The kernel keeps this many letters of a program's name.
_COMM_LETTERS = 15
#: Endings that a script's name loses.
_SCRIPT = re.compile(r"\.(py|pyz|sh|bash|zsh|jar|pl|rb|lua|R|r|jl|js|mjs|m|php|tcl|class|java)$")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
#: What separates commands of a shell's text, and words in front of a command.
_OPERATORS = set("();<>|&")
_BEFORE = ("exec", "command", "time", "!", "{", "do", "then")
_NO_PROGRAMS = (
    "cd", "export", "set", "ulimit", "source", ".", ":", "[", "for", "while", "until", "if", "case", "done", "fi",
    "trap", "umask",
)  # fmt: skip
#: What a rank finds in its environment: how many there are.
_RANKS_INSIDE = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "MV2_COMM_WORLD_SIZE")


@dataclass(frozen=True)
class Starter:
    """A program that starts another one, and how its own options differ from that program; see the table."""

    kind: str
    names: tuple[str, ...]
    values: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    ranks: tuple[str, ...] = ()
    module: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    words: int = 0
    becomes: bool = False
    ranks_variable: str = ""


@dataclass(frozen=True)
class Workload:
    """What a command is recorded as: its program's name, its input in words, and its MPI ranks where it tells.

    `behind` names what stands in front of the program and is still there while it runs, such as mpirun.
    """

    app: str
    input: str
    ranks: int | None = None
    behind: tuple[str, ...] = ()


@cache
def starters() -> tuple[Starter, ...]:
    """Return the table."""
    table = tomllib.loads((files(__package__) / "starters.toml").read_text("utf-8"))
    return tuple(plain.from_json(Starter, {"kind": kind, **entry}) for kind in table for entry in table[kind])


@cache
def left_out(*, while_it_runs: bool = False) -> frozenset[str]:
    """Return the programs that are no part of what they start, by their names as the kernel keeps them.

    Parameters
    ----------
    while_it_runs
        Those alone that are still there while the program runs, as mpirun and timeout are, and env is not.

    >>> "hydra_bstrap_pr" in left_out(), "env" in left_out(), "env" in left_out(while_it_runs=True)
    (True, True, False)
    """
    starting = [each for each in starters() if each.kind in ("launcher", "wrapper")]
    kept = [each for each in starting if not (while_it_runs and each.becomes)]
    return frozenset(name[:_COMM_LETTERS] for each in kept for name in each.names)


def workload(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Workload:
    """Return what a command is recorded as where its user gives no names.

    >>> workload(["mpirun", "-n", "4", "lmp", "-in", "in.melt"])
    Workload(app='lmp', input='-in in.melt ranks=4', ranks=4, behind=('mpirun',))
    >>> workload(["python3", "-u", "train.py", "--epochs", "3"])
    Workload(app='train', input='--epochs 3', ranks=None, behind=())
    >>> workload(["sh", "-c", "OMP_NUM_THREADS=2 ./app 100"])
    Workload(app='app', input='OMP_NUM_THREADS=2 100', ranks=None, behind=())
    """
    environment = environment or {}
    inside = next((ranks for name in _RANKS_INSIDE if (ranks := whole(environment.get(name, ""))) is not None), None)
    named = _named(list(command), environment)
    return replace(named, ranks=inside) if named.ranks is None else named


def _named(command: list[str], environment: Mapping[str, str]) -> Workload:
    starter = _starter(command[0])
    if starter is None:
        return Workload(Path(command[0]).name, shlex.join(command[1:]))
    if starter.kind in ("launcher", "wrapper"):
        return _started(starter, command, environment)
    return _script(starter, command, environment)


def _starter(program: str) -> Starter | None:
    name = Path(program).name
    plain = re.sub(r"-?[\d.]+$", "", name)
    return next((each for each in starters() if name in each.names or plain in each.names), None)


def _started(starter: Starter, command: list[str], environment: Mapping[str, str]) -> Workload:
    """Return the workload behind a launcher or a wrapper."""
    at, assignments = _program_at(starter, command)
    if at is None:
        return Workload(Path(command[0]).name, shlex.join(command[1:]))
    behind = _named(command[at:], environment)
    ranks = _ranks(starter, command, environment) if starter.kind == "launcher" else None
    words = [*assignments, *([behind.input] if behind.input else []), *([f"ranks={ranks}"] if ranks else [])]
    stays = () if starter.becomes else (Path(command[0]).name,)
    return Workload(behind.app, " ".join(words), ranks or behind.ranks, (*stays, *behind.behind))


def _program_at(starter: Starter, command: list[str]) -> tuple[int | None, list[str]]:
    """Return where the started program stands, and the assignments in front of it.

    An option that is not in the table may have a value: a word that is no program is passed over where a later
    one is a program.
    """
    candidates: list[int] = []
    assignments: list[str] = []
    words, at = starter.words, 1
    while at < len(command):
        word = command[at]
        if word == "--" and at + 1 < len(command):
            return at + 1, assignments
        if word in starter.pairs:
            at += 2
        elif word in starter.values:
            at += 1
        elif starter.kind == "wrapper" and _ASSIGNMENT.match(word):
            assignments.append(shlex.quote(word))
        elif not word.startswith("-"):
            if words == 0:
                candidates.append(at)
                if shutil.which(word) or starter.kind == "wrapper":
                    return at, assignments
            words = max(0, words - 1)
        at += 1
    return next(iter(candidates), None), assignments


def _ranks(starter: Starter, command: list[str], environment: Mapping[str, str]) -> int | None:
    """Return how many ranks a launcher's words ask for, over all parts between colons."""
    ranks, rest = 0, command[1:]
    while rest:
        end = rest.index(":") if ":" in rest else len(rest)
        part, rest = [command[0], *rest[:end]], rest[end + 1 :]
        at, _ = _program_at(starter, part)
        ranks += _ranks_in(starter, part[1:at])
    return ranks or whole(environment.get(starter.ranks_variable, ""))


def _ranks_in(starter: Starter, options: list[str]) -> int:
    """Return the number behind the last option for ranks: ``-n 4``, ``-n4`` or ``--ntasks=4``."""
    ranks = 0
    for word, following in itertools.zip_longest(options, options[1:], fillvalue=""):
        flag, _, value = word.partition("=")
        if word[:2] in starter.ranks and word[2:].isdigit():
            flag, value = word[:2], word[2:]
        number = whole(value or following)
        ranks = number if flag in starter.ranks and number is not None else ranks
    return ranks


def _script(starter: Starter, command: list[str], environment: Mapping[str, str]) -> Workload:
    """Return the workload of an interpreter or a shell: that of the script, the module or the text it is given."""
    at = 1
    while at < len(command):
        word, rest = command[at], command[at + 2 :]
        if starter.kind == "shell" and re.fullmatch(r"-[a-z]*c", word) and at + 1 < len(command):
            return _of_text(command[at + 1], rest, environment)
        if word in starter.text:
            break
        if word in starter.module and at + 1 < len(command):
            return Workload(_SCRIPT.sub("", Path(command[at + 1]).name), shlex.join(rest))
        if word in starter.values:
            at += 1
        elif not word.startswith(("-", "+")):
            return Workload(_SCRIPT.sub("", Path(word).name), shlex.join(command[at + 1 :]))
        at += 1
    return Workload(Path(command[0]).name, shlex.join(command[1:]))


def _of_text(text: str, arguments: list[str], environment: Mapping[str, str]) -> Workload:
    """Return the workload of a shell's text: of the command, where it is a single one, else named after its first."""
    whole = shlex.join([text, *arguments]) if arguments else text
    try:
        lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        return Workload("sh", whole)
    first, simple = _first_command(words)
    assignments = [word for word in first if _ASSIGNMENT.match(word)]
    program = first[len(assignments) :]
    if not program:
        return Workload("sh", whole)
    behind = _named(program, environment)
    if not simple or arguments or "$" in text or "`" in text:
        return replace(behind, input=whole)
    return replace(behind, input=" ".join([*assignments, *([behind.input] if behind.input else [])]))


def _first_command(words: list[str]) -> tuple[list[str], bool]:
    """Return the words of the first command that is a program, and whether it is the whole text."""
    commands: list[list[str]] = [[]]
    operators = 0
    for word in words:
        if word and set(word) <= _OPERATORS:
            operators += 1
            commands.append([])
        elif commands[-1] or word not in _BEFORE:
            commands[-1].append(word)
    named = [each for each in commands if each and each[0] not in _NO_PROGRAMS]
    return (named[0] if named else []), operators == 0 and len(named) == 1
