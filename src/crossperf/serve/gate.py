"""What every request passes: host, origin, token, size, load; then the headers of its answer, figures and the log."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import urlsplit

import orjson
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crossperf.errors import CrossperfError
from crossperf.serve import problems
from crossperf.serve.context import Context
from crossperf.serve.problems import RequestError
from crossperf.serve.readers import BusyError
from crossperf.serve.tokens import Tokens

#: The cookie in which a browser keeps its token.
COOKIE = "crossperf-token"
#: Paths that anyone may see: how to log in, and what the page for it is drawn with.
_OPEN = ("/login", "/static/", "/favicon.ico")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_API = "/api/"
#: No answer may be framed, sniffed or kept by a proxy; a page runs its own scripts and asks its own server alone.
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_POLICY_OF_PAGES = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_POLICY_OF_API = b"default-src 'none'; frame-ancestors 'none'"
_DEFECTS = logging.getLogger("crossperf.serve")


@dataclass(frozen=True)
class AccessRules:
    """Who may ask: hosts that requests may name, tokens, and whether reading without one is allowed."""

    hosts: frozenset[str] = frozenset(LOOPBACK)
    tokens: Tokens = field(default_factory=Tokens)
    open_to_read: bool = True
    in_flight: int = 512

    @classmethod
    def of(cls, host: str, allowed: Iterable[str] = (), tokens: Tokens | None = None) -> AccessRules:
        """Return the rules of a server that listens on a host: beyond loopback, everything needs a token."""
        tokens = tokens or Tokens()
        known = frozenset(name.lower().strip("[]") for name in (*LOOPBACK, host, *allowed))
        return cls(known, tokens, host in LOOPBACK and tokens.readable_by_all)


Log = Callable[[dict[str, Any]], object]


@dataclass(eq=False)
class _Passing:
    """One request on its way through: what it brought, and what it was answered."""

    scope: Scope
    id: str
    started: float
    headers: dict[bytes, bytes]
    status: int = 500
    bytes_in: int = 0
    bytes_out: int = 0
    begun: bool = False


class Gateway:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, context: Context, rules: AccessRules, log: Log | None = None) -> None:
        self._app, self._context, self._rules, self._log = app, context, rules, log
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; whatever goes wrong with it is a problem document."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
                return
            await self._app(scope, receive, send)
            return
        own = _Passing(scope, secrets.token_hex(8), time.perf_counter(), dict(scope["headers"]))
        sending = self._sender(own, send)
        self._in_flight += 1
        self._context.metrics.add("in_flight", 1)
        try:
            await self._answer(own, receive, sending)
        except Exception as error:
            if own.begun:
                _DEFECTS.exception("request %s broke off", own.id)
                raise
            await self._refusal(error, own)(scope, receive, sending)
        finally:
            self._in_flight -= 1
            self._context.metrics.add("in_flight", -1)
            self._note(own)

    async def _answer(self, own: _Passing, receive: Receive, send: Send) -> None:
        scope = own.scope
        scope["app"] = self  # with one the router raises what it cannot route
        self._refuse_strangers(own)
        scope["state"] = {**scope.get("state", {}), "scope": self._scope_of(own), "id": own.id}
        path = scope["path"]
        if not path.startswith(_API) and not path.startswith(_OPEN) and scope["state"]["scope"] is None:
            page = Response(status_code=303, headers={"Location": "/login"})
            if scope["method"] in _SAFE_METHODS:
                await page(scope, receive, send)
                return
            raise RequestError(401, "Found no token, expected one with the read scope at least.")
        if self._in_flight > self._rules.in_flight and not path.endswith("/health"):
            raise BusyError("Too many requests at the same time. Ask again in a moment.")
        await self._app(scope, self._receiver(own, receive), send)

    def _refuse_strangers(self, own: _Passing) -> None:
        """Raise where a request names another host, or comes from a page of another site."""
        host = own.headers.get(b"host", b"").decode("latin-1")
        if _name_of(host) not in self._rules.hosts:
            raise RequestError(
                421, "Host: found a name that this server does not answer to. Start it with --allow-host NAME."
            )
        if own.scope["method"] in _SAFE_METHODS:
            return
        origin = own.headers.get(b"origin", b"").decode("latin-1")
        site = own.headers.get(b"sec-fetch-site", b"same-origin").decode("latin-1")
        same = not origin or urlsplit(origin).netloc.lower() == host.lower()
        if not same or site not in ("same-origin", "none"):
            raise RequestError(403, "Origin: found another site, expected this server's own pages or no browser.")

    def _scope_of(self, own: _Passing) -> str | None:
        """Return what a request may do: write, read, or neither."""
        token, rules = self._token(own), self._rules
        if token is not None:
            allowed = rules.tokens.scope_of(token)
            if allowed is not None:
                return allowed
            if not own.scope["path"].startswith("/login"):
                raise RequestError(401, "Authorization: found a token that is not known here.")
        return "read" if rules.open_to_read else None

    def _token(self, own: _Passing) -> str | None:
        written = own.headers.get(b"authorization", b"").decode("latin-1")
        if written:
            kind, _, token = written.partition(" ")
            if kind.lower() != "bearer":
                raise RequestError(401, "Authorization: expected 'Bearer' and a token.")
            return token.strip()
        if b"cookie" not in own.headers:
            return None
        try:
            kept = SimpleCookie(own.headers[b"cookie"].decode("latin-1")).get(COOKIE)
        except CookieError:
            return None
        if kept is not None and own.scope["method"] not in _SAFE_METHODS and b"origin" not in own.headers:
            raise RequestError(403, "Origin: found none with a cookie, expected that of this server's own pages.")
        return None if kept is None else kept.value

    def _receiver(self, own: _Passing, receive: Receive) -> Receive:
        """Return what receives the body, up to the bytes and seconds that it may take."""
        limits, until = self._context.limits, None
        try:
            announced = int(own.headers.get(b"content-length", b"0"))
        except ValueError:
            raise RequestError(400, "Content-Length: found no number, expected the bytes of the body.") from None
        if announced > limits.body_bytes:
            raise _too_large(limits.body_bytes)
        has_body = announced > 0 or b"transfer-encoding" in own.headers
        until = asyncio.get_running_loop().time() + limits.body_seconds if has_body else None
        complete = not has_body

        async def limited() -> Message:
            nonlocal complete
            if complete or until is None:
                return await receive()
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                raise RequestError(408, f"The body took more than {limits.body_seconds:g} s. Send it again.") from None
            own.bytes_in += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if own.bytes_in > limits.body_bytes:
                raise _too_large(limits.body_bytes)
            return message

        return limited

    def _sender(self, own: _Passing, send: Send) -> Send:
        is_api = own.scope["path"].startswith(_API)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                own.begun, own.status = True, message["status"]
                headers = message["headers"] = [
                    *message.get("headers", ()),
                    *_HEADERS,
                    (b"x-request-id", own.id.encode()),
                ]
                names = {name for name, _ in headers}
                if b"content-security-policy" not in names:
                    policy = _POLICY_OF_API if is_api else _POLICY_OF_PAGES
                    headers.append((b"content-security-policy", policy))
                if is_api and b"cache-control" not in names:
                    headers.append((b"cache-control", b"no-store"))
            else:
                own.bytes_out += len(message.get("body", b""))
            await send(message)

        return sending

    def _refusal(self, error: Exception, own: _Passing) -> Response:
        if isinstance(error, CrossperfError):
            return problems.response(error, single=bool(own.scope.get("state", {}).get("single")))
        if isinstance(error, HTTPException):
            words = {404: "There is nothing at this path.", 405: "This path does not take this method."}
            answer = problems.document(error.status_code, words.get(error.status_code, error.detail), "http")
            answer.headers.update(error.headers or {})
            return answer
        _DEFECTS.error("request %s met a defect", own.id, exc_info=error)
        return problems.document(500, f"The server met a defect; its log has more under {own.id}.", "defect")

    def _note(self, own: _Passing) -> None:
        seconds = time.perf_counter() - own.started
        route = own.scope.get("state", {}).get("route", "page" if own.status < 400 else "other")
        self._context.metrics.observe(route, own.status, seconds)
        if self._log is None:
            return
        client = own.scope.get("client") or ("", 0)
        self._log(
            {
                "time": round(time.time(), 3),
                "id": own.id,
                "client": client[0],
                "method": own.scope["method"],
                "path": own.scope["path"][:300],
                "route": route,
                "status": own.status,
                "ms": round(1e3 * seconds, 3),
                "bytes_in": own.bytes_in,
                "bytes_out": own.bytes_out,
            }
        )


def _name_of(host: str) -> str:
    """Return the name in a Host header, without its port.

    >>> _name_of("[::1]:8765"), _name_of("LOCALHOST:80"), _name_of("a.example")
    ('::1', 'localhost', 'a.example')
    """
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _too_large(most: int) -> RequestError:
    return RequestError(
        413, f"The body has more than {most / 2**20:g} MB, which one request may have. Send it in parts."
    )


def lines_to(write: Callable[[str], object]) -> Log:
    """Return a log that writes one line of JSON for each request."""
    return lambda facts: write(orjson.dumps(facts).decode() + "\n")
