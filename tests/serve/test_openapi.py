"""The description of the API: a sound OpenAPI document, the same as the routes, and what answers keep to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openapi_spec_validator import validate
from starlette.routing import Mount, Route

from crossperf.serve.app import create
from crossperf.serve.context import Context
from crossperf.serve.openapi import PREFIX, document
from crossperf.serve.service import Service
from crossperf.serve.table import ENDPOINTS
from tests.serve.server import WRITE, Answered, Running

_PATHS = {"id": "crossperf", "name": "h200"}


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


class Client:
    """A client made of the document alone: a method for each operation, which checks what comes back."""

    def __init__(self, server: Running) -> None:
        self.server, self.known = (
            server,
            {own["operationId"]: (path, method, own) for path, method, own in operations()},
        )

    def call(self, name: str, body: Any = None, query: dict[str, Any] | None = None, path: Any = _PATHS) -> Answered:
        template, method, operation = self.known[name]
        place = re.sub(r"{(\w+)}", lambda match: quote(path[match[1]], safe=""), template)
        target = place + (f"?{urlencode(query)}" if query else "")
        kind = next(iter(operation.get("requestBody", {}).get("content", {})), None)
        answer = self.server.ask(method.upper(), target, body, kind=kind, token=WRITE)
        self.check(operation, answer)
        return answer

    def check(self, operation: dict[str, Any], answer: Answered) -> None:
        assert str(answer.status) in operation["responses"], (operation["operationId"], answer.status, answer.body)
        content = operation["responses"][str(answer.status)]["content"]
        kind = answer.headers["content-type"].partition(";")[0]
        assert kind in content, (operation["operationId"], kind)
        if kind.endswith("json"):
            schema = {**content[kind]["schema"], "components": document()["components"]}
            jsonschema.Draft202012Validator(schema).validate(answer.json)


def test_the_document_is_sound_openapi() -> None:
    validate(json.loads(json.dumps(document())))


def test_the_document_and_the_routes_are_the_same(service: Service) -> None:
    app: Any = create(service, context=Context(service))
    (mount,) = [route for route in app._app.routes if isinstance(route, Mount) and route.path == PREFIX]
    routed = {
        (mount.path + route.path, method.lower())
        for route in mount.routes
        if isinstance(route, Route)
        for method in route.methods - {"HEAD"}
    }
    assert routed == {(path, method) for path, method, _ in operations()}
    assert {PREFIX + own.path for own in ENDPOINTS} == set(document()["paths"])


def test_a_client_made_of_the_document_can_ask_everything(server: Running) -> None:
    client = Client(server)
    statuses = {}
    for _path, _, operation in operations():
        name = operation["operationId"]
        if name in ("workload_map", "campaign_events", "explain"):
            continue  # slow, a stream, and below
        media = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        statuses[name] = client.call(name, media.get("example")).status
    refused = {name: status for name, status in statuses.items() if status not in (200, 201)}
    # Without parameters there is no such workload, and an empty file is no profile.
    assert refused == {"workload_run": 404, "import_file": 422}
    example = client.known["explain"][2]["requestBody"]["content"]["application/json"]["example"]
    assert client.call("explain", example, {"samples": 8}).status == 200


def _strategy(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    if schema["type"] == "integer":
        return st.integers(int(schema.get("minimum", -9)), int(min(schema.get("maximum", 9), 50)))
    if schema["type"] == "number":
        return st.floats(schema.get("minimum", 0.0), min(schema.get("maximum", 9.0), 9.0))
    if schema["type"] == "boolean":
        return st.sampled_from(["true", "false"])
    if schema["type"] == "array":
        return st.lists(st.sampled_from(["cpu", "gpu", "h200", "nix"]), max_size=2).map(",".join)
    return st.sampled_from(["", "crossperf", "source", "fastest", "xeon-4t", "a b", "é", "auto", "\x00"])


_QUICK = [own for own in operations() if own[2]["operationId"] not in ("workload_map", "campaign_events", "explain")]


@pytest.mark.parametrize("name", [own[2]["operationId"] for own in _QUICK])
def test_whatever_parameters_are_asked_with_the_answer_is_a_documented_one(server: Running, name: str) -> None:
    client = Client(server)
    _, _, operation = client.known[name]
    media = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    known = {own["name"]: _strategy(own["schema"]) for own in operation["parameters"] if own["in"] == "query"}

    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(st.fixed_dictionaries({}, optional=known))
    def ask(query: dict[str, Any]) -> None:
        assert client.call(name, media.get("example"), query).status < 500 or name == "import_file"

    ask()
