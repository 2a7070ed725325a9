"""Evaluations made by hand and by chance, in every shape that a figure must survive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crossperf.dataset.cells import TableFacts
from crossperf.evaluation import metrics
from crossperf.evaluation.heldout import HeldOut, HeldOutPredictions
from crossperf.evaluation.latent import Driver, LatentMap
from crossperf.evaluation.metrics import ConstantAnswer
from crossperf.evaluation.result import Evaluation
from crossperf.evaluation.scores import METRICS, ModelScores, Scoreboard, Scores
from crossperf.runs.summary import Noise, PlatformInfo, Spread, TableInfo

#: What must not break a figure: markup, mathematics, a name that hides from legends, other scripts, very long names.
NASTY = (
    "$x^2$_{a}",
    '<b>&"quoted"</b>',
    "_hidden",
    "плат-форма 😀",
    "a-platform-with-a-name-that-never-seems-to-end-" * 3,
)


def by_hand(
    seconds_wp: Sequence[Sequence[float]],
    predicted: Mapping[str, Sequence[Sequence[float]]],
    apps: Sequence[str] | None = None,
    platforms: Sequence[str] | None = None,
) -> Evaluation:
    """Return an evaluation of workloads, each seen from the first platform it ran on; predictions are times over it."""
    log_time_wp = np.log(np.array(seconds_wp, dtype=float))
    names = tuple(platforms or [f"p{i}" for i in range(log_time_wp.shape[1])])
    workloads = tuple((app, f"n{w}") for w, app in enumerate(apps or ["app"] * len(log_time_wp)))
    held = HeldOut(
        platforms=names,
        platform_classes=("cpu",) * len(names),
        workloads=workloads,
        log_time_wp=log_time_wp,
        workload_n=np.arange(len(workloads)),
        source_n=np.array([int(np.flatnonzero(~np.isnan(row_p))[0]) for row_p in log_time_wp]),
        fold_n=np.zeros(len(workloads), dtype=np.int64),
        predictions={
            name: HeldOutPredictions(np.log(np.array(times, dtype=float))) for name, times in predicted.items()
        },
    )
    return of(held)


def of(held: HeldOut, latent: LatentMap | None = None, *, noise: bool = True, gaps: int = 3) -> Evaluation:
    """Return an evaluation around cells, its scores worked out from them."""
    common = metrics.most_common_order(held.log_time_wp)
    order = common[0] if common else None
    scores = {
        name: metrics.score(held.log_relative_time_np, own.predicted_np, held.source_n, order)
        for name, own in held.predictions.items()
    }
    fastest_w = np.nanargmin(held.log_time_wp, axis=1)
    return Evaluation(
        table=_table(held, noise=noise, gaps=gaps),
        split="workload",
        folds=5,
        seed=0,
        scores=Scoreboard(
            {name: ModelScores.of([own]) for name, own in scores.items()},
            Scores(**dict.fromkeys(METRICS, 0.9 if noise else None)),
        ),
        constant=ConstantAnswer(
            fastest=held.platforms[int(np.bincount(fastest_w).argmax())],
            fastest_share=float(np.bincount(fastest_w).max() / len(fastest_w)),
            order=tuple(held.platforms[p] for p in common[0]) if common else (),
            order_share=common[1] if common else None,
        ),
        scored_folds=1,
        held_out=held,
        latent=latent,
    )


def _table(held: HeldOut, *, noise: bool, gaps: int) -> TableFacts:
    apps, workloads, names = len(held.apps), len(held.workloads), sorted(held.platforms)
    platforms = [PlatformInfo(name, "cpu", 10, 5, 0.01 * (i + 1) if noise else None) for i, name in enumerate(names)]
    info = TableInfo(
        path="runs.csv",
        fingerprint="0",
        runs=10 * len(platforms),
        failed={},
        apps=apps,
        workloads=workloads,
        complete_workloads=workloads,
        cells=5 * len(platforms),
        repeats=Spread(1, 2.0, 2),
        noise=Noise(0.015, 0.03) if noise else Noise(None, None),
        platforms=tuple(platforms),
        counters=gaps + 4,
        missing_counters={f"counter_{i}": {held.platforms[0]: 0.25 * (i % 4 + 1)} for i in range(gaps)},
    )
    return TableFacts("runs.csv", "0", 10, 0, 0, apps, workloads, held.platforms, info)


def by_chance(
    apps: Sequence[str],
    platforms: Sequence[str],
    *,
    inputs: int = 4,
    models: Sequence[str] = ("crossperf", "median"),
    gaps: float = 0.0,
    sure: bool = True,
    seed: int = 0,
) -> Evaluation:
    """Return an evaluation with cells from every platform, random times and errors, a share of the times never run."""
    rng = np.random.default_rng(seed)
    workloads = tuple((app, f"n{i}") for app in apps for i in range(inputs))
    count_w, count_p = len(workloads), len(platforms)
    log_time_wp = rng.normal(size=(count_w, 1)) + rng.normal(size=count_p) + 0.5 * rng.normal(size=(count_w, count_p))
    holes_wp = rng.random(log_time_wp.shape) < gaps
    holes_wp[:, 0] = False
    log_time_wp[holes_wp] = np.nan
    workload_n, source_n = np.nonzero(~holes_wp)
    held = HeldOut(
        platforms=tuple(platforms),
        platform_classes=tuple("gpu" if p % 3 == 2 else "cpu" for p in range(count_p)),
        workloads=workloads,
        log_time_wp=log_time_wp,
        workload_n=workload_n,
        source_n=source_n,
        fold_n=np.zeros(len(workload_n), dtype=np.int64),
    )
    truth_np = held.log_relative_time_np
    predictions = {}
    for i, name in enumerate(models):
        predicted_np = np.nan_to_num(truth_np) + 0.3 * (i + 1) * rng.normal(size=truth_np.shape)
        intervals = _intervals(truth_np, predicted_np, source_n, rng) if sure and i == 0 else {}
        predictions[name] = HeldOutPredictions(predicted_np, **intervals)
    whole = replace(held, predictions=predictions)
    return of(whole, _latent(whole, models[0], rng) if sure and models else None)


def _intervals(truth_np: Any, predicted_np: Any, source_n: Any, rng: np.random.Generator) -> dict[str, Any]:
    needed_np = rng.random(truth_np.shape)
    own_np = np.arange(truth_np.shape[1]) == source_n[:, None]
    needed_np[np.isnan(truth_np) | own_np] = np.nan
    oddness_n = np.exp(rng.normal(-0.5, 0.6, len(truth_np)))
    low_np, high_np = predicted_np - 0.4, predicted_np + 0.4
    return {"low_np": low_np, "high_np": high_np, "level_needed_np": needed_np, "oddness_n": oddness_n}


def _latent(held: HeldOut, model: str, rng: np.random.Generator) -> LatentMap:
    rows = np.arange(min(len(held), 3000))
    return LatentMap(
        model=model,
        cells=len(held),
        workloads=held.workloads,
        fastest_w=np.nanargmin(held.log_time_wp, axis=1),
        workload_n=held.workload_n[rows],
        source_n=held.source_n[rows],
        unseen_n=np.ones(len(rows), dtype=bool),
        xy_n2=rng.normal(size=(len(rows), 2)),
        explained=(0.4, 0.2),
        drivers=tuple(Driver(f"counter_{i}", 0.9 - 0.04 * i, -0.2 + 0.03 * i) for i in range(20)),
    )
