"""How a browser brings its token: a form, and a cookie that scripts cannot read and other sites cannot send."""

from __future__ import annotations

from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from crossperf.serve.gate import COOKIE
from crossperf.serve.problems import RequestError
from crossperf.serve.tokens import Tokens

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>crossperf: log in</title></head>
<body><main><h1>crossperf</h1>{note}
<form method="post" action="/login"><p><label>Token <input type="password" name="token" required autofocus
autocomplete="current-password"></label> <button>Log in</button></p></form></main></body></html>
"""
_LONGEST = 1_000


def routes(tokens: Tokens) -> list[BaseRoute]:
    """Return the routes of the form."""

    async def form(_: Request) -> Response:
        return HTMLResponse(_PAGE.format(note=""))

    async def enter(request: Request) -> Response:
        data = await request.body()
        if len(data) > _LONGEST:
            raise RequestError(413, f"The form has more than {_LONGEST:,} bytes, expected a token.")
        token = parse_qs(data.decode("utf-8", "replace")).get("token", [""])[0].strip()
        if tokens.scope_of(token) is None:
            return HTMLResponse(_PAGE.format(note="<p role='alert'>This token is not known here.</p>"), 401)
        answer = RedirectResponse("/", status_code=303)
        secure = request.headers.get("x-forwarded-proto", request.url.scheme) == "https"
        answer.set_cookie(COOKIE, token, httponly=True, samesite="strict", secure=secure)
        return answer

    async def leave(_: Request) -> Response:
        answer = RedirectResponse("/login", status_code=303)
        answer.delete_cookie(COOKIE)
        return answer

    return [
        Route("/login", form, methods=["GET"]),
        Route("/login", enter, methods=["POST"]),
        Route("/logout", leave, methods=["POST"]),
    ]
