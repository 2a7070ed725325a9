"""Counters and events that are gone when a prediction is asked for: how far accuracy falls, by share and by group.

    python benchmarks/missing.py [--tables a,b] [--models a,b] [--shares 0,10,30,50] [--scored-folds N] [--write]

Each model is fitted once a fold on full training cells (split `workload`); the held-out cells then lose counters and
events, the same ones for all models: a share drawn at random, several times, or a group that a tool or processor may
not offer. The runtime and the source platform stay. A peer stands twice where it can: with what is gone marked as
missing (its own way), and with the mean of its training cells in its place. Tables are found as benchmarks/accuracy.py
finds them.
"""

# N cells, F features, C counters and events, P platforms

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuracy import HERE, TABLES, add, data_of, number, opening, tables_of
from crossperf import catalog, dataset, evaluation, model
from crossperf.dataset import Dataset, Features
from crossperf.evaluation import metrics
from crossperf.model.fitted.scales import Encoder

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Scores = dict[str, dict[str, list[evaluation.Scores]]]

COLUMNS = ("typical_factor", "top1")
#: What some tools and processors do not offer: no floating-point events on some AMD CPUs, no PMU in a container. Each
#: is a pattern of names, so that a group loses its counters together with the events that they were made of.
GROUPS = {
    "no floating point": r"float|fp\d",
    "no caches": r"cache|l2_miss|llc_miss|miss_rate|misses|beyond|lookup",
    "no branches": r"branch|control|conditional|indirect",
    "no I/O": "|".join(
        [
            *(name for name, counter in catalog.COUNTERS.items() if counter.group == "I/O"),
            r"bytes_read$",
            "files_opened",
        ]
    ),
}
#: Asked in their own way alone: the default model; one that takes the mean for what is missing itself; one that
#: looks at no counter.
ONE_WAY = ("crossperf", "ridge", "median")
IMPUTED = ", mean imputed"


def main() -> None:
    arguments = parse()
    sections = []
    for table in tables_of(arguments):
        data = data_of(table, arguments.data)
        sections.append(section(table, data, score(table, data, arguments), arguments))
        print(sections[-1], flush=True)
    if arguments.write:
        add(HERE / "missing.md", header(arguments), sections)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "datasets")
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--models", default=",".join(model.MODELS))
    parser.add_argument("--shares", default="0,10,30,50", help="percent of the counters and events that are gone")
    parser.add_argument("--draws", type=int, default=5, help="draws of each share in each fold")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--scored-folds", type=int, help="score only this number of folds, the first ones")
    parser.add_argument("--write", action="store_true", help="add the tables to missing.md beside this script")
    return parser.parse_args()


def score(table: str, data: Dataset, arguments: argparse.Namespace) -> Scores:
    """Return the scores of every fold and draw, by model and by what is gone."""
    scored: Scores = {}
    for seed in map(int, arguments.seeds.split(",")):
        parts = dataset.folds(data, "workload", arguments.folds, seed)[: arguments.scored_folds]
        for fold, part in enumerate(parts):
            train, held_out = data.take(part.train_n), data.take(part.test_n)
            means_nf = stand_in(train, held_out)
            for name in arguments.models.split(","):
                print(f"{table} seed {seed} fold {fold + 1}/{len(parts)}: {name}", file=sys.stderr, flush=True)
                predictor = made(name, seed).learn(train)
                # The same seed for every model: each loses the same counters and events.
                measured = data.X.columns.measured
                for scenario, gone_c in scenarios(measured, arguments, np.random.default_rng([seed, fold])):
                    gone_f = np.isin(data.X.columns.names, np.array(measured)[gone_c])
                    measured_nf = held_out.X.values_nf
                    ways = {name: np.where(gone_f, np.nan, measured_nf)}
                    if name not in ONE_WAY:
                        ways[name + IMPUTED] = np.where(gone_f, means_nf, measured_nf)
                    for way, values_nf in ways.items():
                        predicted_np = predictor.predict(Features(values_nf, held_out.X.columns))
                        scores = metrics.score(held_out.log_relative_time_np, predicted_np, held_out.source_n)
                        scored.setdefault(way, {}).setdefault(scenario, []).append(scores)
    return scored


def made(name: str, seed: int) -> Any:
    predictor = model.make(name)
    return predictor.set_params(seed=seed) if "seed" in predictor.get_params() else predictor


def scenarios(
    measured: tuple[str, ...], arguments: argparse.Namespace, rng: np.random.Generator
) -> Iterator[tuple[str, Mask]]:
    """Yield what is gone, by name: shares (a larger one holds the smaller), then groups that the table has."""
    shares = [int(share) for share in arguments.shares.split(",")]
    for draw in range(arguments.draws):
        rank_c = rng.permutation(len(measured))
        for share in shares:
            count = round(len(measured) * share / 100)
            # All draws of nothing, or of everything, are the same one.
            if draw == 0 or 0 < count < len(measured):
                yield f"{share} %", rank_c < count
    for name, pattern in GROUPS.items():
        gone_c = np.array([re.search(pattern, own) is not None for own in measured])
        if gone_c.any():
            yield name, gone_c


def stand_in(train: Dataset, held_out: Dataset) -> Floats:
    """Return the log-scale mean over training cells in place of every feature of the held-out cells.

    A counter that no training cell of the same source platform has stays missing: nobody would make up the copies
    to a GPU of a run on a CPU.
    """
    encoder = Encoder.fit(train.X.values_nf)
    mean_f = encoder.scale_f * np.sinh(encoder.mean_f)
    measured_nf = ~np.isnan(train.X.values_nf)
    offered_pf = np.stack([measured_nf[train.source_n == p].any(axis=0) for p in range(len(train.platforms))])
    return np.where(offered_pf[held_out.source_n], mean_f, np.nan)


def section(table: str, data: Dataset, scored: Scores, arguments: argparse.Namespace) -> str:
    """Return Markdown tables, one a metric: means over folds, seeds and draws."""
    names = list(next(iter(scored.values())))
    folds = f"{arguments.scored_folds or arguments.folds} of {arguments.folds} folds"
    lines = [
        f"## {table}, split `workload`",
        "",
        f"{data.table.workloads:,} workloads, {len(data.platforms)} platforms, {len(data.counters)} counters, "
        f"{len(data.events)} events; "
        f"{folds}, seeds {arguments.seeds}, {arguments.draws} draws of each share; fingerprint "
        f"`{data.table.fingerprint}`.",
        "",
    ]
    for metric in COLUMNS:
        lines += [f"| {metric} | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
        for way, by_scenario in scored.items():
            cells = [number(evaluation.Scores.mean(by_scenario[name])[metric]) for name in names]
            lines.append(f"| {way} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def header(arguments: argparse.Namespace) -> str:
    groups = "; ".join(f"*{name}*: `{pattern}`" for name, pattern in GROUPS.items())
    return "\n".join(
        [
            opening("Accuracy when counters are missing"),
            "Models are fitted on full training cells; the held-out cells lose counters and events, the same for all "
            f"models: a share of them at random (mean of {arguments.draws} draws a fold; a larger share holds the "
            f"smaller), or a group, by a pattern of names ({groups}). Runtime and source platform stay. A model's "
            "plain row knows what is missing; *mean imputed* gets the log-scale mean of the training cells in their "
            "place, where its source platform offers it at all (`ridge` does so itself). typical_factor: lower is "
            "better, 1 is perfect; top1: higher is better.",
            "",
        ]
    )


if __name__ == "__main__":
    main()
