"""The screen Campaign: how far a measurement campaign is, renewed as its log grows."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from crossperf.campaign.log import in_words
from crossperf.serve.following import CampaignProgress, PlatformProgress
from crossperf.serve.web import svg
from crossperf.serve.web.asking import text
from crossperf.serve.web.site import Pages, query

#: Visits and failures that are listed, the latest first.
_LATEST = 12
#: A calibration that differs from the first by more than this tells that the machine has changed.
_STEADY = 0.05


def routes(site: Pages) -> list[BaseRoute]:
    """Return the routes of the screen."""

    def show(request: Request) -> Response:
        service = site.service
        name = text(request.query_params, "id") or next(iter(service.campaigns), "")
        if not name:
            return site.render(request, "campaign.html", title="Campaign", campaign=None)
        progress, visits = service.campaign(name).read()
        return site.render(
            request,
            "campaign.html",
            title=f"Campaign {name}",
            campaign=name,
            names=list(service.campaigns),
            progress=progress,
            on_site=any(own.running is not None for own in progress.platforms),
            left=_left(progress),
            total=progress.visits + progress.left if progress.left is not None else None,
            series={own.platform: _series(own) for own in progress.platforms},
            drifts={own.platform: drift_of(own) for own in progress.platforms},
            visits=visits[-_LATEST:][::-1],
            failures=[own for own in visits if own.error is not None][-_LATEST:][::-1],
            page=query("/campaign", {"id": name}),
        )

    return [site.route("/campaign", show)]


def _left(progress: CampaignProgress) -> str:
    if progress.left == 0:
        return "done"
    return "not known" if progress.seconds_left is None else f"about {in_words(progress.seconds_left)}"


def _series(own: PlatformProgress) -> Any:
    """Return the calibrations of a platform as a line; 1 is the first."""
    values = own.calibration[-60:]
    if len(values) < 2:
        return ""
    low, high = min(*values, 1.0 - _STEADY), max(*values, 1.0 + _STEADY)
    return svg.line(values, low=low, high=high)


def drift_of(own: PlatformProgress) -> tuple[str, bool]:
    """Return how far the latest calibration is from the first, and whether that is much.

    >>> drift_of(PlatformProgress("p", 9, 0, (1.0, 1.12)))
    ('+12.0 %', True)
    """
    if not own.calibration:
        return "–", False
    change = own.calibration[-1] - 1.0
    return f"{100 * change:+.1f} %".replace("-", "−"), abs(change) > _STEADY
