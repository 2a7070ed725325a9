"""Platforms left out in turn and added from few workloads: how far off they are, beside retraining from scratch.

    python benchmarks/transfer.py [--tables a,b] [--models a,b] [--peers a,b] [--shots 3,5,10,20,5%] [--write]

Prints one Markdown table for each data set, and with --write adds them to benchmarks/transfer.md with the command, the
versions and the date. Models are adapted, retrained from scratch on the same workloads, and retrained on all; peers are
retrained from scratch alone. Finished pieces are kept (--kept) and not scored again. Tables are found as
benchmarks/accuracy.py finds them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import studies
from accuracy import HERE, TABLES, add, data_of, number, opening, tables_of
from crossperf import model
from crossperf.adaptation import score as transfer
from crossperf.adaptation.result import WAYS, Transfer
from crossperf.cli.evaluate import shots_of
from crossperf.workers import Kept, Workers

#: What the text under a title calls each way.
COLUMNS = ("adapted", "suggested", "scratch", "full")


def main() -> None:
    arguments = parse()
    sections = []
    with studies.workers_of(arguments) as workers, studies.kept_of(arguments) as kept:
        for table in tables_of(arguments):
            results = [score(table, arguments, int(seed), workers, kept) for seed in arguments.seeds.split(",")]
            sections.append(section(table, results))
            print(sections[-1], flush=True)
    if arguments.write:
        add(HERE / "transfer.md", header(), sections)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "datasets")
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--models", default=model.DEFAULT, help="adapted, retrained from scratch, and with full data")
    parser.add_argument("--peers", default="extra-trees,xgboost,ridge", help="retrained from scratch alone")
    parser.add_argument("--shots", default="3,5,10,20,5%")
    parser.add_argument("--draws", type=int, default=5, help="draws of the workloads measured on the new platform")
    parser.add_argument("--scratch-draws", type=int, default=1, help="on how many of them models are retrained")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--scored-folds", type=int, default=1, help="score the first so many folds only")
    parser.add_argument("--left-out", help="count these platforms alone as new: a,b")
    studies.add_options(parser, "transfer")
    parser.add_argument("--write", action="store_true", help="add the tables to transfer.md beside this script")
    return parser.parse_args()


def score(table: str, arguments: argparse.Namespace, seed: int, workers: Workers, kept: Kept) -> Transfer:
    data = data_of(table, arguments.data)
    models = arguments.models.split(",")
    peers = [name for name in arguments.peers.split(",") if name and name not in models]
    return transfer.transfer(
        data,
        [*models, *peers],
        shots=shots_of(arguments.shots, "platform"),
        n_folds=arguments.folds,
        seed=seed,
        scored_folds=arguments.scored_folds,
        draws=arguments.draws,
        scratch_draws=arguments.scratch_draws,
        left_out=arguments.left_out.split(",") if arguments.left_out else None,
        peers=peers,
        progress=studies.progress_of(f"{table} seed {seed}"),
        workers=workers,
        kept=kept,
    )


def section(table: str, results: list[Transfer]) -> str:
    """Return a Markdown table: geometric means over platforms, folds and seeds."""
    first = results[0]
    facts = first.table
    lines = [
        f"## {table}",
        "",
        f"{facts.workloads:,} workloads of {facts.apps} apps; {len(first.left_out)} platforms left out in turn, "
        f"{first.scored_folds} of {first.folds} folds, seeds {', '.join(str(one.seed) for one in results)}, "
        f"{first.draws} draws; fingerprint `{facts.fingerprint}`. Noise {number(first.noise)}.",
        "",
        "| model | shots | " + " | ".join(COLUMNS) + " | suggested / full | "
        "" + " | ".join(f"{way} RPV" for way in COLUMNS) + " |",
        "|---" * (3 + 2 * len(COLUMNS)) + "|",
    ]
    for name in first.models:
        for shots in first.shots:
            if not any(first.of(name, shots, way) for way in WAYS):
                continue
            cells = [mean(results, name, shots, way, kind) for kind in ("column", "vector") for way in COLUMNS]
            ratio = cells[1] / cells[3] if cells[1] and cells[3] else None
            label = shots if shots == f"{first.shots[shots]:.0f}" else f"{shots} ({first.shots[shots]:.0f})"
            shown = [number(value) for value in (*cells[:4], ratio, *cells[4:])]
            lines.append(f"| {name} | {label} | " + " | ".join(shown) + " |")
    lines += ["", *worst(first)]
    return "\n".join(lines) + "\n"


def mean(results: list[Transfer], name: str, shots: str, way: str, kind: str) -> float | None:
    found = [value for one in results if (value := one.mean(name, shots, way, kind)) is not None]
    return float(np.exp(np.mean(np.log(found)))) if found else None


def worst(result: Transfer) -> list[str]:
    """Return the platforms by name, adapted as suggested against full data, with the most shots asked for."""
    name = result.models[0]
    suggested = [shots for shots in result.shots if result.of(name, shots, "suggested")]
    if not suggested:
        return []
    shots = max(suggested, key=lambda label: result.shots[label])
    full = result.of(name, shots, "full")
    each = [
        f"{platform} {own.column:.2f} ({full[platform].column:.2f})"
        for platform, own in result.of(name, shots, "suggested").items()
    ]
    return [f"{name} with {result.shots[shots]:.0f} suggested workloads (in brackets: all): {', '.join(each)}."]


def header() -> str:
    return "\n".join(
        [
            opening("A new platform from few workloads"),
            "Typical factor of a new platform's time relative to the source, over workloads that no model has seen, as "
            "a geometric mean over the platforms left out in turn; 1 is perfect. *adapted*: the base model never saw "
            "the platform, a head adds it from workloads drawn at random; *suggested*: from those that `adapt "
            "--suggest` names; *scratch*: the model retrained on the workloads drawn; *full*: retrained with all "
            "training workloads measured there. RPV: the same for the whole relative performance vector. 5 % is of "
            "the training workloads. The noise is what half of the repeats is off from the other half.",
            "",
        ]
    )


if __name__ == "__main__":
    main()
