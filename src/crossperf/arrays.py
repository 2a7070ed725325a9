"""The array types that signatures name; axis letters end the names of the arrays themselves.

A field ``weights_pf`` has the axes P and F, and ``limits_2p`` two rows of P: the name declares the shape.
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

_AXES = re.compile(r"_([a-z0-9]{1,4})\Z")


def axes_of(record: Any) -> dict[str, int]:
    """Return the length of each axis that the arrays of a dataclass have by their names; those that clash raise.

    An array without any number may have fewer axes than its name: a file of JSON writes it as ``[]``.

    >>> from crossperf.model.fitted.peers import Linear
    >>> axes_of(Linear(None, np.zeros((3, 2)), np.zeros(3)))
    {'p': 3, 'f': 2}
    >>> axes_of(Linear(None, np.zeros((3, 2)), np.zeros(4)))
    Traceback (most recent call last):
    ...
    ValueError: bias_p has the shape (4,), which does not fit p=3
    """
    lengths: dict[str, int] = {}
    for field in fields(record):
        array, axes = getattr(record, field.name), _AXES.search(field.name)
        if not isinstance(array, np.ndarray) or axes is None or (not array.size and array.ndim < len(axes[1])):
            continue
        if array.ndim != len(axes[1]):
            raise ValueError(f"{field.name} has the shape {array.shape}, expected {len(axes[1])} axes")
        for axis, length in zip(axes[1], array.shape, strict=True):
            expected = int(axis) if axis.isdigit() else lengths.setdefault(axis, length)
            if length != expected:
                raise ValueError(f"{field.name} has the shape {array.shape}, which does not fit {axis}={expected}")
    return lengths


def refuse_outside(name: str, numbers: NDArray[Any], end: int) -> None:
    """Raise `ValueError` unless whole numbers count from 0 to below `end`."""
    if numbers.size and not (int(numbers.min()) >= 0 and int(numbers.max()) < end):
        outside = int(numbers.min()) if numbers.min() < 0 else int(numbers.max())
        raise ValueError(f"{name} holds {outside:,}, expected numbers from 0 to below {end:,}")
