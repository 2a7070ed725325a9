"""The screen API: every endpoint of the table, with an example that runs from the page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from crossperf import plain
from crossperf.serve.bodies import JSON
from crossperf.serve.endpoints import Endpoint
from crossperf.serve.openapi import PREFIX
from crossperf.serve.service import Service
from crossperf.serve.web.site import Pages


@dataclass(frozen=True)
class Example:
    """An endpoint with a request that it answers: an address, and a body unless it takes none."""

    endpoint: Endpoint
    about: str
    address: str
    body: str | None
    runs: bool

    @property
    def curl(self) -> str:
        """The request as a command line."""
        method = "" if self.endpoint.method == "GET" else f" -X {self.endpoint.method}"
        body = "" if self.body is None else " -H 'content-type: application/json' -d @body.json"
        token = ' -H "authorization: Bearer $TOKEN"' if self.endpoint.scope == "write" else ""
        return f"curl -s{method}{token}{body} '{self.address}'"


def routes(site: Pages) -> list[BaseRoute]:
    """Return the routes of the screen."""

    def show(request: Request) -> Response:
        examples = list(examples_of(site.service))
        return site.render(request, "api.html", title="API", examples=examples, scope=site.scope(request))

    return [site.route("/api", show)]


def examples_of(service: Service) -> list[Example]:
    """Return an example for each endpoint, of what this server knows."""
    from crossperf.serve.table import ENDPOINTS

    trained = service.model().model
    app, input_ = trained.workloads[0]
    paths = {"id": service.model().id, "name": trained.platforms[0]}
    queries: Mapping[str, dict[str, Any]] = {
        "/workloads": {"like": app, "limit": 3},
        "/workloads/run": {"app": app, "input": input_},
        "/runs": {"limit": 5},
        "/explain": {"samples": 32},
        "/campaigns/{id}/events": {"once": "true"},
    }
    run = plain.to_json(service.run_of(app, input_).to_json())
    return [_example(own, paths | _campaign(own, service), queries.get(own.path, {}), run) for own in ENDPOINTS]


def _campaign(endpoint: Endpoint, service: Service) -> dict[str, str]:
    return {"id": next(iter(service.campaigns), "none")} if endpoint.path.startswith("/campaigns/") else {}


def _example(endpoint: Endpoint, paths: Mapping[str, str], query: Mapping[str, Any], run: Any) -> Example:
    path = endpoint.path
    for name, value in paths.items():
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    asked = endpoint.method == "GET" or endpoint.path == "/explain"
    address = f"{PREFIX}{path}" + (f"?{urlencode(query)}" if query and asked else "")
    body, takes_json = None, JSON in endpoint.body
    if takes_json and isinstance(endpoint.example, Mapping):
        facts = dict(endpoint.example)
        if "counters" in facts:
            facts = run
        elif "run" in facts:
            facts["run"] = run
        body = json.dumps(facts, indent=1)
    about = (endpoint.handler.__doc__ or endpoint.text).strip().splitlines()[0].replace("``", "")
    return Example(endpoint, about, address, body, runs=takes_json or not endpoint.body)
