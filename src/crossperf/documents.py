"""JSON documents from files: bounded before they are parsed, of a known format, and in the shape of a class.

Every file of JSON that crossperf reads comes through here, so that whatever stands in it ends in a value or in one
sentence that names the file, the place in it, what was found and what was expected.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, BinaryIO, NoReturn, TextIO, TypeVar

from crossperf import plain
from crossperf.errors import CrossperfError

T = TypeVar("T")
#: Levels of lists and objects in one another; our own files have at most seven.
DEEPEST = 50
MEGABYTE = 2**20
#: Bytes of a line, where a file is read by its lines.
LONGEST_LINE = 64 * MEGABYTE
_TEXTS = re.compile(rb'"(?:[^"\\]+|\\.)*+"?', re.DOTALL)
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_BRACKETS = bytes(_STEP)
_NO_BRACKETS = bytes(set(range(256)) - set(_BRACKETS))
_MOST_DOTS = 200
#: How JSON spells half of a pair of UTF-16, which is no character by itself.
_HALVES = re.compile(r"\\u[dD][89a-fA-F]")


def parse(data: bytes, *, lenient: bool = False) -> Any:
    """Return the value of some JSON; whatever is wrong with it raises `ValueError` with the reason in words.

    Parameters
    ----------
    lenient
        Take ``NaN`` and ``Infinity`` as numbers, which other programs write and JSON does not have.

    >>> parse(b'{"a": [1]}')
    {'a': [1]}
    >>> parse(b"[" * 1000)
    Traceback (most recent call last):
    ...
    ValueError: its lists and objects are nested more than 50 deep
    """
    if depth_of(data) > DEEPEST:
        raise ValueError(f"its lists and objects are nested more than {DEEPEST} deep")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8 text") from error
    try:
        value = (_LENIENT if lenient else _STRICT).decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg}: line {error.lineno} column {error.colno}") from error
    except RecursionError as error:
        raise ValueError(f"its lists and objects are nested more than {DEEPEST} deep") from error
    except ValueError as error:
        words = "a number has too many digits" if "digits" in str(error) else str(error)
        raise ValueError(words) from error
    if _HALVES.search(text):
        _refuse_halves(value)
    return value


def parse_toml(data: bytes) -> dict[str, Any]:
    """Return the tables of some TOML; whatever is wrong with it raises `ValueError` with the reason in words.

    A dotted key nests as deep as it is long, and Python's parser takes time and memory by the square of that.
    """
    if any(line.count(b".") > _MOST_DOTS for line in data.splitlines()):
        raise ValueError(f"a line has more than {_MOST_DOTS} dots")
    try:
        facts = tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8 text") from error
    except RecursionError as error:
        raise ValueError(f"its tables are nested more than {DEEPEST} deep") from error
    level: list[Any] = [facts]
    for _ in range(DEEPEST):
        nested = (part.values() if isinstance(part, dict) else part for part in level)
        level = [part for parts in nested for part in parts if isinstance(part, dict | list)]
    if level:
        raise ValueError(f"its tables are nested more than {DEEPEST} deep")
    return facts


def depth_of(data: bytes) -> int:
    """Return how deep the lists and objects of some JSON are nested, or a lower number that is still allowed.

    >>> depth_of(b'["[[[", {"a": ' + b"[" * 60)
    62
    """
    if data.count(b"[") + data.count(b"{") <= DEEPEST:
        return 0
    brackets = _TEXTS.sub(b"", data).translate(None, _NO_BRACKETS)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0)


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number of JSON")


_STRICT, _LENIENT = json.JSONDecoder(parse_constant=_refuse), json.JSONDecoder()


def _refuse_halves(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError("a text holds half a character (a lone surrogate)") from error


def read_bytes(path: str | os.PathLike[str], most: int) -> bytes:
    """Return the bytes of a regular file of at most `most`; anything else raises `OSError` with the reason.

    A device or a pipe is not waited for.
    """
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        # Not `most` at once: memory for as much as is asked for is set aside before the first byte is read.
        data = file.read(size + 1) if size <= most else b""
        while size < len(data) <= most and (more := file.read(MEGABYTE)):  # it grows, or a kernel tells no size
            data += more
    if (size := max(size, len(data))) > most:
        raise OSError(0, f"it has {size / MEGABYTE:,.1f} MB, and {most / MEGABYTE:,.0f} MB are allowed")
    return data


def read_text(path: str | os.PathLike[str], most: int = 1024 * MEGABYTE, errors: str = "strict") -> str:
    """Return the text in UTF-8 of a regular file of at most `most` bytes, each line ended by a line feed.

    What is no UTF-8 raises `UnicodeDecodeError`, unless `errors` says otherwise.
    """
    return read_bytes(path, most).decode("utf-8-sig", errors).replace("\r\n", "\n").replace("\r", "\n")


def lines_of(file: TextIO) -> Iterator[str]:
    """Yield the lines of a text; one that is longer than any may be raises `OSError`."""
    for line in iter(lambda: file.readline(LONGEST_LINE + 1), ""):
        if len(line) > LONGEST_LINE:
            raise OSError(0, f"a line has more than {LONGEST_LINE / MEGABYTE:,.0f} MB")
        yield line


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a regular file for reading; a folder, a pipe or a device raises `OSError` and is not waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") if _is_regular(descriptor) else _refused(descriptor, path) as file:
        try:
            yield file
        except OSError as error:
            error.filename = error.filename or os.fspath(path)  # so that whoever tells of it can name the file
            raise


def _is_regular(descriptor: int) -> bool:
    return stat.S_ISREG(os.fstat(descriptor).st_mode)


def _refused(descriptor: int, path: str | os.PathLike[str]) -> NoReturn:
    is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
    os.close(descriptor)
    raise OSError(0, "it is a folder" if is_folder else "it is no regular file", os.fspath(path))


@dataclass(frozen=True)
class Document:
    """A kind of JSON file: what it holds, the formats that are read, and what to do about one that is not.

    >>> kind = Document("scores", "Evaluate again.", format=3, oldest=2)
    >>> kind.check({"format": 99}, "e.json")
    Traceback (most recent call last):
    ...
    crossperf.errors.CrossperfError: e.json: found format 99, expected scores of format 2 or 3. Upgrade crossperf.
    """

    noun: str
    cure: str
    format: int
    oldest: int | None = None
    error: type[CrossperfError] = CrossperfError
    most_bytes: int = 1024 * MEGABYTE

    def read(self, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Return the object of a file, its format checked."""
        return self.check(self.parsed(path), path)

    def parsed(self, path: str | os.PathLike[str]) -> Any:
        """Return the JSON value of a file."""
        try:
            return parse(read_bytes(path, self.most_bytes))
        except OSError as error:
            raise self.refusal(path, f"cannot be read ({error.strerror})", self.noun) from error
        except ValueError as error:
            raise self.refusal(path, f"is not JSON ({error})", self.noun) from error

    def check(self, facts: Any, where: str | os.PathLike[str]) -> dict[str, Any]:
        """Return an object whose format is one of those that are read."""
        if not isinstance(facts, dict):
            raise self.refusal(where, f"found {plain.shown(facts)}", f"{self.noun}, which is an object")
        if "format" not in facts:
            raise self.refusal(where, "found no format", f"{self.noun}, which names its format")
        written, formats = facts["format"], range(self.oldest or self.format, self.format + 1)
        if type(written) is int and written in formats:
            return facts
        newer = type(written) is int and written > self.format
        expected = f"{self.noun} of format {' or '.join(map(str, formats))}"
        cure = "Upgrade crossperf." if newer else self.cure
        problem = f"{where}: found format {plain.shown(written)}, expected {expected}. {cure}"
        raise self.error(problem, path=str(where), found=written, expected=self.format)

    def shaped(self, kind: type[T], facts: Any, where: str | os.PathLike[str]) -> T:
        """Return facts as a dataclass; what does not fit raises with its place."""
        try:
            return plain.from_json(kind, facts)
        except ValueError as misfit:
            raise self.misfit(misfit, where) from misfit

    def misfit(self, error: ValueError, where: str | os.PathLike[str]) -> CrossperfError:
        """Return the error of a file of which something does not fit its place."""
        if isinstance(error, plain.MisfitError):
            return self.error(f"{where}: {error}. {self.cure}", path=str(where), place=error.place)
        return self.error(f"{where}: does not read as {self.noun} ({error}). {self.cure}", path=str(where))

    def refusal(self, where: str | os.PathLike[str], problem: str, expected: str) -> CrossperfError:
        """Return the error of a file: where, what was found, what was expected, what to do."""
        return self.error(f"{where}: {problem}, expected {expected}. {self.cure}", path=str(where))


def at(facts: Mapping[str, Any], key: str, kind: Any) -> Any:
    """Return one entry of an object as a type; an absent one and a misfit raise `plain.MisfitError` with the place."""
    if not isinstance(facts, Mapping) or key not in facts:
        raise plain.MisfitError(f"no {key!r}", "one")
    try:
        return plain.from_json(kind, facts[key])
    except plain.MisfitError as misfit:
        raise misfit.below(key) from None
