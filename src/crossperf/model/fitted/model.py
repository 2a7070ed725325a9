"""A fitted model whole: its columns by name, the limits of its answers, and what it learned."""

# N cells, P platforms

from __future__ import annotations

import typing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from crossperf.arrays import Floats
from crossperf.dataset.features import Columns, Features
from crossperf.model.fitted.intervals import Forecast
from crossperf.model.fitted.limits import Limits
from crossperf.model.fitted.protocols import Forecaster, Part


@dataclass(frozen=True)
class FittedModel:
    """What every model becomes once it has learned: asked with features whose columns are matched by name.

    ``limits`` is ``None`` for a model that keeps to those of another (an adapted one).
    """

    columns: Columns
    part: Part
    limits: Limits | None = None

    def predict(self, X: Any) -> Floats:
        """Return log relative times, N x P, within the limits of training."""
        return self._limited(self.part.predict(self._features(X)))

    def forecast(self, X: Any) -> Forecast:
        """Return predictions with the errors they may have; ask only where `forecasts`."""
        forecast = typing.cast(Forecaster, self.part).forecast(self._features(X))
        return replace(forecast, log_relative_np=self._limited(forecast.log_relative_np))

    @cached_property
    def forecasts(self) -> bool:
        """Whether the model knows how sure it is."""
        return isinstance(self.part, Forecaster)

    def _features(self, X: Any) -> Features:
        return Features.read(X).matched(self.columns)

    def _limited(self, predicted_np: Floats) -> Floats:
        return self.limits(predicted_np) if self.limits else predicted_np
