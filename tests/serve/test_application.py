"""The application without a server: any ASGI server runs it, and it answers in this process as ours does over HTTP."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from crossperf.serve.app import create
from crossperf.serve.openapi import document
from crossperf.serve.service import Service
from tests.serve.asgi import asked
from tests.serve.server import Running

#: Answers that tell of the time or of the requests so far; a stream; and what is slow or has tests of its own.
_OTHERWISE = {"metrics", "campaign_events", "workload_map", "explain", "import_file", "change_platform", "add_runs"}
_PATHS = {"id": "crossperf", "name": "h200"}


@pytest.fixture(scope="module")
def app(service: Service) -> Any:
    return create(service)


def _operations() -> list[tuple[str, str, str, Any]]:
    return [
        (own["operationId"], method, path, own)
        for path, methods in document()["paths"].items()
        for method, own in methods.items()
        if own["operationId"] not in _OTHERWISE and method in ("get", "post")
    ]


@pytest.mark.parametrize(("name", "method", "path", "own"), _operations(), ids=[own[0] for own in _operations()])
def test_an_example_is_answered_in_this_process_as_over_http(
    app: Any, server: Running, name: str, method: str, path: str, own: Any
) -> None:
    place = re.sub(r"{(\w+)}", lambda match: quote(_PATHS[match[1]], safe=""), path)
    example = own.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
    body = b"" if example is None else json.dumps(example).encode()
    here, there = asked(app, method.upper(), place, body), server.ask(method.upper(), place, example)
    if name == "kept_runs":  # the service of this process was given no file for them
        assert (here.status, there.status) == (501, 200)
        return
    if here.status in (401, 403):  # here nobody has a token, and only reading needs none
        assert own.get("security"), name
        return
    assert here.status == there.status
    assert here.headers["content-type"] == there.headers["content-type"]
    if here.status == 200 and name in ("predict", "check_runs", "workloads", "suggest"):
        assert json.loads(here.body).keys() == json.loads(there.body).keys()


@pytest.mark.parametrize(
    "page",
    ["/", "/?q=sort", "/map", "/map?at=2", "/platforms", "/platforms?compare=h200&compare=xeon-4t", "/trust", "/api"],
)
def test_each_page_is_whole_html_that_allows_nothing_from_elsewhere(app: Any, page: str) -> None:
    shown = asked(app, "GET", page)
    assert shown.status == 200, shown.body
    assert shown.headers["content-type"].startswith("text/html")
    assert shown.headers["content-security-policy"].startswith("default-src 'none'")
    assert shown.body.rstrip().endswith(b"</html>")


def test_a_run_becomes_an_answer_with_a_link_of_its_own(app: Any, run: dict[str, Any]) -> None:
    sent = urlencode({"text": json.dumps(run)}).encode()
    own = {"origin": "http://127.0.0.1:8765"}
    asked_for = asked(app, "POST", "/ask", sent, "application/x-www-form-urlencoded", **own)
    assert asked_for.status == 303, asked_for.body
    for more in ("", "&gpu=no&level=0.9"):
        answer = asked(app, "GET", asked_for.headers["location"] + more)
        assert answer.status == 200
        assert b"mine" in answer.body


@pytest.mark.parametrize(
    ("method", "target", "body", "kind", "status"),
    [
        ("GET", "/api/v1/nowhere", b"", "application/json", 404),
        ("DELETE", "/api/v1/models", b"", "application/json", 405),
        ("POST", "/api/v1/predict", b"{", "application/json", 422),
        ("POST", "/api/v1/predict", b"[]", "application/json", 422),
        ("POST", "/api/v1/predict", b"x", "image/png", 415),
        ("POST", "/api/v1/predict", b"app,input\na,b\n", "text/csv", 422),
        ("POST", "/api/v1/predict?level=2", b"{}", "application/json", 422),
    ],
)
def test_a_bad_request_is_a_problem_document(
    app: Any, method: str, target: str, body: bytes, kind: str, status: int
) -> None:
    refused = asked(app, method, target, body, kind)
    assert refused.status == status, refused.body
    assert refused.headers["content-type"] == "application/problem+json"
    assert {"type", "title", "status", "detail"} <= set(json.loads(refused.body))


def test_a_foreign_host_or_origin_is_refused(app: Any) -> None:
    assert asked(app, "GET", "/api/v1/models", host="evil.example").status == 421
    assert asked(app, "POST", "/api/v1/predict", b"{}", origin="http://evil.example").status == 403
