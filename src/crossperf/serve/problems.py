"""Errors as RFC 9457 problem details: every fault of a request at once, each with its place; never a path or trace."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import orjson
from starlette.responses import Response

from crossperf import plain
from crossperf.errors import CrossperfError, MissingDependencyError, ModelFolderError
from crossperf.runs.rules import COUNTER_PREFIX, Problem
from crossperf.serve.atlas import MapError
from crossperf.serve.models import UnknownNameError
from crossperf.serve.readers import BusyError
from crossperf.serve.store import NotOfferedError, StoreError

MEDIA_TYPE = "application/problem+json"
#: Faults that one answer names.
MOST = 1_000
#: Seconds after which a client may ask again.
_RETRY_S = "1"


@dataclass(frozen=True)
class Fault:
    """One thing to fix in a request: `pointer` leads to it in the body, `parameter` names it in the query."""

    detail: str
    pointer: str | None = None
    parameter: str | None = None
    actual: str | None = field(default=None, metadata={"json": "found"})
    expected: str | None = None
    advice: str | None = None
    row: int | None = None
    column: str | None = None
    severity: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what is known of it."""
        own = {str(part.metadata.get("json", part.name)): getattr(self, part.name) for part in fields(self)}
        return {name: value for name, value in own.items() if value is not None}


class RequestError(CrossperfError):
    """A request that cannot be answered as it is, with its status and every fault."""

    def __init__(self, status: int, message: str, faults: Iterable[Fault] = ()) -> None:
        super().__init__(message)
        self.status, self.faults = status, tuple(faults)


#: The status of each kind of error; the first that fits counts. What is wrong with content is 422.
_STATUSES: tuple[tuple[type[CrossperfError], int], ...] = (
    (UnknownNameError, 404),
    (BusyError, 429),
    (NotOfferedError, 501),
    (MissingDependencyError, 501),
    (StoreError, 503),
    (MapError, 503),
    (ModelFolderError, 503),
)
_TITLES = {
    400: "Bad request",
    401: "A token is needed",
    403: "Not allowed",
    404: "Not known here",
    405: "Method not allowed",
    406: "Not acceptable",
    408: "The request took too long",
    413: "Too large",
    415: "Format not supported",
    421: "Wrong host",
    422: "Content that cannot be used",
    429: "Busy",
    500: "A defect of the server",
    501: "Not offered here",
    503: "Not available now",
}


def status_of(error: CrossperfError) -> int:
    """Return the status of an error."""
    if isinstance(error, RequestError):
        return error.status
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 422)


def of_problem(problem: Problem, *, single: bool = False) -> Fault:
    """Return the problem of a run as a fault; its pointer leads into a list of runs, or into the only one.

    >>> of_problem(Problem("-1", "a number of 0 or more", "Fix it.", row=3, column="counter.a/b")).pointer
    '/2/counters/a~1b'
    """
    parts: list[str] = [] if single or problem.row is None else [str(problem.row - 1)]
    if problem.column is not None:
        name = problem.column
        parts += ["counters", name.removeprefix(COUNTER_PREFIX)] if name.startswith(COUNTER_PREFIX) else [name]
    return Fault(
        str(problem), pointer_to(parts), None, problem.actual, problem.expected, problem.advice,
        problem.row, problem.column, problem.severity,
    )  # fmt: skip


def of_misfit(misfit: plain.MisfitError, below: Sequence[str | int] = ()) -> Fault:
    """Return a value that does not fit its place as a fault."""
    return Fault(str(misfit), pointer_to([*below, *misfit.place]), None, misfit.actual, misfit.expected)


def pointer_to(parts: Iterable[str | int]) -> str:
    """Return a JSON pointer (RFC 6901).

    >>> pointer_to(["queues", 0, "wait/s"])
    '/queues/0/wait~1s'
    """
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def of_error(error: CrossperfError, *, single: bool = False) -> tuple[Fault, ...]:
    """Return every fault that an error tells of."""
    if isinstance(error, RequestError):
        return error.faults
    problems = [own for own in error.facts.get("problems") or () if isinstance(own, Problem)]
    if problems:
        return tuple(of_problem(own, single=single) for own in problems[:MOST])
    argument = error.facts.get("argument")
    return (Fault(_without_paths(str(error), error), parameter=str(argument)),) if argument else ()


def response(error: CrossperfError, *, single: bool = False) -> Response:
    """Return the problem document of an error."""
    status, faults = status_of(error), of_error(error, single=single)
    kind = "request" if isinstance(error, RequestError) else _kind(error)
    return document(status, _without_paths(str(error), error), kind, faults)


def document(status: int, detail: str, kind: str = "request", faults: Sequence[Fault] = ()) -> Response:
    """Return a problem document."""
    facts: dict[str, Any] = {
        "type": f"urn:crossperf:problem:{kind}",
        "title": _TITLES.get(status, "A problem"),
        "status": status,
        "detail": detail,
    }
    if faults:
        facts["errors"] = [fault.to_json() for fault in faults]
    headers = {429: {"Retry-After": _RETRY_S}, 401: {"WWW-Authenticate": 'Bearer realm="crossperf"'}}.get(status)
    return Response(orjson.dumps(facts), status, headers, MEDIA_TYPE)


def _kind(error: CrossperfError) -> str:
    """Return the class of an error as a word: ``RunsTableError`` is ``runs-table``."""
    name = type(error).__name__.removesuffix("Error") or "crossperf"
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def _without_paths(text: str, error: CrossperfError) -> str:
    """Return a sentence without the folders of this machine: a file is named by its last part alone."""
    if isinstance(error, RequestError):
        return text  # of what a client sent, which may hold pointers
    own = str(error.facts.get("path") or "")
    if own:
        text = text.replace(own, Path(own).name)
    return _FOLDERS.sub(lambda match: match[0].rpartition("/")[2] or "a folder", text)


#: An absolute path: two parts at least, so that "1/s" and "a/b" in a sentence are none.
_FOLDERS = re.compile(r"(?<![\w.~/-])/(?:[\w.~@+-]+/)+[\w.~@+-]*")
