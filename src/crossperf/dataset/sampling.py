"""A part of a dataset, drawn at random by whole workloads: for tables that are too long to learn from as a whole."""

# N cells, W workloads

from __future__ import annotations

import numpy as np

from crossperf.arrays import Integers
from crossperf.dataset.pairing import Dataset
from crossperf.errors import SettingsError

#: Fewer workloads cannot be compared with one another.
_FEWEST_WORKLOADS = 2


def sample(data: Dataset, cells: int, *, seed: int = 0) -> Dataset:
    """Return at most a number of cells: whole workloads at random, and the dataset itself where it has no more.

    They are drawn in strata: of every application, and within it of every set of platforms that workloads ran on, about
    the same share is kept, and of each at least one workload while there is room. So a small application and a
    platform that was seldom measured stay in the part. The facts of the table stay those of the whole table.

    >>> from crossperf.dataset import build
    >>> from crossperf.datasets import toy
    >>> data = build(toy.make_table(apps=5, inputs=4, seed=1))
    >>> part = sample(data, 30)
    >>> len(data), len(part), len(part.apps), len(sample(data, 500))
    (80, 28, 5, 80)
    """
    if cells < 1:
        raise SettingsError(f"sample: found {cells}, expected a number of cells above 0.", argument="sample")
    if len(data) <= cells:
        return data
    number_w, count_w = np.unique(data.workload_n, return_counts=True)
    order_w = _in_turn(_strata(data)[number_w], np.random.default_rng([seed, 17]))
    kept = max(_FEWEST_WORKLOADS, int(np.searchsorted(np.cumsum(count_w[order_w]), cells, side="right")))
    chosen_w = np.zeros(len(data.workloads), bool)
    chosen_w[number_w[order_w[:kept]]] = True
    return data.take(np.flatnonzero(chosen_w[data.workload_n])).compact()


def _strata(data: Dataset) -> Integers:
    """Return the stratum of each workload: its application, and the platforms that it ran on."""
    ran_w = np.packbits(~np.isnan(data.log_time_wp), axis=1)
    keys_w = np.column_stack([data.app_w[:, None].view(np.uint8).reshape(len(ran_w), -1), ran_w])
    return np.unique(keys_w, axis=0, return_inverse=True)[1].reshape(-1)


def _in_turn(stratum_w: Integers, rng: np.random.Generator) -> Integers:
    """Return the workloads in an order of which every beginning holds about the same share of each stratum.

    A workload stands at the share of its stratum that comes up to it, less a random part of one: systematic sampling
    with a random start for each stratum. The first of each stratum come before all others.
    """
    shuffled_w = rng.permutation(len(stratum_w))
    by_stratum_w = shuffled_w[np.argsort(stratum_w[shuffled_w], kind="stable")]
    _, first, count = np.unique(stratum_w[by_stratum_w], return_index=True, return_counts=True)
    place_w = np.arange(len(stratum_w)) - np.repeat(first, count)
    share_w = (place_w + np.repeat(rng.random(len(count)), count)) / np.repeat(count, count)
    return by_stratum_w[np.lexsort((share_w, place_w > 0))]
