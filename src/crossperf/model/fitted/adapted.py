"""A fitted model with platforms added to it afterwards; its predictions for the platforms it knew stay as they are."""

# N runs, B errors, P platforms

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from crossperf.arrays import Floats, Integers
from crossperf.dataset.features import Features
from crossperf.model.fitted.head import Head
from crossperf.model.fitted.intervals import Forecast
from crossperf.model.fitted.model import FittedModel
from crossperf.model.fitted.protocols import KnownRuns


@dataclass(frozen=True)
class Adapted:
    """A base model, and a head for each platform that was added to it.

    The columns of the base model come first and are its own predictions, bit for bit; each head adds one. Runs must
    have been measured on the platforms of the base model, since it has learned no features of the others.
    """

    kind: ClassVar[str] = "adapted"
    base: FittedModel
    heads: tuple[Head, ...]
    added: tuple[str, ...]

    def predict(self, features: Features) -> Floats:
        """Return log relative times: the base model's columns, then the platforms added."""
        base_np = self.base.predict(features)
        return np.column_stack([base_np, *(head.predict(features, base_np) for head in self.heads)])

    @property
    def summary(self) -> list[dict[str, Any]]:
        """How each added platform was learned."""
        return [
            {
                "platform": platform,
                "workloads": len(head.left_out_k),
                "left_out_factor": float(np.exp(np.abs(head.left_out_k).mean())),
            }
            for platform, head in zip(self.added, self.heads, strict=True)
        ]


@dataclass(frozen=True)
class AdaptedForecaster(Adapted):
    """The same on a base model that forecasts and keeps known runs."""

    kind: ClassVar[str] = "adapted-forecaster"

    def forecast(self, features: Features) -> Forecast:
        """Return the base model's forecast with the platforms added."""
        known = self.base.forecast(features)
        columns = [head.predict(features, known.log_relative_np) for head in self.heads]
        errors = [_head_errors(head, features, known) for head in self.heads]
        return replace(
            known,
            log_relative_np=np.column_stack([known.log_relative_np, *columns]),
            error_nbp=np.concatenate([known.error_nbp, *errors], axis=2),
        )

    @property
    def _known(self) -> KnownRuns:
        part = self.base.part
        assert isinstance(part, KnownRuns)  # noqa: S101 - `add_platform` makes this class for no other
        return part

    @property
    def background(self) -> Features:
        """The base model's known cells."""
        return self._known.background

    @property
    def known_latent_bk(self) -> Floats:
        """The latent places of the base model's known cells."""
        return self._known.known_latent_bk

    @property
    def known_workload_b(self) -> Integers:
        """The workloads of the base model's known cells."""
        return self._known.known_workload_b

    def latent(self, features: Features) -> Floats:
        """Return the latent places of cells, as the base model has them."""
        return self._known.latent(features)


def add_platform(model: FittedModel, head: Head, platform: str) -> FittedModel:
    """Return a fitted model with one more platform."""
    before = model.part if isinstance(model.part, Adapted) else None
    base = before.base if before else model
    kind = AdaptedForecaster if base.forecasts and isinstance(base.part, KnownRuns) else Adapted
    heads, added = (before.heads, before.added) if before else ((), ())
    return FittedModel(model.columns, kind(base, (*heads, head), (*added, platform)))


def _head_errors(head: Head, features: Features, known: Forecast) -> Floats:
    """Return the errors of an added platform (N x B x 1): the base model's, as the head passes them on, and its own.

    The head's own are those of the workloads it was made from, each left out, repeated in turn.
    """
    step = 1e-3
    predicted_n = head.predict(features, known.log_relative_np)
    slope_np = np.stack(
        [
            (head.predict(features, known.log_relative_np + step * unit_p) - predicted_n) / step
            for unit_p in np.eye(known.log_relative_np.shape[1])
        ],
        axis=1,
    )
    passed_nb = np.einsum("nbp,np->nb", known.error_nbp, slope_np)
    return np.asarray(passed_nb + np.resize(head.left_out_k, passed_nb.shape[1]))[:, :, None]
