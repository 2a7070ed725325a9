"""The pages of the service: HTML made on the server from what `Service` returns."""

from __future__ import annotations

from starlette.routing import BaseRoute

from crossperf.serve.service import Service


def routes(service: Service) -> list[BaseRoute]:
    """Return the routes of the pages."""
    from crossperf.serve.web import answer, api, ask, campaigns, machines, maps, trust
    from crossperf.serve.web.site import Pages

    site = Pages(service)
    screens = (ask, answer, maps, machines, trust, campaigns, api)
    return [site.files(), *(route for screen in screens for route in screen.routes(site)), site.nowhere()]
