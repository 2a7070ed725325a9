"""Runs paired across platforms: named features, relative times, groups and folds."""

from crossperf.dataset.build import (
    RUNTIME,
    SPLITS,
    Cells,
    Dataset,
    Fold,
    Split,
    build,
    combine,
    encode,
    feature_names,
    folds,
    open_table,
)

__all__ = [
    "RUNTIME",
    "SPLITS",
    "Cells",
    "Dataset",
    "Fold",
    "Split",
    "build",
    "combine",
    "encode",
    "feature_names",
    "folds",
    "open_table",
]
