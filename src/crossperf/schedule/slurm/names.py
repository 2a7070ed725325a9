"""What a job is called: its application, its user and its class of input, from its submission.

``crossperf.lua`` names jobs by the same rules inside the controller; a test holds the two together.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from urllib.parse import unquote

#: Words of scripts and of sbatch's command line, by what they are.
WORDS = tomllib.loads(resources.files(__package__).joinpath("words.toml").read_text(encoding="utf-8"))
_SCRIPT = WORDS["script"]
#: A script is searched for its program so far, in bytes.
LONGEST = 65536


@dataclass(frozen=True)
class Named:
    """What a job may be called, likeliest first, and what it works on; `off` where its user wants no advice."""

    apps: tuple[str, ...]
    user: str
    input: str
    off: bool = False

    @property
    def app(self) -> str:
        """The name under which a finished job is learned where no table knew it: its program, or else its own name."""
        return self.apps[-1] if self.apps else ""

    def keys(self) -> Iterator[tuple[str, str, str]]:
        """Yield (app, user, input) from the most special to the most general.

        >>> list(Named(("lmp",), "ann", "melt").keys())
        [('lmp', 'ann', 'melt'), ('lmp', '', 'melt'), ('lmp', '', '')]
        """
        for app in self.apps:
            yield from ((app, self.user, self.input), (app, "", self.input), (app, "", ""))


def named(name: str, user: str, comment: str = "", script: str = "", nodes: int = 1) -> Named:
    r"""Return what a job is called.

    A comment such as ``app=lammps input=melt`` says it outright. Without one the job's name is tried first and the
    program of its script second, and the number of nodes stands for the input.

    >>> named("run.sh", "ann", script="#!/bin/sh\nsrun -n 4 ./lmp -in in.melt", nodes=3)
    Named(apps=('run.sh', 'lmp'), user='ann', input='nodes-4', off=False)
    >>> named("run.sh", "ann", comment="app=lammps;input=melt").apps
    ('lammps',)
    """
    words = words_of(comment)
    guesses = [words["app"]] if "app" in words else [name, executable(script) or ""]
    apps = tuple(dict.fromkeys(guess for guess in guesses if guess))
    return Named(apps, user, words.get("input") or input_class(nodes), words.get("crossperf") == "off")


def words_of(comment: str) -> dict[str, str]:
    """Return what ``name=value`` words of a comment say; a value with blanks stands in double quotes.

    >>> words_of('checked by hand; app=lu input="n=64 block=8"')
    {'app': 'lu', 'input': 'n=64 block=8'}
    """
    words: dict[str, str] = {}
    for name, quoted, plain in re.findall(r"[\s;]([A-Za-z]+)=(?:\"([^\"]+)\"|([^\s;]+))", " " + comment, re.ASCII):
        words.setdefault(name, unquote(quoted or plain))
    return words


def input_class(nodes: int) -> str:
    """Return the class of input of a job that does not name it: its nodes, up to the next power of two.

    >>> input_class(1), input_class(5)
    ('nodes-1', 'nodes-8')
    """
    return f"nodes-{1 << (max(nodes, 1) - 1).bit_length()}"


def executable(script: str) -> str | None:
    r"""Return the program of a batch script: of the first line with a launcher, or else of the first command.

    >>> executable("#!/bin/bash\n#SBATCH -N 2\nmodule load x\n./prepare\nOMP_NUM_THREADS=4 mpirun -np 8 bin/solve in")
    'solve'
    >>> executable("python3 -u train.py --epochs 3")
    'train.py'
    """
    first = None
    for line in script[:LONGEST].replace("\\\n", " ").split("\n"):
        command = line.strip(" \t\r\f\v")
        if command and not command.startswith("#"):
            program, launched = _program_of(command)
            if program and launched:
                return program
            first = first or program
    return first


def _program_of(command: str) -> tuple[str | None, bool]:
    """Return the program that a command line runs, if any, and whether a launcher starts it."""
    launched, interpreter, skip, module = False, None, 0, False
    for quoted in re.findall(r"\S+", command, re.ASCII):
        word = re.sub(r"^[\"']|[\"']$", "", quoted)
        name = word.rstrip("/").rpartition("/")[2]
        if skip:
            skip -= 1
        elif module:
            return word, launched
        elif re.match(r"[|;&<>(){}]", word):
            return interpreter, launched
        elif re.match(r"[A-Za-z_]\w*=", word, re.ASCII):
            continue
        elif word.startswith("-"):
            if interpreter:
                module = word == "-m"
            else:
                skip = _SCRIPT["values"].get(word, 0)
        elif "$" in word or "`" in word:
            return interpreter, launched
        elif not interpreter and name in _SCRIPT["launchers"]:
            launched = True
        elif not interpreter and name in _SCRIPT["prefixes"]:
            continue
        elif not interpreter and name.rstrip("0123456789.") in _SCRIPT["interpreters"]:
            interpreter = name
        elif not launched and not interpreter and word in _SCRIPT["shell"]:
            return None, False
        else:
            return name or None, launched
    return interpreter, launched
