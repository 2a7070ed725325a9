"""A part of a dataset, drawn at random by whole workloads: for tables that are too long to learn from as a whole."""

# N cells

from __future__ import annotations

import numpy as np

from crossperf.dataset.pairing import Dataset
from crossperf.errors import SettingsError

#: Fewer workloads cannot be compared with one another.
_FEWEST_WORKLOADS = 2


def sample(data: Dataset, cells: int, *, seed: int = 0) -> Dataset:
    """Return at most a number of cells: whole workloads at random, and the dataset itself where it has no more.

    The facts of the table stay those of the whole table.

    >>> from crossperf.dataset import build
    >>> from crossperf.datasets import toy
    >>> data = build(toy.make_table(apps=5, inputs=4, seed=1))
    >>> len(data), len(sample(data, 30)), len(sample(data, 500))
    (80, 28, 80)
    """
    if cells < 1:
        raise SettingsError(f"sample: found {cells}, expected a number of cells above 0.", argument="sample")
    if len(data) <= cells:
        return data
    rng = np.random.default_rng([seed, 17])
    order_w = rng.permutation(np.unique(data.workload_n))
    count_w = np.bincount(data.workload_n)[order_w]
    kept = max(_FEWEST_WORKLOADS, int(np.searchsorted(np.cumsum(count_w), cells, side="right")))
    return data.take(np.flatnonzero(np.isin(data.workload_n, order_w[:kept]))).compact()
