"""Requests to the service: an application in this process answers whatever comes, with a problem document or a page."""

from __future__ import annotations

import atexit
import functools
import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from crossperf.runs import read_runs
from crossperf.serve.app import API, create
from crossperf.serve.gate import AccessRules
from crossperf.serve.service import Service
from crossperf.serve.table import ENDPOINTS
from crossperf.serve.tokens import Tokens
from tests.hostile.target import Target
from tests.serve.asgi import Response, sent

_TOKEN = "write-" + "w" * 30
_HOST = "127.0.0.1:8765"
_WRITER = {"host": _HOST, "authorization": f"Bearer {_TOKEN}", "content-type": "application/json"}
_RUN = {"app": "a", "input": "1", "platform": "epyc-1t", "runtime_s": 1.0, "counters": {"instructions": 1e9}}
_CSV = "text/csv"


@functools.cache
def _app() -> Any:
    """Return an application with the model that ships, which keeps runs and platforms in a folder of its own."""
    folder = tempfile.TemporaryDirectory()
    place = Path(folder.name)
    service = Service.open(platforms_file=place / "platforms.json", runs_file=place / "runs.db", cache=place)
    atexit.register(folder.cleanup)
    atexit.register(service.close)
    return create(service, rules=AccessRules(tokens=Tokens.of({"write": _TOKEN})))


def _checked(path: str, answer: Response) -> None:
    """Hold an answer to what every one promises."""
    assert answer.status < 500 or answer.status == 501, answer
    assert b"Traceback" not in answer.body
    assert answer.headers["x-content-type-options"] == "nosniff"
    if path.startswith(f"{API}/") and answer.status >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        facts = json.loads(answer.body)
        assert facts["status"] == answer.status
        assert facts["detail"]
    elif answer.headers.get("content-type") == "application/json":
        json.loads(answer.body)


def _text(value: Any) -> str:
    """Return a value as the text that a client could send."""
    words = value if isinstance(value, str) else json.dumps(value)
    return words.encode("utf-8", "replace").decode()


def _send(request: Any) -> None:
    """Send a request as far as a server would let it pass: it sees to methods and to the characters of headers."""
    facts = request if isinstance(request, dict) else {"body": request}
    method = re.sub(r"[^A-Z]", "", _text(facts.get("method", "POST")))[:20] or "POST"
    path = "/" + _text(facts.get("path", f"{API}/predict")).lstrip("/")
    query = quote(_text(facts.get("query", "")), safe="=&%+,").encode()
    named = facts.get("headers", _WRITER)
    headers = {"host": _HOST}
    for name, value in named.items() if isinstance(named, dict) else ():
        if re.fullmatch(r"[!-9;-~]+", name):
            headers[name.lower()] = re.sub(r"[^\t -~\x80-\xff]", "", _text(value))
    body = facts.get("body", b"")
    data = body if isinstance(body, bytes) else json.dumps(body).encode() if body != "" else b""
    _checked(path, sent(_app(), method, path, query, headers, data))


def _body(method: str, path: str, kind: str = "application/json") -> Callable[[Path], None]:
    """Return what sends the bytes of a file as the body of a request."""
    path, _, query = f"{API}{path}".partition("?")

    def use(file: Path) -> None:
        answer = sent(_app(), method, path, query.encode(), {**_WRITER, "content-type": kind}, file.read_bytes())
        _checked(path, answer)

    return use


def _requests() -> list[Any]:
    """Return a sound request of each endpoint and page."""
    every = [
        {"method": own.method, "path": API + own.path, "query": "", "headers": _WRITER, "body": own.example or ""}
        for own in ENDPOINTS
        if own.name not in ("import_file", "campaign_events", "explain")
    ]
    asking = [
        ("/", "q=sort"),
        ("/map", "at=2"),
        ("/platforms", "compare=h200&compare=xeon-4t"),
        ("/trust", ""),
        ("/api", ""),
        ("/login", ""),
        (f"{API}/models/crossperf", ""),
        (f"{API}/platforms/h200", ""),
        (f"{API}/workloads", "like=sort&limit=3"),
        (f"{API}/workloads/run", "app=sort&input=1&source=epyc-1t"),
        (f"{API}/runs", "app=a&after=0&limit=5"),
        (f"{API}/drift", "since=1.5"),
    ]
    every += [{"method": "GET", "path": path, "query": query, "headers": {"host": _HOST}} for path, query in asking]
    settings = "level=0.9&relative_to=fastest&can=cpu,gpu&joint=true&pairs=true&keep=true&name=a"
    every += [
        {"method": "POST", "path": f"{API}/predict", "query": settings, "headers": _WRITER, "body": [_RUN]},
        {"method": "POST", "path": f"{API}/explain", "query": "samples=8&seed=1", "headers": _WRITER, "body": _RUN},
        {"method": "GET", "path": "/", "headers": {"host": _HOST, "cookie": f"crossperf-token={_TOKEN}"}},
    ]
    return every


def _use_requests(path: Path) -> None:
    """Send the requests of a file that are not sound."""
    known = set(_lines().splitlines())
    for line in path.read_bytes().splitlines():
        if line not in known:
            try:
                request = json.loads(line)
            except (ValueError, RecursionError):
                request = {"body": line}
            _send(request)


@functools.cache
def _lines() -> bytes:
    return b"".join(json.dumps(request).encode() + b"\n" for request in _requests())


def _example(path: str) -> Callable[[], bytes]:
    return lambda: json.dumps(next(own.example for own in ENDPOINTS if own.path == path and own.example)).encode()


def _table(ending: str) -> Callable[[], bytes]:
    def made() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"runs.{ending}"
            read_runs([_RUN, {**_RUN, "input": "2"}]).write(path)
            return path.read_bytes()

    return made


#: Requests as a file of lines, and bodies by endpoint.
REQUESTS = [
    Target("requests", "requests.jsonl", _lines, _use_requests),
    *(
        Target(f"body{path.replace('/', '-')}", "body.json", _example(path), _body("POST", path))
        for path in ("/predict", "/place", "/suggest", "/runs/check", "/runs")
    ),
    Target("body-platforms", "body.json", _example("/platforms/{name}"), _body("PUT", "/platforms/h200")),
    Target("body-csv", "body.csv", _table("csv"), _body("POST", "/predict?pairs=true", _CSV)),
    Target("body-jsonl", "body.jsonl", _table("jsonl"), _body("POST", "/runs/check", "application/x-ndjson")),
]
