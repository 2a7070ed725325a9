"""Pairs runs across platforms into named features, relative times, groups and folds."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossperf.dataset.cells import SPLITS, Cells, Split, TableFacts
    from crossperf.dataset.features import FEATURE_SETS, Columns, Features, FeatureSet
    from crossperf.dataset.pairing import Dataset, Fold, build, folds
    from crossperf.dataset.sampling import sample

#: Where each name lives; scikit-learn and Polars are loaded with the part that needs them.
_PLACES = {
    **dict.fromkeys(("SPLITS", "Cells", "Split", "TableFacts"), "cells"),
    **dict.fromkeys(("FEATURE_SETS", "Columns", "Features", "FeatureSet"), "features"),
    **dict.fromkeys(("Dataset", "Fold", "build", "folds"), "pairing"),
    "sample": "sampling",
}
__all__ = [
    "FEATURE_SETS",
    "SPLITS",
    "Cells",
    "Columns",
    "Dataset",
    "FeatureSet",
    "Features",
    "Fold",
    "Split",
    "TableFacts",
    "build",
    "folds",
    "sample",
]


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(importlib.import_module(f"crossperf.dataset.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'crossperf.dataset' has no attribute {name!r}")
