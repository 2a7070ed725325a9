"""The held-out cells and the out-of-fold predictions of each model, beside the truth."""

# N cells held out, W workloads, P platforms, A applications

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from crossperf import plain
from crossperf.arrays import Floats, Integers, axes_of, refuse_outside
from crossperf.dataset.cells import Cells
from crossperf.dataset.features import Features
from crossperf.dataset.pairing import Dataset
from crossperf.evaluation import metrics
from crossperf.model.fitted.model import FittedModel
from crossperf.records import looks

Record = TypeVar("Record")
#: The level of the intervals that are kept and checked.
LEVEL = 0.8
_AT_ONCE = 256  # cells whose errors are drawn at a time
_DIGITS = 5  # digits of a log time in a file: a hundred-thousandth is 0.001 % of a time
_MOST = 100.0  # no logarithm of a time over another is as large
_BEYOND = 9.0  # JSON has no infinity: the level that no interval reaches is written as this


@dataclass(frozen=True, eq=False)
class HeldOutPredictions:
    """The out-of-fold predictions of one model.

    Times are logarithms of time on p over time on the source. The rest is ``None`` for a model without intervals:
    the interval at `LEVEL`, the level of the interval that just holds the truth (infinite where none does, NaN on
    the source), and how odd a run looks (up to 1 is ordinary).
    """

    predicted_np: Floats = field(metadata={"json": "log_relative_time"})
    low_np: Floats | None = field(default=None, metadata={"json": "low"})
    high_np: Floats | None = field(default=None, metadata={"json": "high"})
    level_needed_np: Floats | None = field(default=None, metadata={"json": "level_needed"})
    oddness_n: Floats | None = field(default=None, metadata={"json": "oddness"})

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


@dataclass(frozen=True, eq=False, repr=False)
class HeldOut(Cells):
    """The held-out cells in the order of their folds, and the predictions of each model by name.

    The times are those of all workloads of the table, also of those without a cell held out.
    """

    log_time_wp: Floats = field(metadata={"json": "log_time_s"})
    workload_n: Integers = field(metadata={"json": "workload"})
    source_n: Integers = field(metadata={"json": "source"})
    fold_n: Integers = field(metadata={"json": "fold"})
    predictions: Mapping[str, HeldOutPredictions] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.refuse_misfits()
        refuse_outside("fold", self.fold_n, len(self))
        number, platforms = len(self), len(self.platforms)
        for name, own in self.predictions.items():
            axes = axes_of(own)
            times = (values for values in (own.predicted_np, own.low_np, own.high_np) if values is not None)
            if any((np.abs(values_np) > _MOST).any() for values_np in times):
                raise ValueError(f"the predictions of {name!r} hold times that none could be")
            if own.predicted_np.size != number * platforms or axes.get("n", number) != number:
                raise ValueError(f"the predictions of {name!r} do not fit {number:,} cells on {platforms} platforms")

    @classmethod
    def of(
        cls, data: Dataset, rows_by_fold: Sequence[Integers], predictions: Mapping[str, Sequence[HeldOutPredictions]]
    ) -> HeldOut:
        """Return the predictions, fold by fold, of these rows of a dataset."""
        cells = data.take(np.concatenate(list(rows_by_fold)))
        return cls(
            **cells.shared(),
            fold_n=np.repeat(np.arange(len(rows_by_fold)), [len(rows) for rows in rows_by_fold]),
            predictions={name: HeldOutPredictions.join(parts) for name, parts in predictions.items()},
        )

    def __repr__(self) -> str:
        models = ", ".join(self.predictions) or "no model"
        workloads = len(np.unique(self.workload_n))
        counts = f"{len(self):,} held-out cells of {workloads:,} workloads on {len(self.platforms)} platforms"
        return f"{counts}, predicted by {models}"

    @cached_property
    def held_apps(self) -> tuple[str, ...]:
        """The applications with a cell held out, by name."""
        return tuple(self.apps[a] for a in np.unique(self.app_n))

    def to_source(self, model: str) -> tuple[Floats, Floats]:
        """Return truth and predictions, log times relative to the source of each cell, NaN on that itself."""
        return metrics.to_source(self.log_relative_time_np, self.predictions[model].predicted_np, self.source_n)

    def error_by_app(self, model: str) -> tuple[Floats, Floats]:
        """Return sum and number of the absolute log errors of each application on each platform but the source."""
        error_np = np.abs(np.subtract(*self.to_source(model)))
        sum_ap, count_ap = np.zeros((2, len(self.apps), len(self.platforms)))
        np.add.at(sum_ap, self.app_n, np.nan_to_num(error_np))
        np.add.at(count_ap, self.app_n, ~np.isnan(error_np))
        return sum_ap, count_ap

    def to_json(self) -> dict[str, Any]:
        """Return the cells as JSON's own types: lists by column, a gap as null, logarithms rounded."""
        predictions = {name: _rounded(own) for name, own in self.predictions.items()}
        facts: dict[str, Any] = plain.to_json(replace(_rounded(self), predictions=predictions))
        return facts


def _decimals(record: Any) -> dict[str, Floats]:
    """Return the arrays of a record that hold numbers with decimals, by field."""
    values = {own.name: getattr(record, own.name) for own in fields(record)}
    return {name: value for name, value in values.items() if getattr(value, "dtype", None) == np.float64}


def _rounded(record: Record) -> Record:
    """Return a record with its arrays as a file keeps them."""
    arrays = {name: np.where(np.isinf(own), _BEYOND, own).round(_DIGITS) for name, own in _decimals(record).items()}
    return replace(record, **arrays)  # type: ignore[type-var]
