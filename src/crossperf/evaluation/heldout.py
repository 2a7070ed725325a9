"""The held-out cells and the out-of-fold predictions of each model, beside the truth."""

# N cells held out, W workloads, P platforms

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossperf.dataset.build import Dataset
from crossperf.records import looks

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: The level of the intervals that are kept and checked.
LEVEL = 0.8
#: Cells whose errors are drawn at a time.
_AT_ONCE = 256
#: Digits of a log time in a file: a hundred-thousandth is 0.001 % of a time.
_DIGITS = 5
#: JSON has no infinity: the level that no interval reaches is written as this.
_BEYOND = 9.0


@dataclass(frozen=True, eq=False)
class HeldOutPredictions:
    """The out-of-fold predictions of one model.

    Times are logarithms of time on p over time on the source. The rest is ``None`` for a model without intervals:
    the interval at `LEVEL`, the level of the interval that just holds the truth (infinite where none does, NaN on
    the source), and how odd a run looks (up to 1 is ordinary).
    """

    predicted_np: Floats
    low_np: Floats | None = None
    high_np: Floats | None = None
    level_needed_np: Floats | None = None
    oddness_n: Floats | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """How familiar each run looks, as a word; empty where the model does not tell."""
        return tuple(looks(score) for score in self.oddness_n.tolist()) if self.oddness_n is not None else ()

    def coverage(self, levels: Sequence[float]) -> list[float]:
        """Return how often the intervals of each level held the truth, over the platforms other than the source."""
        if self.level_needed_np is None:
            return []
        needed = self.level_needed_np[~np.isnan(self.level_needed_np)]
        return [float((needed <= level).mean()) for level in levels]

    @classmethod
    def by(
        cls, predictor: Any, features_nf: Floats, log_truth_np: Floats, source_n: Integers, predicted_np: Floats
    ) -> HeldOutPredictions:
        """Return the predictions of a fitted model, with intervals where it gives them.

        Parameters
        ----------
        log_truth_np
            True log times relative to each cell's source.
        """
        if not hasattr(predictor, "forecast"):
            return cls(predicted_np)
        parts: list[tuple[Floats, ...]] = []
        for start in range(0, len(features_nf), _AT_ONCE):
            rows = slice(start, start + _AT_ONCE)
            forecast = predictor.forecast(features_nf[rows])
            needed_np = forecast.level_needed(log_truth_np[rows], source_n[rows])
            parts.append((*forecast.between(LEVEL, source_n[rows]), needed_np, forecast.oddness.score_n))
        return cls(predicted_np, *(np.concatenate(part) for part in zip(*parts, strict=True)))

    @classmethod
    def join(cls, parts: Sequence[HeldOutPredictions]) -> HeldOutPredictions:
        """Return the predictions of several folds as one."""
        arrays: dict[str, Any] = {}
        for name in cls.__dataclass_fields__:
            values = [getattr(part, name) for part in parts]
            arrays[name] = None if any(value is None for value in values) else np.concatenate(values)
        return cls(**arrays)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The held-out cells in the order of their folds, and the predictions of each model by name.

    ``log_time_wp`` is the truth in log seconds, NaN where a workload never ran.
    """

    platforms: tuple[str, ...]
    platform_classes: tuple[str, ...]
    workloads: tuple[tuple[str, str], ...]
    log_time_wp: Floats
    workload_n: Integers
    source_n: Integers
    fold_n: Integers
    predictions: Mapping[str, HeldOutPredictions] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.workload_n)

    @property
    def log_relative_time_np(self) -> Floats:
        """The truth: log(time on p / time on the source platform) of each cell."""
        log_time_np = self.log_time_wp[self.workload_n]
        return np.asarray(log_time_np - np.take_along_axis(log_time_np, self.source_n[:, None], axis=1))

    @property
    def apps(self) -> tuple[str, ...]:
        """The applications, by name."""
        return tuple(sorted({app for app, _ in self.workloads}))

    @property
    def app_n(self) -> Integers:
        """The number of each cell's application."""
        number = {app: i for i, app in enumerate(self.apps)}
        return np.array([number[app] for app, _ in self.workloads], dtype=np.int64)[self.workload_n]

    @classmethod
    def of(
        cls,
        data: Dataset,
        rows_by_fold: Sequence[Integers],
        predictions: Mapping[str, Sequence[HeldOutPredictions]],
    ) -> HeldOut:
        """Return the predictions, fold by fold, of these rows of a dataset."""
        rows_n = np.concatenate(list(rows_by_fold))
        own_w, workload_n = np.unique(data.workload_n[rows_n], return_inverse=True)
        return cls(
            platforms=data.platforms,
            platform_classes=data.platform_classes,
            workloads=tuple(data.workloads[w] for w in own_w),
            log_time_wp=data.log_time_wp[own_w],
            workload_n=workload_n.astype(np.int64),
            source_n=data.source_n[rows_n],
            fold_n=np.repeat(np.arange(len(rows_by_fold)), [len(rows) for rows in rows_by_fold]),
            predictions={name: HeldOutPredictions.join(parts) for name, parts in predictions.items()},
        )

    def to_json(self) -> dict[str, Any]:
        """Return the cells as JSON's own types: lists by column, a gap as null, logarithms rounded."""
        return {
            "platforms": list(self.platforms),
            "platform_classes": list(self.platform_classes),
            "workloads": [list(workload) for workload in self.workloads],
            "log_time_s": _listed(self.log_time_wp),
            "workload": self.workload_n.tolist(),
            "source": self.source_n.tolist(),
            "fold": self.fold_n.tolist(),
            "predictions": {
                name: {
                    column: _listed(getattr(own, array))
                    for array, column in _COLUMNS.items()
                    if getattr(own, array) is not None
                }
                for name, own in self.predictions.items()
            },
        }

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> HeldOut:
        """Return the cells that `to_json` wrote; what does not fit together is a `ValueError`."""
        platforms, workloads = tuple(facts["platforms"]), tuple((str(a), str(i)) for a, i in facts["workloads"])
        numbers = {name: np.array(facts[name], dtype=np.int64) for name in ("workload", "source", "fold")}
        shape = (len(numbers["workload"]), len(platforms))
        made = cls(
            platforms=platforms,
            platform_classes=tuple(facts["platform_classes"]),
            workloads=workloads,
            log_time_wp=_array(facts["log_time_s"], (len(workloads), len(platforms))),
            workload_n=numbers["workload"],
            source_n=numbers["source"],
            fold_n=numbers["fold"],
            predictions={
                name: HeldOutPredictions(
                    **{
                        array: _array(columns[column], shape[: 1 if array.endswith("_n") else 2])
                        for array, column in _COLUMNS.items()
                        if column in columns
                    }
                )
                for name, columns in facts["predictions"].items()
            },
        )
        columns = ((made.workload_n, len(workloads)), (made.source_n, len(platforms)), (made.fold_n, np.inf))
        if not all(len(column) == len(made) and ((column >= 0) & (column < end)).all() for column, end in columns):
            raise ValueError("the columns of the held-out cells do not fit together")
        return made


#: The arrays of `HeldOutPredictions`, and what they are called in a file.
_COLUMNS = {
    "predicted_np": "log_relative_time",
    "low_np": "low",
    "high_np": "high",
    "level_needed_np": "level_needed",
    "oddness_n": "oddness",
}


def _listed(values: Floats) -> list[Any]:
    rounded = np.round(np.nan_to_num(values, nan=np.nan, posinf=_BEYOND), _DIGITS)
    listed = rounded.astype(object)
    listed[np.isnan(rounded)] = None
    return list(listed.tolist())


def _array(values: Any, shape: tuple[int, ...]) -> Floats:
    array = np.array(values, dtype=np.float64).reshape(shape) if np.size(values) == 0 else np.array(values, np.float64)
    if array.shape != shape:
        raise ValueError(f"found {array.shape} numbers of {shape}")
    return array
