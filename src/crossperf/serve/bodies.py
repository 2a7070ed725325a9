"""The runs of a request, whatever format they come in; a few in JSON are read here, everything else by a child."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from crossperf import documents, plain
from crossperf.prediction.answer import measure
from crossperf.records import Run
from crossperf.runs.checking import check_runs, checked
from crossperf.runs.rules import Problem
from crossperf.serve.problems import Fault, RequestError, of_misfit

if TYPE_CHECKING:
    from crossperf.dataset.measured import Measured
    from crossperf.serve.context import Context

T = TypeVar("T")
JSON, JSONL, CSV, PARQUET = (
    "application/json", "application/x-ndjson", "text/csv", "application/vnd.apache.parquet",
)  # fmt: skip
#: The formats of tables by what clients call them.
_KINDS = {
    JSON: "json",
    JSONL: "jsonl",
    "application/jsonl": "jsonl",
    "application/jsonlines": "jsonl",
    CSV: "csv",
    PARQUET: "parquet",
    "application/x-parquet": "parquet",
}
#: Runs of JSON that are read in this process; more of them, and larger bodies, would hold other requests up.
MOST_HERE, _MOST_BYTES_HERE = 2_000, 8_000_000


def media_type(request: Request) -> str:
    """Return the media type of a body, in small letters and without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def kind_of(request: Request) -> str:
    """Return the format of a runs table in a body: json, jsonl, csv or parquet."""
    own = media_type(request)
    if own not in _KINDS:
        expected = f"expected {', '.join((JSON, JSONL, CSV, PARQUET))}"
        raise RequestError(415, f"Content-Type: found {plain.shown(own) if own else 'none'}, {expected}.")
    return _KINDS[own]


async def document(request: Request) -> Any:
    """Return the JSON value of a body."""
    if media_type(request) != JSON:
        shown = plain.shown(media_type(request)) if media_type(request) else "none"
        raise RequestError(415, f"Content-Type: found {shown}, expected {JSON}.")
    return parse(await request.body())


def parse(data: bytes) -> Any:
    """Return the value of some JSON; what is none raises with its place."""
    with contextlib.suppress(ValueError):
        if documents.depth_of(data) <= documents.DEEPEST:
            return orjson.loads(data)
    try:
        return documents.parse(data)  # takes numbers that orjson does not, and words what is wrong
    except ValueError as error:
        raise RequestError(422, f"The body is not JSON ({error}), expected a JSON value.") from error


def shaped(kind: type[T], facts: Any, *below: str | int) -> T:
    """Return facts as a dataclass; what does not fit raises with its pointer."""
    try:
        return plain.from_json(kind, facts)
    except plain.MisfitError as misfit:
        fault = of_misfit(misfit, below)
        raise RequestError(422, f"{fault.pointer or 'The body'}: {fault.detail}.", [fault]) from misfit


def records(facts: Any) -> tuple[list[Any], bool]:
    """Return the runs of a JSON value, a list or an object of one run, and whether it was one."""
    if isinstance(facts, Mapping):
        return [facts], True
    if isinstance(facts, list):
        return facts, False
    detail = f"The body is {plain.shown(facts)}, expected a run as an object, or a list of runs."
    raise RequestError(422, detail, [Fault(detail, "", expected="an object or a list")])


def is_few(facts: Sequence[Any], size: int) -> bool:
    """Tell whether runs are read in this process."""
    return len(facts) <= MOST_HERE and size <= _MOST_BYTES_HERE


async def measured(context: Context, request: Request) -> Measured:
    """Return the cells of the runs of a request."""
    kind, data = kind_of(request), await request.body()
    context.refuse_empty(data)
    if kind != "json":
        return await run_in_threadpool(context.service.readers.measure, data, kind)
    facts, single = records(parse(data))
    request.state.single = single
    context.refuse_many(len(facts))
    if is_few(facts, len(data)):
        return measure(facts)
    return await run_in_threadpool(context.service.readers.measure, lines(facts), "jsonl")


async def runs(context: Context, request: Request, **needed: bool) -> list[Run]:
    """Return the checked runs of a request as records; `needed` are those of `checking.checked`."""
    kind, data = kind_of(request), await request.body()
    context.refuse_empty(data)
    if kind != "json":
        read = await run_in_threadpool(context.service.readers.runs, data, kind, **needed)
        context.refuse_many(len(read))
        return read
    facts, single = records(parse(data))
    request.state.single = single
    context.refuse_many(len(facts))
    if is_few(facts, len(data)):
        return checked(facts, name="runs", **needed)
    return await run_in_threadpool(context.service.readers.runs, lines(facts), "jsonl", **needed)


async def problems(context: Context, request: Request, *, need_runtime: bool) -> list[Problem]:
    """Return every problem of the runs of a request."""
    kind, data = kind_of(request), await request.body()
    if kind != "json":
        return await run_in_threadpool(context.service.readers.check, data, kind, need_runtime=need_runtime)
    facts, single = records(parse(data))
    request.state.single = single
    context.refuse_many(len(facts))
    if is_few(facts, len(data)):
        return check_runs(facts, need_runtime=need_runtime)
    return await run_in_threadpool(context.service.readers.check, lines(facts), "jsonl", need_runtime=need_runtime)


def lines(facts: Sequence[Any]) -> bytes:
    """Return values as lines of JSON."""
    return b"\n".join(map(orjson.dumps, facts))


def refuse_together(faults: Sequence[Fault]) -> None:
    """Raise all faults of a body at once, if there are any."""
    if faults:
        raise RequestError(422, f"{faults[0].pointer}: {faults[0].detail}.", faults)
