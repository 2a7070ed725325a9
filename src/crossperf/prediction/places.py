"""A map of known workloads: t-SNE of what was measured of them, with the effect of the source platform removed.

Cells of one workload from several platforms differ more by the platform than by the program. So each counter is taken
on a log scale, less its mean over all cells of the same source, and averaged over the sources of a workload; what is
left tells programs apart.
"""

# N cells, W workloads, F features, K neighbours

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

import numpy as np

from crossperf.arrays import Floats, Integers
from crossperf.dataset.features import MEASURED, RUN_TIME, Features
from crossperf.model.fitted.scales import Encoder
from crossperf.model.trained import TrainedModel

#: Workloads on a map; of more, a random sample of this size.
MOST = 3000
#: About how many neighbours t-SNE keeps together: as many as keep the inputs of an application together best
#: (10: 44 %, 20: 41 %, 30: 40 % of a workload's ten neighbours on the testbed are of its application).
_PERPLEXITY = 10.0
#: Known cells that set the place of a new run.
_NEAR = 3
_SHIPPED = "places.npz"


@dataclass(frozen=True, eq=False)
class WorkloadMap:
    """Known workloads on a plane, the like ones near each other; both axes run from 0 to 1 and have no unit.

    ``workload_w`` numbers the workloads among those of the model.
    """

    workload_w: Integers
    xy_w2: Floats

    def __len__(self) -> int:
        return len(self.workload_w)


@dataclass(frozen=True, eq=False)
class _Known:
    """The cells of a model on standard scales, less the mean of their source; gaps stay NaN."""

    encoder: Encoder
    mean_sf: Floats
    standard_nf: Floats

    @classmethod
    @lru_cache(maxsize=4)  # the few models that are loaded at a time
    def of(cls, model: TrainedModel) -> _Known:
        measured_nf, source_n = _measured(model.features), model.cells.source_n
        encoder = Encoder.fit(measured_nf)
        standard_nf = encoder(measured_nf)
        mean_sf = np.stack([_mean(standard_nf[source_n == s]) for s in range(len(model.platforms))])
        return cls(encoder, mean_sf, standard_nf - mean_sf[source_n])


def _measured(features: Features) -> Floats:
    return features.values_nf[:, features.columns.mask(*MEASURED, RUN_TIME)]


def _mean(values_nf: Floats) -> Floats:
    """Return the mean of each column over what is known; 0 where nothing is."""
    count_f = (~np.isnan(values_nf)).sum(axis=0)
    return np.asarray(np.nansum(values_nf, axis=0) / np.maximum(count_f, 1))


def signature(model: TrainedModel) -> Floats:
    """Return what each known workload is like, W x F: standard counters without the effect of the source platform."""
    standard_nf, workload_n = _Known.of(model).standard_nf, model.cells.workload_n
    shape = (len(model.workloads), standard_nf.shape[1])
    total_wf, count_wf = np.zeros(shape), np.zeros(shape)
    np.add.at(total_wf, workload_n, np.nan_to_num(standard_nf))
    np.add.at(count_wf, workload_n, ~np.isnan(standard_nf))
    return np.asarray(total_wf / np.maximum(count_wf, 1))


def places(model: TrainedModel, *, seed: int = 0) -> WorkloadMap:
    """Return the map of a model's workloads: at once for the model that ships, within seconds for another.

    >>> from crossperf.datasets import toy
    >>> from crossperf.model import train
    >>> len(places(train(toy.make_runs(apps=3, inputs=2, seed=1), "ridge")))
    6
    """
    return _shipped(model) or draw(model, seed=seed)


def draw(model: TrainedModel, *, seed: int = 0) -> WorkloadMap:
    """Return the map of a model's workloads, computed now."""
    count, rng = len(model.workloads), np.random.default_rng(seed)
    chosen_w = np.arange(count) if count <= MOST else np.sort(rng.choice(count, MOST, replace=False))
    signature_wf = signature(model)[chosen_w]
    if len(chosen_w) < 4:  # too few for neighbours: in a row
        return WorkloadMap(chosen_w, np.column_stack([(chosen_w + 0.5) / max(count, 1), np.full(count, 0.5)]))
    from sklearn.manifold import TSNE

    perplexity = min(_PERPLEXITY, (len(chosen_w) - 1) / 3.0)
    start = "pca" if min(signature_wf.shape) > 1 else "random"
    tsne = TSNE(perplexity=perplexity, init=start, max_iter=750, random_state=seed)
    return WorkloadMap(chosen_w, _within_unit(tsne.fit_transform(signature_wf).astype(np.float64)))


def _within_unit(xy_w2: Floats) -> Floats:
    low_2, high_2 = xy_w2.min(axis=0), xy_w2.max(axis=0)
    return np.asarray((xy_w2 - low_2) / np.maximum(high_2 - low_2, 1e-12))


def near(model: TrainedModel, features: Features, count: int = _NEAR) -> tuple[Integers, Floats]:
    """Return the nearest known workloads of each cell and how far they are, N x K each, nearest first.

    A cell is compared with known cells of its own source, in the counters that both have; a distance is the root mean
    square over these, in standard deviations.
    """
    known = _Known.of(model)
    asked_nf = known.encoder(_measured(features)) - known.mean_sf[features.source_n]
    rows = [_nearest(model, known, asked_nf[n], int(features.source_n[n]), count) for n in range(len(features))]
    return np.stack([numbers for numbers, _ in rows]), np.stack([distance for _, distance in rows])


def _nearest(model: TrainedModel, known: _Known, asked_f: Floats, source: int, count: int) -> tuple[Integers, Floats]:
    rows = np.flatnonzero(model.cells.source_n == source)
    rows = rows if len(rows) else np.arange(len(model.cells))
    square_nf = np.square(known.standard_nf[rows] - asked_f)
    shared_n = np.maximum((~np.isnan(square_nf)).sum(axis=1), 1)
    distance_n = np.sqrt(np.nansum(square_nf, axis=1) / shared_n)
    order_n = np.argsort(distance_n, kind="stable")
    _, first_n = np.unique(model.cells.workload_n[rows[order_n]], return_index=True)
    nearest_k = order_n[np.sort(first_n)[:count]]
    return model.cells.workload_n[rows[nearest_k]], distance_n[nearest_k]


def place(drawn: WorkloadMap, model: TrainedModel, features: Features) -> Floats:
    """Return the places of new cells on a map, N x 2: between their nearest known workloads, nearer to nearer ones."""
    position_w2 = np.full((len(model.workloads), 2), np.nan)
    position_w2[drawn.workload_w] = drawn.xy_w2
    workload_nk, distance_nk = near(model, features)
    weight_nk = 1.0 / np.maximum(distance_nk, 1e-9) ** 2
    xy_nk2 = position_w2[workload_nk]
    weight_nk = np.where(np.isnan(xy_nk2[:, :, 0]), 0.0, weight_nk)  # not in the sample that the map shows
    total_n = np.maximum(weight_nk.sum(axis=1), 1e-300)
    return np.asarray((np.nan_to_num(xy_nk2) * weight_nk[:, :, None]).sum(axis=1) / total_n[:, None])


def share_of_same(xy_w2: Floats, label_w: Integers, neighbours: int = 10) -> float:
    """Return the share of the nearest neighbours that have the same label, over all points.

    >>> share_of_same(np.array([[0.0, 0.0], [0.1, 0.0], [5.0, 0.0], [5.1, 0.0]]), np.array([0, 0, 1, 1]), 1)
    1.0
    """
    square_ww = ((xy_w2[:, None, :] - xy_w2[None, :, :]) ** 2).sum(axis=2)
    np.fill_diagonal(square_ww, np.inf)
    nearest_wk = np.argsort(square_ww, axis=1, kind="stable")[:, : min(neighbours, len(xy_w2) - 1)]
    return float((label_w[nearest_wk] == label_w[:, None]).mean())


def key_of(model: TrainedModel) -> str:
    """Return what a stored map is recognised by: a digest of its workloads and of the table it learned from."""
    table = model.training.fingerprint if model.training else ""
    return hashlib.sha256(repr((table, model.workloads)).encode()).hexdigest()


def _shipped(model: TrainedModel) -> WorkloadMap | None:
    """Return the stored map where it is that of the model; ``tools/release_map.py`` writes it."""
    path = resources.files(__package__) / _SHIPPED
    if not path.is_file():
        return None
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        if str(stored["key"]) != key_of(model):
            return None
        xy_w2 = stored["xy"].astype(np.float64) / np.iinfo(np.uint16).max
    return WorkloadMap(np.arange(len(xy_w2)), xy_w2)
