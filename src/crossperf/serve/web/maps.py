"""The screen Map: one dot a known workload, the like ones together; a run can be dropped on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from crossperf.plain import whole
from crossperf.prediction.answer import ask as ask_model
from crossperf.prediction.workload_map import WorkloadMap, WorkloadPlaces
from crossperf.report.figures.colours import FAINT, GROUP_COLOURS, PLATFORM_COLOURS, Look, looks_of
from crossperf.serve.models import ServedModel, UnknownNameError
from crossperf.serve.web import svg
from crossperf.serve.web.answering import placed
from crossperf.serve.web.ask import combined, form_of, read_runs
from crossperf.serve.web.asking import PageQuestion, text
from crossperf.serve.web.site import HEADERS, Pages, shown
from crossperf.serve.web.words import duration, short

PLATFORM, APP = BY = ("platform", "app")
#: Inputs from which an application has its name on the map.
_NAMED_FROM = 3
#: A label of one letter, in per cent of the map, where it is some 60 letters wide at its narrowest with labels.
_LETTER, _LINE = 1.0, 2.6
#: Known workloads that are named beside a run.
_NEAR = 5


@dataclass(frozen=True)
class Key:
    """A line of the legend."""

    name: str
    look: Look
    count: int


@dataclass(frozen=True)
class Truth:
    """What was measured of a known workload: seconds and bars by platform, the fastest first."""

    app: str
    input: str
    source: str
    rows: tuple[tuple[str, Look, str, str, Markup], ...]
    axis: svg.LogAxis


def routes(site: Pages) -> list[BaseRoute]:
    """Return the routes of the screen."""

    def show(request: Request) -> Response:
        return _screen(site, request)

    async def drop(request: Request) -> Response:
        fields = await form_of(request)
        runs, _ = await run_in_threadpool(read_runs, site, fields)
        return RedirectResponse(PageQuestion(combined(runs)[0]).link("/map"), 303, HEADERS)

    return [site.route("/map", show), site.route("/map", drop, ("POST",))]


def _screen(site: Pages, request: Request) -> Response:
    fields, service = request.query_params, site.service
    by = text(fields, "by") if text(fields, "by") in BY else PLATFORM
    served = service.model(text(fields, "model") or None)
    with site.slowly():
        drawn = service.map(model=served.id)
    question = PageQuestion.read(fields, service) if text(fields, "run") else None
    chosen = None if question else _chosen(fields, drawn)
    like = text(fields, "q")
    return site.render(
        request,
        "map.html",
        title="Which programs are like each other?",
        by=by,
        dots=_dots(drawn, by),
        legend=_legend(drawn),
        labels=_labels(drawn),
        ring=_at(drawn.xy_w2[chosen]) if chosen is not None else None,
        truth=_truth(served, chosen) if chosen is not None else None,
        question=question,
        own=_own(served, drawn, question) if question else None,
        count=len(drawn.workloads),
        apps=len({app for app, _ in drawn.workloads}),
        like=like,
        results=[(drawn.workloads.index((own.app, own.input)), own) for own in service.workloads(like, limit=20)]
        if like
        else [],
    )


def _chosen(fields: QueryParams, drawn: WorkloadMap) -> int | None:
    """Return the number of the workload that a link names: by its number on the map, or by its names."""
    number = text(fields, "at")
    at = whole(number)
    if at is not None and at < len(drawn.workloads):
        return at
    workload = (text(fields, "app"), text(fields, "input"))
    if workload == ("", "") and not number:
        return None
    if workload not in drawn.workloads:
        raise UnknownNameError(f"workload: found {shown(' '.join(workload) or number)!r}, which the map does not show.")
    return drawn.workloads.index(workload)


def _at(xy_2: Any) -> tuple[float, float]:
    """Return a place in per cent of the drawing, with room at its edges."""
    return 50.0 + 47.0 * float(xy_2[0]), 50.0 - 47.0 * float(xy_2[1])


@lru_cache(maxsize=8)
def _dots(drawn: WorkloadMap, by: str) -> Markup:
    """Return all dots, each a link to what was measured of it."""
    looks, apps = looks_of(drawn.platforms), sorted({app for app, _ in drawn.workloads})
    colours = (*PLATFORM_COLOURS, *GROUP_COLOURS)
    of_app = {app: Look(colours[i % len(colours)], "o") for i, app in enumerate(apps)}
    never = Look(FAINT, "o")
    dots = []
    for number, (app, input_) in enumerate(drawn.workloads):
        fastest = int(drawn.fastest_w[number])
        first = drawn.platforms[fastest] if fastest >= 0 else "never ran"
        look = of_app[app] if by == APP else looks.get(first, never)
        x, y = _at(drawn.xy_w2[number])
        words = shown(f"{shown(app)} {shown(input_)}: {first}", 140)
        dots.append(
            Markup('<a href="/map?at={}{}" tabindex="{}" aria-label="{}">{}<title>{}</title></a>').format(
                number,
                Markup("&amp;by=app") if by == APP else "",
                -1 if number else 0,
                words,
                svg.mark(x, y, look.colour, look.shape),
                words,
            )
        )
    return Markup("").join(dots)


def _legend(drawn: WorkloadMap) -> list[Key]:
    looks = looks_of(drawn.platforms)
    counts = [int((drawn.fastest_w == p).sum()) for p in range(len(drawn.platforms))]
    return [Key(name, looks[name], count) for name, count in zip(drawn.platforms, counts, strict=True)]


@lru_cache(maxsize=8)
def _labels(drawn: WorkloadMap) -> Markup:
    """Return the names of applications, each at one of its dots, the largest first; none upon another."""
    by_app: dict[str, list[int]] = {}
    for number, (app, _) in enumerate(drawn.workloads):
        by_app.setdefault(app, []).append(number)
    boxes: list[tuple[float, float, float]] = []
    labels = []
    for app, numbers in sorted(by_app.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        if len(numbers) < _NAMED_FROM:
            continue
        xy_w2 = drawn.xy_w2[numbers]
        middle = numbers[int(np.square(xy_w2 - np.median(xy_w2, axis=0)).sum(axis=1).argmin())]
        x, y = _at(drawn.xy_w2[middle])
        name = shown(app, 24)
        half = len(name) * _LETTER / 2
        x = min(max(x, half + 0.5), 99.5 - half)
        if any(abs(x - a) < half + b and abs(y - c) < _LINE for a, b, c in boxes):
            continue
        boxes.append((x, half, y))
        labels.append(Markup('<text x="{:.4g}%" y="{:.4g}%" dy="-7">{}</text>').format(x, y, name))
    return Markup("").join(labels)


def _truth(served: ServedModel, number: int) -> Truth:
    cells = served.model.cells
    log_time_p, looks = cells.log_time_wp[number], looks_of(cells.platforms)
    order = [p for p in np.argsort(log_time_p).tolist() if not np.isnan(log_time_p[p])]
    relative = {p: float(np.exp(log_time_p[p] - log_time_p[order[0]])) for p in order}
    axis = svg.LogAxis.over(relative.values())
    rows = []
    for p in order:
        name = cells.platforms[p]
        bar = svg.interval(axis, relative[p], relative[p], relative[p], looks[name])
        seconds = duration(float(np.exp(log_time_p[p])))
        rows.append((name, looks[name], f"{short(relative[p])}×", seconds, bar))
    sources = [int(s) for s in cells.source_n[cells.workload_n == number]]
    return Truth(*cells.workloads[number], cells.platforms[sources[0]] if sources else "", tuple(rows), axis)


def _own(served: ServedModel, drawn: WorkloadMap, question: PageQuestion) -> dict[str, Any]:
    """Return where a run lies on the map, and the known workloads nearest to it."""
    asked = ask_model(served.model, [placed(question, served.model.sources)[0]])
    places = WorkloadPlaces.of(served.model)
    (place,) = places.place(asked.features, drawn.xy_w2)
    near_nm, apart_nm = places.near(asked.features, _NEAR)
    near = [(int(w), *drawn.workloads[w], float(d)) for w, d in zip(near_nm[0], apart_nm[0], strict=True)]
    return {"place": _at(place), "near": near, "links": list(_lines(drawn, place, near))}


def _lines(drawn: WorkloadMap, place: Any, near: Sequence[tuple[int, str, str, float]]) -> Iterator[Markup]:
    x, y = _at(place)
    for number, *_ in near:
        a, b = _at(drawn.xy_w2[number])
        yield Markup('<line class="near" x1="{:.4g}%" y1="{:.4g}%" x2="{:.4g}%" y2="{:.4g}%"/>').format(x, y, a, b)
