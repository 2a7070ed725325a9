"""Runs the service: one listening socket, workers that are forked once the models are loaded, and what signals ask for.

The parent loads the models, binds the port and forks. Workers accept from the same socket and share the models' memory
until it is written to, which it never is. SIGTERM and SIGINT let every worker finish what is in flight; SIGHUP makes
every worker load the models again beside the old ones and change over between two requests. A worker that dies is
replaced.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType

import uvicorn

from crossperf.errors import CrossperfError, SettingsError
from crossperf.serve.app import create
from crossperf.serve.context import Context, ServerLimits
from crossperf.serve.gate import LOOPBACK, AccessRules, Log, lines_to
from crossperf.serve.metrics import Metrics
from crossperf.serve.service import Service
from crossperf.serve.table import ENDPOINTS
from crossperf.serve.tokens import READ_VARIABLE, WRITE_VARIABLE, Tokens

_BACKLOG = 2048
#: Seconds that requests in flight have to end once a signal asks the server to.
_GRACE_S = 30
#: A worker that died is not replaced more often than once in this time.
_RESTART_S = 1.0
_LOGGER = logging.getLogger("crossperf.serve")


@dataclass(frozen=True)
class Listening:
    """Where and how a server listens.

    `allowed` are further names that requests may call it by, such as that of a proxy; `log` is the file of the access
    log, ``None`` for stderr.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    workers: int = 1
    allowed: tuple[str, ...] = ()
    tokens: Tokens = field(default_factory=Tokens)
    limits: ServerLimits = field(default_factory=ServerLimits)
    log: Path | None = None

    def refuse_open(self) -> None:
        """Raise where anyone on the network could ask."""
        if self.host not in LOOPBACK and not self.tokens:
            raise SettingsError(
                f"host: found {self.host!r} and no token, expected one where others can connect. Give --token-file, or "
                f"set {READ_VARIABLE} or {WRITE_VARIABLE}.",
                argument="host",
            )


def bound(listening: Listening) -> socket.socket:
    """Return the listening socket; port 0 takes any that is free."""
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    # Named a TCP socket: only then asyncio lets small parts of an answer go at once, 40 ms earlier (TCP_NODELAY).
    own = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        own.bind((listening.host, listening.port))
    except OSError as error:
        own.close()
        problem = f"{listening.host}:{listening.port} cannot be listened on ({error.strerror})"
        raise SettingsError(f"port: {problem}. Choose another --host or --port.", argument="port") from error
    own.listen(_BACKLOG)
    own.set_inheritable(True)
    return own


def serve(service: Service, listening: Listening, say: Callable[[str], None]) -> int:
    """Answer requests until a signal ends it; return the exit status."""
    listening.refuse_open()
    own = bound(listening)
    listening = replace(listening, port=own.getsockname()[1])
    metrics = Metrics([endpoint.name for endpoint in ENDPOINTS] + ["page"], listening.workers)
    name = f"[{listening.host}]" if ":" in listening.host else listening.host
    say(f"serving {', '.join(model.id for model in service.models)} on http://{name}:{listening.port}/")
    if listening.workers == 1:
        return _work(service, listening, own, metrics, 0)
    return _Parent(service, listening, own, metrics).run()


def _work(service: Service, listening: Listening, own: socket.socket, metrics: Metrics, number: int) -> int:
    """Run one worker until a signal asks it to end."""
    metrics.worker = number
    context = Context(service, listening.limits, metrics)
    rules = AccessRules.of(listening.host, listening.allowed, listening.tokens)
    with contextlib.ExitStack() as stack:
        app = create(service, context=context, rules=rules, log=_log(listening, stack))
        config = uvicorn.Config(
            app,
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=_GRACE_S,
            h11_max_incomplete_event_size=2**16,
        )
        server = _Server(config, context)
        # Models are never freed: what the collector need not look at stays shared with the parent and costs no pauses.
        gc.collect()
        gc.freeze()
        asyncio.run(server.serve([own]))
    service.close()
    return 0


def _log(listening: Listening, stack: contextlib.ExitStack) -> Log:
    if listening.log is None:
        return lines_to(sys.stderr.write)
    file = stack.enter_context(listening.log.open("a", encoding="utf-8", buffering=1))
    return lines_to(file.write)


class _Server(uvicorn.Server):
    """Uvicorn's server with a reload on SIGHUP, and streams that end when it does."""

    def __init__(self, config: uvicorn.Config, context: Context) -> None:
        super().__init__(config)
        self._context = context

    @contextlib.contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]
        """Take the signals that end a server, and the one that reloads it, for as long as it runs."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._reload)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop accepting, finish what is in flight, and end."""
        self._context.ending = True
        super().handle_exit(sig, frame)

    def _reload(self, _: int, __: FrameType | None) -> None:
        threading.Thread(target=reload, args=(self._context,), daemon=True).start()


def reload(context: Context) -> None:
    """Load the models again; where that fails, the old ones go on, and the log tells why."""
    try:
        context.service.reload()
    except CrossperfError as error:
        _LOGGER.error("models were not loaded again: %s", error)  # noqa: TRY400 - a sentence, not a defect
    else:
        context.metrics.add("reloads")
        _LOGGER.warning("models were loaded again: %s", ", ".join(own.fingerprint for own in context.service.models))


class _Parent:
    """The process that forks workers, hands signals on to them, and replaces one that dies."""

    def __init__(self, service: Service, listening: Listening, own: socket.socket, metrics: Metrics) -> None:
        self._service, self._listening, self._socket, self._metrics = service, listening, own, metrics
        self._workers: dict[int, int] = {}  # numbers by process
        self._ending = False

    def run(self) -> int:
        """Fork workers and wait for them; return the exit status."""
        gc.collect()
        gc.freeze()
        for asking in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(asking, self._hand_on)
        for number in range(self._listening.workers):
            self._fork(number)
        while self._workers:
            try:
                process, status = os.wait()
            except InterruptedError:
                continue
            place = self._workers.pop(process, None)
            if place is not None and not self._ending:
                _LOGGER.error("worker %d ended (%d) and is replaced", place, os.waitstatus_to_exitcode(status))
                time.sleep(_RESTART_S)
                self._fork(place)
        return 0

    def _fork(self, number: int) -> None:
        process = os.fork()
        if process:
            self._workers[process] = number
            if self._ending:  # a signal came while it forked
                os.kill(process, signal.SIGTERM)
            return
        status = 1
        try:
            status = _work(self._service, self._listening, self._socket, self._metrics, number)
        finally:
            os._exit(status)

    def _hand_on(self, number: int, _: FrameType | None) -> None:
        self._ending = self._ending or number != signal.SIGHUP
        for process in list(self._workers):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
