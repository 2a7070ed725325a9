"""A fitted model whole, and what its part can do: every one predicts, some forecast, some have a latent space."""

# N cells, P platforms, K latent units

from __future__ import annotations

import typing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from crossperf.arrays import Floats, Integers
from crossperf.dataset.features import Columns, Features
from crossperf.errors import PredictError
from crossperf.model.fitted.confidence import Forecast
from crossperf.model.fitted.network import to_source
from crossperf.model.fitted.scales import Limits


@runtime_checkable
class Part(Protocol):
    """What a model learned. `kind` names the class in a file."""

    kind: ClassVar[str]

    def predict(self, features: Features) -> Floats:
        """Return log relative times, N x P."""


@runtime_checkable
class Forecaster(Protocol):
    """A model that knows how sure it is."""

    def forecast(self, features: Features) -> Forecast:
        """Return predictions with the errors they may have."""


@runtime_checkable
class LatentSpace(Protocol):
    """A model that places cells in a latent space."""

    def latent(self, features: Features) -> Floats:
        """Return the latent mean of each cell, N x K."""


@runtime_checkable
class KnownRuns(LatentSpace, Protocol):
    """A model that keeps known runs to compare a new one with, and knows where they lie in its latent space."""

    @property
    def background(self) -> Features:
        """Known cells, from every source platform."""

    @property
    def known_latent_bk(self) -> Floats:
        """The latent places of known cells."""

    @property
    def known_workload_b(self) -> Integers:
        """The number of the workload of each of them, among the training workloads."""


def ordered(features: Features) -> tuple[Features, Integers | slice]:
    """Return cells in an order that their values alone decide, and what puts the answers back in the order asked.

    A product in single precision rounds a row by its place among the others. In an order of their own, the same cells
    get the same answers, to the last bit, in whatever order they are asked about.
    """
    if len(features) < 2:
        return features, slice(None)
    values_nf = np.ascontiguousarray(features.values_nf)
    rows_n = values_nf.view(np.dtype((np.void, values_nf.strides[0]))).reshape(-1)
    order_n = np.argsort(rows_n, kind="stable")
    return features[order_n], np.argsort(order_n)


def _refuse_unanswered(*answers: Floats) -> None:
    """Raise unless every number of the answers is finite; their first axis is that of cells."""
    for answer in answers:
        finite = np.isfinite(answer)
        if not finite.all():
            cell = int(np.argwhere(~finite)[0, 0])
            raise PredictError(
                f"The model answers {answer[~finite][0]} for run {cell + 1} of {len(answer)}, expected finite numbers. "
                "A number of the run or of the model is too large or too small to compute with: check the run's "
                "counters, or train the model again.",
                cell=cell,
            )


@dataclass(frozen=True)
class FittedModel:
    """What every model becomes once it has learned: asked with features whose columns are matched by name.

    ``limits`` is ``None`` for a model that keeps to those of another (an adapted one). ``sees_derived`` tells whether
    its part is asked with rates and shares beside the columns, ``of_workload`` whether it answers with the vector of a
    workload, the same from every source, which becomes relative to the source here.
    """

    columns: Columns
    part: Part
    limits: Limits | None = None
    sees_derived: bool = False
    of_workload: bool = False

    def predict(self, X: Any) -> Floats:
        """Return log relative times, N x P, within the limits of training."""
        features, back_n = ordered(self._features(X))
        return self._relative(self.part.predict(features)[back_n], features.source_n[back_n])

    def forecast(self, X: Any) -> Forecast:
        """Return predictions with the errors they may have; ask only where `forecasts`."""
        features, back_n = ordered(self._features(X))
        forecast = typing.cast(Forecaster, self.part).forecast(features)[back_n]
        novelty = forecast.novelty
        _refuse_unanswered(forecast.error_nbp, forecast.coverage_nl, novelty.surprise_n, novelty.distance_n)
        return replace(forecast, log_relative_np=self._relative(forecast.log_relative_np, features.source_n[back_n]))

    @cached_property
    def forecasts(self) -> bool:
        """Whether the model knows how sure it is."""
        return isinstance(self.part, Forecaster)

    def _features(self, X: Any) -> Features:
        features = Features.read(X).matched(self.columns)
        return features.derived() if self.sees_derived else features

    def _relative(self, predicted_np: Floats, source_n: Integers) -> Floats:
        """Return what the part says, as log relative times within the limits."""
        if self.of_workload:
            predicted_np = to_source(predicted_np, source_n)
        _refuse_unanswered(predicted_np)
        return self.limits(predicted_np) if self.limits else predicted_np
