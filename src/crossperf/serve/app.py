"""The ASGI application: the API under ``/api/v1``, and pages on everything else."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.types import ASGIApp

from crossperf.serve import login, web
from crossperf.serve.context import Context
from crossperf.serve.endpoints import Endpoint
from crossperf.serve.gate import AccessRules, Gateway, Log
from crossperf.serve.problems import RequestError
from crossperf.serve.service import Service
from crossperf.serve.table import ENDPOINTS

API = "/api/v1"


def create(
    service: Service, *, context: Context | None = None, rules: AccessRules | None = None, log: Log | None = None
) -> ASGIApp:
    """Return the application of a service; any ASGI server runs it.

    Parameters
    ----------
    context
        Limits and figures; ``None``: the defaults.
    rules
        Who may ask; ``None``: anyone on this machine may read.
    log
        Called with the facts of each request once it is answered.
    """
    context, rules = context or Context(service), rules or AccessRules()
    api = [route_of(endpoint, context) for endpoint in ENDPOINTS]
    pages: list[BaseRoute] = [*login.routes(rules.tokens), *web.routes(service)]
    # The router alone: what handlers and the router itself raise becomes a problem document at the gate.
    return Gateway(Router([Mount(API, routes=api), *pages]), context, rules, log)


def route_of(endpoint: Endpoint, context: Context) -> Route:
    """Return the route of an endpoint: its scope and parameters are checked before its handler is called."""

    async def handle(request: Request) -> Response:
        state = request.scope["state"]
        state["route"] = endpoint.name
        refuse_scope(endpoint, state["scope"])
        return await endpoint.handler(context, request, endpoint.read(request.query_params))

    return Route(endpoint.path, handle, methods=[endpoint.method], name=endpoint.name)


def refuse_scope(endpoint: Endpoint, allowed: str | None) -> None:
    """Raise unless a request may ask for an endpoint."""
    if endpoint.scope == "open" or allowed in ("write", endpoint.scope):
        return
    if allowed is None:
        raise RequestError(401, f"Authorization: found no token, expected one with the {endpoint.scope} scope.")
    raise RequestError(403, "Found a request without the write scope, expected a token that has it.")
