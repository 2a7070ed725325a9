"""Fitted peers: medians by source platform, a linear map, and a forest."""

# N cells, F features, P platforms, S sources

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crossperf.arrays import Floats
from crossperf.dataset.features import Features
from crossperf.model.fitted.encoding import Encoder
from crossperf.model.fitted.forest import Forest


@dataclass(frozen=True)
class Medians:
    """The median log relative times of each source platform, and in the last row those of all cells."""

    kind: ClassVar[str] = "medians"
    medians_sp: Floats

    def predict(self, features: Features) -> Floats:
        """Return the medians of each cell's source; those of all cells where it has none."""
        return np.asarray(self.medians_sp[features.source_n])


@dataclass(frozen=True)
class Linear:
    """A linear map of encoded features; a missing one counts as its mean."""

    kind: ClassVar[str] = "linear"
    encoder: Encoder
    weights_pf: Floats
    bias_p: Floats

    def predict(self, features: Features) -> Floats:
        """Return log relative times."""
        return np.asarray(np.nan_to_num(self.encoder(features.values_nf)) @ self.weights_pf.T + self.bias_p)


@dataclass(frozen=True)
class Trees:
    """A forest on log-scaled features."""

    kind: ClassVar[str] = "trees"
    encoder: Encoder
    forest: Forest

    def predict(self, features: Features) -> Floats:
        """Return log relative times."""
        return self.forest.predict(self.encoder.log(features.values_nf))
