"""What the service costs: latency, throughput, batches, memory and start, beside a bare server that returns a constant.

    python benchmarks/serve.py [--soak 600] [--workers 1] [--model FOLDER]

Everything runs on loopback, one after the other, within bounds of time and count. Both servers run in one go on the
same machine, so that their ratio compares between machines; processor time per request hardly depends on what else
runs. --soak is the length of the run at 500 requests/s over 16 connections, 20 s unless given.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crossperf.runs import read_runs
from crossperf.serve.service import Service

#: A server that parses nothing and computes nothing: what HTTP itself costs here.
BARE = """
import sys, uvicorn
body = b"x" * int(sys.argv[1])
head = [(b"content-length", str(len(body)).encode()), (b"content-type", b"application/json")]
async def app(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": body})
print("on http://127.0.0.1:%s/" % sys.argv[2], flush=True)
quiet = {"log_level": "critical", "access_log": False, "http": "httptools", "lifespan": "off", "ws": "none"}
uvicorn.run(app, port=int(sys.argv[2]), **quiet)
"""
_TICKS = os.sysconf("SC_CLK_TCK")
_RATE, _CONNECTIONS = 500, 16


@dataclass
class Server:
    """A server's process, and how long it took to answer."""

    process: subprocess.Popen[str]
    port: int
    ready_s: float

    @property
    def family(self) -> list[int]:
        """The process and those that it has started."""
        lists = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [self.process.pid, *(int(word) for path in lists for word in path.read_text().split())]

    def cpu_s(self) -> float:
        """Return the processor time of the family so far."""
        return sum(self._cpu_s(number) for number in self.family)

    @staticmethod
    def _cpu_s(number: int) -> float:
        words = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / _TICKS

    def memory_mb(self) -> float:
        """Resident memory of the process and its workers; what they share counts in each."""
        texts = (Path(f"/proc/{number}/status").read_text() for number in self.family)
        return sum(int(re.search(r"VmRSS:\s+(\d+)", text)[1]) for text in texts) / 1024  # type: ignore[index]


@contextmanager
def started(command: Sequence[str], path: str, folder: Path) -> Iterator[Server]:
    """Run a server until the block ends; its time to the first answer is measured from its start."""
    begun = time.perf_counter()
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, text=True)
    try:
        port = 0
        while True:
            match = re.search(r"on http://\S+:(\d+)/", (folder / "log").read_text())
            port = int(match[1]) if match else 0
            if port and asyncio.run(answers(port, path)):
                break
            assert process.poll() is None and time.perf_counter() - begun < 60, (folder / "log").read_text()
            time.sleep(0.01)
        yield Server(process, port, time.perf_counter() - begun)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


async def answers(port: int, path: str) -> bool:
    """Tell whether a server answers with 200."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return b" 200 " in await asyncio.wait_for(reader.readline(), 5)
    except OSError:
        return False


@dataclass
class Measured:
    """Seconds of each answer, errors, and how long it all took."""

    seconds: list[float] = field(default_factory=list)
    errors: int = 0
    wall_s: float = 0.0

    def ms(self, share: float) -> float:
        """Return a quantile in milliseconds."""
        ordered = sorted(self.seconds)
        return 1e3 * ordered[min(int(share * len(ordered)), len(ordered) - 1)]

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.seconds) / self.wall_s


class Connection(asyncio.Protocol):
    """One connection that is kept open, with as little work for an answer as can be."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.left = -1
        self.waiting: asyncio.Future[bool] | None = None

    def connection_made(self, transport: Any) -> None:
        """Keep the transport."""
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Take a part of an answer, and end the wait with its last."""
        self.data += data
        if self.left < 0 and (end := self.data.find(b"\r\n\r\n")) >= 0:
            length = re.search(rb"content-length: (\d+)", self.data[:end], re.IGNORECASE)
            self.left = end + 4 + int(length[1]) if length else end + 4
        if 0 <= self.left <= len(self.data) and self.waiting:
            sound = self.data.startswith(b"HTTP/1.1 200")
            self.data.clear()
            self.left = -1
            self.waiting.set_result(sound)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the wait: an answer that does not come is an error."""
        if self.waiting and not self.waiting.done():
            self.waiting.set_result(False)

    async def ask(self, request: bytes) -> bool:
        """Return whether the answer was a 200."""
        self.waiting = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self.waiting


async def load(
    port: int, requests: Sequence[bytes], connections: int, *, count: int = 0, seconds: float = 0.0, rate: float = 0.0
) -> Measured:
    """Ask on some connections: `count` times in all or for some seconds, as fast as it goes or at a rate."""
    measured, loop = Measured(), asyncio.get_running_loop()
    own = [(await loop.create_connection(Connection, "127.0.0.1", port))[1] for _ in range(connections)]
    begun = loop.time()
    sent = iter(range(count or 10**9))

    async def ask(connection: Connection) -> None:
        for number in sent:
            now = loop.time()
            if seconds and now - begun > seconds:
                return
            if rate and (pause := begun + number / rate - now) > 0:
                await asyncio.sleep(pause)
            start = time.perf_counter()
            if await connection.ask(requests[number % len(requests)]):
                measured.seconds.append(time.perf_counter() - start)
            else:
                measured.errors += 1
                return

    await asyncio.gather(*map(ask, own))
    measured.wall_s = loop.time() - begun
    for connection in own:
        connection.transport.close()
    return measured


def request_of(body: bytes, kind: str = "application/json", path: str = "/api/v1/predict") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--soak", type=float, default=20.0, help="seconds at 500 requests/s over 16 connections")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--model", type=Path, help="a model folder; without one the model that ships")
    parser.add_argument("--requests", type=int, default=1500, help="requests at one connection")
    arguments = parser.parse_args()
    service = Service.open([arguments.model] if arguments.model else [])
    rng, trained = random.Random(0), service.model().model  # noqa: S311
    chosen = rng.sample(list(trained.workloads), min(1000, len(trained.workloads)))
    runs = [service.run_of(*workload).to_json() for workload in chosen]
    runs = [own | {"input": f"{own['input']} {number}"} for number, own in enumerate(runs)]
    singles = [request_of(json.dumps(own).encode()) for own in runs[:200]]
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before; model {service.model().fingerprint}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        models = [str(arguments.model)] if arguments.model else []
        files = ("--platforms", str(folder / "platforms.json"), "--access-log", str(folder / "access.jsonl"))
        serve = [sys.executable, "-m", "crossperf", "serve", *models, "--port", "0", *files]
        with started([*serve, "--workers", str(arguments.workers)], "/api/v1/ready", folder) as own:
            print(f"start to ready: {own.ready_s:.2f} s ({own.cpu_s():.2f} s of CPU), {own.memory_mb():.0f} MB")
            size = answer_size(own.port, singles[0])
            ours = one_connection("crossperf", own, singles, arguments.requests)
            soak(own, singles, arguments.soak)
            together("crossperf", own, singles)
            batches(own, runs, folder)
        bare = [sys.executable, "-c", BARE, str(size), str(free_port())]
        (folder / "bare").mkdir()
        with started(bare, "/", folder / "bare") as other:
            theirs = one_connection("bare server", other, singles, arguments.requests)
            together("bare server", other, singles)
    print(f"crossperf over a bare server at one connection: {ours.ms(0.5) / theirs.ms(0.5):.1f} x at the median")
    print(f"load {os.getloadavg()[0]:.1f} after")


def free_port() -> int:
    import socket

    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        return int(own.getsockname()[1])


def answer_size(port: int, request: bytes) -> int:
    """Return the bytes of one answer's body."""

    async def ask() -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        return int(re.search(rb"content-length: (\d+)", head)[1])  # type: ignore[index]

    return asyncio.run(ask())


def one_connection(name: str, server: Server, requests: Sequence[bytes], count: int) -> Measured:
    asyncio.run(load(server.port, requests, 1, count=100))
    before = server.cpu_s()
    own = asyncio.run(load(server.port, requests, 1, count=count))
    cpu_ms = 1e3 * (server.cpu_s() - before) / max(len(own.seconds), 1)
    print(
        f"{name}, 1 connection, {count:,} requests: p50 {own.ms(0.5):.2f} ms, p90 {own.ms(0.9):.2f} ms, p99 "
        f"{own.ms(0.99):.2f} ms, {cpu_ms:.2f} ms of CPU each, {own.errors} errors"
    )
    return own


def soak(server: Server, requests: Sequence[bytes], seconds: float) -> None:
    """Ask at a steady rate, in tenths between which memory is looked at."""
    memory, all_seconds, errors, wall_s, cpu = [server.memory_mb()], list[float](), 0, 0.0, server.cpu_s()
    for _ in range(10):
        own = asyncio.run(load(server.port, requests, _CONNECTIONS, seconds=seconds / 10, rate=_RATE))
        memory.append(server.memory_mb())
        all_seconds, errors, wall_s = all_seconds + own.seconds, errors + own.errors, wall_s + own.wall_s
    own = Measured(all_seconds, errors, wall_s)
    cpu_ms = 1e3 * (server.cpu_s() - cpu) / max(len(all_seconds), 1)
    print(
        f"crossperf, {_CONNECTIONS} connections at {_RATE} requests/s for {seconds:g} s: {own.rate:.0f} requests/s, "
        f"p50 {own.ms(0.5):.2f} ms, p99 {own.ms(0.99):.2f} ms, {cpu_ms:.2f} ms of CPU each, {errors} errors; memory "
        f"{memory[0]:.0f} MB before, {memory[1]:.0f} MB after a tenth, {memory[-1]:.0f} MB at the end"
    )


def together(name: str, server: Server, requests: Sequence[bytes], seconds: float = 5.0) -> None:
    own = asyncio.run(load(server.port, requests, _CONNECTIONS, seconds=seconds))
    print(
        f"{name}, {_CONNECTIONS} connections as fast as it goes for {seconds:g} s: {own.rate:.0f} requests/s, p50 "
        f"{own.ms(0.5):.2f} ms, p99 {own.ms(0.99):.2f} ms, {own.errors} errors"
    )


def batches(server: Server, runs: list[dict[str, Any]], folder: Path, count: int = 8) -> None:
    """Send batches of 1,000 runs, in each format."""
    table, bodies = read_runs(runs), {"application/json": json.dumps(runs).encode()}
    for ending, kind in (("csv", "text/csv"), ("parquet", "application/vnd.apache.parquet")):
        table.write(folder / f"runs.{ending}")
        bodies[kind] = (folder / f"runs.{ending}").read_bytes()
    for kind, body in bodies.items():
        request = [request_of(body, kind)]
        asyncio.run(load(server.port, request, 1, count=2))
        before = server.cpu_s()
        own = asyncio.run(load(server.port, request, 2, count=count))
        cpu_s = (server.cpu_s() - before) / max(len(own.seconds), 1)
        print(
            f"batches of {len(runs):,} runs as {kind} ({len(body) / 2**20:.1f} MB), 2 connections: "
            f"{len(runs) * own.rate:,.0f} runs/s, p50 {own.ms(0.5):.0f} ms, {1e6 * cpu_s / len(runs):.0f} us of CPU a "
            f"run, {own.errors} errors"
        )


if __name__ == "__main__":
    main()
