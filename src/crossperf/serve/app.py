"""The ASGI application: the API under ``/api/v1``, and pages on everything else."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from crossperf.serve import web
from crossperf.serve.service import Service

API = "/api/v1"


def create(service: Service) -> Starlette:
    """Return the application of a service; run it with uvicorn, or ask it with Starlette's test client."""

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "alive"})

    async def models(request: Request) -> Response:
        return JSONResponse({"models": [served.to_json() for served in service.models]})

    api = [Route("/health", health), Route("/models", models)]
    return Starlette(routes=[Mount(API, routes=api), *web.routes(service)])
