"""What an sbatch command line asks for, with the lines of its script that start with #SBATCH."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crossperf.schedule.slurm.names import WORDS, Named, named

_SBATCH = WORDS["sbatch"]
_SHORT_VALUES, _SHORT, _VARIABLES = _SBATCH["short_values"], _SBATCH["short"], _SBATCH["variables"]
_FLAGS, _VALUED = frozenset(_SBATCH["flags"]), frozenset(_SBATCH["valued"])
#: Options with which sbatch prints something and reads no script.
_ANSWERS_AT_ONCE = frozenset(("help", "usage", "version"))
#: Options with which a user names places; such a job stays where it is.
_PLACES = ("nodelist", "nodefile", "reservation", "clusters")


@dataclass(frozen=True)
class Submission:
    """An sbatch command: its words after ``sbatch``, the options that they and the script set, and the script.

    `takes_stdin` tells that sbatch would read the script from its standard input, and the first `n_options` of the
    arguments come before the script.
    """

    arguments: tuple[str, ...]
    n_options: int
    options: Mapping[str, str]
    script: str
    job_name: str
    takes_stdin: bool
    heterogeneous: bool = False

    @property
    def fixed(self) -> str | None:
        """Why this job stays as it is, or ``None``."""
        if partition := self.options.get("partition"):
            return f"partition {partition} was asked for"
        if self.heterogeneous:
            return "the job is heterogeneous"
        return next((f"--{name} was asked for" for name in _PLACES if self.options.get(name)), None)

    @property
    def nodes(self) -> int:
        """The least number of nodes that was asked for; 1 where none was."""
        least = re.match(r"(\d+)([kKmM]?)", self.options.get("nodes", ""))
        times = {"k": 1024, "m": 1024**2}
        return max(1, int(least[1]) * times.get(least[2].lower(), 1)) if least else 1

    @property
    def limit_s(self) -> float | None:
        """The time limit that was asked for."""
        return seconds_of(self.options.get("time", ""))

    def named(self, user: str) -> Named:
        """Return what the job is called."""
        return named(self.job_name, user, self.options.get("comment", ""), self.script, self.nodes)


def parse(arguments: Sequence[str], environment: Mapping[str, str], stdin: bytes | None = None) -> Submission:
    """Return what an sbatch command line asks for; what it gets wrong is left for sbatch to say.

    Parameters
    ----------
    arguments
        The words after ``sbatch``.
    stdin
        The script where sbatch reads it from its standard input; ``None`` where that was not read.
    """
    given, rest = _split(list(arguments))
    script, name = "", "sbatch"
    if "wrap" in given:
        script, name = given["wrap"], "wrap"
    elif rest:
        script, name = _text_of(rest[0]), Path(rest[0]).name
    elif stdin is not None:
        script = stdin.decode(errors="replace")
    lines = {} if "wrap" in given else _lines_of(script)
    variables = {option: environment[name] for name, option in _VARIABLES.items() if environment.get(name)}
    options = lines | variables | given
    heterogeneous = ":" in arguments or bool(re.search(r"(?m)^#SBATCH\s+(hetjob|packjob)\b", script))
    takes_stdin = "wrap" not in given and not rest and not _ANSWERS_AT_ONCE & given.keys()
    n_options = len(arguments) - len(rest)
    if n_options and arguments[n_options - 1] == "--":
        n_options -= 1
    job_name = options.get("job-name", name)
    return Submission(tuple(arguments), n_options, options, script, job_name, takes_stdin, heterogeneous)


def _split(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return the options of a command line by their long names, and what follows them."""
    options: dict[str, str] = {}
    while words and words[0].startswith("-") and words[0] != "-":
        word = words.pop(0)
        if word == "--":
            break
        options.update(_long(word[2:], words) if word.startswith("--") else _short(word[1:], words))
    return options, words


def _long(word: str, words: list[str]) -> Iterator[tuple[str, str]]:
    written, equals, value = word.partition("=")
    matches = [written] if written in _VALUED else [name for name in (*_VALUED, *_FLAGS) if name.startswith(written)]
    name = matches[0] if len(matches) == 1 else written
    if name in _VALUED and not equals and words:
        value = words.pop(0)
    yield name, value


def _short(letters: str, words: list[str]) -> Iterator[tuple[str, str]]:
    for place, letter in enumerate(letters):
        if letter in _SHORT_VALUES:
            value = letters[place + 1 :] or (words.pop(0) if words else "")
            yield _SHORT.get(letter, letter), value
            return
        yield _SHORT.get(letter, letter), ""


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _lines_of(script: str) -> dict[str, str]:
    """Return the options of the #SBATCH lines, which end at the first command."""
    options: dict[str, str] = {}
    for line in script.splitlines():
        if line.strip() and not line.startswith("#"):
            break
        if line.startswith("#SBATCH"):
            try:
                words = shlex.split(line.removeprefix("#SBATCH"), comments=True)
            except ValueError:
                continue
            options |= _split(words)[0]
    return options


def seconds_of(limit: str) -> float | None:
    """Return a time limit as Slurm writes it, in seconds; ``None`` where there is none.

    >>> seconds_of("90"), seconds_of("1:30"), seconds_of("1-12"), seconds_of("2-00:30:00"), seconds_of("UNLIMITED")
    (5400.0, 90.0, 129600.0, 174600.0, None)
    """
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", limit.strip())
    if match is None:
        return None
    days, *rest = match.groups()
    numbers = [int(part) for part in rest if part is not None]
    # Without days the words end in seconds, unless there is only one: 5 is five minutes, 5:00 too.
    first = 0 if days is not None or len(numbers) == 3 else 1
    return float(
        int(days or 0) * 86400 + sum(n * unit for n, unit in zip(numbers, (3600, 60, 1)[first:], strict=False))
    )
