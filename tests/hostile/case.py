"""A bad input with its sentence, and what most are made from: faults of documents, values that no field takes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.hostile.mutations import drop, put, put_raw
from tests.hostile.targets import BY_NAME

Place = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """A bad input, and the sentence expected."""

    target: str
    name: str
    made: Callable[[], bytes]
    sentence: str

    def __str__(self) -> str:
        return f"{self.target}: {self.name}"


#: The readers of a JSON object, with the formats that each reads.
DOCUMENTS = {"evaluation": (2, 3), "platforms": (1, 1), "predictions": (1, 1), "model": (2, 3)}


TOO_DEEP = r"nested more than 50 deep"


#: What is no JSON, or no document of ours, whatever the reader.
FAULTS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", r"is not JSON \(Expecting value: line 1 column 1\)"),
    "blank": (b" \n\n", r"is not JSON \(Expecting value"),
    "a zero byte": (b"\x00", r"is not JSON \(Expecting value"),
    "not UTF-8": (b'{"a": "\xff"}', r"is not JSON \(it is not UTF-8 text\)"),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), r"is not JSON \(it is not UTF-8 text\)"),
    "half a character in UTF-8": (b'{"a": "\xed\xa0\x80"}', r"is not JSON \(it is not UTF-8 text\)"),
    "half a character": (b'{"a": "\\ud800"}', r"half a character \(a lone surrogate\)"),
    "the other half": (b'{"a\\uDC00": 1}', r"half a character \(a lone surrogate\)"),
    "deep lists": (b"[" * 100_000, TOO_DEEP),
    "deep lists that end": (b"[" * 51 + b"]" * 51, TOO_DEEP),
    "deep objects": (b'{"a":' * 5_000, TOO_DEEP),
    "deep behind a text": (b'["[", "\\"]", ' + b"[" * 60, TOO_DEEP),
    "5,000 digits": (b'{"format": ' + b"9" * 5_000 + b"}", r"a number has too many digits"),
    "NaN": (b'{"format": NaN}', r"NaN is no number of JSON"),
    "Infinity": (b"[-Infinity]", r"-Infinity is no number of JSON"),
    "a comment": (b"// a\n{}", r"is not JSON"),
    "single quotes": (b"{'format': 1}", r"is not JSON \(Expecting property name"),
    "two documents": (b'{"format": 1}{"format": 1}', r"is not JSON \(Extra data"),
    "cut short": (b'{"format": 1, "pl', r"is not JSON \(Unterminated string"),
    "a list": (b"[1, 2]", r"found a list of 2, expected .*, which is an object"),
    "a number": (b"7", r"found 7, expected .*, which is an object"),
    "a text": (b'"evaluation"', r"found 'evaluation', expected .*, which is an object"),
    "null": (b"null", r"found null, expected .*, which is an object"),
    "no format": (b"{}", r"found no format, expected .*, which names its format"),
    "format 0": (b'{"format": 0}', r"found format 0, expected .* of format"),
    "format 99": (b'{"format": 99}', r"found format 99, expected .* of format .*\. Upgrade crossperf\."),
    "format '3'": (b'{"format": "3"}', r"found format '3', expected .* of format"),
    "format true": (b'{"format": true}', r"found format true, expected .* of format"),
    "format 1.0": (b'{"format": 1.0}', r"found format 1\.0, expected .* of format"),
    "format null": (b'{"format": null}', r"found format null, expected .* of format"),
    "a format of a list": (b'{"format": [1]}', r"found format a list of 1, expected .* of format"),
    "a huge format": (b'{"format": 1' + b"0" * 4_000 + b"}", r"found format a number of more than 64 bits, .*Upgrade"),
}


def faulty_documents() -> Iterator[Case]:
    """Yield every document with every fault."""
    for target in DOCUMENTS:
        for name, (data, sentence) in FAULTS.items():
            yield Case(target, name, lambda data=data: data, sentence)  # type: ignore[misc]


def _document(target: str) -> Any:
    return json.loads(BY_NAME[target].sound())


def changed(target: str, place: Place, value: Any, sentence: str) -> Case:
    """Return a sound document with another value at a place; bytes stand there as they are."""

    def made() -> bytes:
        document = _document(target)
        if isinstance(value, bytes):
            return put_raw(document, place, value)
        return json.dumps(put(document, place, value)).encode()

    shown = value[:12] if isinstance(value, bytes) else str(value)[:20]
    return Case(target, f"{'.'.join(map(str, place))} = {shown}", made, sentence)


def without(target: str, place: Place, sentence: str) -> Case:
    """Return a sound document without the entry at a place."""
    made = lambda: json.dumps(drop(_document(target), place)).encode()  # noqa: E731
    return Case(target, f"no {'.'.join(map(str, place))}", made, sentence)


def at(place: Place, found: str, expected: str) -> str:
    """Return the pattern of a misfit at a place."""
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
    return rf"at {re.escape(where)}: found {found}, expected {expected}"


TOO_LARGE = "a number too large to compute with"


#: What is no number above 0, and how it is named.
NO_TIME: dict[str, tuple[Any, str, str]] = {
    "0": (0, "0", "a number above 0"),
    "-1": (-1.5, r"-1\.5", "a number above 0"),
    "text": ("fast", "'fast'", "a number"),
    "true": (True, "true", "a number"),
    "list": ([], "a list of 0", "a number"),
    "object": ({}, "an object", "a number"),
    "1e999": (b"1e999", TOO_LARGE, "a finite number"),
    "400 digits": (10**400, TOO_LARGE, "a finite number"),
}


NO_COUNT: dict[str, tuple[Any, str, str]] = {
    "text": ("two", "'two'", "a whole number"),
    "-1": (-1, "-1", "a number of 0 or more"),
    "1.5": (1.5, r"1\.5", "a whole number"),
    "true": (True, "true", "a whole number"),
    "list": ([], "a list of 0", "a whole number"),
    "30 digits": (10**30, "a number of more than 64 bits", "a whole number"),
}


NO_TEXT: dict[str, tuple[Any, str, str]] = {
    "number": (5, "5", "a text"),
    "null": (None, "null", "a text"),
    "list": (["x"], "a list of 1", "a text"),
    "object": ({}, "an object", "a text"),
}


NO_LIST: dict[str, tuple[Any, str, str]] = {
    "text": ("x", "'x'", "a list"),
    "null": (None, "null", "a list"),
    "object": ({}, "an object", "a list"),
}


NO_OBJECT: dict[str, tuple[Any, str, str]] = {
    "text": ("x", "'x'", "an object"),
    "list": ([1], "a list of 1", "an object"),
    "number": (3, "3", "an object"),
}


def each(target: str, places: list[Place], values: dict[str, tuple[Any, str, str]]) -> Iterator[Case]:
    """Yield a case for every place and every value that may not stand there."""
    for place in places:
        for value, found, expected in values.values():
            yield changed(target, place, value, at(place, found, expected))
