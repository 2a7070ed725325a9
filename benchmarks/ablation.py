"""What each stage of `vae-dnn` brings: the whole, each stage switched off, the regressor alone, a random forest.

    python benchmarks/ablation.py [--tables a,b] [--splits row,workload] [--seeds 0,1,2] [--jobs N] [--minutes M]
    python benchmarks/ablation.py --write

A piece is one variant on one fold; each is kept in a folder (--kept) as soon as it is scored, and is not scored again.
So a long run can be cut anywhere and continued: --minutes ends it. --write makes benchmarks/ablation.md of what is
kept. --set NAME=VALUE changes the networks, and is told with the results. Tables are found as benchmarks/accuracy.py
finds them; --testbed reads another table in place of the one that ships.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import studies
from accuracy import HERE, TABLES, data_of, number, opening, tables_of
from crossperf import dataset
from crossperf.evaluation.parcels import ModelSpec, pack
from crossperf.evaluation.pieces import STUDY, FoldQuestion
from crossperf.evaluation.run import ablation, question_of
from crossperf.workers import PieceQuestion

COLUMNS = ("typical_factor", "r2", "r2_log", "same_order", "order_beyond_noise", "top1")
LATENT = ("kl_nats", "informed_units", "decoder_gain")
WHOLE, FOREST = "vae-dnn", "random-forest"
FIGURES = "<!-- figures: written by benchmarks/ablation.py -->"
#: Folds of which the first are scored.
FOLDS = 5


class Piece(NamedTuple):
    """One variant on one fold of a table."""

    table: str
    fingerprint: str
    split: str
    seed: int
    fold: int
    variant: str
    settings: str


def main() -> None:
    arguments = parse()
    if arguments.write:
        target = HERE / "ablation.md"
        # What the figures mean is written by hand above them, and stays.
        above = target.read_text(encoding="utf-8").partition(FIGURES)[0]
        target.write_text(above + FIGURES + "\n\n" + page(read(arguments)), encoding="utf-8")
        print(f"wrote {target}", file=sys.stderr)
        return
    questions = [question for table in tables_of(arguments) for question in questions_of(table, arguments)]
    end = time.monotonic() + 60 * arguments.minutes
    with studies.workers_of(arguments) as workers, studies.kept_of(arguments) as kept:
        for _ in STUDY.answers(questions, workers, kept, studies.progress_of("ablation")):
            if time.monotonic() > end:
                sys.exit("stopped by --minutes; the same command continues")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "datasets")
    parser.add_argument("--testbed", type=Path, help="a runs table in place of the testbed that ships")
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--splits", default="row,workload")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--scored-folds", type=int, default=1, help=f"score the first so many of {FOLDS} folds")
    parser.add_argument("--variants", help="score these only: a;b")
    parser.add_argument("--set", dest="settings", action="append", default=[], help="a setting of the networks")
    parser.add_argument("--minutes", type=float, default=1e9, help="end after so many minutes")
    studies.add_options(parser, "ablation")
    parser.add_argument("--write", action="store_true", help="make benchmarks/ablation.md of what is kept")
    return parser.parse_args()


def questions_of(table: str, arguments: argparse.Namespace) -> Iterator[PieceQuestion]:
    """Yield what is asked, seed by seed and fold by fold, so that a run that is cut has whole rows."""
    data = dataset.build(arguments.testbed) if table == "testbed" and arguments.testbed else None
    data = data or data_of(table, arguments.data)
    parcel = pack(data)
    variants = arguments.variants.split(";") if arguments.variants else [*ablation(), FOREST]
    for seed in map(int, arguments.seeds.split(",")):
        for fold in range(arguments.scored_folds):
            for split in arguments.splits.split(","):
                part = dataset.folds(data, split, FOLDS, seed)[fold]
                for variant in variants:
                    settings = "" if variant == FOREST else " ".join(arguments.settings)
                    spec = spec_of(variant, seed, arguments.settings)
                    notes = Piece(table, data.table.fingerprint, split, seed, fold, variant, settings)
                    label = f"{table} {split} seed {seed} {variant}"
                    question = FoldQuestion(split, FOLDS, seed, fold, "", spec)
                    yield question_of(parcel, part, question, label, notes._asdict())


def spec_of(variant: str, seed: int, settings: Sequence[str]) -> ModelSpec:
    """Return the model of a variant, with the settings that it has of those given."""
    if variant == FOREST:
        return ModelSpec.of(FOREST, seed)
    spec = ablation(seed)[variant]
    chosen = {name: json.loads(value) for name, _, value in (setting.partition("=") for setting in settings)}
    known = spec().get_params()
    return replace(spec, settings={**spec.settings, **{name: own for name, own in chosen.items() if name in known}})


def read(arguments: argparse.Namespace) -> dict[Piece, dict[str, Any]]:
    """Return the scores of what was kept, by piece; the last counts of those that were scored by several versions."""
    pieces = studies.pieces_of(arguments, STUDY)
    return {Piece(**own.notes): {**own.answer.facts["scores"], **own.answer.facts["summary"]} for own in pieces}


def page(results: dict[Piece, dict[str, Any]]) -> str:
    """Return the Markdown of all results."""
    keys = sorted({key_of(p) for p in results if p.variant != FOREST}, key=lambda key: (TABLES.index(key[0]), key))
    head = (
        "Means over the folds and seeds that were scored (the last column says how many). *Behind the whole* is "
        "`typical_factor - 1` over that of `vae-dnn` on the same folds and seeds, less 1: above 0, the stage that is "
        "missing brought something. KL in nats, units that carry information, and the share of the features' variance "
        "that the decoder restores are of the latent space.\n"
    )
    sections = [section(key, {p: s for p, s in results.items() if belongs(p, key)}) for key in keys]
    return "\n".join([opening("Figures").replace("# ", "## ", 1), head, *sections])


def key_of(piece: Piece) -> tuple[str, ...]:
    return piece.table, piece.fingerprint, piece.split, piece.settings


def belongs(piece: Piece, key: tuple[str, ...]) -> bool:
    """Return whether a piece stands in a section: the forest has no settings and stands in each of its table."""
    return key_of(piece)[:-1] == key[:-1] and (piece.variant == FOREST or piece.settings == key[-1])


def section(key: tuple[str, ...], results: dict[Piece, dict[str, Any]]) -> str:
    """Return the table of one data set, split and settings."""
    table, fingerprint, split, settings = key
    lines = [
        f"### {table}, split `{split}`",
        "",
        f"Fingerprint `{fingerprint}`." + (f" Networks with `{settings}`." if settings else ""),
        "",
        "| variant | "
        + " | ".join(COLUMNS)
        + " | behind the whole | KL | informed | decoder | fit s | folds x seeds |",
        "|---" * (len(COLUMNS) + 7) + "|",
    ]
    for variant in dict.fromkeys(p.variant for p in results):
        own = {(p.seed, p.fold): scores for p, scores in results.items() if p.variant == variant}
        whole = {(p.seed, p.fold): scores for p, scores in results.items() if p.variant == WHOLE}
        cells = [number(mean(own, column)) for column in COLUMNS]
        latent = [number(mean(own, column)) for column in LATENT]
        seconds = f"{mean(own, 'fit_s') or 0:.0f}"
        lines.append("| " + " | ".join([variant, *cells, behind(own, whole), *latent, seconds, str(len(own))]) + " |")
    return "\n".join(lines) + "\n"


def mean(scores: dict[tuple[int, int], dict[str, Any]], column: str) -> float | None:
    values = [own[column] for own in scores.values() if own.get(column) is not None]
    return float(np.mean(values)) if values else None


def behind(own: dict[tuple[int, int], dict[str, Any]], whole: dict[tuple[int, int], dict[str, Any]]) -> str:
    """Return by how much a variant is behind the whole model on the folds that both were scored on."""
    same = sorted(set(own) & set(whole))
    if not same:
        return "-"
    theirs, ours = (sum(scores[fold]["typical_factor"] - 1 for fold in same) for scores in (own, whole))
    return f"{theirs / ours - 1:+.1%}"


if __name__ == "__main__":
    main()
