"""What a figure takes from an evaluation, or the sentence that says why it is not there."""

# N cells, W workloads, P platforms

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crossperf.dataset.build import SPLITS
from crossperf.errors import CrossperfError, did_you_mean, some_of
from crossperf.evaluation import metrics
from crossperf.report.figures.colours import Look, looks_of
from crossperf.report.figures.drawn import NothingToDraw
from crossperf.report.figures.words import count, plain

if TYPE_CHECKING:
    from crossperf.evaluation.heldout import HeldOut, Said
    from crossperf.evaluation.run import Evaluation

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def held_out(evaluation: Evaluation) -> HeldOut:
    """Return the cells held out."""
    held = evaluation.held_out
    if held is None or not len(held):
        raise NothingToDraw("This evaluation holds no held-out cells. 'crossperf evaluate --json' keeps them.")
    return held


def what_was_said(evaluation: Evaluation, model: str | None = None) -> tuple[str, Said]:
    """Return what a model said of the cells held out, the first one unless named."""
    said = held_out(evaluation).said
    if not said:
        raise NothingToDraw("No model was scored in this evaluation. 'crossperf evaluate' scores them.")
    if model is not None and model not in said:
        raise CrossperfError(
            f"model {model!r} is not in this evaluation{did_you_mean(model, said)}, expected one of {some_of(said)}.",
            model=model,
        )
    name = model if model is not None else next(iter(said))
    return name, said[name]


def to_fastest(held: HeldOut, said: Said) -> tuple[Floats, Floats]:
    """Return truth and prediction of each cell, log times relative to the fastest platform of each."""
    return metrics.to_fastest(held.log_relative_time_np, said.predicted_np)


def looks(evaluation: Evaluation) -> dict[str, Look]:
    """Return the look of each platform; of one that the table has and the evaluation left out, too."""
    scored = list(evaluation.table["platforms"])
    info = evaluation.table.get("info") or {}
    others = [one["name"] for one in info.get("platforms", []) if one["name"] not in scored]
    return looks_of([*scored, *others])


def sample(number: int, most: int, seed: int) -> Integers:
    """Return which of so many things are drawn: all, or the same random ones each time."""
    if number <= most:
        return np.arange(number)
    return np.sort(np.random.default_rng(seed).choice(number, most, replace=False))


def workload_name(workload: tuple[str, str]) -> str:
    """Return a workload in words."""
    app, input_ = workload
    return plain(f"{app}, input {input_}" if input_ else app)


def folds_scored(evaluation: Evaluation) -> int:
    """Return how many folds the scores are means over."""
    return evaluation.scored_folds or evaluation.folds


def those(evaluation: Evaluation, number: int, noun: str) -> str:
    """Return so many of the cells, or of what is in them, with how they come to be here.

    They were held out by a split, or are new to a model that was trained before; or no model is asked about them.
    """
    if evaluation.split not in SPLITS:
        known = evaluation.held_out is None or not evaluation.held_out.said
        return f"{count(number, noun)} {'of the table' if known else 'that the model was not trained on'}"
    folds, scored = evaluation.folds, folds_scored(evaluation)
    part = f"{folds} folds" if scored == folds else f"{scored} of {folds} folds"
    return f"{count(number, f'held-out {noun}')} (split '{evaluation.split}', {part})"
