"""Named arrays in one file: as narrow as they can be without loss, never a pickle; and what rounding can take away.

An array is stored in the narrowest type that holds its values exactly; integers that count from their own place, as the
children of a tree's nodes do, as distances from it. Whoever reads them knows which type is meant.
"""

from __future__ import annotations

import hashlib
import io
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

State = dict[str, NDArray[Any]]
#: Ends the name of an array that holds distances from the own place.
_FROM_PLACE = "@place"
_FLOATS = (np.float16, np.float32)
_INTEGERS = (np.uint8, np.int8, np.uint16, np.int16, np.int32)
#: Arrays of fewer numbers weigh nothing, and are never rounded.
_LARGE = 4096
#: What a file may unfold to: arrays, bytes, and times its own size (beyond what is small anyway).
_MOST_ARRAYS, _MOST_BYTES, _MOST_RATIO, _SMALL = 5_000, 2**33, 100, 2**26


def write(path: Path, state: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays to a file, compressed."""
    packed = dict(_packed(name, array) for name, array in state.items())
    with path.open("wb") as file:
        np.savez_compressed(file, **packed)  # type: ignore[arg-type]


def read(data: bytes) -> State:
    """Return the arrays of a file's bytes by name; pickled objects, and sizes that are not true, raise `ValueError`."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        declared = sum(member.file_size for member in members)
        if len(members) > _MOST_ARRAYS or declared > min(_MOST_BYTES, _MOST_RATIO * len(data) + _SMALL):
            raise ValueError(f"{len(members):,} arrays of {declared:,} bytes in a file of {len(data):,}")
        return dict(_unpacked(*_array(archive, member)) for member in members)


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[str, NDArray[Any]]:
    """Return one array of an archive; the shape that it declares is compared with its size before memory is taken."""
    name = member.filename.removesuffix(".npy")
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        headers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in headers:
            raise ValueError(f"{name} is an array of version {version}")
        shape, _, dtype = headers[version](file)
        if dtype.hasobject or math.prod(shape) * dtype.itemsize > member.file_size:
            raise ValueError(f"{name} declares {shape} of {dtype}, which {member.file_size:,} bytes cannot hold")
        file.seek(0)
        return name, np.lib.format.read_array(file, allow_pickle=False)


def fingerprint(state: Mapping[str, NDArray[Any]]) -> str:
    """Return a digest of named arrays: the same for the same values, however they are stored.

    >>> fingerprint({"a": np.array([1.0])}) == fingerprint({"a": np.array([1.0], np.float32)})
    True
    """
    digest = hashlib.sha256()
    for name in sorted(state):
        own = narrowed(state[name])
        digest.update(f"{name}\x00{own.dtype.str}{own.shape}\x00".encode() + np.ascontiguousarray(own).tobytes())
    return digest.hexdigest()[:16]


def narrowed(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array in the narrowest type that holds its values exactly.

    >>> narrowed(np.array([0.5, 2.0])).dtype, narrowed(np.array([0.1])).dtype, narrowed(np.array([300])).dtype
    (dtype('float16'), dtype('float64'), dtype('uint16'))
    """
    kinds = {"f": _FLOATS, "i": _INTEGERS, "u": _INTEGERS}.get(array.dtype.kind, ())
    for kind in kinds:
        if np.dtype(kind).itemsize >= array.dtype.itemsize:
            break
        with np.errstate(over="ignore"):
            narrow = array.astype(kind)
        if np.array_equal(narrow, array, equal_nan=array.dtype.kind == "f"):
            return narrow
    return array


def rounded(array: NDArray[Any], bits: int = 10) -> NDArray[Any]:
    """Return a large array of reals with fewer binary digits, in its own type; others are returned as they are.

    Parameters
    ----------
    bits
        Digits of the significand behind the first: 10 is an error of at most 1 in 2,048. What is below a 16-million-th
        then counts as 0, unless the array holds numbers too large for half precision.
    """
    if array.dtype.kind != "f" or array.size < _LARGE:
        return array
    largest = np.nanmax(np.abs(array), initial=0.0)
    low = -14.0 if largest < np.finfo(np.float16).max / 2 else -126.0
    exponent = np.frexp(np.where(np.isfinite(array), array, 1.0).astype(np.float64))[1] - 1
    step = np.exp2(np.maximum(exponent, low) - bits)
    return np.asarray(np.round(array / step) * step, dtype=array.dtype)


def _packed(name: str, array: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    narrow = narrowed(array)
    if array.dtype.kind != "i" or array.ndim != 1:
        return name, narrow
    from_place = narrowed(array - np.arange(len(array), dtype=array.dtype))
    return (name + _FROM_PLACE, from_place) if from_place.itemsize < narrow.itemsize else (name, narrow)


def _unpacked(name: str, array: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    if not name.endswith(_FROM_PLACE):
        return name, array
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ValueError(f"{name} holds {array.dtype} of shape {array.shape}, expected a row of whole numbers")
    return name.removesuffix(_FROM_PLACE), array.astype(np.int64) + np.arange(len(array))
