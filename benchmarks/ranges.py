"""How often ranges hold, and how wide they are: the default model beside conformalised quantile regression.

    python benchmarks/ranges.py [--tables a,b] [--splits row,workload,app] [--seeds 0] [--scored-folds 1] [--jobs N]
    python benchmarks/ranges.py --from results.jsonl --write

For ranges of 80 %: the share of measured times inside, the same for times on a GPU seen from a CPU, how often all
platforms of a run are inside at once (single ranges, and joint ones), and the typical factor from the middle of a range
to its ends. The peer (Romano, Patterson and Candes 2019) boosts trees for the quantiles 0.1 and 0.9 of each platform's
log time relative to the source, and widens them by what groups held out from the training cells need.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from accuracy import HERE, add, data_of, opening, tables_of
from crossperf.dataset.pairing import Dataset, Fold, folds
from crossperf.model.boosting import deal
from crossperf.model.default import Crossperf

LEVEL = 0.8
AT_ONCE = 256


class Task(NamedTuple):
    """One method on one fold."""

    table: str
    folder: str
    split: Any
    seed: int
    fold: int
    method: str


class Ranges(NamedTuple):
    """The share of times inside, of a GPU's from a CPU, of whole runs, and the mean log half width."""

    coverage: float
    cpu_to_gpu: float | None
    whole: float
    width: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "datasets")
    parser.add_argument("--tables", default="testbed,aiwc_opencl")
    parser.add_argument("--splits", default="row,workload,app")
    parser.add_argument("--methods", default="crossperf,cqr")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--scored-folds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--results", type=Path, help="add every figure to this file as it comes")
    parser.add_argument("--from", dest="from_", type=Path, help="read figures instead of fitting")
    parser.add_argument("--write", action="store_true", help="write ranges.md beside this script")
    arguments = parser.parse_args()
    rows = list(read(arguments.from_)) if arguments.from_ else list(run(arguments))
    sections = [table_of(rows)]
    print("\n".join(sections))
    if arguments.write:
        (HERE / "ranges.md").unlink(missing_ok=True)
        add(HERE / "ranges.md", opening("Ranges: how often they hold, and how wide they are"), sections)


def run(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    tasks = [
        Task(table, str(arguments.data), split, int(seed), fold, method)
        for table in tables_of(arguments)
        for split in arguments.splits.split(",")
        for seed in arguments.seeds.split(",")
        for fold in range(arguments.scored_folds)
        for method in arguments.methods.split(",")
    ]
    # Processes that are started anew: a fork of one that has used torch may hang.
    with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool:
        for rows in pool.map(score, tasks):
            for row in rows:
                yield row
                if arguments.results:
                    with arguments.results.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")


def read(path: Path) -> Iterator[dict[str, Any]]:
    yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())


def score(task: Task) -> list[dict[str, Any]]:
    data = data_of(task.table, Path(task.folder))
    part = folds(data, task.split, 5, task.seed)[task.fold]
    made = by_default(data, part, task.seed) if task.method == "crossperf" else by_cqr(data, part, task)
    facts = {"table": task.table, "split": task.split, "seed": task.seed, "fold": task.fold}
    return [{**facts, "method": name, **figures._asdict()} for name, figures in made.items()]


def by_default(data: Dataset, part: Fold, seed: int) -> dict[str, Ranges]:
    model = Crossperf(seed=seed, n_jobs=1).learn(data.take(part.train_n))
    test = data.take(part.test_n)
    made: dict[str, Ranges] = {}
    for name, joint in (("crossperf", False), ("crossperf, joint", True)):
        parts = []
        for start in range(0, len(test), AT_ONCE):
            rows = slice(start, start + AT_ONCE)
            parts.append(model.fitted_.forecast(test.X[rows]).between(LEVEL, test.source_n[rows], joint=joint))
        low_np, high_np = (np.concatenate(own) for own in zip(*parts, strict=True))
        made[name] = judged(test, low_np, high_np)
    return made


def by_cqr(data: Dataset, part: Fold, task: Task) -> dict[str, Ranges]:
    from sklearn.ensemble import HistGradientBoostingRegressor

    train, test = data.take(part.train_n), data.take(part.test_n)
    held_n = deal(train.groups_n(task.split), 4, task.seed) == 0
    known_nf, asked_nf = (cells.X.derived().values_nf for cells in (train, test))
    low_np, high_np = np.zeros((2, *test.y.shape))
    for platform in range(test.y.shape[1]):
        fits_n = ~np.isnan(train.y[:, platform])
        learn_n, check_n = fits_n & ~held_n, fits_n & held_n
        ends = []
        for quantile in ((1 - LEVEL) / 2, (1 + LEVEL) / 2):
            trees = HistGradientBoostingRegressor(loss="quantile", quantile=quantile, random_state=task.seed)
            trees.fit(known_nf[learn_n], train.y[learn_n, platform])
            ends.append((trees.predict(known_nf[check_n]), trees.predict(asked_nf)))
        truth_n = train.y[check_n, platform]
        outside_n = np.maximum(ends[0][0] - truth_n, truth_n - ends[1][0])
        # On its own platform a run takes as long as it does: those cells say nothing about the others.
        more = float(np.quantile(outside_n[train.source_n[check_n] != platform], LEVEL))
        low_np[:, platform], high_np[:, platform] = ends[0][1] - more, ends[1][1] + more
    return {"conformalised quantile regression": judged(test, low_np, np.maximum(low_np, high_np))}


def judged(test: Dataset, low_np: Any, high_np: Any) -> Ranges:
    other_np = (np.arange(test.y.shape[1]) != test.source_n[:, None]) & ~np.isnan(test.y)
    inside_np = (low_np <= test.y) & (test.y <= high_np)
    gpu_p = np.array(test.platform_classes) == "gpu"
    there_np = other_np & gpu_p & ~gpu_p[test.source_n][:, None]
    return Ranges(
        float(inside_np[other_np].mean()),
        float(inside_np[there_np].mean()) if there_np.any() else None,
        float((inside_np | ~other_np).all(axis=1).mean()),
        float(((high_np - low_np) / 2)[other_np].mean()),
    )


def table_of(rows: list[dict[str, Any]]) -> str:
    lines = [
        f"Ranges of {LEVEL:.0%}, means over folds and seeds; a factor of 1 is no width at all.",
        "",
        "| table, split | method | inside | from CPU to GPU | whole run inside | factor to either side | folds |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    keys = list(dict.fromkeys((row["table"], row["split"], row["method"]) for row in rows))
    for key in sorted(keys, key=lambda key: [row["table"] for row in rows].index(key[0])):
        own = [row for row in rows if (row["table"], row["split"], row["method"]) == key]
        crossing = [row["cpu_to_gpu"] for row in own if row["cpu_to_gpu"] is not None]
        lines.append(
            f"| {key[0]}, {key[1]} | {key[2]} | {np.mean([row['coverage'] for row in own]):.1%} "
            f"| {f'{np.mean(crossing):.1%}' if crossing else '-'} | {np.mean([row['whole'] for row in own]):.1%} "
            f"| {np.exp(np.mean([row['width'] for row in own])):.2f} | {len(own)} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
