"""Plain data that travels between processes and is kept in files: facts of JSON, and arrays by name; never a pickle."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossperf import packing
from crossperf.documents import MEGABYTE, parse, read_bytes
from crossperf.files import whole

_FACTS = "facts.json"
_MOST_BYTES = 4096 * MEGABYTE


@dataclass(frozen=True, eq=False)
class Parcel:
    """Facts and arrays: what a piece of work is given, and what it answers.

    The facts are JSON's own types; numbers that JSON does not have, such as NaN, are for the arrays.

    >>> import pathlib, tempfile
    >>> sent = Parcel({"model": "ridge"}, {"predicted_np": np.array([[0.1, np.nan]])})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sent.write(pathlib.Path(folder) / "piece.npz")
    ...     received = Parcel.read(pathlib.Path(folder) / "piece.npz")
    >>> received.facts, received.fingerprint == sent.fingerprint
    ({'model': 'ridge'}, True)
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of all of it: the same for the same facts and the same bits."""
        digest = hashlib.sha256(canonical(self.facts))
        for name in sorted(self.arrays):
            array = np.ascontiguousarray(self.arrays[name])
            digest.update(f"\x00{name}\x00{array.dtype.str}{array.shape}\x00".encode() + array.tobytes())
        return digest.hexdigest()

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write all of it to one file, which appears whole or not at all."""
        kinds = {name: array.dtype.str for name, array in self.arrays.items()}
        facts = np.frombuffer(canonical({"facts": self.facts, "kinds": kinds}), np.uint8)
        with whole(path) as part:
            packing.write(part, {**self.arrays, _FACTS: facts})

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Parcel:
        """Return what `write` wrote; whatever is wrong with the file raises `OSError` or `ValueError`."""
        try:
            arrays = packing.read(read_bytes(path, _MOST_BYTES))
            written = parse(arrays.pop(_FACTS).tobytes())
            exact = {name: arrays[name].astype(kind, copy=False) for name, kind in written["kinds"].items()}
            return cls(written["facts"], exact)
        except (KeyError, TypeError, zipfile.BadZipFile, EOFError) as error:
            raise ValueError(f"it is no file of facts and arrays ({error})") from error


def canonical(facts: Any) -> bytes:
    """Return facts as JSON of one spelling; what JSON does not have raises `ValueError`.

    >>> canonical({"b": 1, "a": [0.1]})
    b'{"a":[0.1],"b":1}'
    """
    return json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode()
