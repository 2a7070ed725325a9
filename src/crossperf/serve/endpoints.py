"""What an endpoint takes and gives, described once: routes, scopes, checks and the OpenAPI document follow from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from starlette.datastructures import QueryParams
from starlette.responses import Response

from crossperf import plain
from crossperf.errors import did_you_mean
from crossperf.serve.problems import Fault, RequestError

if TYPE_CHECKING:
    from starlette.requests import Request

    from crossperf.serve.context import Context

Scope = Literal["open", "read", "write"]
_TRUE, _FALSE = ("true", "1", "yes", ""), ("false", "0", "no")
_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", list: "names"}


@dataclass(frozen=True)
class Parameter:
    """A parameter of the query: its type, its default, and what it may be."""

    name: str
    kind: type
    text: str
    default: Any = None
    limits: plain.Between | plain.OneOf | None = None

    def read(self, written: str) -> Any:
        """Return a value of the query as its type; one that does not fit raises `plain.MisfitError`."""
        if self.kind is bool and written.lower() in (*_TRUE, *_FALSE):
            return written.lower() in _TRUE
        if self.kind is list:
            return [name for part in written.split(",") for name in part.split()]
        value: Any = written
        if self.kind in (int, float, bool):
            try:
                value = {int: int, float: float}[self.kind](written)
            except (KeyError, ValueError):
                raise plain.MisfitError(plain.shown(written), self.expected) from None
        if (self.limits is not None and not self.limits.holds(value)) or value != value:  # noqa: PLR0124 - NaN
            raise plain.MisfitError(plain.shown(written), self.expected)
        return value

    @property
    def expected(self) -> str:
        """What its value may be, in words."""
        return str(self.limits) if self.limits is not None else _WORDS[self.kind]


@dataclass(frozen=True)
class Endpoint:
    """One method on one path of the API.

    Parameters
    ----------
    scope
        What a token must allow; ``open`` needs none.
    body
        The media types that it takes, each with the type of what they hold (a class, or ``bytes``); none: no body.
    answers
        The media types that it gives, each with the type of what they hold.
    """

    method: str
    path: str
    handler: Callable[[Context, Request, Mapping[str, Any]], Awaitable[Response]]
    text: str
    scope: Scope = "read"
    parameters: Sequence[Parameter] = ()
    body: Mapping[str, Any] = field(default_factory=dict)
    answers: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    example: Any = None

    @property
    def name(self) -> str:
        """The name of the operation, after its handler."""
        return self.handler.__name__

    def read(self, query: QueryParams) -> dict[str, Any]:
        """Return every parameter of a query, with defaults; all that do not fit are named at once."""
        values = {parameter.name: parameter.default for parameter in self.parameters}
        by_name = {parameter.name: parameter for parameter in self.parameters}
        faults = []
        for name, written in query.multi_items():
            if name not in by_name:
                problem = f"found the parameter {plain.shown(name)}{did_you_mean(name, by_name)}"
                expected = f"one of {', '.join(by_name)}" if by_name else "none"
                faults.append(Fault(f"{problem}, expected {expected}.", parameter=name[:100], expected=expected))
                continue
            try:
                values[name] = by_name[name].read(written)
            except plain.MisfitError as misfit:
                detail = f"{name}: found {misfit.actual}, expected {misfit.expected}."
                faults.append(Fault(detail, None, name, misfit.actual, misfit.expected))
        if faults:
            raise RequestError(422, faults[0].detail, faults)
        return values
