"""What each group of counters brings to a model: each beside Table I alone, and each left out of all.

    python benchmarks/counters.py [--table FILE] [--before FILE] [--models a,b] [--splits a,b] [--seeds a,b] [--jobs N]

The testbed, or another runs table, with some of its counters. --before names the same runs with counters as they were
counted before a correction; their Table I stands in the first row. A score is the mean over folds and seeds, with the
standard deviation of the means of the seeds beside it: a difference below that says nothing. Each fold is kept as it
comes and not scored again (--kept); --write adds the tables to benchmarks/counters.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import studies
from accuracy import HERE, add, opening
from crossperf import catalog, dataset, model, plain
from crossperf.dataset import Columns, Dataset
from crossperf.datasets import testbed
from crossperf.evaluation.parcels import ModelSpec, pack
from crossperf.evaluation.pieces import STUDY, FoldQuestion
from crossperf.evaluation.run import question_of
from crossperf.evaluation.scores import Scores
from crossperf.workers import PieceQuestion

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
FOLDS = 5
BEFORE, PLAIN, ALL = "Table I as before", "Table I", "all"


class Result(NamedTuple):
    """What a model scored with one choice of counters on one split and seed: the means over its folds."""

    row: str
    model: str
    split: str
    seed: int
    counters: int
    fingerprint: str
    scores: dict[str, float]


def main() -> None:
    arguments = parse()
    results = run(arguments)
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
    studies.add_options(parser, "counters")
    parser.add_argument("--write", action="store_true", help="add the tables to counters.md beside this script")
    return parser.parse_args()


def run(arguments: argparse.Namespace) -> list[Result]:
    """Return the scores of all that was asked for; those of each fold are kept as soon as they are there."""
    chosen = rows(data_of(arguments.table).counters)
    if arguments.before:
        chosen = {BEFORE: TABLE_I, **chosen}
    if arguments.rows:
        chosen = {name: chosen[name] for name in arguments.rows.split(",")}
    tables = {
        row: with_counters(data_of(arguments.before if row == BEFORE else arguments.table), counters)
        for row, counters in chosen.items()
    }
    asked = [
        (row, name, split, int(seed))
        for name in arguments.models.split(",")[::-1]  # the longest first
        for seed in arguments.seeds.split(",")
        for split in arguments.splits.split(",")
        for row in chosen
    ]
    folds = range(arguments.scored_folds or FOLDS)
    questions = [question(tables[row], row, *key, fold) for row, *key in asked for fold in folds]
    with studies.workers_of(arguments) as workers, studies.kept_of(arguments) as kept:
        answers = dict(STUDY.answers(questions, workers, kept, studies.progress_of("counters")))
    results = []
    for i, (row, name, split, seed) in enumerate(asked):
        own = [answers[i * len(folds) + fold].facts["scores"] for fold in folds]
        scores = Scores.mean([plain.from_json(Scores, fold) for fold in own])
        means = {column: float(scores[column] or 0.0) for column in COLUMNS}
        data = tables[row]
        results.append(Result(row, name, split, seed, len(data.counters), data.table.fingerprint, means))
    return results


def with_counters(data: Dataset, counters: Sequence[str]) -> Dataset:
    """Return a dataset with some of its counters alone."""
    kept = [name for name in data.counters if name in counters]
    return replace(data, features=data.features.matched(Columns.of(kept, data.platforms)))


def question(data: Dataset, row: str, name: str, split: Any, seed: int, fold: int) -> PieceQuestion:
    """Return what is asked of one fold."""
    part = dataset.folds(data, split, FOLDS, seed)[fold]
    asked = FoldQuestion(split, FOLDS, seed, fold, "", ModelSpec.of(name, seed))
    return question_of(pack(data), part, asked, f"{row}: {name} {split} seed {seed}", {"row": row})


def rows(known: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the choices of counters to compare, by name; a group that the table has nothing of is left out."""
    groups = {name: tuple(c for c in group if c in known) for name, group in GROUPS.items()}
    groups = {name: group for name, group in groups.items() if group}
    everything = (*TABLE_I, *(counter for group in groups.values() for counter in group))
    alone = {f"+ {name}": (*TABLE_I, *group) for name, group in groups.items()}
    without = {f"all - {name}": tuple(c for c in everything if c not in group) for name, group in groups.items()}
    bounded = tuple(catalog.RATES.get(name, name) for name in TABLE_I)
    return {PLAIN: TABLE_I, "rates in place of ratios": bounded, **alone, ALL: everything, **without}


@cache
def data_of(table: str | None) -> Dataset:
    return dataset.build(testbed.load() if table is None else table)


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
