"""Dataclasses as JSON's own types, and back: one walk over the fields instead of a pair of methods for each class."""

from __future__ import annotations

import functools
import importlib
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import PurePath
from typing import Any, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")


@runtime_checkable
class _Array(Protocol):
    """An array or a scalar of NumPy, which is not imported here."""

    def tolist(self) -> Any:
        """Return it as lists of Python's own numbers."""


def to_json(value: Any) -> Any:
    """Return a value as JSON's own types: dataclasses become objects, tuples and arrays lists, NaN becomes null.

    >>> from crossperf.records import Familiarity
    >>> to_json({"run": Familiarity("unusual", 1.5, ("threads",))})
    {'run': {'word': 'unusual', 'score': 1.5, 'because': ['threads']}}
    """
    if isinstance(value, float):  # first: files hold millions of them
        return None if math.isnan(value) else float(value)
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(part) for part in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {_key(field): to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): to_json(part) for name, part in value.items()}
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, _Array):
        return to_json(value.tolist())
    return value


def from_json(kind: type[T], facts: Any) -> T:
    """Return the dataclass that `to_json` wrote; keys it does not know are passed over, absent ones take their default.

    What does not fit raises `ValueError`, `TypeError` or `KeyError`: the reader of a file turns it into one sentence.

    >>> from crossperf.records import Familiarity
    >>> from_json(Familiarity, {"word": "unusual", "score": 2, "because": ["threads"]})
    Familiarity(word='unusual', score=2.0, because=('threads',))
    """
    return typing.cast(T, _read(kind, facts))


def _read(kind: Any, facts: Any) -> Any:
    """Return facts as the type of a field says."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any or kind is object:
        return facts
    if origin in (typing.Union, types.UnionType):
        return None if facts is None and type(None) in arguments else _read_first(arguments, facts)
    if is_dataclass(kind):
        return _read_dataclass(kind, facts)
    if origin is tuple:
        kinds = [arguments[0]] * len(facts) if arguments[-1] is Ellipsis else arguments
        return tuple(_read(part, value) for part, value in zip(kinds, facts, strict=True))
    if origin in (list, set, frozenset):
        return origin(_read(arguments[0], value) for value in facts)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {_read(arguments[0], name): _read(arguments[1], value) for name, value in facts.items()}
    if getattr(origin, "__module__", "") == "numpy":
        return _read_array(arguments[-1], facts)
    if kind is float and isinstance(facts, int | float) and not isinstance(facts, bool):
        return float(facts)
    if isinstance(kind, type) and not isinstance(facts, kind):
        raise TypeError(f"found {facts!r}, expected {'a number' if kind is float else kind.__name__}")
    return facts


def _read_first(kinds: tuple[Any, ...], facts: Any) -> Any:
    """Return facts as the first type of a union that takes them."""
    problems = []
    for kind in kinds:
        try:
            return _read(kind, facts)
        except (TypeError, ValueError, KeyError, AttributeError) as problem:
            problems.append(problem)
    raise problems[0]


def _read_dataclass(kind: Any, facts: Any) -> Any:
    if not isinstance(facts, Mapping):
        raise TypeError(f"found {type(facts).__name__}, expected the fields of {kind.__name__}")
    kinds = _kinds(kind)
    values = {}
    for field in fields(kind):
        if _key(field) in facts:
            values[field.name] = _read(kinds[field.name], facts[_key(field)])
        elif field.default is MISSING and field.default_factory is MISSING:
            raise KeyError(_key(field))
    return kind(**values)


def _key(field: Field[Any]) -> str:
    """Return what JSON calls a field: its name, or ``metadata={"json": ...}`` where that is no name in Python."""
    return str(field.metadata.get("json", field.name))


@functools.cache
def _kinds(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _read_array(dtype: Any, facts: Any) -> Any:
    np = importlib.import_module("numpy")  # only a class with arrays asks for it
    number = typing.get_args(dtype)[0] if typing.get_args(dtype) else np.float64
    return np.array(facts, dtype=number)
