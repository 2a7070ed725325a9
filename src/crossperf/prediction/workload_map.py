"""A map of workloads by t-SNE: their places in a latent space, with the effect of the source platform removed.

The latent space of a model holds one place for each workload and source platform, and most of its variance is between
sources. Here each source's own mean is taken off first, and a workload stands at the mean over its sources. t-SNE (van
der Maaten and Hinton 2008) keeps neighbours together; distances between far groups mean little.
"""

# N cells, W workloads, K latent units, S source platforms

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from crossperf import plain
from crossperf.arrays import Floats, Integers
from crossperf.errors import PredictError
from crossperf.model.fitted.model import LatentSpace

if TYPE_CHECKING:
    from crossperf.dataset.features import Features
    from crossperf.model.trained import TrainedModel

#: Steps after which the layout hardly changes: at 500 it keeps 0.389 of the neighbours' applications, at 1,000 0.392.
_STEPS = 500
_PERPLEXITY = 30.0
#: Known workloads among which a new run is placed.
_NEIGHBOURS = 5


@dataclass(frozen=True)
class WorkloadPlaces:
    """Workloads in a latent space with the effect of the source removed, and the mean of each source."""

    latent_wk: Floats
    mean_sk: Floats

    @classmethod
    def of(cls, model: TrainedModel) -> WorkloadPlaces:
        """Return where the workloads of a model lie; a model without a latent space raises."""
        part, cells = model.fitted.part, model.cells
        if not isinstance(part, LatentSpace) or not len(model.features):
            raise PredictError(
                f"The model {model.name!r} has no latent space with known runs, expected one for a map. Train the "
                "default model."
            )
        latent_nk, source_n = part.latent(model.features), cells.source_n
        mean_sk = np.stack([_mean(latent_nk[source_n == s]) for s in range(len(model.sources))])
        total_wk = np.zeros((len(cells.workloads), latent_nk.shape[1]))
        np.add.at(total_wk, cells.workload_n, latent_nk - mean_sk[source_n])
        count_w = np.bincount(cells.workload_n, minlength=len(cells.workloads))
        return cls(total_wk / np.maximum(count_w, 1)[:, None], mean_sk)

    def place(self, model: TrainedModel, features: Features, xy_w2: Floats) -> Floats:
        """Return the place of new cells on a map: the mean of the nearest workloads, the nearer the more."""
        part = model.fitted.part
        assert isinstance(part, LatentSpace)  # noqa: S101 - `of` refused every other
        own_nk = part.latent(features) - self.mean_sk[features.source_n]
        apart_nw = np.linalg.norm(own_nk[:, None] - self.latent_wk, axis=2)
        near_nm = np.argsort(apart_nw, axis=1)[:, :_NEIGHBOURS]
        weight_nm = 1.0 / (np.take_along_axis(apart_nw, near_nm, axis=1) + 1e-6)
        weight_nm /= weight_nm.sum(axis=1, keepdims=True)
        return np.asarray((weight_nm[:, :, None] * xy_w2[near_nm]).sum(axis=1))


def _mean(rows_nk: Floats) -> Floats:
    return rows_nk.mean(axis=0) if len(rows_nk) else np.zeros(rows_nk.shape[1])


@dataclass(frozen=True, eq=False)
class WorkloadMap:
    """Workloads on two axes from -1 to 1, each with its fastest platform (-1 where it never ran)."""

    workloads: tuple[tuple[str, str], ...]
    platforms: tuple[str, ...]
    fastest_w: Integers = field(metadata={"json": "fastest"})
    xy_w2: Floats = field(metadata={"json": "xy"})

    def __post_init__(self) -> None:
        if self.xy_w2.shape != (len(self.workloads), 2) or self.fastest_w.shape != (len(self.workloads),):
            raise ValueError("the columns of the map do not fit together")

    def to_json(self) -> dict[str, Any]:
        """Return the map as JSON's own types."""
        facts: dict[str, Any] = plain.to_json(self)
        return facts


def workload_map(model: TrainedModel, seed: int = 0) -> WorkloadMap:
    """Return the map of a model's workloads; t-SNE takes some seconds for two thousand of them."""
    from sklearn.manifold import TSNE

    latent_wk = WorkloadPlaces.of(model).latent_wk
    start_w2 = _plane(latent_wk)
    xy_w2 = start_w2
    if len(latent_wk) > 3 * _NEIGHBOURS:
        perplexity = min(_PERPLEXITY, (len(latent_wk) - 1) / 3)
        layout = TSNE(
            init=(1e-4 * start_w2).astype(np.float32), perplexity=perplexity, max_iter=_STEPS, random_state=seed
        )
        xy_w2 = np.asarray(layout.fit_transform(latent_wk), np.float64)
    xy_w2 = xy_w2 - xy_w2.mean(axis=0)
    time_wp = model.cells.log_time_wp
    ran_w = ~np.isnan(time_wp).all(axis=1)
    fastest_w = np.full(len(time_wp), -1)
    fastest_w[ran_w] = np.nanargmin(time_wp[ran_w], axis=1)
    largest = np.abs(xy_w2).max() or 1.0
    return WorkloadMap(model.workloads, model.platforms, fastest_w, np.round(xy_w2 / largest, 4))


def _plane(latent_wk: Floats) -> Floats:
    """Return the first two principal components, in units of the first: where the layout starts."""
    centred_wk = latent_wk - latent_wk.mean(axis=0)
    left_wk, size_k, _ = np.linalg.svd(centred_wk, full_matrices=False)
    xy_w2 = np.pad(left_wk * size_k, ((0, 0), (0, 2)))[:, :2]
    return np.asarray(xy_w2 / (xy_w2[:, 0].std() or 1.0))
