"""What a job is called: its application, its user and its class of input, from its submission.

``crossperf.lua`` names jobs by the same rules inside the controller; a test holds the two together.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from urllib.parse import unquote

#: Words of scripts and of sbatch's command line, by what they are.
WORDS = tomllib.loads(resources.files(__package__).joinpath("words.toml").read_text(encoding="utf-8"))
_SCRIPT = WORDS["script"]
#: A script is searched for its program so far, in bytes and in words; so much of a comment is read.
LONGEST, MOST_WORDS, LONGEST_COMMENT = 16384, 1000, 4096
#: A name of more bytes is no name.
LONGEST_NAME = 512


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
        return self.apps[0] if self.apps else ""

    def keys(self) -> Iterator[tuple[str, str, str]]:
        """Yield (app, user, input) from the most special to the most general.

        >>> list(Named(("lmp",), "ann", "melt").keys())
        [('lmp', 'ann', 'melt'), ('lmp', '', 'melt'), ('lmp', '', '')]
        """
        for app in self.apps:
            yield from ((app, self.user, self.input), (app, "", self.input), (app, "", ""))


def named(name: str, user: str, comment: str = "", script: str = "", nodes: int = 1) -> Named:
    r"""Return what a job is called.

    A comment such as ``app=lammps input=melt`` says it outright. Without one the program of its script is tried first
    and the job's name second, and the number of nodes stands for the input. A name such as ``run.sh`` is none.

    >>> named("melt", "ann", script="#!/bin/sh\nsrun -n 4 ./lmp -in in.melt", nodes=3)
    Named(apps=('lmp', 'melt'), user='ann', input='nodes-4', off=False)
    >>> named("run.sh", "ann").apps
    ()
    >>> named("run.sh", "ann", comment="app=lammps;input=melt").apps
    ('lammps',)
    """
    words = words_of(comment)
    if words.get("crossperf") == "off":
        return Named((), user, "", off=True)
    guesses = [guess for guess in (executable(script) or "", name) if not is_general(guess)]
    apps = tuple(dict.fromkeys(guess for guess in ([words["app"]] if "app" in words else guesses) if _is_short(guess)))
    input_ = words.get("input", "")
    return Named(apps, user, input_ if _is_short(input_) else input_class(nodes))


def is_general(name: str) -> bool:
    """Tell whether jobs of many programs bear a name: that of a script, of an interpreter, or of ``--wrap``.

    >>> is_general("run.sh"), is_general("python3.11"), is_general("lmp")
    (True, True, False)
    """
    dot, ending = name.rpartition(".")[1:]
    script = dot + ending.lower() in _SCRIPT["endings"]
    return script or name.lower() in _SCRIPT["general"] or name.rstrip("0123456789.") in _SCRIPT["interpreters"]


def _is_short(name: str) -> bool:
    return 0 < len(bytes_of(name)) <= LONGEST_NAME


def bytes_of(text: str) -> bytes:
    """Return a text as the controller sees it; what no bytes can have given is written out."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return text.encode(errors="backslashreplace")


def _start_of(text: str, size: int) -> str:
    """Return the first bytes of a text, which Lua counts in; a letter that is cut in two stays as its bytes."""
    return bytes_of(text)[:size].decode(errors="surrogateescape")


def words_of(comment: str) -> dict[str, str]:
    """Return what ``name=value`` words of a comment say; a value with blanks stands in double quotes.

    >>> words_of('checked by hand; app=lu input="n=64 block=8"')
    {'app': 'lu', 'input': 'n=64 block=8'}
    """
    words: dict[str, str] = {}
    text = " " + _start_of(comment, LONGEST_COMMENT)
    for name, quoted, plain in re.findall(r"[\s;]([A-Za-z]+)=(?:\"([^\"]+)\"|([^\s;]+))", text, re.ASCII):
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
    first, left = None, MOST_WORDS
    for line in _start_of(script, LONGEST).replace("\\\n", " ").split("\n"):
        words = re.findall(r"\S+", line, re.ASCII)
        if words and not words[0].startswith("#"):
            program, launched, seen = _program_of(words, left)
            if program and launched:
                return program
            first, left = first or program, left - seen
            if not left:
                break
    return first


def _program_of(words: Sequence[str], most: int) -> tuple[str | None, bool, int]:
    """Return the program that a command runs, if any, whether a launcher starts it, and how many words were read."""
    launched, interpreter, skip, module, seen = False, None, 0, False, 0
    for quoted in words:
        if seen == most:
            return None, False, seen
        seen += 1
        word = re.sub(r"^[\"']|[\"']$", "", quoted)
        name = word.rstrip("/").rpartition("/")[2]
        if skip:
            skip -= 1
        elif module:
            return word, launched, seen
        elif re.match(r"[|;&<>(){}]", word):
            return interpreter, launched, seen
        elif re.match(r"[A-Za-z_]\w*=", word, re.ASCII):
            continue
        elif word.startswith("-"):
            if interpreter:
                module = word == "-m"
            else:
                skip = _SCRIPT["values"].get(word, 0)
        elif "$" in word or "`" in word:
            return interpreter, launched, seen
        elif not interpreter and name in _SCRIPT["launchers"]:
            launched = True
        elif not interpreter and name in _SCRIPT["prefixes"]:
            continue
        elif not interpreter and name.rstrip("0123456789.") in _SCRIPT["interpreters"]:
            interpreter = name
        elif not launched and not interpreter and word in _SCRIPT["shell"]:
            return None, False, seen
        else:
            return name or None, launched, seen
    return interpreter, launched, seen
