"""What each group of counters brings to a model: each beside Table I alone, and each left out of all.

    python benchmarks/counters.py [--table FILE] [--before FILE] [--models a,b] [--splits a,b] [--seeds a,b] [--jobs N]
    python benchmarks/counters.py --from results.jsonl [--from more.jsonl]

The testbed, or another runs table, with some of its counters. --before names the same runs with counters as they were
counted before a correction; their Table I stands in the first row. A score is the mean over folds and seeds, with the
standard deviation of the means of the seeds beside it: a difference below that says nothing. --results keeps every
score in a file as it comes; --write adds the tables to benchmarks/counters.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from accuracy import HERE, add, each_of, opening
from crossperf import catalog, dataset, model
from crossperf.dataset import Columns, Dataset
from crossperf.datasets import testbed
from crossperf.evaluation import run as evaluate

COLUMNS = ("typical_factor", "r2_log", "slowdown")
TABLE_I = tuple(name for name, counter in catalog.COUNTERS.items() if not counter.optional)
GROUPS = {
    "miss rates": tuple(catalog.RATES.values()),
    "bytes beyond caches": ("bytes_beyond_l1", "bytes_beyond_llc"),
    "bytes and footprint": ("bytes_loaded", "bytes_stored", "footprint_bytes"),
    "miss curve": tuple(name for name in catalog.COUNTERS if name.startswith("miss_rate_")),
    "regularity": ("sequential_access_ratio", "irregular_access_ratio"),
    "branches and atomics": ("branch_entropy", "atomic_ratio", "busiest_thread_ratio"),
    "parallel regions": ("parallel_regions", "region_instructions", "serial_ratio"),
    "GPU launches": ("kernel_launches", "block_size", "occupancy"),
}
BEFORE, PLAIN, ALL = "Table I as before", "Table I", "all"


class Task(NamedTuple):
    """One model with one choice of counters on one split and seed."""

    row: str
    table: str | None
    counters: tuple[str, ...]
    model: str
    split: Any
    seed: int
    scored_folds: int | None


class Result(NamedTuple):
    """What a task scored: the means over its folds."""

    row: str
    model: str
    split: str
    seed: int
    counters: int
    fingerprint: str
    scores: dict[str, float]


def main() -> None:
    arguments = parse()
    results = [result for path in arguments.from_ for result in read(path)] if arguments.from_ else run(arguments)
    sections = [section(name, split, results) for name, split in dict.fromkeys((r.model, r.split) for r in results)]
    print("\n".join(sections))
    if arguments.write:
        add(HERE / "counters.md", opening("What each group of counters brings"), sections)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", help="a runs table; without, the testbed")
    parser.add_argument("--before", help="the same runs with counters as they were counted before")
    parser.add_argument("--models", default=f"extra-trees,{model.DEFAULT}")
    parser.add_argument("--splits", default="workload,app")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--rows", help="these rows only, by their names: a,b")
    parser.add_argument("--scored-folds", type=int, help="score the first so many of 5 folds only")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--results", type=Path, help="add every score to this file as it comes")
    parser.add_argument("--from", dest="from_", type=Path, action="append", help="read scores instead of fitting")
    parser.add_argument("--write", action="store_true", help="add the tables to counters.md beside this script")
    return parser.parse_args()


def run(arguments: argparse.Namespace) -> list[Result]:
    """Return the scores of all that was asked for; each is also written as soon as it is there."""
    chosen = rows(data_of(arguments.table).counters)
    if arguments.before:
        chosen = {BEFORE: TABLE_I, **chosen}
    if arguments.rows:
        chosen = {name: chosen[name] for name in arguments.rows.split(",")}
    tasks = [
        Task(row, arguments.before if row == BEFORE else arguments.table, counters, name, split, int(seed), folds)
        for folds in [arguments.scored_folds]
        for name in arguments.models.split(",")[::-1]  # the longest first
        for seed in arguments.seeds.split(",")
        for split in arguments.splits.split(",")
        for row, counters in chosen.items()
    ]
    results = []
    for result in each_of(score, tasks, arguments.jobs):
        results.append(result)
        if arguments.results:
            with arguments.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result._asdict()) + "\n")
    place = {task[0:1] + task[3:6]: i for i, task in enumerate(tasks)}
    return sorted(results, key=lambda result: place[result[0:4]])


def rows(known: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the choices of counters to compare, by name; a group that the table has nothing of is left out."""
    groups = {name: tuple(c for c in group if c in known) for name, group in GROUPS.items()}
    groups = {name: group for name, group in groups.items() if group}
    everything = (*TABLE_I, *(counter for group in groups.values() for counter in group))
    alone = {f"+ {name}": (*TABLE_I, *group) for name, group in groups.items()}
    without = {f"all - {name}": tuple(c for c in everything if c not in group) for name, group in groups.items()}
    bounded = tuple(catalog.RATES.get(name, name) for name in TABLE_I)
    return {PLAIN: TABLE_I, "rates in place of ratios": bounded, **alone, ALL: everything, **without}


def read(path: Path) -> list[Result]:
    return [Result(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


@cache
def data_of(table: str | None) -> Dataset:
    return dataset.build(testbed.load() if table is None else table)


def score(task: Task) -> Result:
    print(f"{task.model} {task.split} seed {task.seed}: {task.row}", file=sys.stderr, flush=True)
    data = data_of(task.table)
    kept = [name for name in data.counters if name in task.counters]
    data = replace(data, features=data.features.matched(Columns.of(kept, data.platforms)))
    predictor = model.make(task.model)
    settings = {
        name: value for name, value in {"seed": task.seed, "n_jobs": 1}.items() if name in predictor.get_params()
    }
    evaluation = evaluate.evaluate(
        data,
        {task.model: predictor.set_params(**settings)},
        split=task.split,
        seed=task.seed,
        scored_folds=task.scored_folds,
    )
    scores = evaluation.scores[task.model]
    means = {name: float(scores[name] or 0.0) for name in COLUMNS}
    return Result(task.row, task.model, task.split, task.seed, len(kept), data.table.fingerprint, means)


def section(name: str, split: str, results: list[Result]) -> str:
    """Return a Markdown table: means over seeds with their standard deviation, and the change to Table I."""
    own = [result for result in results if (result.model, result.split) == (name, split)]
    head = ["counters of", "how many", *COLUMNS, "factor - 1, to Table I"]
    lines = [f"## {name}, split `{split}`", "", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    plain = [result.scores["typical_factor"] for result in own if result.row == PLAIN]
    for row in dict.fromkeys(result.row for result in own):
        seeds = [result for result in own if result.row == row]
        values = {column: [result.scores[column] for result in seeds] for column in COLUMNS}
        cells = [f"{np.mean(values[column]):.3f} ± {np.std(values[column]):.3f}" for column in COLUMNS]
        to_plain = f"{(np.mean(values['typical_factor']) - 1) / (np.mean(plain) - 1):.3f}" if plain else "-"
        lines.append(f"| {row} | {seeds[0].counters} | " + " | ".join([*cells, to_plain]) + " |")
    fingerprints = ", ".join(dict.fromkeys(f"`{result.fingerprint}`" for result in own))
    seeds_of = ", ".join(map(str, sorted({result.seed for result in own})))
    return "\n".join([*lines, "", f"Seeds {seeds_of}; fingerprints {fingerprints}.", ""])


if __name__ == "__main__":
    main()
