"""Models x splits over real tables: how far off each model is, beside the noise of the data.

    python benchmarks/accuracy.py [--tables a,b] [--models a,b] [--splits row,workload,app] [--seeds 0,1] [--jobs N]
    python benchmarks/accuracy.py --from results.jsonl [--from more.jsonl]

Prints one Markdown table for each data set and split, and what the default model is worth beside each peer; with
--write adds them to benchmarks/accuracy.md with the command, the versions and the date. --results
keeps every score in a file as it comes, so that a long run can be cut into several and read with --from. `testbed`
ships with the package. The other tables belong to their authors and are not part of the project: they are read from
../shared/datasets, or from --data DIR, and a table that is absent is named and left out.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import metadata
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from crossperf import dataset, model
from crossperf.dataset import Dataset
from crossperf.datasets import testbed
from crossperf.evaluation import heldout
from crossperf.evaluation import run as evaluate
from crossperf.records import LOOKS

T, R = TypeVar("T"), TypeVar("R")

HERE = Path(__file__).parent
TABLES = ("testbed", "aiwc_opencl", "scout_single", "amaris_gpu")
COLUMNS = ("typical_factor", "r2_log", "r2", "same_order", "kendall_tau", "top1", "slowdown", "order_auc", "mae")
TRUST = ("coverage", "interval_factor", *(f"{what}_{word}" for word in LOOKS for what in ("factor", "share")))


class Task(NamedTuple):
    """One model on one table, split and seed."""

    table: str
    folder: str
    split: Any
    seed: int
    model: str
    folds: int
    scored_folds: int | None
    platforms: str | None


class Result(NamedTuple):
    """What a task scored."""

    table: str
    split: str
    seed: int
    evaluation: dict[str, Any]


def main() -> None:
    arguments = parse()
    results = [result for path in arguments.from_ for result in read(path)] if arguments.from_ else run(arguments)
    sections = report(results)
    print("\n".join(sections))
    if arguments.write:
        add(HERE / "accuracy.md", header(), sections)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "datasets")
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--models", default=",".join(model.MODELS))
    parser.add_argument("--splits", default="row,workload,app")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--scored-folds", type=int, help="score the first so many folds only")
    parser.add_argument("--platforms", help="use these platforms only: a,b")
    parser.add_argument("--jobs", type=int, default=1, help="models, tables and splits scored at the same time")
    parser.add_argument("--results", type=Path, help="add every score to this file as it comes")
    parser.add_argument("--from", dest="from_", type=Path, action="append", help="read scores instead of fitting")
    parser.add_argument("--write", action="store_true", help="add the tables to the file beside this script")
    return parser.parse_args()


def run(arguments: argparse.Namespace) -> list[Result]:
    """Return the scores of all that was asked for; each is also written as soon as it is there."""
    tables = tables_of(arguments)
    models = installed(arguments.models.split(","))
    shared = (arguments.folds, arguments.scored_folds, arguments.platforms)
    tasks = [
        Task(table, str(arguments.data), split, int(seed), name, *shared)
        for table in reversed(tables)  # the longest first
        for name in models
        for split in arguments.splits.split(",")
        for seed in arguments.seeds.split(",")
    ]
    results = []
    for result in each_of(score, tasks, arguments.jobs):
        results.append(result)
        if arguments.results:
            with arguments.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result._asdict()) + "\n")
    order = {name: i for i, name in enumerate(models)}
    return sorted(results, key=lambda r: order.get(next(iter(r.evaluation["scores"]["models"])), 0))


def each_of(score: Callable[[T], R], tasks: Sequence[T], jobs: int) -> Iterator[R]:
    """Yield the score of each task as it comes, by some processes at a time."""
    if jobs == 1:
        yield from map(score, tasks)
        return
    # Spawned, since a forked process inherits locks of the threads that its parent ran.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(score, task) for task in tasks]):
            yield done.result()


def read(path: Path) -> list[Result]:
    return [Result(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def tables_of(arguments: argparse.Namespace) -> list[str]:
    """Return the tables asked for that are here; the others are named."""
    tables = [name for name in arguments.tables.split(",") if name == "testbed" or present(arguments.data / name)]
    return tables or sys.exit(f"no table found under {arguments.data}; name a folder that has them with --data")


def data_of(table: str, folder: Path, platforms: str | None = None) -> Dataset:
    source = testbed.load() if table == "testbed" else folder / table / "runs.parquet"
    return dataset.build(source, platforms=platforms.split(",") if platforms else None)


def add(target: Path, head: str, sections: list[str]) -> None:
    """Add sections below their heading to a file beside this script."""
    with target.open("a", encoding="utf-8") as file:
        file.write("\n".join([head, *sections]) + "\n")
    print(f"wrote {target}", file=sys.stderr)


def present(folder: Path) -> bool:
    if not (folder / "runs.parquet").is_file():
        print(f"left out: {folder}/runs.parquet is not there", file=sys.stderr)
        return False
    return True


def installed(names: list[str]) -> list[str]:
    """Return the models whose packages are here; those of the others are named in one line."""
    absent = [name for name in names if name in model.PACKAGES and find_spec(model.PACKAGES[name]) is None]
    if absent:
        print(f"left out: {', '.join(absent)}; pip install 'crossperf[more-peers]' brings them", file=sys.stderr)
    left = [name for name in names if name not in absent]
    return left or sys.exit("no model is left to score")


def score(task: Task) -> Result:
    data = data_of(task.table, Path(task.folder), task.platforms)

    def progress(name: str, done: int, total: int) -> None:
        print(f"{task.table} {task.split} seed {task.seed}: {done}/{total} {name}", file=sys.stderr, flush=True)

    evaluation = evaluate.evaluate(
        data,
        [task.model],
        split=task.split,
        n_folds=task.folds,
        seed=task.seed,
        scored_folds=task.scored_folds,
        progress=progress,
    )
    return Result(task.table, task.split, task.seed, evaluation.to_json(cells=False))


def report(results: list[Result]) -> list[str]:
    """Return the Markdown of all results: first what the default model is worth, then table by table."""
    keys = sorted({(r.table, r.split) for r in results}, key=lambda key: (TABLES.index(key[0]), key[1] == "app", key))
    sections = [section(*key, [r for r in results if (r.table, r.split) == key]) for key in keys]
    return [*worth(results, keys), *sections]


def by_fold(results: list[Result], column: str) -> dict[str, dict[tuple[int, int], float]]:
    """Return a score by model, seed and fold."""
    values: dict[str, dict[tuple[int, int], float]] = {}
    for result in results:
        for name, scores in result.evaluation["scores"]["models"].items():
            for fold, there in enumerate(scores["folds"]):
                if there.get(column) is not None:
                    values.setdefault(name, {})[result.seed, fold] = there[column]
    return values


def by_model(results: list[Result], column: str) -> dict[str, float]:
    """Return the mean of a score over seeds and folds, by model."""
    return {name: float(np.mean(list(there.values()))) for name, there in by_fold(results, column).items()}


def section(table: str, split: str, results: list[Result]) -> str:
    """Return a Markdown table: the mean over folds and seeds, and the spread of the typical factor over folds."""
    first = results[0].evaluation
    facts, constant = first["table"], first["constant"]
    lines = [
        f"## {table}, split `{split}`",
        "",
        f"{facts['workloads']:,} workloads of {facts['apps']} apps on {len(facts['platforms'])} platforms "
        f"({', '.join(facts['platforms'][:6])}{', ...' if len(facts['platforms']) > 6 else ''}); "
        f"fingerprint `{facts['fingerprint']}`. "
        f"Always taking {constant['fastest']} is right for {constant['fastest_share']:.0%}; always answering the most "
        f"common order for {constant['order_share'] or 0:.0%}.",
        "",
        "| model | " + " | ".join(COLUMNS) + " | fit s | folds x seeds |",
        "|---" * (len(COLUMNS) + 3) + "|",
    ]
    means = {column: by_model(results, column) for column in (*COLUMNS, *TRUST, "fit_s")}
    for name in means["typical_factor"]:
        own = [r.evaluation for r in results if name in r.evaluation["scores"]["models"]]
        folds = [fold["typical_factor"] for one in own for fold in one["scores"]["models"][name]["folds"]]
        cells = [number(means[column].get(name)) for column in COLUMNS]
        cells[0] += f" ({min(folds):.2f} to {max(folds):.2f})"
        counted = f"{own[0]['scored_folds']} of {own[0]['folds']} x {len(own)}"
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {means['fit_s'][name]:.1f} | {counted} |")
    ceiling = first["scores"]["noise_ceiling"]
    lines.append("| *noise ceiling* | " + " | ".join(number(ceiling[column]) for column in COLUMNS) + " | | |")
    for name, coverage in means["coverage"].items():
        words = "; ".join(
            f"{word} {means[f'factor_{word}'][name]:.2f} ({means[f'share_{word}'][name]:.0%})"
            for word in LOOKS
            if name in means[f"factor_{word}"]
        )
        lines.append(
            f"\nIntervals of `{name}` for {heldout.LEVEL:.0%} cover {coverage:.1%} of the times, a factor of "
            f"{means['interval_factor'][name]:.2f} to either side. Typical factor by how familiar a run looked: "
            f"{words}."
        )
    return "\n".join(lines) + "\n"


def worth(results: list[Result], keys: list[tuple[str, str]]) -> list[str]:
    """Return `typical_factor - 1` of the default model over that of each peer, and over the best in hindsight."""
    ratios, peers = {}, []
    for key in keys:
        factors = by_fold([r for r in results if (r.table, r.split) == key], "typical_factor")
        own = factors.pop(model.DEFAULT, {})
        for peer, theirs in factors.items():
            same = sorted(set(own) & set(theirs))
            if same:
                ratios[key, peer] = sum(own[f] - 1 for f in same) / sum(theirs[f] - 1 for f in same)
                peers += [peer] if peer not in peers else []
    keys = [key for key in keys if any((key, peer) in ratios for peer in peers)]
    if not keys:
        return []
    lines = [
        f"## What `{model.DEFAULT}` is worth",
        "",
        f"`typical_factor - 1` of `{model.DEFAULT}` over that of each peer (below 1 is ahead), and over the best of "
        "them chosen in hindsight on the very same held-out rows. Each pair is compared on the folds and seeds that "
        "both were scored on.",
        "",
        "| table, split | " + " | ".join(peers) + " | best in hindsight |",
        "|---" * (len(peers) + 2) + "|",
    ]
    best = {key: max(ratios[key, peer] for peer in peers if (key, peer) in ratios) for key in keys}
    for key in keys:
        cells = [f"{ratios[key, peer]:.3f}" if (key, peer) in ratios else "-" for peer in peers]
        lines.append(f"| {key[0]}, {key[1]} | " + " | ".join(cells) + f" | {best[key]:.3f} |")
    means = [[ratios[key, peer] for key in keys if (key, peer) in ratios] for peer in peers]
    averages = [f"**{np.mean(there):.3f}**" if there else "-" for there in (*means, list(best.values()))]
    lines.append("| **mean** | " + " | ".join(averages) + " |")
    return ["\n".join(lines) + "\n"]


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def header() -> str:
    return "\n".join(
        [
            opening("Accuracy of every model"),
            "Means over folds and seeds; typical factor with its range over folds. 1 is perfect, but for mae, where 0 "
            "is. The noise ceiling is what one half of the repeats reaches in predicting the other half. Training "
            "parts alone are fitted on, and all models see the same folds and features.",
            "",
        ]
    )


def opening(title: str) -> str:
    """Return a title and how what follows was made: the command, the date and the versions."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("scikit-learn", "torch"))
    return (
        f"# {title}\n\n`python {shlex.join(sys.argv)}`, {datetime.date.today()}; "
        f"Python {platform.python_version()}, {versions}.\n"
    )


if __name__ == "__main__":
    main()
