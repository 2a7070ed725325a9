"""The endpoints of the API: each reads a request, calls one function of the service, and writes its answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from crossperf import __version__, plain
from crossperf.errors import PlatformError
from crossperf.platforms import Platform
from crossperf.prediction.answer import ask
from crossperf.runs.checking import checked
from crossperf.serve import answers, bodies, problems
from crossperf.serve.bodies import CSV, JSON, JSONL
from crossperf.serve.context import Context
from crossperf.serve.placing import JobQueue, JobRequest
from crossperf.serve.problems import Fault, RequestError, of_problem

#: Parameters as a handler gets them, checked.
Given = Mapping[str, Any]
_EVENT_STREAM = "text/event-stream"
_POLL_S, _KEEP_ALIVE_S = 1.0, 15.0


def reply(facts: Any, status: int = 200) -> Response:
    """Return facts as JSON."""
    return Response(orjson.dumps(plain.to_json(facts)), status, media_type=JSON)


async def health(context: Context, request: Request, given: Given) -> Response:  # noqa: ARG001
    """Tell that the server is alive."""
    return reply({"status": "alive", "version": __version__})


async def ready(context: Context, request: Request, given: Given) -> Response:  # noqa: ARG001
    """Tell that the models are loaded."""
    if context.ending:
        raise RequestError(503, "The server is ending. Ask another one.")
    return reply({"status": "ready", "models": {own.id: own.fingerprint for own in context.service.models}})


async def metrics(context: Context, request: Request, given: Given) -> Response:  # noqa: ARG001
    """Return figures of operation in Prometheus' text format."""
    models = {own.id: own.fingerprint for own in context.service.models}
    return Response(context.metrics.text(models), media_type="text/plain; version=0.0.4; charset=utf-8")


async def openapi(context: Context, request: Request, given: Given) -> Response:  # noqa: ARG001
    """Return this description of the API."""
    from crossperf.serve.openapi import document

    return Response(orjson.dumps(document()), media_type=JSON)


async def models(context: Context, request: Request, given: Given) -> Response:  # noqa: ARG001
    """Return the models that answer, the default first."""
    return reply({"models": [own.to_json() for own in context.service.models]})


async def model(context: Context, request: Request, given: Given) -> Response:  # noqa: ARG001
    """Return one model: its platforms, counters, scores and fingerprint."""
    return reply(context.service.model(request.path_params["id"]).to_json(whole=True))


async def platforms(context: Context, request: Request, given: Given) -> Response:  # noqa: ARG001
    """Return every platform that is known here, with its facts and its price for an hour."""
    return reply({"platforms": [own.to_json() for own in context.service.platforms.values()]})


async def platform(context: Context, request: Request, given: Given) -> Response:  # noqa: ARG001
    """Return one platform."""
    return reply(context.service.platform(request.path_params["name"]).to_json())


async def put_platform(context: Context, request: Request, given: Given) -> Response:  # noqa: ARG001
    """Keep the facts of a platform, its price for an hour among them, in place of what was kept under its name."""
    facts, name = await bodies.document(request), request.path_params["name"]
    if not isinstance(facts, dict):
        raise RequestError(422, f"The body is {plain.shown(facts)}, expected an object.", [Fault("no object", "")])
    if facts.get("name", name) != name:
        detail = f"name: found {plain.shown(facts['name'])}, expected {name!r} as in the path."
        raise RequestError(422, detail, [Fault(detail, "/name")])
    try:
        own = Platform.from_json({**facts, "name": name})
    except plain.MisfitError as misfit:
        fault = problems.of_misfit(misfit)
        raise RequestError(422, f"{fault.pointer}: {fault.detail}.", [fault]) from misfit
    try:
        return reply((await context.slowly(context.service.set_platform, own)).to_json())
    except PlatformError as error:
        if error.facts.get("argument"):
            pointer = problems.pointer_to(str(error.facts["argument"]).split("."))
            raise RequestError(422, str(error), [Fault(str(error), pointer)]) from error
        raise


async def predict(context: Context, request: Request, given: Given) -> Response:
    """Return for each run the order of the platforms, relative times, intervals, seconds, chances, costs and trust."""
    wants_csv = _wants_csv(request)
    served = context.service.model(given["model"])
    _refuse_keeping(request, given)
    measured = replace(await bodies.measured(context, request), where=given["name"])
    context.refuse_many(len(measured))
    how = {name: given[name] for name in ("relative_to", "level", "joint", "pairs")}
    answered = await context.batches.predict(served.model, ask(served.model, measured), can=given["can"], **how)
    context.metrics.add("predicted_cells", len(answered))
    if given["keep"]:
        await context.slowly(context.service.keep, answered.predictions, served)
    prices = context.service.prices
    if wants_csv:
        return Response(answers.as_csv(answered.predictions, prices), media_type=CSV)
    return Response(answers.as_json(answered, served, prices, pairs=given["pairs"]), media_type=JSON)


async def explain(context: Context, request: Request, given: Given) -> Response:
    """Return which counters drive each prediction, and the nearest known workloads."""
    measured = await bodies.measured(context, request)
    walks, most = len(measured) * given["samples"], context.limits.walks
    if walks > most:
        asked = f"Found {len(measured):,} runs to explain with {given['samples']:,} samples each ({walks:,} walks)"
        raise RequestError(413, f"{asked}, expected at most {most:,} walks in one request. Ask for fewer of either.")
    how = {name: given[name] for name in ("model", "platform", "samples", "neighbours", "can", "seed")}
    question = ask(context.service.model(given["model"]).model, measured)
    explained = await context.slowly(context.service.explain, question, **how)
    return reply({"notes": explained.notes, "explanations": [own.to_json() for own in explained.explanations]})


async def suggest(context: Context, request: Request, given: Given) -> Response:
    """Return what to measure next: for runs on known platforms, or known workloads for a new platform.

    With runs on platforms that the model knows, the counters that each lacks and the platforms to time it on. With
    runs on a new platform, or none, the known workloads that teach most about it.
    """
    served = context.service.model(given["model"])
    runs = await bodies.runs(context, request, need_runtime=False) if await request.body() else []
    known = {run.platform for run in runs} <= set(served.model.sources)
    if runs and known:
        wanted = await context.slowly(context.service.next_measurements, runs, model=served.id, can=given["can"])
        return reply({"runs": wanted, "workloads": []})
    chosen = await context.slowly(
        context.service.suggest, given["count"], runs or None, platform=given["platform"], model=served.id
    )
    return reply({"runs": [], "workloads": chosen})


async def check_runs(context: Context, request: Request, given: Given) -> Response:
    """Return every problem of a runs table, errors first; none means that it can be used."""
    own = await bodies.problems(context, request, need_runtime=given["need_runtime"])
    single = getattr(request.state, "single", False)
    listed = [of_problem(problem, single=single).to_json() for problem in own[: problems.MOST]]
    return reply({"usable": not any(problem.severity == "error" for problem in own), "problems": listed})


async def import_file(context: Context, request: Request, given: Given) -> Response:
    """Return the runs of a profiler's file, sent as it is."""
    data = await request.body()
    context.refuse_empty(data)
    names = {name: given[name] for name in ("app", "input", "platform", "platform_class", "runtime_s")}
    own = await context.slowly(
        context.service.readers.import_file, data, given["name"], format=given["format"], **names
    )
    if JSONL in request.headers.get("accept", ""):
        return Response(bodies.lines([run.to_json() for run in own.runs]) + b"\n", media_type=JSONL)
    return reply({"runs": [run.to_json() for run in own.runs], "notes": own.notes, "rejected": own.rejected})


async def workloads(context: Context, request: Request, given: Given) -> Response:  # noqa: ARG001
    """Return known workloads with their measured times, those whose names hold every word of `like`."""
    own = context.service.workloads(given["like"], limit=given["limit"], model=given["model"])
    return reply({"workloads": [{**plain.to_json(each), "fastest": each.fastest} for each in own]})


async def workload_run(context: Context, request: Request, given: Given) -> Response:  # noqa: ARG001
    """Return a known workload as the run that the model has learned from."""
    how = {name: given[name] for name in ("source", "model")}
    return reply(context.service.run_of(given["app"], given["input"], **how).to_json())


async def workload_map(context: Context, request: Request, given: Given) -> Response:  # noqa: ARG001
    """Return the map of known workloads: two that lie together look similar to the model."""
    own = await context.slowly(context.service.map, model=given["model"])
    names = (*own.platforms, None)
    dots = [
        {"app": app, "input": input_, "x": x, "y": y, "fastest": names[fastest]}
        for (app, input_), (x, y), fastest in zip(
            own.workloads, own.xy_w2.tolist(), own.fastest_w.tolist(), strict=True
        )
    ]
    return reply({"platforms": own.platforms, "workloads": dots})


@dataclass(frozen=True)
class PlaceRequest:
    """A job to place: the run that it is like, what it asks for, and the queues that it could go to."""

    run: Mapping[str, Any]
    queues: tuple[JobQueue, ...]
    job: JobRequest = field(default_factory=JobRequest)
    policy: str = "considerate"


async def place(context: Context, request: Request, given: Given) -> Response:
    """Return a policy's choice for a job among queues, and what the policy saw."""
    _refuse_keeping(request, given)
    asked = _place_request(await bodies.document(request))
    model, can = given["model"], given["can"]
    placed, prediction = await context.slowly(
        context.service.place,
        checked(asked.run, name="run", need_runtime=False),
        asked.queues,
        asked.job,
        policy=asked.policy,
        model=model,
        can=can,
        keep=given["keep"],
    )
    return reply({**plain.to_json(placed), "familiarity": prediction.familiarity})


def _place_request(facts: Any) -> PlaceRequest:
    """Return the request of a body; the faults of all its queues are named at once."""
    if not isinstance(facts, dict) or not isinstance(facts.get("queues"), list):
        return bodies.shaped(PlaceRequest, facts)
    if not facts["queues"]:
        detail = "queues: found none, expected one at least."
        raise RequestError(422, detail, [Fault(detail, "/queues")])
    faults = []
    for number, queue in enumerate(facts["queues"]):
        try:
            plain.from_json(JobQueue, queue)
        except plain.MisfitError as misfit:
            faults.append(problems.of_misfit(misfit, ("queues", number)))
    bodies.refuse_together(faults)
    asked = bodies.shaped(PlaceRequest, facts)
    if len({queue.name for queue in asked.queues}) < len(asked.queues):
        detail = "queues: found a name twice, expected each queue once."
        raise RequestError(422, detail, [Fault(detail, "/queues")])
    return asked


async def add_runs(context: Context, request: Request, given: Given) -> Response:  # noqa: ARG001
    """Keep finished runs; answered when they are on the disk. A run_id that is kept already is not kept twice."""
    runs = await bodies.runs(context, request, need_runtime=True, need_counters=False)
    new = await context.slowly(context.service.add_runs, runs)
    context.metrics.add("kept_runs", sum(new))
    return reply({"added": sum(new), "known": len(new) - sum(new)}, 201 if any(new) else 200)


async def kept_runs(context: Context, request: Request, given: Given) -> Response:
    """Return kept runs in the order in which they came; go on with `after`, as `next` tells."""
    own = await context.slowly(context.service.runs, **given)
    rows = [run.to_json() for _, run in own]
    if JSONL in request.headers.get("accept", ""):
        return Response(bodies.lines(rows) + b"\n" * bool(rows), media_type=JSONL)
    return reply({"runs": rows, "next": own[-1][0] if len(own) == given["limit"] else None})


async def drift(context: Context, request: Request, given: Given) -> Response:  # noqa: ARG001
    """Return how far off past predictions were, from the finished runs that were kept."""
    return reply(await context.slowly(context.service.drift, given["since"]))


async def campaigns(context: Context, request: Request, given: Given) -> Response:  # noqa: ARG001
    """Return how far each campaign is that the server follows."""
    own = [(await context.slowly(campaign.read))[0] for campaign in context.service.campaigns.values()]
    return reply({"campaigns": own})


async def campaign_events(context: Context, request: Request, given: Given) -> Response:
    """Follow a campaign: an event ``progress`` whenever it has moved on, and an event ``visit`` for each new visit."""
    campaign = context.service.campaign(request.path_params["id"])
    written = request.headers.get("last-event-id", "")
    sent = int(written) if written.isdecimal() and len(written) < 12 else given["after"]

    async def events() -> AsyncIterator[bytes]:
        seen, quiet_s, shown = sent, 0.0, None
        while not context.ending:
            progress, visits = await context.slowly(campaign.read)
            if progress != shown:
                for number, visit in enumerate(visits[seen:], start=seen + 1):
                    yield _event("visit", plain.to_json(visit), number)
                seen, shown, quiet_s = max(seen, len(visits)), progress, 0.0
                yield _event("progress", plain.to_json(progress), len(visits))
            if given["once"]:
                return
            if quiet_s >= _KEEP_ALIVE_S:
                yield b": still here\n\n"
                quiet_s = 0.0
            await asyncio.sleep(_POLL_S)
            quiet_s += _POLL_S

    return StreamingResponse(events(), media_type=_EVENT_STREAM, headers={"Cache-Control": "no-store"})


def _event(name: str, facts: Any, number: int) -> bytes:
    return b"event: %s\nid: %d\ndata: %s\n\n" % (name.encode(), number, orjson.dumps(facts))


def _wants_csv(request: Request) -> bool:
    """Tell whether the answer is to be CSV; raise where neither that nor JSON is accepted."""
    accepted = request.headers.get("accept", "*/*").lower()
    if "text/csv" in accepted:
        return True
    if any(word in accepted for word in ("*/*", "application/*", JSON)):
        return False
    raise RequestError(406, f"Accept: found {plain.shown(accepted)}, expected {JSON} or {CSV}.")


def _refuse_keeping(request: Request, given: Given) -> None:
    """Raise where something is to be kept for a token without the write scope."""
    if given["keep"] and request.scope["state"].get("scope") != "write":
        raise RequestError(403, "keep: found true with a token of read scope, expected one of write scope.")
