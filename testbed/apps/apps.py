"""The applications of apps.toml: their commands, inputs, environment and what is checked of their output."""

from __future__ import annotations

import hashlib
import itertools
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
PLACEHOLDER = re.compile(r"\{(\w+)\}")
#: Placeholders that the runner fills; all others are columns of the grid of inputs.
OWN = {"threads", "helpers", "inputs", "programs", "bundle"}
Case = dict[str, str]


@dataclass(frozen=True)
class App:
    """One application: a row of apps.toml.

    Parameters
    ----------
    grids
        Lists of values by placeholder. The inputs are all combinations within each grid.
    output
        The file with the result, ``stdout`` for what is printed.
    keep
        A regular expression; only what it matches is compared. Empty: all bytes.
    drop
        A regular expression of what is left out of the comparison, such as a date.
    unordered
        Whether the lines may come in any order.
    same_for_all_threads
        Whether the output may not depend on the number of threads.
    prepare, prepared
        A command that is run once, untimed, in the folder of inputs, and the file that it makes there.
    here
        Input files that are linked into the working folder, since the program writes beside its input.
    data
        Patterns of files that the bundle needs beside the programs and their libraries, with the folders they go to.
    """

    name: str
    field: str
    packages: list[str]
    programs: list[str]
    command: list[str]
    grids: list[dict[str, list[str | int]]]
    stdin: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    output: str = "stdout"
    keep: str = ""
    drop: str = ""
    unordered: bool = False
    same_for_all_threads: bool = True
    prepare: list[str] = field(default_factory=list)
    prepared: str = ""
    here: list[str] = field(default_factory=list)
    data: dict[str, str] = field(default_factory=dict)
    exit_codes: list[int] = field(default_factory=lambda: [0])

    @property
    def cases(self) -> list[Case]:
        """The inputs, as values of the placeholders."""
        return [
            {key: str(value) for key, value in zip(grid, values, strict=True)}
            for grid in self.grids
            for values in itertools.product(*grid.values())
        ]

    @property
    def templates(self) -> list[str]:
        """All texts with placeholders."""
        return [
            *self.command,
            self.stdin,
            *self.environment.values(),
            *self.prepare,
            self.prepared,
            *self.here,
            self.output,
        ]

    @property
    def parallel(self) -> bool:
        """Whether the command or the environment says how many threads to use."""
        return any({"threads", "helpers"} & set(PLACEHOLDER.findall(word)) for word in self.templates)

    def case(self, label: str) -> Case:
        """Return the input of this label."""
        for case in self.cases:
            if name_of(case) == label:
                return case
        raise ValueError(f"{self.name}: no input {label!r}; expected one of {[name_of(case) for case in self.cases]}")

    def files(self, case: Case) -> list[str]:
        """Return the names of the made files that this input needs."""
        names = [word.format_map(Blanks(case)) for word in self.templates if word.startswith("{inputs}/")]
        made = self.prepared.format_map(Blanks(case))
        linked = {name.format_map(case) for name in self.here}
        return sorted({name.removeprefix("?/") for name in names if name != made} | linked)

    def digest(self, result: bytes) -> str:
        """Return a digest of what is compared of an output."""
        if self.keep:
            result = "\n".join(map(str, re.findall(self.keep, result.decode(errors="replace"), re.MULTILINE))).encode()
        if self.drop:
            result = re.sub(self.drop.encode(), b"", result, flags=re.MULTILINE)
        if self.unordered:
            result = b"\n".join(sorted(result.splitlines()))
        return hashlib.sha256(result).hexdigest()[:16] if result else "empty"


class Blanks(dict[str, str]):
    """Values of placeholders; a missing one becomes a question mark."""

    def __missing__(self, key: str) -> str:
        return "?"


def name_of(case: Case) -> str:
    """Return the label of an input: its values, joined, with a word for those that are bare numbers.

    >>> name_of({"file": "text-500.txt", "level": "6"})
    'text-500.txt,level=6'
    """
    return ",".join(value if key == "file" else f"{key}={value}" for key, value in case.items())


def read(path: Path = HERE / "apps.toml") -> dict[str, App]:
    """Return the applications by name."""
    return {name: App(name=name, **facts) for name, facts in tomllib.loads(path.read_text(encoding="utf-8")).items()}
