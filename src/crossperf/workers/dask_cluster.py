"""Workers of a Dask cluster, through the client of dask.distributed: one piece at a time in each of its workers."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import os
import time
import uuid
import warnings
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, fields
from importlib import metadata
from pathlib import Path
from typing import Any

from crossperf.errors import MissingDependencyError, SettingsError, WorkerError
from crossperf.workers.calls import Function, Held, WorkCall, name_of, own_versions, refuse_differences, run
from crossperf.workers.parcels import Parcel

#: How long a cluster may be without any worker: a nanny starts one again within seconds.
_PATIENCE_S = 60.0


@dataclass(frozen=True)
class Tls:
    """Files of a TLS connection in PEM: the authority that signed all certificates, one's own certificate, its key."""

    ca: str | os.PathLike[str]
    cert: str | os.PathLike[str]
    key: str | os.PathLike[str]

    def __post_init__(self) -> None:
        for own in fields(self):
            if not Path(getattr(self, own.name)).is_file():
                problem = f"found {os.fspath(getattr(self, own.name))!r}, which is no file"
                raise SettingsError(f"tls_{own.name}: {problem}, expected a file in PEM.", argument=f"tls_{own.name}")


class DaskWorkers:
    """The workers of a Dask cluster; made by `dask`."""

    def __init__(self, client: Any, address: str, threads: int) -> None:
        self.threads, self.address, self._client = threads, address, client
        self._plugins: list[str] = []
        self._alone_since: float | None = None

    def capacity(self) -> int:
        """Return the number of workers at this moment; none for a minute raises."""
        count = len(self._workers())
        if count:
            self._alone_since = None
            return count
        self._alone_since = self._alone_since or time.monotonic()
        if time.monotonic() - self._alone_since > _PATIENCE_S:
            raise WorkerError(
                f"{self.address}: found no worker for {_PATIENCE_S:g} s, expected at least one. Start workers ('dask "
                f"worker {self.address}') and this command again: finished pieces stay."
            )
        return 0

    def share(self, parcel: Parcel) -> Held:
        """Return what stands for a parcel, of which each worker gets a copy."""
        from crossperf.workers.dask_plugin import HoldTable

        plugin = HoldTable(parcel)
        if plugin.name not in self._plugins:
            self._client.register_plugin(plugin, name=plugin.name)
            self._plugins.append(plugin.name)
        return Held(parcel.fingerprint)

    def submit(self, function: Function, *arguments: Any) -> Future[Parcel]:
        """Have a function called by whichever worker Dask chooses; of a worker that dies, another takes the call."""
        call = WorkCall(name_of(function), arguments, self.threads)
        answer: Future[Parcel] = Future()
        sent = self._client.submit(run, call, key=f"crossperf-{uuid.uuid4().hex}", pure=False)
        answer.add_done_callback(lambda future: sent.cancel() if future.cancelled() else None)
        sent.add_done_callback(lambda done: self._settle(done, answer))
        return answer

    def start(self) -> None:
        """Do nothing: each call is sent at once."""

    def close(self) -> None:
        """Take the tables back; the cluster goes on without us."""
        for name in self._plugins:
            with contextlib.suppress(Exception):  # the scheduler is gone, and the tables with it
                self._client.unregister_worker_plugin(name)

    def _workers(self) -> dict[str, Any]:
        try:
            workers: dict[str, Any] = self._client.scheduler_info(n_workers=-1)["workers"]
        except (OSError, ValueError):
            return {}
        return workers

    def _settle(self, done: Any, answer: Future[Parcel]) -> None:
        if not answer.set_running_or_notify_cancel():
            return
        try:
            if done.status == "finished":
                answer.set_result(done.result(timeout=_PATIENCE_S))
            else:
                answer.set_exception(self._explained(done))
        except Exception as error:
            answer.set_exception(self._lost(error))

    def _explained(self, done: Any) -> BaseException:
        """Return why a call has no answer: what it raised, or what became of its workers."""
        if done.status != "error":
            return self._lost(None)
        error: BaseException = done.exception(timeout=_PATIENCE_S)
        if type(error).__name__ == "KilledWorker":
            return WorkerError(
                f"{self.address}: the workers of a piece died several times before its answer, expected them to stay. "
                "Mostly memory ran out: give workers more, or take fewer cells with --sample. Finished pieces stay."
            )
        return error

    def _lost(self, error: BaseException | None) -> WorkerError:
        reason = f" ({type(error).__name__}: {error})" if error else ""
        return WorkerError(
            f"{self.address}: the Dask scheduler was lost{reason}. Finished pieces stay; start it and this command "
            "again to go on."
        )


@contextlib.contextmanager
def dask(address: str, *, threads: int = 1, tls: Tls | None = None, timeout_s: float = 10.0) -> Iterator[DaskWorkers]:
    """Yield the workers of a Dask cluster that runs already; it is left as it is.

    Parameters
    ----------
    address
        Of its scheduler, such as ``tcp://node1:8786`` or ``tls://node1:8786``.
    threads
        Threads of the numerical libraries for each piece.
    tls
        The files of a ``tls://`` connection.
    timeout_s
        How long to wait for the scheduler, and for its first worker.
    """
    distributed = _distributed()
    if address.startswith("tls://") and tls is None:
        raise SettingsError(f"tls: found none for {address}, expected the files of the authority, certificate and key.")
    security = None
    if tls is not None:
        names = {"tls_ca_file": tls.ca, "tls_client_cert": tls.cert, "tls_client_key": tls.key}
        security = distributed.Security(
            require_encryption=True, **{name: os.fspath(path) for name, path in names.items()}
        )
    with _quiet(), contextlib.ExitStack() as stack:
        try:
            client = distributed.Client(address, security=security, timeout=timeout_s, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise WorkerError(
                f"{address}: no Dask scheduler answered within {timeout_s:g} s ({_reason(error)}), expected one. Check "
                "the address and that 'dask scheduler' runs there.",
                address=address,
            ) from error
        stack.callback(client.close, timeout=5)
        try:
            client.wait_for_workers(1, timeout=timeout_s)
        except TimeoutError as error:
            problem = f"{address}: found a scheduler without workers, expected at least one"
            raise WorkerError(f"{problem}. Start some with 'dask worker {address}'.", address=address) from error
        refuse_unfit(client, address)
        workers = DaskWorkers(client, address, threads)
        stack.callback(workers.close)
        yield workers


def refuse_unfit(client: Any, address: str) -> None:
    """Raise where a worker has no crossperf, or another version of it or of what its numbers depend on."""
    expected = own_versions()
    for worker, version in client.run(metadata.version, "crossperf", on_error="return").items():
        if isinstance(version, BaseException):
            problem = f"worker {worker} of {address}: found no crossperf there ({type(version).__name__})"
            raise WorkerError(f"{problem}, expected crossperf {expected['crossperf']} as here. Install it there.")
        if version != expected["crossperf"]:
            refuse_differences({"crossperf": expected["crossperf"]}, {"crossperf": version}, f"worker {worker}")
    for worker, actual in client.run(own_versions, on_error="return").items():
        if isinstance(actual, BaseException):
            problem = f"worker {worker} of {address}: its crossperf cannot work here ({actual})"
            raise WorkerError(f"{problem}, expected crossperf {expected['crossperf']} as here. Install it anew there.")
        refuse_differences(expected, actual, f"worker {worker}")


def is_open(address: str) -> bool:
    """Tell whether others could read along, or send work: a connection without TLS that leaves this machine.

    >>> is_open("tcp://127.0.0.1:8786"), is_open("tcp://node1:8786"), is_open("tls://node1:8786")
    (False, True, False)
    """
    scheme, _, rest = address.rpartition("://")
    host = rest.rpartition(":")[0].strip("[]") or rest
    if scheme == "tls" or host == "localhost":
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True


def _reason(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


def _distributed() -> Any:
    try:
        import distributed
    except ModuleNotFoundError as error:
        problem = "Work on a Dask cluster needs the package distributed, which is not installed"
        raise MissingDependencyError(f"{problem}. Install it with: pip install 'crossperf[dask]'") from error
    return distributed


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask's own log from stderr: what matters of it is an error of ours."""
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # versions are compared by ourselves, and strictly
            yield
    finally:
        logger.setLevel(level)
