"""The screen Trust: how good the models were where the truth is known, and how past predictions did."""

from __future__ import annotations

import re
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute

from crossperf.serve.drift import Drift
from crossperf.serve.web import svg
from crossperf.serve.web.asking import text
from crossperf.serve.web.site import Pages
from crossperf.serve.web.words import chance

#: The report stands alone: its style and script are in the page, the script under its digest.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src {script}; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_DIGESTS = re.compile(r"script-src ((?:'sha256-[\w+/=]+'\s*)+);")
#: What a split holds out, in the words of a switch.
SPLITS = {"workload": "new inputs", "app": "new applications", "row": "random cells, as in the paper"}


def routes(site: Pages) -> list[BaseRoute]:
    """Return the routes of the screen."""

    def show(request: Request) -> Response:
        return _screen(site, request)

    def report(request: Request) -> Response:
        with site.slowly():
            page = site.service.evaluations.page(text(request.query_params, "evaluation"))
        digests = _DIGESTS.search(page[:4000])
        policy = _POLICY.format(script=digests[1].strip() if digests else "'none'")
        return HTMLResponse(page, headers={"content-security-policy": policy, "cache-control": "no-store"})

    return [site.route("/trust", show), site.route("/trust/report", report)]


def _screen(site: Pages, request: Request) -> Response:
    evaluations = site.service.evaluations
    name = text(request.query_params, "evaluation") or next(iter(evaluations), "")
    drift = site.service.drift()
    facts: dict[str, Any] = {"evaluation": None, "chosen": name}
    if name:
        facts |= _evaluated(site, name, text(request.query_params, "scored"))
    return site.render(
        request,
        "trust.html",
        title="How far to trust it?",
        evaluations={own: _named(site, own) for own in evaluations},
        drift=drift,
        weeks=_weeks(drift),
        keeps=site.service.store is not None,
        **facts,
    )


def _named(site: Pages, name: str) -> str:
    split = site.service.evaluations.find(name).split
    return SPLITS.get(split, split)


def _evaluated(site: Pages, name: str, scored: str) -> dict[str, Any]:
    """Return the scores of an evaluation, and the figures of one of its models."""
    from crossperf.report import sentences, tables

    evaluation = site.service.evaluations.find(name)
    models = list(evaluation.scores)
    best = min(models, key=lambda own: evaluation.scores[own].typical_factor or float("inf"), default="")
    scored = scored if scored in models else best
    facts: dict[str, Any] = {"evaluation": evaluation, "models": models, "scored": scored}
    facts |= {"headline": sentences.headline(evaluation), "about": _without_folders(evaluation.about)}
    facts |= {"scores": tables.scores(evaluation), "caveats": evaluation.caveats, "numbers": [], "says": []}
    facts["by_app"] = tables.applications(held) if (held := evaluation.held_out) and held.predictions else None
    if scored:
        own = evaluation.scores[scored]
        facts["numbers"] = list(_numbers(own, evaluation.constant.fastest_share))
        says = [sentences.of_scores(own), *([sentences.of_intervals(own)] if own.coverage is not None else [])]
        facts["says"] = [f"{scored} {sentence}" for sentence in says]
    return facts


def _numbers(scores: Any, constant: float | None) -> list[tuple[str, str]]:
    """Return what matters most of a model's scores: big, with a word on each."""
    known = []
    if scores.top1 is not None:
        beside = f"; always the same one: {chance(constant)}" if constant is not None else ""
        known.append((chance(scores.top1), f"picks the fastest platform{beside}"))
    if scores.typical_factor is not None:
        known.append((f"{scores.typical_factor:.2f}×", "how far its times are off, typically; 1 is perfect"))
    if scores.coverage is not None:
        known.append((chance(scores.coverage), "of its 80 % ranges hold the truth"))
    return known


def _without_folders(sentence: str) -> str:
    """Return a sentence without the folders of this machine."""
    return re.sub(r"(?<![\w.~-])(?:[\w.~@+-]*/)+([\w.~@+-]+)", r"\1", sentence)


def _weeks(drift: Drift) -> Any:
    """Return the typical factor week by week as a line; empty where a line says nothing."""
    factors = [own.typical_factor for own in drift.weeks]
    return svg.line(factors, low=1.0, high=max([*factors, 1.1])) if len(factors) > 1 else ""
