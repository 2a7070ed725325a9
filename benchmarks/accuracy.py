"""Models x splits over real tables: how far off each model is, beside the noise of the data.

    python benchmarks/accuracy.py [--tables a,b] [--models a,b] [--splits row,workload,app] [--seeds 0,1] [--jobs N]
    python benchmarks/accuracy.py --models crossperf,extra-trees,extra-trees:target=source --only-folds 2,3
    python benchmarks/accuracy.py --from --write

A piece is one model on one fold of one split of one table under one seed. Each is kept in a folder (--kept) as soon as
it is scored and is not scored again, so that a long run can be cut anywhere, and parts of it can be run now and others
later; --from shows all that was kept. Prints one Markdown table for each data set and split, and what the default model
is worth beside each peer; with --write adds them to benchmarks/accuracy.md with the command, the versions and the date.
`testbed` ships with the package. The other tables belong to their authors and are not part of the project: they are
read from ../shared/datasets, or from --data DIR, and a table that is absent is named and left out.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import platform
import shlex
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import studies
from crossperf import dataset, model, plain
from crossperf.dataset import Dataset
from crossperf.datasets import testbed
from crossperf.evaluation import heldout, metrics
from crossperf.evaluation.parcels import ModelSpec, pack
from crossperf.evaluation.pieces import STUDY, FoldQuestion
from crossperf.evaluation.run import question_of
from crossperf.evaluation.scores import Scores
from crossperf.records import LOOKS
from crossperf.versions import code_digest
from crossperf.workers import PieceQuestion

HERE = Path(__file__).parent
TABLES = ("testbed", "aiwc_opencl", "scout_single", "amaris_gpu")
COLUMNS = (
    "typical_factor",
    "r2",
    "r2_slowest",
    "r2_speed",
    "r2_log",
    "same_order",
    "order_beyond_noise",
    "top1",
    "slowdown",
)
TRUST = ("coverage", "interval_factor", *(f"{what}_{word}" for word in LOOKS for what in ("factor", "share")))


class Result(NamedTuple):
    """What a model scored on one fold."""

    table: str
    split: str
    seed: int
    fold: int
    folds: int
    model: str
    code: str
    scores: Scores


def main() -> None:
    arguments = parse()
    if not arguments.from_:
        run(arguments)
    tables = tables_of(arguments)
    data = {name: data_of(name, arguments.data, arguments.platforms) for name in tables}
    sections = report(results_of(arguments, data), data)
    print("\n".join(sections))
    if arguments.write:
        add(HERE / "accuracy.md", header(), sections)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "datasets")
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--models", help="names, or NAME:SETTING=VALUE  [all; with --from, all that were kept]")
    parser.add_argument("--splits", default="row,workload,app")
    parser.add_argument("--seeds", help="[0; with --from, all that were kept]")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--scored-folds", type=int, help="score the first so many folds only")
    parser.add_argument("--only-folds", help="score these folds only, counted from 1: 2,3")
    parser.add_argument("--platforms", help="use these platforms only: a,b")
    studies.add_options(parser, "accuracy")
    parser.add_argument("--from", dest="from_", action="store_true", help="fit nothing: show all that was kept")
    parser.add_argument("--write", action="store_true", help="add the tables to the file beside this script")
    return parser.parse_args()


def run(arguments: argparse.Namespace) -> None:
    """Score all that was asked for and is not kept yet; each piece is kept as soon as it is there."""
    questions = [
        question
        for table in reversed(tables_of(arguments))  # the longest first
        for question in questions_of(table, arguments)
    ]
    with studies.workers_of(arguments) as workers, studies.kept_of(arguments) as kept:
        for _ in STUDY.answers(questions, workers, kept, studies.progress_of("accuracy")):
            pass


def questions_of(table: str, arguments: argparse.Namespace) -> Iterator[PieceQuestion]:
    """Yield what is asked about a table: model by model, split by split, seed by seed and fold by fold."""
    data = data_of(table, arguments.data, arguments.platforms)
    parcel = pack(data)
    for name in installed(models_of(arguments)):
        for split, seed in itertools.product(arguments.splits.split(","), seeds_of(arguments)):
            parts = dataset.folds(data, split, arguments.folds, seed)
            for fold in folds_of(arguments):
                asked = FoldQuestion(split, arguments.folds, seed, fold, "", spec_of(name, seed))
                label = f"{table} {split} seed {seed} {name}"
                yield question_of(parcel, parts[fold], asked, label, {"table": table, "model": name})


def models_of(arguments: argparse.Namespace) -> list[str]:
    return arguments.models.split(",") if arguments.models else list(model.MODELS)


def seeds_of(arguments: argparse.Namespace) -> list[int]:
    return [int(seed) for seed in (arguments.seeds or "0").split(",")]


def folds_of(arguments: argparse.Namespace) -> list[int]:
    if arguments.only_folds:
        return [int(number) - 1 for number in arguments.only_folds.split(",")]
    return list(range(arguments.scored_folds or arguments.folds))


def spec_of(label: str, seed: int) -> ModelSpec:
    """Return the model of a label: its name, and after a colon a setting in which it differs from the default."""
    name, _, setting = label.partition(":")
    return ModelSpec.of(name, seed, **dict([setting.split("=")]) if setting else {})


def results_of(arguments: argparse.Namespace, data: Mapping[str, Dataset]) -> list[Result]:
    """Return what was kept of what was asked for; with --from, of all tables, splits, models, seeds and folds.

    A piece of another table, or of other rows, is left out; of one that was scored by several versions of the code,
    today's counts.
    """
    today, tables = code_digest(STUDY.code), {name: pack(own).fingerprint for name, own in data.items()}
    models = None if arguments.from_ and not arguments.models else models_of(arguments)
    seeds = None if arguments.from_ and not arguments.seeds else seeds_of(arguments)
    numbers = folds_of(arguments)
    results: dict[tuple[Any, ...], Result] = {}
    for piece in studies.pieces_of(arguments, STUDY):
        asked, notes = piece.question, piece.notes
        result = Result(
            notes["table"],
            *(asked[name] for name in ("split", "seed", "fold", "folds")),
            notes["model"],
            asked["code"],
            plain.from_json(Scores, piece.answer.facts["scores"]),
        )
        wanted = (
            asked["table"] == tables.get(result.table)
            and result.folds == arguments.folds
            and result.split in arguments.splits.split(",")
            and result.fold in numbers
            and (models is None or result.model in models)
            and (seeds is None or result.seed in seeds)
            and (arguments.from_ or result.code == today)
        )
        if wanted and (result[:6] not in results or result.code == today):
            results[result[:6]] = result
    order = {name: i for i, name in enumerate(models or model.MODELS)}
    return sorted(results.values(), key=lambda r: (order.get(r.model, len(order)), r.model, r.seed, r.fold))


def tables_of(arguments: argparse.Namespace) -> list[str]:
    """Return the tables asked for that are here; the others are named."""
    tables = [name for name in arguments.tables.split(",") if name == "testbed" or present(arguments.data / name)]
    return tables or sys.exit(f"no table found under {arguments.data}; name a folder that has them with --data")


@cache
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
    packages = {name: model.PACKAGES.get(name.partition(":")[0]) for name in names}
    absent = [name for name, package in packages.items() if package and find_spec(package) is None]
    if absent:
        print(f"left out: {', '.join(absent)}; pip install 'crossperf[more-peers]' brings them", file=sys.stderr)
    left = [name for name in names if name not in absent]
    return left or sys.exit("no model is left to score")


def report(results: list[Result], data: Mapping[str, Dataset]) -> list[str]:
    """Return the Markdown of all results: first what the default model is worth, then table by table."""
    keys = sorted({(r.table, r.split) for r in results}, key=lambda key: (TABLES.index(key[0]), key[1] == "app", key))
    sections = [
        section(table, split, data[table], [r for r in results if (r.table, r.split) == (table, split)])
        for table, split in keys
    ]
    older = sum(result.code != code_digest(STUDY.code) for result in results)
    note = [f"{older} of {len(results)} pieces were scored by earlier versions of the code.\n"] if older else []
    return [*note, *worth(results, keys), *sections]


def by_fold(results: list[Result], column: str) -> dict[str, dict[tuple[int, int], float]]:
    """Return a score by model, seed and fold."""
    values: dict[str, dict[tuple[int, int], float]] = {}
    for result in results:
        if (value := result.scores[column]) is not None:
            values.setdefault(result.model, {})[result.seed, result.fold] = value
    return values


def by_model(results: list[Result], column: str) -> dict[str, float]:
    """Return the mean of a score over seeds and folds, by model."""
    return {name: float(np.mean(list(own.values()))) for name, own in by_fold(results, column).items()}


def counted(results: list[Result]) -> str:
    """Return how many folds and seeds there are; only their number where some seeds have other folds."""
    seeds = {result.seed for result in results}
    folds = len({result.fold for result in results})
    even = len(results) == folds * len(seeds)
    return f"{folds} of {results[0].folds} x {len(seeds)}" if even else f"{len(results)} in all"


def section(table: str, split: str, data: Dataset, results: list[Result]) -> str:
    """Return a Markdown table: the mean over folds and seeds, and the spread of the typical factor over folds."""
    facts, constant = data.table, metrics.ConstantAnswer.of(data)
    lines = [
        f"## {table}, split `{split}`",
        "",
        f"{facts.workloads:,} workloads of {facts.apps} apps on {len(facts.platforms)} platforms "
        f"({', '.join(facts.platforms[:6])}{', ...' if len(facts.platforms) > 6 else ''}); "
        f"fingerprint `{facts.fingerprint}`. "
        f"Always taking {constant.fastest} is right for {constant.fastest_share:.0%}; always answering the most "
        f"common order for {constant.order_share or 0:.0%}.",
        "",
        "| model | " + " | ".join(COLUMNS) + " | fit s | folds x seeds |",
        "|---" * (len(COLUMNS) + 3) + "|",
    ]
    means = {column: by_model(results, column) for column in (*COLUMNS, *TRUST, "fit_s")}
    for name in means["typical_factor"]:
        own = [result for result in results if result.model == name]
        folds = list(by_fold(own, "typical_factor")[name].values())
        cells = [number(means[column].get(name)) for column in COLUMNS]
        cells[0] += f" ({min(folds):.2f} to {max(folds):.2f})"
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {means['fit_s'][name]:.1f} | {counted(own)} |")
    order, _ = metrics.most_common_order(data.log_time_wp) or (None, None)
    ceiling = metrics.noise_ceiling(data, order)
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
