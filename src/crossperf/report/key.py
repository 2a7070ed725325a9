"""The key to the platforms of an evaluation: each machine once, with its colours and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crossperf.evaluation.result import Evaluation
from crossperf.platforms import family_of
from crossperf.report.figures import cells
from crossperf.report.figures.colours import Look


@dataclass(frozen=True)
class Machine:
    """A machine with its platforms, each by name and look, and a line of facts; empty where none is known."""

    name: str
    platforms: tuple[tuple[str, Look], ...]
    facts: str = ""


def machines(evaluation: Evaluation, known: Mapping[str, str] | None = None) -> list[Machine]:
    """Return the machines of an evaluation in the order shown.

    Parameters
    ----------
    known
        A line of facts for each platform that is known; what those of a machine share stands once.
    """
    looks, lines = cells.looks(evaluation), known or {}
    by_machine: dict[str, list[str]] = {}
    for name in looks:
        by_machine.setdefault(family_of(name).machine, []).append(name)
    return [
        Machine(machine, tuple((name, looks[name]) for name in names), _shared([lines.get(name, "") for name in names]))
        for machine, names in by_machine.items()
    ]


def _shared(lines: list[str]) -> str:
    """Return the facts that all lines begin with, and the whole of a single line.

    >>> _shared(["AMD EPYC, 2 cores, 1 thread", "AMD EPYC, 2 cores, 2 threads"])
    'AMD EPYC, 2 cores'
    """
    first, *others = (line.split(", ") for line in lines)
    for number, part in enumerate(first):
        if any(len(other) <= number or other[number] != part for other in others):
            return ", ".join(first[:number])
    return ", ".join(first)
