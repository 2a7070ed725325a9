"""The screen Ask: a file, a text or a known workload becomes a question with its own link."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from crossperf.documents import parse
from crossperf.errors import CrossperfError, RunsTableError
from crossperf.platforms import in_order
from crossperf.records import OK, Run
from crossperf.runs.checking import checked
from crossperf.runs.events import EVENTS
from crossperf.serve.web.asking import GPU_VERSIONS, LEVELS, PageQuestion, text, toggles
from crossperf.serve.web.links import LinkError
from crossperf.serve.web.site import HEADERS, Pages

#: Runs of a table that are listed.
_LISTED = 200
_TABLES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "", ".csv": "csv", ".parquet": "parquet"}
#: Between an application and its input in the value of a button: no name holds it.
BETWEEN = "\x1f"


class FormError(CrossperfError):
    """A form cannot be used."""


def routes(site: Pages) -> list[BaseRoute]:
    """Return the routes of the screen."""

    def ask(request: Request) -> Response:
        return _screen(site, request)

    async def answer(request: Request) -> Response:
        fields = await form_of(request)
        return await run_in_threadpool(_answer, site, request, fields)

    return [site.route("/", ask), site.route("/ask", answer, ("POST",))]


async def form_of(request: Request) -> FormData:
    """Return the fields of a form, each file as its name and bytes; the gate bounds how many there are."""
    form = await request.form(max_files=2, max_fields=500, max_part_size=4 * 2**20)
    fields: list[tuple[str, Any]] = []
    for name, value in form.multi_items():
        fields.append((name, (value.filename or "", await value.read()) if isinstance(value, UploadFile) else value))
    await form.close()
    return FormData(fields)


def _screen(site: Pages, request: Request, **more: Any) -> Response:
    like = text(request.query_params, "q")
    service = site.service
    return site.render(
        request,
        "ask.html",
        title="How fast would it be over there?",
        like=like,
        workloads=service.workloads(like, limit=12),
        known=len(service.model().model.workloads),
        between=BETWEEN,
        **chooser(site, toggles(request.query_params)),
        **more,
    )


def chooser(site: Pages, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the toggles offer, and what is chosen."""
    service = site.service
    trained, known = service.model(chosen["model"] or None).model, service.platforms
    counts = {known[name].facts.more.get("threads") for name in trained.platforms if name in known}
    kinds = dict(zip(trained.platforms, trained.cells.platform_classes, strict=True))
    return {
        "chosen": chosen,
        "levels": LEVELS,
        "gpu_versions": GPU_VERSIONS if len(set(kinds.values())) > 1 else {},
        "thread_counts": sorted(count for count in counts if isinstance(count, int)),
        "names": in_order(trained.platforms, kinds),
    }


def _answer(site: Pages, request: Request, fields: FormData) -> Response:
    chosen = toggles(fields)
    if pick := text(fields, "pick"):
        app, _, input_ = pick.partition(BETWEEN)
        run = site.service.run_of(app, input_, model=chosen["model"] or None)
        return _see(PageQuestion(run, (app, input_, run.platform), **chosen).link())
    runs, notes = read_runs(site, fields)
    cells = combined(runs)
    if len(cells) == 1:
        return _see(PageQuestion(cells[0], **chosen).link())
    return _many(site, request, cells, chosen, notes)


def _see(address: str) -> Response:
    return RedirectResponse(address, 303, HEADERS)


def read_runs(site: Pages, fields: FormData) -> tuple[list[Run], list[str]]:
    """Return the runs of a form's file or text, and notes on them."""
    file: Any = fields.get("file")
    name, data = file if isinstance(file, tuple) else ("", b"")
    pasted = text(fields, "text").strip()
    if not data and not pasted:
        raise FormError("Found neither a file nor a text, expected one of them. Drop a file, or paste a run as JSON.")
    if data:
        ending = PurePath(name).suffix.lower()
        if kind := _TABLES.get(ending):
            return site.service.readers.runs(data, kind, need_runtime=False), []
        if ending != ".json":
            return _imported(site, name, data, fields)
        pasted = data.decode("utf-8", "replace")
    return _pasted(site, pasted), []


def _pasted(site: Pages, pasted: str) -> list[Run]:
    """Return the runs of a text: one object, a list of them, an object with ``runs``, or one object a line."""
    try:
        facts: Any = parse(pasted.encode())
    except ValueError:
        if "\n" in pasted:
            return site.service.readers.runs(pasted.encode(), "jsonl", need_runtime=False)
        raise FormError("The text is no JSON, expected a run such as the example. Check commas and quotes.") from None
    facts = facts.get("runs", facts) if isinstance(facts, Mapping) else facts
    return checked(facts if isinstance(facts, list) else [facts], name="the text", need_runtime=False)


def _imported(site: Pages, name: str, data: bytes, fields: FormData) -> tuple[list[Run], list[str]]:
    names = {key: text(fields, f"import-{key}") or None for key in ("app", "input", "platform")}
    imported = site.service.readers.import_file(data, name, **names)
    return list(imported.runs), [*imported.notes, *imported.rejected]


def combined(runs: Iterable[Run]) -> list[Run]:
    """Return one run for each workload and platform: the median of its repeats; failed runs are left out."""
    cells: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        if run.status == OK:
            cells.setdefault((run.app, run.input, run.platform), []).append(run)
    if not cells:
        raise RunsTableError("Found no successful run, expected at least one to predict from.")
    return [_median(own) for own in cells.values()]


def _median(runs: Sequence[Run]) -> Run:
    if len(runs) == 1:
        return runs[0]
    times = [run.runtime_s for run in runs if run.runtime_s is not None]
    names = dict.fromkeys(name for run in runs for name in run.counters)
    values = {name: [own for run in runs if (own := run.counters.get(name)) is not None] for name in names}
    counters = {name: statistics.median(own) for name, own in values.items() if own}
    events = next((run.metadata[EVENTS] for run in runs if EVENTS in run.metadata), None)
    runtime_s = statistics.median(times) if times else None
    return replace(runs[0], runtime_s=runtime_s, counters=counters, metadata={EVENTS: events} if events else {})


def _many(
    site: Pages, request: Request, cells: Sequence[Run], chosen: Mapping[str, Any], notes: Sequence[str]
) -> Response:
    """Return the list of several answers, each with its own link."""
    classes = site.service.model(chosen["model"] or None).model.cells.platform_classes
    shown = cells[:_LISTED]
    questions = [PageQuestion(run, **chosen) for run in shown]
    answer = site.service.predict(shown, model=chosen["model"] or None, can=questions[0].can(classes))
    rows = []
    for prediction in answer.predictions:
        own = next(q for q in questions if _cell(q.run) == (prediction.app, prediction.input, prediction.source))
        try:
            link = own.link()
        except LinkError:
            link = ""
        rows.append((prediction, link))
    listed: dict[str, Any] = {"rows": rows, "cells": len(cells), "notes": [*notes, *answer.notes]}
    return site.render(request, "many.html", title="Several answers", **listed)


def _cell(run: Run) -> tuple[str, str, str]:
    return run.app, run.input, run.platform
