"""A client of the prediction service, of the standard library alone: what `crossperf serve` answers, as records.

>>> Client("http://127.0.0.1:8765").url
'http://127.0.0.1:8765'
"""

from __future__ import annotations

import http.client
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from crossperf import plain
from crossperf.errors import CrossperfError, SettingsError
from crossperf.prediction.answer import Answer
from crossperf.prediction.explain import Explanation, Explanations
from crossperf.records import Prediction, Run

#: The environment's name of a token.
TOKEN_VARIABLE = "CROSSPERF_TOKEN"  # noqa: S105 - a name, not a token
_API = "/api/v1"
_JSON = "application/json"
_TYPES = {
    "jsonl": "application/x-ndjson",
    "ndjson": "application/x-ndjson",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "pq": "application/vnd.apache.parquet",
}
#: A busy server is asked again this often, with pauses that grow.
_TRIES = 5


class ServerError(CrossperfError):
    """A server refused a request or cannot be reached; ``status`` is its answer, ``errors`` every fault it named."""


class Client:
    """A connection to a server, kept open between requests; for one thread at a time.

    Parameters
    ----------
    url
        Where the server is, such as ``http://127.0.0.1:8765``, or ``https://`` before a proxy.
    token
        The bearer token; ``None``: none is sent.
    timeout
        Seconds that one answer may take.
    """

    def __init__(self, url: str, token: str | None = None, timeout: float = 60.0) -> None:
        try:
            parts = urlsplit(url if "//" in url else f"http://{url}")
            host, port = (parts.hostname or "").encode("idna").decode(), parts.port
        except ValueError:  # no address, no port, or a name that no host can have
            host = ""
        if not host or parts.scheme not in ("http", "https"):
            message = f"server: found {plain.shown(url)}, expected http://HOST:PORT or https://HOST."
            raise SettingsError(message, argument="server")
        if token and not (token.isascii() and token.isprintable()):
            raise SettingsError("token: found characters that no header can hold, expected ASCII.", argument="token")
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._prefix = parts.path.rstrip("/") + _API
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(host, port, timeout=timeout)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def predict(
        self,
        runs: Any,
        *,
        model: str | None = None,
        relative_to: str = "source",
        level: float = 0.8,
        can: Sequence[str] | None = None,
        joint: bool = False,
        keep: bool = False,
    ) -> Answer:
        """Return predictions, as `crossperf.predict` does with the server's model.

        Parameters
        ----------
        runs
            A path (JSONL, CSV, Parquet), one run or several as records or objects of JSON, or a data frame.
        model
            The id of the server's model; ``None``: its default.
        keep
            Let the server keep what it predicts, to be compared with runs that follow.
        """
        how = {"model": model, "relative_to": relative_to, "level": level, "can": can, "joint": joint, "keep": keep}
        name = os.fspath(runs) if isinstance(runs, str | os.PathLike) else "runs"
        facts = self._post("/predict", runs, pairs=True, name=name, **how)
        return Answer(tuple(map(Prediction.from_json, facts["predictions"])), tuple(facts["notes"]))

    def explain(self, runs: Any, platform: str | None = None, **how: Any) -> Explanations:
        """Return which counters drive predictions, and the nearest known workloads; see `crossperf.explain`.

        A server takes 64 samples of each run by default.
        """
        facts = self._post("/explain", runs, platform=platform, **how)
        own = (plain.from_json(Explanation, each) for each in facts["explanations"])
        return Explanations(tuple(own), tuple(facts["notes"]))

    def suggest(self, runs: Any = None, **how: Any) -> dict[str, Any]:
        """Return what to measure next, for runs or for a new platform."""
        return dict(self._ask("POST", "/suggest", how) if runs is None else self._post("/suggest", runs, **how))

    def check(self, runs: Any, *, need_runtime: bool = True) -> list[dict[str, Any]]:
        """Return every problem of a runs table."""
        return list(self._post("/runs/check", runs, need_runtime=need_runtime)["problems"])

    def import_file(self, path: str | os.PathLike[str], format: str = "auto", **names: Any) -> list[Run]:  # noqa: A002
        """Return the runs of a profiler's file, read by the server."""
        given = {"format": format, "name": Path(path).name, **names}
        facts = self._ask("POST", "/import", given, Path(path).read_bytes(), "application/octet-stream")
        return [Run.from_json(own) for own in facts["runs"]]

    def place(
        self,
        run: Run | Mapping[str, Any],
        queues: Sequence[Mapping[str, Any]],
        job: Mapping[str, Any] | None = None,
        *,
        policy: str = "considerate",
        **how: Any,
    ) -> dict[str, Any]:
        """Return a policy's choice for the job of a run among queues."""
        own = run.to_json() if isinstance(run, Run) else dict(run)
        body = {"run": own, "queues": list(queues), "job": dict(job or {}), "policy": policy}
        return dict(self._ask("POST", "/place", how, json.dumps(body).encode(), _JSON))

    def models(self) -> list[dict[str, Any]]:
        """Return the models of the server, its default first."""
        return list(self._ask("GET", "/models")["models"])

    def platforms(self) -> list[dict[str, Any]]:
        """Return the platforms that the server knows."""
        return list(self._ask("GET", "/platforms")["platforms"])

    def set_platform(self, name: str, facts: Mapping[str, Any], platform_class: str = "cpu") -> dict[str, Any]:
        """Let the server keep the facts of a platform, such as ``{"price_per_hour": 1.2}``."""
        body = json.dumps({"name": name, "platform_class": platform_class, "facts": dict(facts)}).encode()
        return dict(self._ask("PUT", f"/platforms/{quote(name, safe='')}", body=body, kind=_JSON))

    def workloads(self, like: str = "", **how: Any) -> list[dict[str, Any]]:
        """Return known workloads whose names hold every word of a text."""
        return list(self._ask("GET", "/workloads", {"like": like, **how})["workloads"])

    def add_runs(self, runs: Any) -> int:
        """Let the server keep finished runs; return how many were new. They are on its disk then."""
        return int(self._post("/runs", runs)["added"])

    def runs(self, **asked: Any) -> Iterable[Run]:
        """Yield the runs that the server keeps, all of them in the order in which they came."""
        after: int | None = 0
        while after is not None:
            facts = self._ask("GET", "/runs", {**asked, "after": after})
            yield from map(Run.from_json, facts["runs"])
            after = facts["next"]

    def drift(self, since: float = 0.0) -> dict[str, Any]:
        """Return how far off past predictions of the server were."""
        return dict(self._ask("GET", "/drift", {"since": since}))

    def ready(self) -> bool:
        """Tell whether the server answers and has its models."""
        try:
            return bool(self._ask("GET", "/ready")["status"] == "ready")
        except ServerError:
            return False

    def _post(self, path: str, runs: Any, **given: Any) -> Any:
        data, kind = _body(runs)
        return self._ask("POST", path, given, data, kind)

    def _ask(
        self,
        method: str,
        path: str,
        given: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        kind: str | None = None,
    ) -> Any:
        """Return the JSON of an answer; a busy server is asked again, and one that refuses raises."""
        words = {name: _word(value) for name, value in (given or {}).items() if value is not None}
        target = self._prefix + path + (f"?{urlencode(words)}" if words else "")
        headers = self._headers | ({"Content-Type": kind} if kind else {}) | {"Accept": _JSON}
        for attempt in range(_TRIES):
            status, data = self._exchange(method, target, body, headers)
            if status != 429:
                break
            time.sleep(0.2 * 2**attempt)
        try:
            facts = json.loads(data)
        except ValueError as error:
            problem = f"{self.url}: answered {status} with something that is not JSON"
            raise ServerError(f"{problem}, expected a crossperf server. Check the address.", status=status) from error
        if 200 <= status < 300:
            return facts
        detail = facts.get("detail", "no reason given") if isinstance(facts, dict) else "no reason given"
        errors = facts.get("errors", []) if isinstance(facts, dict) else []
        raise ServerError(f"{self.url}: {detail}", status=status, errors=errors)

    def _exchange(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Return status and body of an answer; a kept connection that the server has closed is made anew."""
        while True:
            fresh = self._connection.sock is None  # a second try always is
            try:
                self._connection.request(method, target, body, dict(headers))
                answer = self._connection.getresponse()
                return answer.status, answer.read()
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError) as error:
                self._connection.close()
                if fresh:
                    raise self._unreachable(error) from error
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> ServerError:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return ServerError(f"{self.url}: no answer ({why}), expected a crossperf server. Is it running?", status=None)


def _word(value: Any) -> str:
    """Return the value of a parameter as a query holds it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _body(runs: Any) -> tuple[bytes, str]:
    """Return runs as the body of a request, and its media type; a file goes as it is."""
    if isinstance(runs, str | os.PathLike):
        path = Path(runs)
        kind = _TYPES.get(path.suffix.lstrip(".").lower())
        if kind is None:
            expected = "a table that ends in .jsonl, .csv or .parquet"
            raise SettingsError(f"{path}: found the ending {path.suffix!r}, expected {expected}.", path=str(path))
        try:
            return path.read_bytes(), kind
        except OSError as error:
            raise SettingsError(
                f"{path}: cannot be read ({error.strerror}). Check the path.", path=str(path)
            ) from error
    if isinstance(runs, Run | Mapping):
        runs = [runs]
    elif not isinstance(runs, list | tuple):
        from crossperf.runs.table import read_runs

        runs = read_runs(runs, need_runtime=False).runs()
    return json.dumps([run.to_json() if isinstance(run, Run) else run for run in runs]).encode(), _JSON
