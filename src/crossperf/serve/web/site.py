"""What all pages share: templates that escape, files that a browser loads, headers, and errors in words."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route

from crossperf import __version__
from crossperf.display import GAP, TableView, to_html
from crossperf.errors import CrossperfError, MissingDependencyError
from crossperf.serve.models import UnknownNameError
from crossperf.serve.problems import status_of
from crossperf.serve.readers import BusyError
from crossperf.serve.service import Service
from crossperf.serve.web import svg
from crossperf.serve.web.words import bias, chance, described, duration
from crossperf.text import safe

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined
except ImportError as error:
    raise MissingDependencyError("The pages need Jinja2: pip install 'crossperf[serve]'") from error

#: Pages show what is known now. The gate adds a policy that lets nothing run but files of this server.
HEADERS = {"cache-control": "no-store"}
#: Explanations, maps and reports that are made at the same time, and how long another one waits for its turn.
_AT_A_TIME, _PATIENCE_S = 4, 20.0
#: The screens by the address of their first page.
SCREENS = {
    "/": "Ask",
    "/map": "Map",
    "/platforms": "Platforms",
    "/trust": "Trust",
    "/campaign": "Campaign",
    "/api": "API",
}
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".LICENSE": "text/plain"}
#: The report's own style sheet, which pages share, and what the pages add to it.
_FILES = {
    "report.css": ("crossperf.report", "style.css"),
    "page.css": (__package__, "static/page.css"),
    "page.js": (__package__, "static/page.js"),
    "icon.svg": (__package__, "static/icon.svg"),
    "htmx.js": (__package__, "static/vendor/htmx-2.0.11.min.js"),
    "htmx.LICENSE": (__package__, "static/vendor/htmx-2.0.11.LICENSE"),
}

#: What a handler returns before it is a response.
Handler = Callable[[Request], Any]


class Pages:
    """The pages of a service: renders templates, and turns errors into pages that say what to do."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._slow = threading.BoundedSemaphore(_AT_A_TIME)
        self._templates = Environment(
            loader=PackageLoader(str(__package__)),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals.update(
            svg=svg,
            screens=SCREENS,
            version=__version__,
            query=query,
            table=_table,
            service=service,
            about=described,
            chance=chance,
            bias=bias,
        )
        self._templates.filters.update(shown=shown, compact=compact, duration=duration)

    def render(self, request: Request, template: str, status: int = 200, **facts: Any) -> Response:
        """Return a page."""
        page = self._templates.get_template(template).render(request=request, path=request.url.path, **facts)
        return HTMLResponse(page, status, HEADERS)

    def route(self, path: str, handler: Handler, methods: tuple[str, ...] = ("GET",)) -> Route:
        """Return the route of a handler; one that is no coroutine runs in a thread, as answers take a while."""

        @functools.wraps(handler)
        async def careful(request: Request) -> Response:
            try:
                if inspect.iscoroutinefunction(handler):
                    return await _awaited(handler(request))
                return await run_in_threadpool(handler, request)
            except CrossperfError as error:
                return await run_in_threadpool(self.problem, request, error)

        return Route(path, careful, methods=list(methods))

    @contextmanager
    def slowly(self) -> Iterator[None]:
        """Let a few threads at a time do what takes long; whoever waits too long gets `BusyError`."""
        if not self._slow.acquire(timeout=_PATIENCE_S):
            raise BusyError("Too much is being explained or drawn now. Ask again in a moment.")
        try:
            yield
        finally:
            self._slow.release()

    @staticmethod
    def scope(request: Request) -> str:
        """Return what a request may do: ``read``, or ``write`` too."""
        return str(request.scope.get("state", {}).get("scope") or "read")

    def problem(self, request: Request, error: CrossperfError) -> Response:
        """Return the page of an error: its sentence, and every problem that it lists."""
        status = status_of(error)
        problems = [own if isinstance(own, str) else str(own) for own in error.facts.get("problems") or ()]
        return self.render(request, "problem.html", status, title="That did not work", error=error, problems=problems)

    def nowhere(self) -> Route:
        """Return the route of every other address: a page that says so."""

        def show(request: Request) -> Response:
            raise UnknownNameError(f"There is no page at {shown(request.url.path)}. Begin with Ask.")

        return self.route("/{path:path}", show)

    def files(self) -> Mount:
        """Return the files that pages load, each held in memory."""
        routes = []
        for name, (package, place) in _FILES.items():
            data = resources.files(str(package)).joinpath(place).read_bytes()
            kind = next(kind for ending, kind in _TYPES.items() if name.endswith(ending))
            routes.append(Route(f"/{name}", _file(data, kind)))
        return Mount("/static", routes=routes)


async def _awaited(response: Awaitable[Response]) -> Response:
    return await response


def _file(data: bytes, kind: str) -> Callable[[Request], Awaitable[Response]]:
    headers = {"cache-control": "no-cache"}

    async def send(request: Request) -> Response:  # noqa: ARG001
        return Response(data, headers=headers, media_type=f"{kind}; charset=utf-8")

    return send


def shown(text: object, most: int = 60) -> str:
    r"""Return a name or a sentence as it is shown: without what turns letters around, and not too long.

    >>> shown("a\u202eb"), shown("x" * 99, 9)
    ('a\\u202eb', 'xxxxxx…xx')
    """
    whole = safe(text) if "\n" not in str(text) else "\n".join(map(safe, str(text).splitlines()))
    return whole if len(whole) <= most else f"{whole[: most * 3 // 4]}…{whole[-(most // 4) :]}"


def compact(value: float | None) -> str:
    """Return a number of any size in few characters.

    >>> compact(3.1e10), compact(0.25), compact(None)
    ('3.1e10', '0.25', '–')
    """
    return GAP if value is None else f"{value:.3g}".replace("e+", "e")


def query(path: str, fields: Mapping[str, Any]) -> str:
    """Return an address with fields; empty ones are left out.

    >>> query("/map", {"by": "app", "at": ""})
    '/map?by=app'
    """
    known = [(name, str(value)) for name, value in fields.items() if value not in ("", None)]
    return f"{path}?{urlencode(known)}" if known else path


def _table(view: TableView, identity: str) -> Markup:
    return Markup(to_html(view, identity))  # noqa: S704 - it escapes what it writes
