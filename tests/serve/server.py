"""A real server in a process of its own, on a free port of this machine, and a bare way to ask it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

READ, WRITE = "read-" + "r" * 30, "write-" + "w" * 30
API = "/api/v1"


@dataclass
class Answered:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Running:
    """A server: its process, where it listens, and the folder of its files."""

    process: subprocess.Popen[str]
    port: int
    folder: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        kind: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 60.0,
    ) -> Answered:
        """Ask once, on a connection of its own; an object goes as JSON, bytes as they are."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        known = dict(headers or {})
        if token:
            known["Authorization"] = f"Bearer {token}"
        if data is not None:
            known.setdefault("Content-Type", kind or "application/json")
        try:
            connection.request(method, path if path.startswith("/api") else API + path, data, known)
            answer = connection.getresponse()
            return Answered(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    @property
    def log(self) -> str:
        return (self.folder / "server.log").read_text(encoding="utf-8")


@contextmanager
def running(folder: Path, *arguments: str, tokens: bool = True, environment: Any = None) -> Iterator[Running]:
    """Run a server until the block ends; it keeps its files in a folder, and has a token of each scope."""
    folder.mkdir(parents=True, exist_ok=True)
    token_file = folder / "tokens"
    token_file.write_text(f"write {WRITE}\n", encoding="utf-8")
    token_file.chmod(0o600)
    command = [
        *(sys.executable, "-m", "crossperf", "serve", "--port", "0", "--runs", str(folder / "runs.db")),
        *("--platforms", str(folder / "platforms.json")),
        *(["--token-file", str(token_file)] if tokens else []),
        *arguments,
    ]
    known = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), **(environment or {})}
    with (folder / "server.log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, text=True, env=known)
    try:
        yield Running(process, _port(process, folder / "server.log"), folder)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=40)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _port(process: subprocess.Popen[str], log: Path) -> int:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        match = re.search(r"on http://\S+:(\d+)/", log.read_text(encoding="utf-8"))
        if match:
            return int(match[1])
        if process.poll() is not None:
            break
        time.sleep(0.02)
    raise AssertionError(f"the server did not start: {log.read_text(encoding='utf-8')}")
