"""What policies see of the truth: predictions of a model, or averages over what was measured."""

# W workloads, M modes

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from crossperf.arrays import Floats, Integers
from crossperf.records import Prediction
from crossperf.schedule.times import RelativeTimes


def from_predictions(
    predictions: Iterable[Prediction], truth: RelativeTimes, source: str, *, name: str = "predictions"
) -> RelativeTimes:
    """Return predictions from runs on one platform as a table, for the workloads and modes of the truth.

    The time on that platform was measured, so the truth there sets the scale of each workload. One whose run looks
    unknown to the model is predicted there alone, and so stays there; one that a platform cannot run has NaN there.
    """
    place = {workload: w for w, workload in enumerate(truth.workloads)}
    kept = [prediction for prediction in predictions if (prediction.app, prediction.input) in place]
    workloads = [(prediction.app, prediction.input) for prediction in kept]
    at_source_w = truth.relative_wm[[place[workload] for workload in workloads], truth.modes.index(source)]

    stays_w = np.array([prediction.is_unknown for prediction in kept], dtype=bool)
    elsewhere_m = np.array([mode != source for mode in truth.modes])

    def scaled(relative: Sequence[Mapping[str, float]]) -> Floats:
        cells_wm = np.array([[times.get(mode, np.nan) for mode in truth.modes] for times in relative])
        scaled_wm = cells_wm.reshape(len(kept), len(truth.modes)) * at_source_w[:, None]
        return np.where(stays_w[:, None] & elsewhere_m, np.nan, scaled_wm)

    middle_wm = scaled([prediction.relative_time for prediction in kept])
    ends = scaled([prediction.low for prediction in kept]), scaled([prediction.high for prediction in kept])
    low_wm, high_wm = (np.where(np.isnan(end_wm), middle_wm, end_wm) for end_wm in ends)
    return RelativeTimes.of(workloads, truth.modes, middle_wm, low_wm, high_wm, name=name)


def app_average(truth: RelativeTimes) -> RelativeTimes:
    """Return the mean speed-up of each application in each mode, its own workloads included.

    The interval is what the middle 80 % of its workloads span.
    """
    return _averaged(truth, np.unique(np.array(truth.group_w), return_inverse=True)[1], "app-average")


def machine_average(truth: RelativeTimes) -> RelativeTimes:
    """Return the mean speed-up of each mode over all workloads, with the interval that 80 % of them span."""
    return _averaged(truth, np.zeros(len(truth.workloads), np.int64), "machine-average")


def ideal(truth: RelativeTimes) -> RelativeTimes:
    """Return the truth as a prediction."""
    return replace(truth, name="ideal")


#: Predictors by name, each a function of the truth.
PREDICTORS = {"ideal": ideal, "app-average": app_average, "machine-average": machine_average}


def _averaged(truth: RelativeTimes, group_w: Integers, name: str) -> RelativeTimes:
    """Return the mean speed-up of each group, NaN in modes that none of the group runs in."""
    relative_wm, low_wm, high_wm = (np.full_like(truth.relative_wm, np.nan) for _ in range(3))
    for group in range(group_w.max() + 1):
        rows_w = group_w == group
        for m, runs_w in enumerate(~np.isnan(truth.relative_wm).T & rows_w):
            if runs_w.any():
                cells = truth.relative_wm[runs_w, m]
                relative_wm[rows_w, m] = mean = 1.0 / (1.0 / cells).mean()
                low_wm[rows_w, m] = min(mean, np.quantile(cells, 0.1))
                high_wm[rows_w, m] = max(mean, np.quantile(cells, 0.9))
    return replace(truth, relative_wm=relative_wm, low_wm=low_wm, high_wm=high_wm, name=name, notes=())
