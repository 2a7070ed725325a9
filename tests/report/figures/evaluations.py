"""Evaluations made by hand and by chance, in every shape that a figure must survive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crossperf.evaluation import metrics
from crossperf.evaluation.heldout import HeldOut, Said
from crossperf.evaluation.latent import Driver, LatentMap
from crossperf.evaluation.run import Evaluation

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
    said: Mapping[str, Sequence[Sequence[float]]],
    apps: Sequence[str] | None = None,
    platforms: Sequence[str] | None = None,
) -> Evaluation:
    """Return an evaluation of workloads, each seen from the first platform it ran on; models say times over it."""
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
        said={name: Said(np.log(np.array(times, dtype=float))) for name, times in said.items()},
    )
    return of(held)


def of(held: HeldOut, latent: LatentMap | None = None, *, noise: bool = True, gaps: int = 3) -> Evaluation:
    """Return an evaluation around cells, its scores worked out from them."""
    common = metrics.most_common_order(held.log_time_wp)
    scores = {
        name: metrics.score(held.log_relative_time_np, one.predicted_np, common[0] if common else None)
        for name, one in held.said.items()
    }
    fastest_w = np.nanargmin(held.log_time_wp, axis=1)
    return Evaluation(
        table=_table(held, noise=noise, gaps=gaps),
        split="workload",
        folds=5,
        seed=0,
        noise_ceiling=dict.fromkeys(metrics.METRICS, 0.9 if noise else None),
        constant={
            "order": [held.platforms[p] for p in common[0]] if common else [],
            "order_share": common[1] if common else None,
            "fastest": held.platforms[int(np.bincount(fastest_w).argmax())],
            "fastest_share": float(np.bincount(fastest_w).max() / len(fastest_w)),
        },
        models={name: {**one, "folds": [one]} for name, one in scores.items()},
        scored_folds=1,
        held_out=held,
        latent=latent,
    )


def _table(held: HeldOut, *, noise: bool, gaps: int) -> dict[str, Any]:
    platforms = [
        {"name": name, "class": "cpu", "runs": 10, "workloads": 5, "noise": 0.01 * (i + 1) if noise else None}
        for i, name in enumerate(sorted(held.platforms))
    ]
    info = {
        "runs": 10 * len(platforms),
        "cells": 5 * len(platforms),
        "repeats": {"min": 1, "median": 2.0, "max": 2},
        "noise": {"median": 0.015 if noise else None, "p90": 0.03 if noise else None},
        "platforms": platforms,
        "counters": gaps + 4,
        "missing_counters": {f"counter_{i}": {held.platforms[0]: 0.25 * (i % 4 + 1)} for i in range(gaps)},
    }
    facts = {"path": "runs.csv", "fingerprint": "0", "runs": 10, "failed_runs": 0, "warnings": 0}
    counts = {"apps": len(held.apps), "workloads": len(held.workloads)}
    return {**facts, **counts, "platforms": list(held.platforms), "info": info}


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
    said = {}
    for i, name in enumerate(models):
        predicted_np = np.nan_to_num(truth_np) + 0.3 * (i + 1) * rng.normal(size=truth_np.shape)
        told = _sureness(truth_np, predicted_np, source_n, rng) if sure and i == 0 else {}
        said[name] = Said(predicted_np, **told)
    whole = HeldOut(**{**held.__dict__, "said": said})
    return of(whole, _latent(whole, models[0], rng) if sure and models else None)


def _sureness(truth_np: Any, predicted_np: Any, source_n: Any, rng: np.random.Generator) -> dict[str, Any]:
    needed_np = rng.random(truth_np.shape)
    own_np = np.arange(truth_np.shape[1]) == source_n[:, None]
    needed_np[np.isnan(truth_np) | own_np] = np.nan
    odd_n = np.exp(rng.normal(-0.5, 0.6, len(truth_np)))
    low_np, high_np = predicted_np - 0.4, predicted_np + 0.4
    return {"low_np": low_np, "high_np": high_np, "level_needed_np": needed_np, "odd_n": odd_n}


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
