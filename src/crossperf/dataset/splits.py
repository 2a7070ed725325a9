"""Folds of a dataset: what trains, and what is held out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crossperf.arrays import Integers
from crossperf.dataset.cells import Split
from crossperf.dataset.pairing import Dataset
from crossperf.errors import DatasetError

_UNITS: dict[Split, str] = {"row": "cells", "workload": "workloads", "app": "applications"}


@dataclass(frozen=True)
class Fold:
    """The training cells and the held-out cells, as row numbers."""

    train_n: Integers
    test_n: Integers


def folds(data: Dataset, split: Split, n_folds: int = 5, seed: int = 0) -> list[Fold]:
    """Return the folds of a split; a workload, or an application, is never on both sides.

    Parameters
    ----------
    split
        ``row``: cells at random, as in the paper; cells of one workload fall on both sides.
        ``workload``: inputs never seen. ``app``: applications never seen.

    >>> from crossperf.datasets import toy
    >>> from crossperf.dataset import build
    >>> [len(fold.test_n) for fold in folds(build(toy.make_table(apps=4, inputs=2)), "app", n_folds=4)]
    [8, 8, 8, 8]
    """
    from sklearn.model_selection import GroupKFold, KFold

    groups_n = data.groups_n(split)
    _refuse_impossible(data, split, n_folds, len(np.unique(groups_n)))
    splitter = (KFold if split == "row" else GroupKFold)(n_folds, shuffle=True, random_state=seed)
    return [
        Fold(np.asarray(train_n, np.int64), np.asarray(test_n, np.int64))
        for train_n, test_n in splitter.split(groups_n, groups=None if split == "row" else groups_n)
    ]


def _refuse_impossible(data: Dataset, split: Split, n_folds: int, n_groups: int) -> None:
    unit = _UNITS[split]
    if n_groups < 2:
        raise DatasetError(
            f"{data.table.path}: found {n_groups} {unit[:-1]}, expected at least 2 {unit} for the split {split!r}, one "
            f"to train on and one to hold out. Add {unit}, or choose another split.",
            split=split,
            groups=n_groups,
        )
    if not 2 <= n_folds <= n_groups:
        raise DatasetError(
            f"folds: found {n_folds} for the split {split!r} of {data.table.path}, expected between 2 and {n_groups}, "
            f"the number of its {unit}. Choose fewer folds, another split, or add {unit}.",
            argument="folds",
            split=split,
            groups=n_groups,
        )
