"""Models x splits over real tables: how far off each model is, beside the noise of the data.

    python benchmarks/accuracy.py [--tables a,b] [--models a,b] [--splits row,workload,app] [--seeds 0,1] [--jobs N]

Prints one Markdown table for each data set and split, and with --write adds them to benchmarks/accuracy.md (or
ablation.md) with the command, the versions and the date. `testbed` ships with the package. The other tables belong to
their authors and are not part of the project: they are read from ../shared/datasets, or from --data DIR, and a table
that is absent is named and left out.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import platform
import shlex
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib import metadata
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from crossperf import dataset, evaluate, model, testbed

HERE = Path(__file__).parent
TABLES = ("testbed", "aiwc_opencl", "scout_single", "amaris_gpu")
COLUMNS = ("typical_factor", "r2_log", "r2", "same_order", "kendall_tau", "top1", "slowdown", "order_auc", "mae")


def main() -> None:
    arguments = parse()
    tables = [name for name in arguments.tables.split(",") if name == "testbed" or present(arguments.data / name)]
    if not tables:
        sys.exit(f"no table found under {arguments.data}; name a folder that has them with --data")
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    splits = arguments.splits.split(",")
    makers = ["ablation"] if arguments.ablation else installed(arguments.models.split(","))
    tasks = [
        (str(arguments.data / table / "runs.parquet"), table, split, makers, arguments, seed)
        for table in tables
        for split in splits
        for seed in seeds
    ]
    with contextlib.ExitStack() as stack:
        results: Iterator[dict[str, Any]] = map(score, tasks)
        if arguments.jobs > 1:
            # Spawned, since a forked process inherits locks of the threads that its parent ran.
            pool = stack.enter_context(ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")))
            results = pool.map(score, tasks)
        sections = []
        for table in tables:
            for split in splits:
                sections.append(section(table, split, seeds, [next(results) for _ in seeds]))
                print(sections[-1], flush=True)
    if arguments.write:
        target = HERE / ("ablation.md" if arguments.ablation else "accuracy.md")
        with target.open("a", encoding="utf-8") as file:
            file.write("\n".join([header(arguments.ablation), *sections]) + "\n")
        print(f"wrote {target}", file=sys.stderr)


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
    parser.add_argument("--jobs", type=int, default=1, help="tables and splits scored at the same time")
    parser.add_argument("--ablation", action="store_true", help="vae-dnn with each stage off, instead of the models")
    parser.add_argument("--write", action="store_true", help="add the tables to the file beside this script")
    return parser.parse_args()


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


def score(task: tuple[str, str, Any, list[str], argparse.Namespace, int]) -> dict[str, Any]:
    path, name, split, makers, arguments, seed = task
    platforms = arguments.platforms.split(",") if arguments.platforms else None
    data = dataset.build(testbed.load() if name == "testbed" else path, platforms=platforms)
    chosen = evaluate.ablation(seed) if makers == ["ablation"] else makers

    def progress(model_name: str, done: int, total: int) -> None:
        print(f"{name} {split} seed {seed}: {done}/{total} {model_name}", file=sys.stderr, flush=True)

    return evaluate.evaluate(
        data,
        chosen,
        split=split,
        n_folds=arguments.folds,
        seed=seed,
        scored_folds=arguments.scored_folds,
        progress=progress,
    ).to_json()


def section(table: str, split: str, seeds: list[int], results: list[dict[str, Any]]) -> str:
    """Return a Markdown table: the mean over folds and seeds, and the spread of the typical factor over folds."""
    facts, constant = results[0]["table"], results[0]["constant"]
    lines = [
        f"## {table}, split `{split}`",
        "",
        f"{facts['workloads']:,} workloads of {facts['apps']} apps on {len(facts['platforms'])} platforms "
        f"({', '.join(facts['platforms'][:6])}{', ...' if len(facts['platforms']) > 6 else ''}); "
        f"{results[0]['scored_folds']} of {results[0]['folds']} folds, seeds {', '.join(map(str, seeds))}; "
        f"fingerprint `{facts['fingerprint']}`. "
        f"Always taking {constant['fastest']} is right for {constant['fastest_share']:.0%}; always answering the most "
        f"common order for {constant['order_share'] or 0:.0%}.",
        "",
        "| model | " + " | ".join(COLUMNS) + " | fit s |",
        "|---" * (len(COLUMNS) + 2) + "|",
    ]
    for name in results[0]["models"]:
        mean = evaluate.average([r["models"][name] for r in (strip(result, name) for result in results)])
        folds = [fold["typical_factor"] for result in results for fold in result["models"][name]["folds"]]
        cells = [number(mean[column]) for column in COLUMNS]
        cells[0] += f" ({min(folds):.2f} to {max(folds):.2f})"
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {mean['fit_s']:.1f} |")
    ceiling = results[0]["noise_ceiling"]
    lines.append("| *noise ceiling* | " + " | ".join(number(ceiling[column]) for column in COLUMNS) + " | |")
    return "\n".join(lines) + "\n"


def strip(result: dict[str, Any], name: str) -> dict[str, Any]:
    return {"models": {name: {k: v for k, v in result["models"][name].items() if k != "folds"}}}


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def header(ablation: bool) -> str:
    return "\n".join(
        [
            opening("What each stage of `vae-dnn` brings" if ablation else "Accuracy of every model"),
            "Means over folds; typical factor with its range over folds. 1 is perfect, but for mae, where 0 is. "
            "The noise ceiling is what one half of the repeats reaches in predicting the other half. Training parts "
            "alone are fitted on, and all models see the same folds and features.",
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
