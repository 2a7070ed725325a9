"""What makes scores mean less than they seem to, each with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from crossperf.dataset.pairing import Dataset
from crossperf.errors import some_of
from crossperf.evaluation.result import Evaluation

#: Below this many applications, folds by application mean little.
_FEW_APPS = 10
_DOMINANT_ORDER = 0.5


def caveats(evaluation: Evaluation, data: Dataset) -> tuple[str, ...]:
    """Return what to know before believing an evaluation, in sentences."""
    return (*_about_data(evaluation, data), *_about_scores(evaluation))


def _about_data(evaluation: Evaluation, data: Dataset) -> Iterator[str]:
    facts, constant = data.table, evaluation.constant
    if evaluation.split == "row":
        yield (
            "The split 'row' puts cells of one workload on both sides and flatters every model; "
            "'workload' and 'app' tell what happens with inputs and applications never seen."
        )
    if len(data.apps) < _FEW_APPS:
        yield f"Few applications ({len(data.apps)}): what holds for these need not hold for others. Measure more."
    if constant.order_share is not None and constant.order_share > _DOMINANT_ORDER:
        yield (
            f"One order dominates: {constant.order_share:.0%} of the workloads have {' < '.join(constant.order)}, so "
            "always answering that order is right as often. Read 'same_order' beside it."
        )
    incomplete = int((~data.complete_w).sum())
    if incomplete:
        yield f"{incomplete:,} of {len(data.workloads):,} workloads lack a platform; scored on those they have."
    if facts.failed_runs:
        yield f"{facts.failed_runs:,} failed runs were left out."
    if facts.warnings:
        yield f"The table has {facts.warnings:,} warnings; 'crossperf runs check' lists them."


def _about_scores(evaluation: Evaluation) -> Iterator[str]:
    scored, scores = evaluation.scored_folds, evaluation.scores
    if scored is not None and scored < evaluation.folds:
        yield f"Only {scored} of {evaluation.folds} folds were scored: another draw gives other numbers."
    ceiling = scores.noise_ceiling.typical_factor
    if ceiling is None and len(scores):
        yield "No workload has repeats, so the noise of the data is not known. Measure each run twice or more."
    at_ceiling = [name for name, own in scores.items() if (own.typical_factor or np.inf) <= (ceiling or 0.0)]
    if at_ceiling:
        yield (
            f"{some_of(at_ceiling)} reached the noise ceiling (typical factor {ceiling:.3f}): differences "
            "below it are noise. More repeats would tell more."
        )
