"""The held-out cells and the out-of-fold predictions of each model, beside the truth."""

# N cells held out, W workloads, P platforms

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crossperf.arrays import Floats, Integers
from crossperf.dataset.cells import Cells
from crossperf.dataset.features import Features
from crossperf.dataset.pairing import Dataset
from crossperf.model.fitted.model import FittedModel
from crossperf.records import looks

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
    def by(cls, model: FittedModel, features: Features, cells: Cells, predicted_np: Floats) -> HeldOutPredictions:
        """Return the predictions of a fitted model for cells, with intervals where it gives them."""
        if not model.forecasts:
            return cls(predicted_np)
        truth_np, source_n = cells.log_relative_time_np, cells.source_n
        parts: list[tuple[Floats, ...]] = []
        for start in range(0, len(features), _AT_ONCE):
            rows = slice(start, start + _AT_ONCE)
            forecast = model.forecast(features[rows])
            needed_np = forecast.level_needed(truth_np[rows], source_n[rows])
            parts.append((*forecast.between(LEVEL, source_n[rows]), needed_np, forecast.novelty.score_n))
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
class HeldOut(Cells):
    """The held-out cells in the order of their folds, and the predictions of each model by name."""

    fold_n: Integers
    predictions: Mapping[str, HeldOutPredictions] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        data: Dataset,
        rows_by_fold: Sequence[Integers],
        predictions: Mapping[str, Sequence[HeldOutPredictions]],
    ) -> HeldOut:
        """Return the predictions, fold by fold, of these rows of a dataset."""
        cells = data.take(np.concatenate(list(rows_by_fold))).compact()
        return cls(
            **cells.shared(),
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
