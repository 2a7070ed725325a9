"""The pages of the service: HTML made on the server from what `Service` returns."""

from __future__ import annotations

from starlette.routing import BaseRoute

from crossperf.serve.service import Service


def routes(service: Service) -> list[BaseRoute]:  # noqa: ARG001
    """Return the routes of the pages."""
    return []
