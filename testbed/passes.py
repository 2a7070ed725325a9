"""Draws how many passes each program of the testbed makes, and which of them are run whole to check the composed rows.

    python testbed/passes.py FOLDER            writes inputs/passes.toml, for inputs that have none yet
    python testbed/passes.py FOLDER --whole    writes inputs/whole.toml

FOLDER is that of a campaign with campaign.toml. A program takes 0.05 to 20 s with one thread of the platform epyc-1t,
drawn evenly in logarithm with the input's name as seed, or longer where one pass does. What was drawn stays.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from random import Random

from crossperf import campaign
from crossperf.campaign.spec import Work
from crossperf.records import OK

HERE = Path(__file__).resolve().parent
PASSES, WHOLE = HERE / "inputs" / "passes.toml", HERE / "inputs" / "whole.toml"
SHORTEST_S, LONGEST_S = 0.05, 20.0
REFERENCE = "epyc-1t"
#: A program that is run whole takes no longer than this on any platform, and there are so many of each workload.
WHOLE_LIMIT_S, WHOLE_OF_EACH = 1.0, 4


def drawn() -> dict[Work, int]:
    """Return the passes of each input that were drawn so far."""
    tables = tomllib.loads(PASSES.read_text(encoding="utf-8")) if PASSES.exists() else {}
    return {Work(name, text): number for name, inputs in tables.items() for text, number in inputs.items()}


def seconds(spec: campaign.Spec, folder: Path, passes: int) -> dict[tuple[Work, str], float]:
    """Return the median time of programs that make some passes, by input and platform."""
    whole = dict.fromkeys(spec.works, passes)
    names = {f"{work.line} passes={passes}": work for work in spec.works}
    of_cells = defaultdict(list)
    for run in campaign.assemble(spec, folder, whole):
        if run.status == OK and run.runtime_s is not None:
            of_cells[names[f"{run.app} {run.input}"], run.platform].append(run.runtime_s)
    return {cell: statistics.median(times) for cell, times in of_cells.items()}


def draw(work: Work, once_s: float, pass_s: float) -> int:
    """Return the passes of a program of which one takes `once_s` and each more `pass_s`."""
    aim_s = SHORTEST_S * (LONGEST_S / SHORTEST_S) ** Random(work.line).random()  # noqa: S311
    return max(1, 1 + round((aim_s - once_s) / pass_s))


def chosen(longest: dict[Work, float]) -> Iterable[Work]:
    """Yield inputs of every workload whose programs are short everywhere, spread over their times."""
    by_workload = defaultdict(list)
    for work, limit_s in longest.items():
        if limit_s <= WHOLE_LIMIT_S:
            by_workload[work.workload].append(work)
    for works in by_workload.values():
        works.sort(key=lambda work: longest[work])
        n = min(WHOLE_OF_EACH, len(works))
        yield from (works[math.floor((number + 0.5) * len(works) / n)] for number in range(n))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--whole", action="store_true")
    given = parser.parse_args()
    spec = campaign.read(HERE / "campaign.toml")
    one, two, passes = seconds(spec, given.folder, 1), seconds(spec, given.folder, 2), drawn()
    if given.whole:
        longest: dict[Work, float] = {}
        for (work, platform), once_s in one.items():
            taken_s = once_s + (passes[work] - 1) * (two[work, platform] - once_s)
            longest[work] = max(longest.get(work, 0.0), taken_s)
        tables: dict[str, list[str]] = defaultdict(list)
        for work in chosen(longest):
            tables[work.workload].append(f"{work.input} passes={passes[work]}".strip())
        text = [f"[{name}]\ninputs = {json.dumps(inputs, indent=4)}\n" for name, inputs in tables.items()]
        WHOLE.write_text("# Made by passes.py: programs that are run whole.\n" + "\n".join(text), encoding="utf-8")
        return
    for work in spec.works:
        if work not in passes and (work, REFERENCE) in one:
            once_s = one[work, REFERENCE]
            passes[work] = draw(work, once_s, max(two[work, REFERENCE] - once_s, 1e-9))
    of_workloads: dict[str, list[str]] = defaultdict(list)
    for work, number in passes.items():
        of_workloads[work.workload].append(f"{json.dumps(work.input)} = {number}")
    text = [f"[{name}]\n" + "\n".join(lines) + "\n" for name, lines in of_workloads.items()]
    PASSES.write_text("# Made by passes.py: passes of each program.\n" + "\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
