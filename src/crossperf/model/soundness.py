"""Whether what a model learned can be asked: shapes, finite numbers, indices and trees, by what fields declare.

A file of arrays may hold anything. Every check here is generic: the axes in a field's name give its shape, the class
gives its type, and the names of a tree's fields give what they point to. Nothing of a model is run before it passes.
"""

# N cells, P platforms, M nodes of all trees, T trees

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossperf.arrays import axes_of, refuse_outside
from crossperf.dataset.cells import Cells
from crossperf.dataset.features import SOURCE, Columns, Features
from crossperf.errors import PredictError
from crossperf.model.fitted.model import FittedModel, KnownRuns, LatentSpace
from crossperf.model.fitted.recognition import Recognition

#: A tree of training cells is some 20 to 60 levels deep; beyond this a walk down it is no answer but an attack.
_DEEPEST_TREE = 2_000
#: What an index field points to, by its stem: the axis whose length bounds it.
_POINTS_TO = {"root": "m", "left": "m", "right": "m", "value_row": "l"}


#: Fields that others are divided by: these words, and axes where they are arrays.
_DIVISOR = re.compile(r"\.(scale|spread|width|length|unit|sigma|ordinary_[a-z]+)(_[a-z0-9]{1,4})?\Z")


def refuse_unsound(fitted: FittedModel, features: Features, cells: Cells) -> None:
    """Raise `ValueError` unless a model, its training cells and its platforms fit together and can be asked."""
    cells.refuse_misfits()
    _refuse(fitted, "fitted", _Known())
    _refuse(features, "features", _Known())
    sources = fitted.columns.sources
    if sources != cells.platforms[: len(sources)]:
        raise ValueError("its platforms are not those of its features, in their order")
    if len(features) != len(cells) or features.columns != fitted.columns:
        raise ValueError("its features do not fit its cells")
    if isinstance(fitted.part, KnownRuns):
        refuse_outside("known_workload_b", fitted.part.known_workload_b, max(len(cells.workloads), 1))
    _refuse_answer(fitted, features, len(cells.platforms))


@dataclass(frozen=True)
class _Known:
    """What the records above tell of one: the number of encoded features, and that of platforms to be measured on."""

    width: int | None = None
    sources: int | None = None

    def below(self, record: Any) -> _Known:
        """Return the same for what is below a record."""
        has_width = _has(record, "encoder") and _has(record.encoder, "scale_f")
        width = len(record.encoder.scale_f) if has_width else self.width
        sources = len(record.columns.sources) if isinstance(record, FittedModel) else self.sources
        return _Known(width, sources)


def _refuse(record: Any, path: str, known: _Known) -> None:
    """Check one dataclass and everything below it."""
    axes = axes_of(record)
    if isinstance(record, Columns):
        _refuse_columns(record)
    elif isinstance(record, Features) and record.values_nf.shape[-1] != len(record.columns):
        raise ValueError(f"{path} has {record.values_nf.shape[-1]} columns for {len(record.columns)} names")
    elif isinstance(record, Recognition) and known.sources is not None:
        record.refuse_misfits(known.sources)
    known = known.below(record)
    for name, value in _parts(record):
        below = f"{path}.{name}"
        if is_dataclass(value):
            _refuse(value, below, known)
        elif isinstance(value, np.ndarray):
            stem = name.rpartition("_")[0]
            _refuse_numbers(record, below, value)
            end = known.width if stem == "feature" else axes.get(_POINTS_TO.get(stem, ""))
            if end is not None and value.dtype.kind in "iu":
                refuse_outside(below, value, end)
        elif isinstance(value, float):
            _refuse_number(below, value)
    if _has(record, "left_m") and _has(record, "right_m") and _has(record, "root_t"):
        _refuse_trees(path, record.root_t, record.left_m, record.right_m)


def _has(record: Any, name: str) -> bool:
    return is_dataclass(record) and name in {field.name for field in fields(record)}


def _parts(record: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a dataclass, those of a tuple one by one."""
    for field in fields(record):
        value = getattr(record, field.name)
        if isinstance(value, tuple):
            yield from ((f"{field.name}.{i}", part) for i, part in enumerate(value))
        else:
            yield field.name, value


def _refuse_columns(columns: Columns) -> None:
    if len(columns.kinds) != len(columns.names) or len(set(columns.names)) != len(columns.names):
        raise ValueError("the names of its columns do not fit together")


def _refuse_numbers(record: Any, path: str, array: NDArray[Any]) -> None:
    """Raise unless reals are finite and whole numbers are indices."""
    if array.dtype.kind == "f":
        # What was not measured is NaN, in features alone; a tree may split what was measured from what was not.
        may = np.isnan if isinstance(record, Features) else np.isinf if ".threshold_" in path else np.zeros_like
        sound = np.isfinite(array) | may(array).astype(bool)
        if not sound.all():
            raise ValueError(f"{path} holds {array[~sound][0]}, expected finite numbers")
        if _DIVISOR.search(path) and (array <= 0).any():
            raise ValueError(f"{path} holds {array.min()}, expected numbers above 0")
    elif array.dtype.kind == "i" and array.size and array.min() < 0:
        raise ValueError(f"{path} holds {array.min()}, expected indices of 0 or more")


def _refuse_number(path: str, number: float) -> None:
    if not math.isfinite(number):
        raise ValueError(f"{path} is {number}, expected a finite number")
    if _DIVISOR.search(path) and number <= 0:
        raise ValueError(f"{path} is {number}, expected a number above 0")


def _refuse_trees(path: str, root_t: NDArray[Any], left_m: NDArray[Any], right_m: NDArray[Any]) -> None:
    """Raise unless each walk down from a root ends: children come after their parent, and a leaf is its own child."""
    own_m = np.arange(len(left_m))
    leaf_m = left_m == own_m
    forward_m = (left_m > own_m) & (right_m > own_m)
    if not (forward_m | (leaf_m & (right_m == own_m))).all():
        raise ValueError(f"{path} holds a tree that does not end")
    level, reached_m = np.unique(root_t), np.zeros(len(left_m), dtype=bool)
    for _ in range(_DEEPEST_TREE):
        reached_m[:] = False
        inner = level[~leaf_m[level]]
        if not len(inner):
            return
        reached_m[left_m[inner]] = reached_m[right_m[inner]] = True
        level = np.flatnonzero(reached_m)
    raise ValueError(f"{path} holds a tree of more than {_DEEPEST_TREE:,} levels")


def _refuse_answer(fitted: FittedModel, features: Features, platforms: int) -> None:
    """Ask the model about some cells, from each source: parts that fit alone may not fit together."""
    asked = _asked(fitted.columns, features)
    with np.errstate(all="ignore"):
        try:
            forecast = fitted.forecast(asked) if fitted.forecasts else None
            predicted_np = fitted.predict(asked) if forecast is None else forecast.log_relative_np
        except PredictError as error:
            raise ValueError("it answers with what is no finite number") from error
        latent_nk = fitted.part.latent(asked) if isinstance(fitted.part, LatentSpace) else np.zeros(0)
    if not np.isfinite(latent_nk).all():
        raise ValueError("its latent space has places that are no finite numbers")
    if predicted_np.shape != (len(asked), platforms) or not np.isfinite(predicted_np).all():
        raise ValueError(f"it does not answer with a time for each of its {platforms} platforms")
    if forecast is not None:
        low_np, high_np = forecast.between(0.8, np.zeros(len(asked), dtype=np.int64))
        if low_np.shape != predicted_np.shape or not np.isfinite([low_np, high_np]).all():
            raise ValueError("it does not answer with an interval for each of its platforms")


def _asked(columns: Columns, features: Features) -> Features:
    """Return the first training cell of each source, and a cell of each of which nothing was measured."""
    blank, sources = np.full((max(len(columns.sources), 1), len(columns)), np.nan), columns.mask(SOURCE)
    blank[:, sources] = np.eye(len(columns.sources))
    first_n = np.unique(features.source_n, return_index=True)[1]
    return Features(np.concatenate([features.values_nf[first_n], blank]), columns)
