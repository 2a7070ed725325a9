"""An application asked without a server, by the messages of ASGI."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

#: Seconds after which an application counts as hung, on a busy machine too.
HUNG = 300.0


class Response(NamedTuple):
    """The status, headers and body that an application sent."""

    status: int
    headers: dict[str, str]
    body: bytes


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    """Return a loop in a thread of its own: a browser of another test may have one in this thread."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


def asked(
    app: Any, method: str, target: str, body: bytes = b"", kind: str = "application/json", **more: str
) -> Response:
    """Return what an application answers to one request of a client on this machine."""
    path, _, query = target.partition("?")
    headers = {"host": "127.0.0.1:8765", **({"content-type": kind} if body else {}), **more}
    return sent(app, method, path, query.encode(), headers, body)


def sent(
    app: Any, method: str, path: str, query: bytes = b"", headers: Mapping[str, str] | None = None, body: bytes = b""
) -> Response:
    """Return what an application answers to a request as a server hands it over."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": quote(path).encode(),
        "query_string": query,
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in (headers or {}).items()],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8765),
    }
    messages: list[Any] = []

    async def once() -> None:
        parts = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> Any:
            return next(parts, {"type": "http.disconnect"})

        async def send(message: Any) -> None:
            messages.append(message)

        await app(scope, receive, send)

    asyncio.run_coroutine_threadsafe(once(), _loop()).result(HUNG)
    start, *rest = messages
    names = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in start["headers"]}
    return Response(start["status"], names, b"".join(part.get("body", b"") for part in rest))
