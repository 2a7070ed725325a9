"""The screen Platforms: facts side by side, prices, and how often one beats another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from crossperf.dataset.cells import Cells
from crossperf.errors import SettingsError
from crossperf.platforms import Platform
from crossperf.platforms.compare import flat, in_words
from crossperf.report.figures.colours import looks_of
from crossperf.serve.problems import RequestError
from crossperf.serve.service import PRICE
from crossperf.serve.web import svg
from crossperf.serve.web.ask import form_of
from crossperf.serve.web.asking import text
from crossperf.serve.web.site import HEADERS, Pages
from crossperf.serve.web.words import chance


@dataclass(frozen=True)
class HeadToHead:
    """How often one platform was faster than another, of the workloads that ran on both."""

    share: float | None
    workloads: int

    @property
    def words(self) -> str:
        """The share in per cent."""
        return "–" if self.share is None else chance(self.share)

    @property
    def bar(self) -> Markup:
        """The share as a bar."""
        return Markup("") if self.share is None else svg.share(self.share)


def head_to_head(cells: Cells) -> dict[str, dict[str, HeadToHead]]:
    """Return how often each platform (outer) was faster than each other one (inner); a tie counts half.

    >>> times = np.log([[1.0, 2.0], [3.0, 1.0], [1.0, 4.0], [1.0, np.nan]])
    >>> known = Cells(("p", "q"), ("cpu", "cpu"), tuple(("a", str(i)) for i in range(4)), times, np.zeros(1, int),
    ...               np.zeros(1, int))
    >>> head_to_head(known)["p"]["q"]
    HeadToHead(share=0.6666666666666666, workloads=3)
    """
    time_wp, names = cells.log_time_wp, cells.platforms
    table: dict[str, dict[str, HeadToHead]] = {}
    for p, name in enumerate(names):
        both_wp = ~np.isnan(time_wp) & ~np.isnan(time_wp[:, [p]])
        faster_wp = np.where(both_wp, (time_wp[:, [p]] < time_wp) + 0.5 * (time_wp[:, [p]] == time_wp), 0.0)
        counts, wins = both_wp.sum(axis=0).tolist(), faster_wp.sum(axis=0).tolist()
        table[name] = {
            other: HeadToHead(wins[q] / counts[q] if counts[q] else None, counts[q])
            for q, other in enumerate(names)
            if q != p
        }
    return table


def routes(site: Pages) -> list[BaseRoute]:
    """Return the routes of the screen."""

    def show(request: Request) -> Response:
        return _screen(site, request)

    async def price(request: Request) -> Response:
        fields = await form_of(request)
        if site.scope(request) != "write":
            raise RequestError(
                403, "Found no token with the write scope, expected one. Log in with it, then save again."
            )
        await run_in_threadpool(_set_price, site, fields)
        return RedirectResponse("/platforms", 303, HEADERS)

    return [site.route("/platforms", show), site.route("/platforms", price, ("POST",))]


def _screen(site: Pages, request: Request) -> Response:
    service = site.service
    known, trained = service.platforms, service.model().model
    names = [*trained.platforms, *(name for name in known if name not in trained.platforms)]
    compared = [name for name in request.query_params.getlist("compare") if name in known] or list(trained.platforms)
    only = text(request.query_params, "only") == "differences"
    fastest = np.nanargmin(np.where(np.isnan(trained.cells.log_time_wp), np.inf, trained.cells.log_time_wp), axis=1)
    wins = {name: float((fastest == p).mean()) for p, name in enumerate(trained.platforms)}
    return site.render(
        request,
        "platforms.html",
        title="Platforms",
        platforms=[known[name] for name in names],
        looks=looks_of(names),
        wins=wins,
        prices=service.prices,
        compared=compared,
        only=only,
        facts=list(_facts([known[name] for name in compared], only)),
        shares=head_to_head(trained.cells),
        names=trained.platforms,
        workloads=len(trained.workloads),
        writes=site.scope(request) == "write",
    )


def _facts(platforms: Sequence[Platform], only: bool) -> list[tuple[str, list[str], bool]]:
    """Return the facts of platforms row by row, those first in which they differ."""
    columns = [flat(platform) for platform in platforms]
    rows = []
    for fact in dict.fromkeys(fact for column in columns for fact in column):
        values = [column.get(fact) for column in columns]
        differs = any(value != values[0] for value in values)
        if differs or not only:
            rows.append((fact.replace("_", " "), [_written(fact, value) for value in values], differs))
    return sorted(rows, key=lambda row: not row[2])


def _written(fact: str, value: Any) -> str:
    return in_words(fact, value) if not isinstance(value, list | dict) else ", ".join(map(str, value))


def _set_price(site: Pages, fields: FormData) -> None:
    name, written = text(fields, "name"), text(fields, PRICE).strip()
    try:
        price = float(written) if written else None
    except ValueError:
        price = math.nan
    if price is not None and not 0 <= price < math.inf:
        raise SettingsError(f"price per hour: found {written[:40]!r}, expected a number of 0 or more, or nothing.")
    site.service.set_price(name, price)
