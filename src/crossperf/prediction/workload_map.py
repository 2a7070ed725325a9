"""A map of workloads: t-SNE of what was measured of them, with the effect of the source platform removed.

Cells of one workload from several platforms differ more by the platform than by the program. So each counter is taken
on a log scale, less its mean over all cells of the same source, and averaged over the sources of a workload; what is
left tells programs apart. t-SNE (van der Maaten and Hinton 2008) keeps neighbours together; far distances mean
little. On the testbed 54 of 100 among the ten neighbours of a workload are of its application; from the places in
the latent space it would be 30, and for cells on its two principal components it is 13.
"""

# N cells, W workloads, F features, S source platforms, M neighbours

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from crossperf import plain
from crossperf.arrays import Floats, Integers
from crossperf.dataset.features import MEASURED, RUN_TIME
from crossperf.errors import PredictError
from crossperf.model.fitted.scales import Encoder

if TYPE_CHECKING:
    from crossperf.dataset.features import Features
    from crossperf.model.trained import TrainedModel

_STEPS = 750
#: About how many neighbours t-SNE keeps together: as many as keep inputs of an application together best
#: (10: 44 %, 20: 41 %, 30: 40 % of a workload's ten neighbours on the table before are of its application).
_PERPLEXITY = 10.0
#: Known workloads among which a new run is placed.
_NEIGHBOURS = 3
#: Fewer workloads stand on their principal components.
_LEAST = 8
#: The map of the model that ships.
SHIPPED = "workload_map.npz"


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


@dataclass(frozen=True, eq=False)
class WorkloadPlaces:
    """The known cells of a model on standard scales, less the mean of their source; gaps stay NaN."""

    encoder: Encoder
    mean_sf: Floats
    standard_nf: Floats
    workload_n: Integers
    source_n: Integers

    @classmethod
    @lru_cache(maxsize=4)  # the few models that are loaded at a time
    def of(cls, model: TrainedModel) -> WorkloadPlaces:
        """Return where the cells of a model lie; a model that kept none raises."""
        if not len(model.features):
            raise PredictError(f"The model {model.name!r} kept no known runs, expected some for a map. Train it again.")
        measured_nf, source_n = _measured(model.features), model.cells.source_n
        encoder = Encoder.fit(measured_nf)
        standard_nf = encoder(measured_nf)
        mean_sf = np.stack([_mean(standard_nf[source_n == s]) for s in range(len(model.platforms))])
        return cls(encoder, mean_sf, standard_nf - mean_sf[source_n], model.cells.workload_n, source_n)

    def by_workload(self, count: int) -> Floats:
        """Return what each of the workloads is like, W x F: the mean over its sources, 0 for what none has."""
        total_wf, known_wf = np.zeros((2, count, self.standard_nf.shape[1]))
        np.add.at(total_wf, self.workload_n, np.nan_to_num(self.standard_nf))
        np.add.at(known_wf, self.workload_n, ~np.isnan(self.standard_nf))
        return np.asarray(total_wf / np.maximum(known_wf, 1))

    def near(self, features: Features, count: int = _NEIGHBOURS) -> tuple[Integers, Floats]:
        """Return the nearest known workloads of each cell and how far they are, N x M each, the nearest first.

        A cell is compared with known cells of its own source, in the counters that both have; a distance is the root
        mean square over these, in standard deviations.
        """
        asked_nf = self.encoder(_measured(features)) - self.mean_sf[features.source_n]
        pairs = [
            self._near(own_f, int(source), count) for own_f, source in zip(asked_nf, features.source_n, strict=True)
        ]
        return np.stack([workload_m for workload_m, _ in pairs]), np.stack([apart_m for _, apart_m in pairs])

    def _near(self, asked_f: Floats, source: int, count: int) -> tuple[Integers, Floats]:
        rows = np.flatnonzero(self.source_n == source)
        rows = rows if len(rows) else np.arange(len(self.source_n))
        square_nf = np.square(self.standard_nf[rows] - asked_f)
        shared_n = (~np.isnan(square_nf)).sum(axis=1)
        apart_n = np.sqrt(np.nansum(square_nf, axis=1) / np.maximum(shared_n, 1))
        order_n = np.argsort(np.where(shared_n > 0, apart_n, np.inf), kind="stable")
        _, first_n = np.unique(self.workload_n[rows[order_n]], return_index=True)
        nearest_m = order_n[np.sort(first_n)[:count]]
        return self.workload_n[rows[nearest_m]], apart_n[nearest_m]

    def place(self, features: Features, xy_w2: Floats) -> Floats:
        """Return the place of new cells on a map: the mean of the nearest workloads, the nearer the more."""
        near_nm, apart_nm = self.near(features)
        weight_nm = 1.0 / np.maximum(apart_nm, 1e-9) ** 2
        weight_nm /= weight_nm.sum(axis=1, keepdims=True)
        return np.asarray((weight_nm[:, :, None] * xy_w2[near_nm]).sum(axis=1))


def _measured(features: Features) -> Floats:
    return features.values_nf[:, features.columns.mask(*MEASURED, RUN_TIME)]


def _mean(values_nf: Floats) -> Floats:
    """Return the mean of each column over what is known; 0 where nothing is."""
    count_f = (~np.isnan(values_nf)).sum(axis=0)
    return np.asarray(np.nansum(values_nf, axis=0) / np.maximum(count_f, 1))


def workload_map(model: TrainedModel, seed: int = 0) -> WorkloadMap:
    """Return the map of a model's workloads, laid out now; t-SNE takes some seconds for two thousand of them.

    >>> from crossperf.datasets import toy
    >>> from crossperf.model import train
    >>> workload_map(train(toy.make_runs(apps=3, inputs=4, seed=1), "ridge")).xy_w2.shape
    (12, 2)
    """
    like_wf = WorkloadPlaces.of(model).by_workload(len(model.workloads))
    xy_w2 = _plane(like_wf)
    if len(like_wf) >= _LEAST:
        from sklearn.manifold import TSNE

        perplexity, start_w2 = min(_PERPLEXITY, (len(like_wf) - 1) / 3), (1e-4 * xy_w2).astype(np.float32)
        layout = TSNE(init=start_w2, perplexity=perplexity, max_iter=_STEPS, random_state=seed)
        xy_w2 = np.asarray(layout.fit_transform(like_wf), np.float64)
    low_2, high_2 = xy_w2.min(axis=0), xy_w2.max(axis=0)
    span_2 = np.where(high_2 > low_2, high_2 - low_2, 1.0)
    return _of(model, np.round(2.0 * (xy_w2 - (low_2 + high_2) / 2.0) / span_2, 4))


def _of(model: TrainedModel, xy_w2: Floats) -> WorkloadMap:
    time_wp = model.cells.log_time_wp
    ran_w = ~np.isnan(time_wp).all(axis=1)
    fastest_w = np.full(len(time_wp), -1)
    fastest_w[ran_w] = np.nanargmin(time_wp[ran_w], axis=1)
    return WorkloadMap(model.workloads, model.platforms, fastest_w, xy_w2)


def shipped(model: TrainedModel) -> WorkloadMap | None:
    """Return the map that ships where it is that of a model; ``tools/release_map.py`` writes it."""
    path = resources.files(__package__) / SHIPPED
    if not path.is_file():
        return None
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        return _of(model, stored["xy"] / np.iinfo(np.int16).max) if str(stored["key"]) == key_of(model) else None


def key_of(model: TrainedModel) -> str:
    """Return what a stored map is recognised by: a digest of its workloads and of the table it learned from."""
    table = model.training.fingerprint if model.training else ""
    return hashlib.sha256(repr((table, model.workloads)).encode()).hexdigest()


def share_of_same(xy_w2: Floats, label_w: Integers, neighbours: int = 10) -> float:
    """Return the share of the nearest neighbours on a map that have the same label, over all points.

    >>> share_of_same(np.array([[0.0, 0.0], [0.1, 0.0], [5.0, 0.0], [5.1, 0.0]]), np.array([0, 0, 1, 1]), 1)
    1.0
    """
    square_ww = ((xy_w2[:, None, :] - xy_w2[None, :, :]) ** 2).sum(axis=2)
    np.fill_diagonal(square_ww, np.inf)
    nearest_wm = np.argsort(square_ww, axis=1, kind="stable")[:, : min(neighbours, len(xy_w2) - 1)]
    return float((label_w[nearest_wm] == label_w[:, None]).mean())


def _plane(like_wf: Floats) -> Floats:
    """Return the first two principal components, in units of the first: where the layout starts."""
    centred_wf = like_wf - like_wf.mean(axis=0)
    left_wf, size_f, _ = np.linalg.svd(centred_wf, full_matrices=False)
    xy_w2 = np.pad(left_wf * size_f, ((0, 0), (0, 2)))[:, :2]
    return np.asarray(xy_w2 / (xy_w2[:, 0].std() or 1.0))
