"""What the scores of an evaluation mean, in sentences: the same in a terminal and on a page."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from crossperf.dataset.build import SPLITS
from crossperf.evaluation.heldout import LEVEL
from crossperf.evaluation.metrics import METRICS
from crossperf.evaluation.run import ablation
from crossperf.evaluation.trained import NEW
from crossperf.model import MODELS
from crossperf.records import LOOKS

if TYPE_CHECKING:
    from crossperf.evaluation.run import Evaluation


#: What each split holds out, as the reader of a sentence needs it.
HELD_OUT = {
    "row": "cells drawn at random, as in the paper",
    "workload": "inputs it has never seen",
    "app": "applications it has never seen",
    NEW: "workloads it was not trained on",
}
#: The metrics in the order of the tables, with what each says in a few words.
COLUMNS: dict[str, str] = {
    "typical_factor": "typical factor between prediction and truth; 1 is perfect",
    "r2": "variance of the relative times explained, mean over platforms; 1 is perfect",
    "r2_log": "the same on logarithms, where 2x too slow and 2x too fast weigh alike",
    "same_order": "share of cells whose whole order of platforms is right",
    "kendall_tau": "agreement of the order, pair by pair; 1 is the same, -1 reversed",
    "top1": "share of cells whose fastest platform is found",
    "slowdown": "time on the platform picked over time on the best",
    "order_auc": "area under the ROC curve of the most common order; 0.5 is chance",
    "mae": "mean absolute error of the relative times",
}


def about(result: Evaluation) -> str:
    """Return what was evaluated: split, folds, seed and table."""
    facts = result.table
    how = f"split {result.split}, {folds(result)}, seed {result.seed}" if result.split in SPLITS else "a trained model"
    return (
        f"{how}: {facts['workloads']:,} workloads of {facts['apps']:,} {'app' if facts['apps'] == 1 else 'apps'} on "
        f"{len(facts['platforms'])} platforms ({facts['path']}, "
        f"{facts['runs']:,} runs, fingerprint {facts['fingerprint']})"
    )


def folds(result: Evaluation) -> str:
    """Return how many folds were scored, of how many."""
    scored = result.scored_folds or result.folds
    return f"{result.folds} folds" if scored == result.folds else f"{scored} of {result.folds} folds"


def best(result: Evaluation, metric: str) -> float | None:
    """Return the best value of a metric among several models; ``None`` where there is nothing to compare."""
    values = [scores[metric] for scores in result.models.values() if scores.get(metric) is not None]
    if len(values) < 2:
        return None
    return float(max(values) if METRICS[metric] == "higher" else min(values))


def sentences(result: Evaluation) -> list[str]:
    """Return what each model's scores mean, and what a constant answer would get."""
    found = []
    for name, scores in result.models.items():
        found.append(f"{name} {of_scores(scores)}")
        if scores.get("coverage") is not None:
            found.append(f"{name} {of_trust(scores)}")
    return [*found, of_constant(result.constant)]


def headline(result: Evaluation) -> str:
    """Return the answer in one sentence: how often the most accurate model finds the fastest platform.

    The constant answer stands beside it, since a model that does no better has learned nothing worth having.
    """
    scores = {name: one for name, one in result.models.items() if one.get("typical_factor") is not None}
    if not scores:
        return "No model was scored here."
    name = min(scores, key=lambda one: float(scores[one]["typical_factor"]))
    constant = result.constant
    held_out = HELD_OUT.get(result.split)
    often, always = _told_apart(scores[name]["top1"], constant["fastest_share"])
    return (
        f"{name} picks the fastest platform {often}"
        + (f" for {held_out}" if held_out else "")
        + f"; always taking {constant['fastest']} would: {always}. Its times are off by a factor of "
        f"{scores[name]['typical_factor']:.2f} typically."
    )


def times_in_ten(share: float) -> str:
    """Return a share as a person would say it, finer where tenths would hide what matters.

    >>> times_in_ten(0.9), times_in_ten(0.713), times_in_ten(0.97), times_in_ten(1.0), times_in_ten(0.05)
    ('9 times in 10', '7 times in 10', '97 times in 100', 'every time', '5 times in 100')
    """
    if share in (0.0, 1.0):
        return "every time" if share else "never"
    return _times_in(10 if 0.05 < share < 0.95 else 100, share)


def _told_apart(one: float, other: float) -> tuple[str, str]:
    """Return two shares in words that differ where the shares do.

    >>> _told_apart(0.76, 0.84), _told_apart(0.9, 0.7)
    (('76 times in 100', '84 times in 100'), ('9 times in 10', '7 times in 10'))
    """
    words = times_in_ten(one), times_in_ten(other)
    return words if one == other or words[0] != words[1] else (_times_in(100, one), _times_in(100, other))


def _times_in(whole: int, share: float) -> str:
    often = min(max(round(share * whole), 1), whole - 1)
    return f"{often} {'time' if often == 1 else 'times'} in {whole}"


def of_scores(scores: Mapping[str, Any]) -> str:
    """Return what a model's scores mean to somebody who follows it."""
    return (
        f"is off by a factor of {scores['typical_factor']:.2f} typically; picks the fastest platform for "
        f"{scores['top1']:.0%} of the cells and loses {scores['slowdown'] - 1:.1%} of the time by its picks; "
        f"gets the whole order right for {scores['same_order']:.0%}"
    )


def of_trust(scores: Mapping[str, Any]) -> str:
    """Return how far a model's word about itself can be trusted."""
    by_word = ", ".join(
        f"{scores[f'factor_{word}']:.2f} where it says '{word}' ({scores[f'share_{word}']:.0%})"
        for word in LOOKS
        if scores[f"factor_{word}"] is not None
    )
    return (
        f"gives ranges for {LEVEL:.0%} that held {scores['coverage']:.1%} of the times, a factor of "
        f"{scores['range_factor']:.2f} to either side; it is off by {by_word}"
    )


def of_constant(constant: Mapping[str, Any]) -> str:
    """Return how often always giving the same answer would be right."""
    always = f"always taking {constant['fastest']}: right for {constant['fastest_share']:.0%} of the workloads"
    if constant["order_share"] is not None:
        always += f"; always answering {' < '.join(constant['order'])}: {constant['order_share']:.0%}"
    return always


def command(result: Evaluation) -> str | None:
    """Return the command that makes this evaluation again.

    ``None`` where none does: a trained model was asked, models of one's own took part, or none did.
    """
    ablated = list(result.models) == list(ablation())
    if result.split not in SPLITS or not result.models or not (ablated or set(result.models) <= set(MODELS)):
        return None
    facts = result.table
    words = ["crossperf", "evaluate", facts["path"], "--split", result.split]
    words += ["--ablation"] if ablated else ["--models", ",".join(result.models)]
    words += ["--folds", str(result.folds), "--seed", str(result.seed)]
    if result.scored_folds is not None and result.scored_folds < result.folds:
        words += ["--scored-folds", str(result.scored_folds)]
    measured = [platform["name"] for platform in facts.get("info", {}).get("platforms", [])]
    if measured and list(facts["platforms"]) != measured:
        words += ["--platforms", ",".join(facts["platforms"])]
    return shlex.join([*words, "--json", "evaluation.json"])
