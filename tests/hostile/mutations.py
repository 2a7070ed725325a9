"""Sound files made unsound: of bytes, of lines, and of the values of a JSON document. Every draw comes from a seed."""

from __future__ import annotations

import copy
import io
import json
import random
import re
from collections.abc import Callable
from datetime import datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

#: Values that stand where others are expected.
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    -0.0,
    1e308,
    5e-324,
    10**18,
    10**300,
    10**4000,
    "",
    "x",
    "NaN",
    "1e999",
    "\x00",
    "\x1b]0;title\x07",
    "é" * 3,
    "a" * 5000,
    [],
    {},
    [[]],
    [None],
    ["x", 1],
    {"": ""},
    {"format": 1},
    [[1, 2], [3]],
    [[[[[[[[1]]]]]]]],
]
#: Text that no encoder writes, put in the place of a value.
RAW = [
    b"NaN",
    b"-Infinity",
    b"1e999",
    b'"\\ud800"',
    b'"\\udc00\\ud800"',
    b"9" * 5000,
    b"[" * 200 + b"]" * 200,
    b"[" * 100_000,
    b'{"a":' * 60 + b"1" + b"}" * 60,
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"'x'",
    b"01",
    b"+1",
    b"1,",
    b"//",
    b"",
]
_MARK = "\ue000mark\ue000"


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the place of every value in a document, itself first; of long lists the ends alone."""
    own = [path]
    if isinstance(value, dict):
        for key, part in value.items():
            own += places(part, (*path, key))
    elif isinstance(value, list):
        for i in sorted({*range(min(3, len(value))), *range(max(0, len(value) - 1), len(value))}):
            own += places(value[i], (*path, i))
    return own


def put(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a copy of a document with another value at a place."""
    if not path:
        return value
    made = copy.deepcopy(document)
    holder = made
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return made


def put_raw(document: Any, path: tuple[Any, ...], raw: bytes) -> bytes:
    """Return a document as bytes, with bytes that need not be JSON at a place."""
    return json.dumps(put(document, path, _MARK)).encode().replace(json.dumps(_MARK).encode(), raw)


def drop(document: Any, path: tuple[Any, ...]) -> Any:
    """Return a copy of a document without the value at a place."""
    made = copy.deepcopy(document)
    holder = made
    for key in path[:-1]:
        holder = holder[key]
    del holder[path[-1]]
    return made


def mutated_json(document: Any, rng: random.Random) -> bytes:
    """Return a document of which one to three values are odd, absent, doubled or swapped, as bytes."""
    for _ in range(rng.randint(1, 3)):
        paths = places(document)
        path = rng.choice(paths)
        kind = rng.randrange(5)
        if kind == 0 and path:
            document = drop(document, path)
        elif kind == 1:
            document = put(document, path, copy.deepcopy(_at(document, rng.choice(paths))))
        elif kind == 2 and rng.random() < 0.5:
            return put_raw(document, path, rng.choice(RAW))
        else:
            document = put(document, path, rng.choice(ODD))
    return json.dumps(document).encode()


def _at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


#: What readers of text stumble over, put between bytes.
_WORDS = (
    *(b"\x00", b"\xff", b'"', b"\n", b",", b"[", b"{", b"\\ud800", b"1e999", b"NaN", b"-1", b"0", b"1e-320", b"e300"),
    *(b"9" * 400, b"\r", b"\t", b"=", b"(", b"\xe2\x80\xa8", b"[" * 60, b"\xef\xbb\xbf"),
)


def mutated_bytes(data: bytes, rng: random.Random) -> bytes:
    """Return bytes of which some are changed, taken away, doubled or strange."""
    made = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at, length = rng.randrange(len(made) + 1), rng.choice((1, 1, 2, 4, 16, 200))
        kind = rng.randrange(6)
        if kind == 0:
            made[at : at + length] = rng.randbytes(length)
        elif kind == 1:
            del made[at : at + length]
        elif kind == 2:
            made[at:at] = made[at : at + length]
        elif kind == 3 and at < len(made):
            made[at] ^= 1 << rng.randrange(8)
        elif kind == 4:
            made[at:at] = rng.choice(_WORDS)
        elif rng.random() < 0.1:
            del made[at:]
    return bytes(made)


#: What stands in the place of a number: longer than any float, than what `int` reads, negative, tiny, beyond 64 bits.
NUMBERS = (b"9" * 400, b"9" * 5000, b"-1", b"0", b"1e400", b"nan", b"1e-320", b"18446744073709551616", "²".encode())


def numbers_of(data: bytes) -> list[tuple[int, int]]:
    """Return where each run of digits begins and ends."""
    return [match.span() for match in re.finditer(rb"\d+", data)]


def mutated_number(data: bytes, rng: random.Random) -> bytes:
    """Return bytes of which one number, wherever it stands, is another one that a reader may stumble over."""
    spans = numbers_of(data)
    start, end = rng.choice(spans) if spans else (len(data), len(data))
    return data[:start] + rng.choice(NUMBERS) + data[end:]


def mutated_arrays(data: bytes, rng: random.Random) -> bytes:
    """Return a file of arrays of which one or two are changed in values, shape, type or name."""
    with np.load(io.BytesIO(data)) as held:
        arrays = dict(held)
    for _ in range(rng.randint(1, 2)):
        name = rng.choice(list(arrays))
        array = arrays[name]
        kind = rng.randrange(8)
        if kind == 0:
            del arrays[name]
        elif kind == 1:
            arrays[name] = array[..., :-1] if array.ndim else array[None]
        elif kind == 2:
            arrays[name] = array.reshape(-1)
        elif kind == 3:
            arrays[name] = arrays[rng.choice(list(arrays))]
        elif kind == 4:
            arrays[name + rng.choice(("@place", ".0", ".kind"))] = arrays.pop(name)
        elif array.size and array.dtype.kind in "fiu":
            changed = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
            odd = (np.nan, np.inf, 1e300, -1.0) if array.dtype.kind == "f" else (-1, 0, 2**40, array.size - 1)
            changed.flat[rng.randrange(array.size)] = rng.choice(odd)
            arrays[name] = changed
        else:
            arrays[name] = rng.choice((np.array("linear"), np.array([True]), np.zeros(0), np.array(["\x00", "x"])))
    made = io.BytesIO()
    np.savez(made, **arrays)  # type: ignore[arg-type]
    return made.getvalue()


def mutated_frame(data: bytes, rng: random.Random) -> bytes:
    """Return a Parquet file of which one column is of another type, name or value."""
    frame = pl.read_parquet(data)
    name = rng.choice(frame.columns)
    height = frame.height
    odd = rng.choice(_COLUMNS)(height)
    kind = rng.randrange(4)
    if kind == 0:
        frame = frame.drop(name)
    elif kind == 1:
        frame = frame.rename({name: rng.choice(("__row__", "", "counter.", "counter.x", "\x00", "é\n"))})
    elif kind == 2:
        frame = frame.with_columns(odd.alias(rng.choice(("counter.x", "more", "events"))))
    else:
        frame = frame.with_columns(odd.alias(name))
    made = io.BytesIO()
    frame.write_parquet(made)
    return made.getvalue()


_COLUMNS: list[Callable[[int], pl.Series]] = [
    lambda height: pl.Series([timedelta(days=1)] * height),
    lambda height: pl.Series([b"\xff\x00"] * height),
    lambda height: pl.Series([datetime(2026, 1, 1)] * height),
    lambda height: pl.Series([time(1, 2)] * height),
    lambda height: pl.Series([[1, 2]] * height),
    lambda height: pl.Series([{"a": b"x"}] * height),
    lambda height: pl.Series([{"valgrind": {"Ir": 5}}] * height),
    lambda height: pl.Series([None] * height),
    lambda height: pl.Series([True] * height),
    lambda height: pl.Series(["a"] * height, dtype=pl.Categorical),
    lambda height: pl.Series([2**64 - 1] * height, dtype=pl.UInt64),
    lambda height: pl.Series([Decimal("1.25")] * height),
    lambda height: pl.Series([float("nan"), *[float("inf")] * (height - 1)]),
    lambda height: pl.Series(["\x00", *["x" * 5000] * (height - 1)]),
]


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return a file made unsound: a document by its values, lines of them line by line, everything by its bytes."""
    kind = rng.random()
    if kind < 0.1:
        return mutated_number(data, rng)
    if kind < 0.3:
        return mutated_bytes(data, rng)
    if data.startswith(b"PK"):
        return mutated_arrays(data, rng)
    if data.startswith(b"PAR1"):
        return mutated_frame(data, rng)
    lines = data.splitlines(keepends=True)
    try:
        return mutated_json(json.loads(data), rng)
    except ValueError:
        pass
    if lines and lines[0].startswith(b"{"):
        number = rng.randrange(len(lines))
        lines[number] = mutated_json(json.loads(lines[number]), rng) + b"\n"
        return b"".join(lines)
    return mutated_bytes(data, rng)
