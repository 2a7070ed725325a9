"""A fitted model with platforms added to it afterwards; its predictions for the platforms it knew stay as they are."""

# N runs, B errors, K workloads measured on the new platform, F features, P known platforms, S sources (the same)

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from crossperf.arrays import Floats
from crossperf.dataset.features import Features
from crossperf.model.fitted.confidence import Forecast
from crossperf.model.fitted.model import FittedModel, KnownRuns
from crossperf.model.fitted.scales import Encoder

#: How many spreads of the features apart two workloads are before they are no longer similar.
_REACH = 2.0


@dataclass(frozen=True)
class Head:
    """A new platform's contrast as a function of a run's predicted contrasts and its features, for each source.

    For source s: ``offset + contrast . a + features . b + sum_k exp(-|features - shot_k| / reach) w_k``: the posterior
    mean of a Gaussian process whose kernel has these four parts, averaged over settings and starting points.
    """

    encoder: Encoder
    mean_sf: Floats
    gain_sf: Floats
    centre_p: Floats
    scale: float
    limits_2: Floats
    offset_s: Floats
    contrast_weights_sp: Floats
    feature_weights_sf: Floats
    shots_skf: Floats
    shot_weights_sk: Floats
    #: The weight of each kernel setting in the average.
    setting_weights_g: Floats
    #: log(predicted / measured) of each workload from all the others.
    left_out_k: Floats

    def predict(self, features: Features, log_relative_np: Floats) -> Floats:
        """Return log(time on the new platform / time on the source) of each run, from the base model's predictions."""
        level_n = log_relative_np.mean(axis=1)
        contrast_np = (log_relative_np - level_n[:, None] - self.centre_p) / self.scale
        encoded_nf = self.encoder(self._rated(features).values_nf)
        predicted_n = np.empty(len(features))
        for source in np.unique(features.source_n):
            rows = features.source_n == source
            seen_nf = np.nan_to_num((encoded_nf[rows] - self.mean_sf[source]) * self.gain_sf[source])
            predicted_n[rows] = (
                self.offset_s[source]
                + contrast_np[rows] @ self.contrast_weights_sp[source]
                + seen_nf @ self.feature_weights_sf[source]
                + similarity(seen_nf, self.shots_skf[source]) @ self.shot_weights_sk[source]
            )
        return np.asarray(level_n + np.clip(predicted_n, *self.limits_2) * self.scale)

    def _rated(self, features: Features) -> Features:
        """Return features with their rates; without them for a head that was saved when heads did not see any."""
        return features if len(self.encoder.mean_f) == len(features.columns) else features.derived()


def similarity(left_nf: Floats, right_kf: Floats) -> Floats:
    """Return ``exp(-distance / reach)`` between the rows of two matrices."""
    square_nk = (left_nf**2).sum(axis=1)[:, None] + (right_kf**2).sum(axis=1) - 2.0 * left_nf @ right_kf.T
    return np.asarray(np.exp(-np.sqrt(np.maximum(square_nk, 0.0)) / _REACH))


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

    # The runs that the base model knows, and its latent space.
    background = property(attrgetter("base.part.background"))
    known_latent_bk = property(attrgetter("base.part.known_latent_bk"))
    known_workload_b = property(attrgetter("base.part.known_workload_b"))
    latent = property(attrgetter("base.part.latent"))


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
