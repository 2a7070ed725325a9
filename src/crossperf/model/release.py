"""How the model that ships is made small: the default model, with its large arrays in half precision."""

from __future__ import annotations

from dataclasses import replace

from crossperf import packing
from crossperf.model import store
from crossperf.model.fitted.model import FittedModel
from crossperf.model.trained import TrainedModel

#: What a wheel may carry of it.
MOST_BYTES = 10_000_000


def rounded_fit(fitted: FittedModel) -> FittedModel:
    """Return what a model learned with its large arrays in half precision."""
    state = store.flatten(fitted)
    return store.restore(FittedModel, {name: packing.rounded(array) for name, array in state.items()})


def rounded(model: TrainedModel) -> TrainedModel:
    """Return a model with its large arrays in half precision; the counters of known runs keep as many digits."""
    features = replace(model.features, values_nf=packing.rounded(model.features.values_nf))
    return replace(model, fitted=rounded_fit(model.fitted), features=features)
