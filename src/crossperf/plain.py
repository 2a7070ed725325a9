"""Dataclasses as JSON's own types, and back: the fields of a class are the schema that a file is checked against."""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import PurePath
from typing import Any, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")
#: Whole numbers beyond 64 bits fit no column of any table.
_WHOLE, _DIGITS = 2**63, 30
_SHOWN = 60
_JSON_WORDS = ((None, "null"), (True, "true"), (False, "false"))
_NUMBERS = frozenset({int, float, type(None)})


class MisfitError(ValueError):
    """A value that does not fit its place in a document: where it stands, what it is, and what was expected.

    >>> str(MisfitError("'x'", "a number").below("low").below(3))
    "at [3].low: found 'x', expected a number"
    """

    def __init__(self, actual: str, expected: str, place: tuple[str | int, ...] = ()) -> None:
        self.actual, self.expected, self.place = actual, expected, place
        where = "".join(f"[{part}]" if isinstance(part, int) else f".{_name(part)}" for part in place).lstrip(".")
        super().__init__(f"{f'at {where}: ' if where else ''}found {actual}, expected {expected}")

    def below(self, part: str | int) -> MisfitError:
        """Return the same misfit seen from one level further up."""
        return MisfitError(self.actual, self.expected, (part, *self.place))


@dataclass(frozen=True)
class Between:
    """The numbers that a field may hold; stands in its type: ``Annotated[float, Between(above=0)]``."""

    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf

    def __str__(self) -> str:
        if self.above > -math.inf:
            return f"a number above {self.above:g}"
        return f"a number of {self.least:g} or more" if self.most == math.inf else f"{self.least:g} to {self.most:g}"

    def holds(self, number: float) -> bool:
        """Tell whether a number is one of them; NaN, which stands for "not known", always is."""
        # NaN differs from itself; `math.isnan` does not take whole numbers of hundreds of digits.
        return number != number or (self.least <= number <= self.most and number > self.above)  # noqa: PLR0124


def whole(text: str) -> int | None:
    """Return the number that a text of digits spells, ``None`` where it is none that 64 bits hold.

    ``int`` takes superscripts for digits in `str.isdigit` alone, and refuses thousands of digits in words of its own.

    >>> whole("42"), whole("-1"), whole("4.0"), whole("9" * 5000), whole("\u00b2")
    (42, None, None, None, None)
    """
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else _WHOLE
    return number if number < _WHOLE else None


@dataclass(frozen=True)
class OneOf:
    """The words that a field may hold; stands in its type: ``Annotated[str, OneOf(("low", "high"))]``."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"one of {', '.join(map(repr, self.words))}"

    def holds(self, word: str) -> bool:
        """Tell whether a word is one of them."""
        return word in self.words


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

    What does not fit raises `MisfitError` with its place: the reader of a file turns it into one sentence. A class
    whose fields must fit together checks that in ``__post_init__`` and raises `ValueError`.

    >>> from crossperf.records import Familiarity
    >>> from_json(Familiarity, {"word": "unusual", "score": 2, "because": ["threads"]})
    Familiarity(word='unusual', score=2.0, because=('threads',))
    """
    return typing.cast(T, _read(kind, facts))


def shown(value: Any) -> str:
    """Return a value in a few characters, as an error names it: large ones and nested ones by their kind alone.

    >>> shown("a" * 99), shown([1, 2]), shown(10**5000)
    ("'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…'", 'a list of 2', 'a number of more than 64 bits')
    """
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return f"a list of {len(value):,}"
    if isinstance(value, int) and abs(value) >= _WHOLE:
        return "a number of more than 64 bits"
    if isinstance(value, str):
        return repr(value[:_SHOWN] + "…" if len(value) > _SHOWN else value)
    return next((word for known, word in _JSON_WORDS if value is known), None) or repr(value)


def _name(key: str) -> str:
    """Return a key as a place names it: plain where it is a short word, otherwise quoted."""
    return key if len(key) <= _SHOWN and key.replace("-", "_").isidentifier() else shown(key)


def _below(part: str | int, kind: Any, facts: Any) -> Any:
    """Return one part of a value as its type says; what does not fit is named with its place."""
    try:
        return _read(kind, facts)
    except MisfitError as misfit:
        raise misfit.below(part) from None


def _read(kind: Any, facts: Any) -> Any:
    """Return facts as the type of a field says."""
    return _reader(kind)(facts)


@functools.cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    """Return what reads facts as a type."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any or kind is object:
        return lambda facts: facts
    if origin is typing.Annotated:
        return functools.partial(_read_bounded, *arguments)
    if origin is typing.Literal:
        return functools.partial(_read_bounded, str, OneOf(arguments))
    if origin in (typing.Union, types.UnionType):
        return functools.partial(_read_first, arguments)
    if is_dataclass(kind):
        return functools.partial(_read_dataclass, kind)
    if origin in (tuple, list, set, frozenset):
        return functools.partial(_read_list, origin, arguments)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return functools.partial(_read_mapping, arguments[1])
    if getattr(origin, "__module__", "") == "numpy":
        return functools.partial(_read_array, arguments[-1])
    if isinstance(kind, type) and issubclass(kind, PurePath):
        return lambda facts: kind(_read_scalar(str, facts))
    return functools.partial(_read_scalar, kind)


def _read_scalar(kind: Any, facts: Any) -> Any:
    if kind is float and type(facts) in (int, float):
        return _float(facts)
    fits = type(facts) is kind if kind in (int, bool) else isinstance(facts, kind)
    if not fits or (kind is int and abs(facts) >= _WHOLE):
        raise MisfitError(shown(facts), _WORDS.get(kind, getattr(kind, "__name__", "a value")))
    return facts


_WORDS = {float: "a number", int: "a whole number", str: "a text", bool: "true or false", type(None): "null"}


def _float(number: float) -> float:
    try:
        value = float(number)
    except OverflowError:
        value = math.inf
    if math.isinf(value):
        raise MisfitError("a number too large to compute with", "a finite number")
    return value


def _read_bounded(kind: Any, limits: Between | OneOf, facts: Any) -> Any:
    value = _read(kind, facts)
    if value is not None and not limits.holds(value):
        raise MisfitError(shown(facts), str(limits))
    return value


def _read_first(kinds: tuple[Any, ...], facts: Any) -> Any:
    """Return facts as the first type of a union that takes them; the misfit of the first is that of all."""
    if facts is None and type(None) in kinds:
        return None
    misfits = []
    for kind in kinds:
        try:
            return _read(kind, facts)
        except MisfitError as misfit:
            misfits.append(misfit)
    raise misfits[0]


def _read_list(origin: Any, arguments: tuple[Any, ...], facts: Any) -> Any:
    if not isinstance(facts, list | tuple):
        raise MisfitError(shown(facts), "a list")
    alike = origin is not tuple or arguments[-1] is Ellipsis
    kinds = itertools.repeat(arguments[0], len(facts)) if alike else arguments
    if not alike and len(facts) != len(arguments):
        raise MisfitError(shown(facts), f"a list of {len(arguments)}")
    return origin(_below(i, part, value) for i, (part, value) in enumerate(zip(kinds, facts, strict=True)))


def _read_mapping(kind: Any, facts: Any) -> dict[str, Any]:
    if not isinstance(facts, Mapping):
        raise MisfitError(shown(facts), "an object")
    return {str(name): _below(str(name), kind, value) for name, value in facts.items()}


def _read_dataclass(kind: Any, facts: Any) -> Any:
    if not isinstance(facts, Mapping):
        raise MisfitError(shown(facts), "an object")
    kinds = _kinds(kind)
    values = {}
    for field in fields(kind):
        if _key(field) in facts:
            values[field.name] = _below(_key(field), kinds[field.name], facts[_key(field)])
        elif field.default is MISSING and field.default_factory is MISSING:
            raise MisfitError(f"no {_key(field)!r}", "one")
    try:
        return kind(**values)
    except MisfitError:
        raise
    except ValueError as error:  # from __post_init__: what fits alone does not fit together
        raise MisfitError(f"values that do not fit together ({error})", "what crossperf wrote") from error


def _key(field: Field[Any]) -> str:
    """Return what JSON calls a field: its name, or ``metadata={"json": ...}`` where that is no name in Python."""
    return str(field.metadata.get("json", field.name))


@functools.cache
def _kinds(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind, include_extras=True)


def _read_array(dtype: Any, facts: Any) -> Any:
    """Return nested lists of the same lengths as an array; null is NaN in an array of reals."""
    np = importlib.import_module("numpy")  # only a class with arrays asks for it
    number = typing.get_args(dtype)[0] if typing.get_args(dtype) else np.float64
    wanted = {"f": _NUMBERS, "i": {int}, "b": {bool, int}}[np.dtype(number).kind]
    leaves, shape = _flat(facts)
    strange = set(map(type, leaves)) - wanted
    if strange:
        odd = next(leaf for leaf in leaves if type(leaf) in strange)
        raise MisfitError(shown(odd), "true or false" if bool in wanted else "numbers")
    try:
        array = np.array(leaves, dtype=number).reshape(shape)
    except OverflowError as error:
        raise MisfitError("a number too large to compute with", "numbers of 64 bits") from error
    if np.isinf(array).any():
        raise MisfitError("a number too large to compute with", "finite numbers")
    return array


def _flat(facts: Any) -> tuple[list[Any], tuple[int, ...]]:
    """Return the leaves of nested lists, and their shape; lists of different lengths raise."""
    if not isinstance(facts, list):
        raise MisfitError(shown(facts), "a list of numbers")
    level, shape = facts, [len(facts)]
    while level and isinstance(level[0], list):
        lengths = {len(part) if isinstance(part, list) else -1 for part in level}
        if len(lengths) > 1:
            raise MisfitError("lists of different lengths", "rows of the same length")
        shape.append(lengths.pop())
        level = list(itertools.chain.from_iterable(level))
    return level, tuple(shape)
