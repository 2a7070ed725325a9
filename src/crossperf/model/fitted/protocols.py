"""What a fitted model can do, as protocols: every one predicts, some forecast, some have a latent space."""

# N cells, P platforms, K latent units

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from crossperf.arrays import Floats, Integers
from crossperf.dataset.features import Features

if TYPE_CHECKING:
    from crossperf.model.fitted.intervals import Forecast


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
