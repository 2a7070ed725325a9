"""The screen API: every endpoint of the table, with an example that runs from the page."""

from __future__ import annotations

import json
import shlex
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

#: What ``perf stat`` prints: a file of a profiler for the example of /import.
PERF_STAT = """\
 Performance counter stats for './solver 1000':

    31,000,000,000      instructions
     2,400,000,000      branches
        36,000,000      branch-misses
             5,300      page-faults

      12.503112 seconds time elapsed
"""


@dataclass(frozen=True)
class Example:
    """An endpoint with a request that it answers: an address, and a body with its media type unless it takes none."""

    endpoint: Endpoint
    about: str
    address: str
    body: str | None
    media_type: str

    @property
    def curl(self) -> str:
        """The request as a command line; a body comes from a file."""
        words = ["curl", "-s"]
        if self.endpoint.method != "GET":
            words += ["-X", self.endpoint.method]
        if self.body is not None:
            words += ["-H", f"content-type: {self.media_type}", "--data-binary", "@body"]
        token = ' -H "authorization: Bearer $TOKEN"' if self.endpoint.scope == "write" else ""
        return f'{shlex.join(words)}{token} "$SERVER"{shlex.quote(self.address)}'


def routes(site: Pages) -> list[BaseRoute]:
    """Return the routes of the screen."""

    def show(request: Request) -> Response:
        examples = examples_of(site.service)
        return site.render(request, "api.html", title="API", examples=examples, scope=site.scope(request))

    return [site.route("/api", show)]


def examples_of(service: Service) -> list[Example]:
    """Return an example for each endpoint, of what this server knows."""
    from crossperf.serve.table import ENDPOINTS

    trained = service.model().model
    app, input_ = trained.workloads[0]
    run = service.run_of(app, input_)
    paths = {"id": service.model().id, "name": trained.platforms[0]}
    queries: Mapping[str, Mapping[str, Any]] = {
        "/workloads": {"like": app, "limit": 3},
        "/workloads/run": {"app": app, "input": input_},
        "/explain": {"samples": 32},
        "/import": {"name": "perf.txt", "app": "solver", "input": "n=1000", "platform": run.platform},
        "/campaigns/{id}/events": {"once": "true"},
    }
    examples = []
    for endpoint in ENDPOINTS:
        own = paths | ({"id": next(iter(service.campaigns), "none")} if "/campaigns/" in endpoint.path else {})
        address = PREFIX + endpoint.path.format_map({name: quote(value, safe="") for name, value in own.items()})
        if query := queries.get(endpoint.path):
            address += f"?{urlencode(query)}"
        about = (endpoint.handler.__doc__ or endpoint.text).strip().splitlines()[0].replace("`", "")
        examples.append(Example(endpoint, about, address, *_body(endpoint, run.to_json())))
    return examples


def _body(endpoint: Endpoint, run: Mapping[str, Any]) -> tuple[str | None, str]:
    """Return a body for an endpoint, with a run of this server where it takes one, and its media type."""
    if not endpoint.body:
        return None, ""
    if JSON not in endpoint.body:
        return PERF_STAT, next(iter(endpoint.body))
    facts: Any = dict(endpoint.example or {})
    if "counters" in facts:
        facts = run
    elif "run" in facts:
        facts["run"] = run
    return json.dumps(plain.to_json(facts), indent=1), JSON
