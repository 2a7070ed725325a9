"""The screen Answer: one question, its answer, the reasons, and the same answer for programs."""

from __future__ import annotations

import csv
import io
import json
import shlex
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from crossperf import plain
from crossperf.platforms import in_order
from crossperf.serve.openapi import PREFIX
from crossperf.serve.web import svg
from crossperf.serve.web.answering import AnswerView, StrangerError, answered
from crossperf.serve.web.ask import chooser
from crossperf.serve.web.asking import PageQuestion
from crossperf.serve.web.site import HEADERS, Pages, query

#: Walks of an explanation: half a second of work.
_SAMPLES = 64
#: Counters that an explanation shows.
_REASONS = 8


def routes(site: Pages) -> list[BaseRoute]:
    """Return the routes of the screen."""

    def answer(request: Request) -> Response:
        question = PageQuestion.read(request.query_params, site.service)
        try:
            view = answered(site.service, question)
        except StrangerError as stranger:
            asked = {"question": question, "error": stranger, "names": stranger.facts["platforms"]}
            return site.render(request, "stranger.html", 422, title="Which platform is it like?", **asked)
        facts = {"view": view, "copies": copies(request, view), **chooser(site, _chosen(question))}
        return site.render(request, "answer.html", title=view.headline, **facts)

    def why(request: Request) -> Response:
        question = PageQuestion.read(request.query_params, site.service)
        view = answered(site.service, question)
        with site.slowly():
            reasons = _why(site, view)
        return site.render(request, "why.html", title="Why", view=view, **reasons)

    def table(request: Request) -> Response:
        view = answered(site.service, PageQuestion.read(request.query_params, site.service))
        headers = {**HEADERS, "content-disposition": 'attachment; filename="answer.csv"'}
        return Response(as_csv(view), headers=headers, media_type="text/csv; charset=utf-8")

    return [site.route("/answer", answer), site.route("/answer/why", why), site.route("/answer.csv", table)]


def _chosen(question: PageQuestion) -> dict[str, Any]:
    names = ("model", "level", "gpu", "threads", "platforms", "here")
    return {name: getattr(question, name) for name in names}


def _why(site: Pages, view: AnswerView) -> dict[str, Any]:
    """Return the strongest counters on an axis of factors, and the nearest known workloads."""
    own, run = view.prediction, view.run
    can = in_order(own.offered, view.asked.classes)
    model = view.question.model or None
    (explanation,) = site.service.explain([run], model=model, can=can, samples=_SAMPLES).explanations
    parts = explanation.attribution.contributions[:_REASONS] if explanation.attribution else ()
    axis = svg.LogAxis.over(part.factor for part in parts)
    like = svg.LogAxis.over(
        time for near in explanation.neighbours for name, time in near.relative_time.items() if time and name in can
    )
    return {"explanation": explanation, "parts": parts, "axis": axis, "like": like, "offered": can}


def copies(request: Request, view: AnswerView) -> dict[str, str]:
    """Return the question and its answer for other programs: as a command line, as JSON and as CSV."""
    question = view.question
    narrowed = question.platforms or question.threads or question.gpu
    can = ",".join(view.prediction.offered) if narrowed else ""
    wanted = {"level": f"{question.level:g}", "can": can, "model": question.model}
    address = query(f"{request.url.scheme}://{request.url.netloc}{PREFIX}/predict", wanted)
    body = json.dumps(plain.to_json(view.run.to_json()), separators=(",", ":"))
    command = f"curl -s {shlex.quote(address)} \\\n  -H 'content-type: application/json' \\\n  -d {shlex.quote(body)}"
    answer = json.dumps(plain.to_json(view.prediction.to_json()), indent=1)
    return {"curl": command, "JSON": answer, "CSV": as_csv(view)}


def as_csv(view: AnswerView) -> str:
    """Return an answer as a table: one row for each platform; a name that a spreadsheet would obey is made a text."""
    own, costs = view.prediction, view.asked.costs
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(
        ("app", "input", "source", "platform", "relative_time", "low", "high", "seconds", "chance_fastest", "cost")
    )
    for name in view.asked.order:
        low, high = view.asked.range_of(name)
        names = map(_plain, (own.app, own.input, own.source, name))
        numbers = (
            own.relative_time[name],
            low,
            high,
            own.seconds.get(name),
            own.chance_fastest.get(name),
            costs.get(name),
        )
        writer.writerow([*names, *("" if number is None else f"{number:.6g}" for number in numbers)])
    return file.getvalue()


def _plain(name: str) -> str:
    return f"'{name}" if name.startswith(("=", "+", "-", "@", "\t")) else name
