"""How the server starts, ends, reloads, is watched and is killed."""

from __future__ import annotations

import http.client
import json
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from crossperf.campaign import log
from crossperf.client import Client
from crossperf.datasets import toy
from crossperf.model import train
from crossperf.records import Run
from tests.serve.server import WRITE, Running, running


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model in a folder."""
    folder = tmp_path_factory.mktemp("models") / "small"
    train(toy.make_runs(apps=3, inputs=3, seed=1), "ridge").save(folder)
    return folder


@pytest.fixture(scope="module")
def asked() -> dict[str, Any]:
    return toy.make_runs(apps=1, inputs=1, seed=9)[0].to_json()


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory, model: Path) -> Iterator[Running]:
    """A server of two workers on a model that can be replaced, which follows a campaign."""
    folder = tmp_path_factory.mktemp("workers")
    (folder / "campaign").mkdir()
    followed = ("--campaign", f"night={folder / 'campaign'}")
    with running(folder, str(model), "--workers", "2", *followed) as own:
        yield own


def children(process: int) -> set[int]:
    """Return the processes that any thread of a process has started."""
    lists = (path.read_text(encoding="utf-8") for path in Path(f"/proc/{process}/task").glob("*/children"))
    return {int(number) for text in lists for number in text.split()}


class Asking:
    """Asks a server on several connections until it is stopped; everything that is not a 200 is kept."""

    def __init__(self, server: Running, run: dict[str, Any], connections: int = 4) -> None:
        self.odd: list[Any] = []
        self.count = 0
        self._stop = threading.Event()
        self._server, self._run = server, run
        self._threads = [threading.Thread(target=self._ask) for _ in range(connections)]

    def _ask(self) -> None:
        with Client(self._server.url) as client:
            while not self._stop.is_set():
                try:
                    client.predict(self._run)
                    self.count += 1
                except Exception as error:
                    self.odd.append(error)
                    return

    def __enter__(self) -> Asking:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def test_a_reload_changes_the_model_and_fails_no_request(workers: Running, model: Path, asked: dict[str, Any]) -> None:
    before = workers.ask("GET", "/models").json["models"][0]["fingerprint"]
    with Asking(workers, asked) as asking:
        time.sleep(0.3)
        train(toy.make_runs(apps=4, inputs=3, seed=2), "ridge").save(model, overwrite=True)
        workers.signal(signal.SIGHUP)
        until = time.monotonic() + 30
        seen = {before}
        while seen != {workers.ask("GET", "/models").json["models"][0]["fingerprint"] for _ in range(8)} - {before}:
            seen = {workers.ask("GET", "/models").json["models"][0]["fingerprint"]} - {before} or {before}
            assert time.monotonic() < until, workers.log[-2000:]
            time.sleep(0.05)
        time.sleep(0.3)
    assert asking.odd == [] and asking.count > 20 and before not in seen


def test_a_model_that_cannot_be_read_leaves_the_old_one_in_place(workers: Running, model: Path) -> None:
    before = workers.ask("GET", "/models").json
    written = (model / "model.json").read_bytes()
    (model / "model.json").write_bytes(written[: len(written) // 2])
    try:
        workers.signal(signal.SIGHUP)
        until = time.monotonic() + 20
        while "models were not loaded again" not in workers.log and time.monotonic() < until:
            time.sleep(0.05)
    finally:
        (model / "model.json").write_bytes(written)
    assert "models were not loaded again" in workers.log and workers.ask("GET", "/models").json == before


def test_workers_share_one_port_and_their_figures(workers: Running, asked: dict[str, Any]) -> None:
    def count() -> float:
        lines = workers.ask("GET", "/metrics").body.decode().splitlines()
        return sum(
            float(line.split()[-1]) for line in lines if line.startswith('crossperf_requests_total{route="predict"')
        )

    before = count()
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: workers.ask("POST", "/predict", asked).status, range(40)))
    assert set(statuses) == {200}
    until = time.monotonic() + 20
    while count() - before < 40 and time.monotonic() < until:  # it is counted once the answer has been sent
        time.sleep(0.05)
    assert count() - before == 40


def test_a_worker_that_dies_is_replaced(workers: Running, asked: dict[str, Any]) -> None:
    before = children(workers.process.pid)
    os.kill(min(before), signal.SIGKILL)
    until = time.monotonic() + 20
    while len(children(workers.process.pid) - {min(before)}) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    assert len(children(workers.process.pid) - {min(before)}) == 2
    assert {workers.ask("POST", "/predict", asked).status for _ in range(6)} == {200}


def test_the_access_log_has_a_line_of_json_for_each_request(workers: Running) -> None:
    answer = workers.ask("GET", "/platforms/%3Cscript%3E?x=%0Aforged")
    own, until = None, time.monotonic() + 10
    while own is None and time.monotonic() < until:  # it is written once the answer has been sent
        lines = [json.loads(line) for line in workers.log.splitlines() if line.startswith("{") and line.endswith("}")]
        own = next((line for line in lines if line["id"] == answer.headers["x-request-id"]), None)
    assert own is not None
    assert (own["method"], own["status"], own["route"]) == ("GET", 422, "platform")
    assert own["path"] == "/api/v1/platforms/<script>" and own["ms"] > 0 and own["client"] == "127.0.0.1"


def test_a_campaign_is_followed_live(workers: Running) -> None:
    path = workers.folder / "campaign" / log.TIMES
    log.add(path, {"round": "r", "platforms": ["p"]})

    def visited(number: int) -> None:
        about = {"platform": "p", "round": "r", "workload": "w", "input": str(number)}
        log.add(path, {**about, "started": f"2026-01-01T00:00:0{number}+00:00", "seconds": [1.0 + number]})

    visited(1)
    connection = http.client.HTTPConnection("127.0.0.1", workers.port, timeout=30)
    connection.request("GET", "/api/v1/campaigns/night/events")
    stream = connection.getresponse()
    assert stream.getheader("Content-Type", "").startswith("text/event-stream")

    def event() -> tuple[str, str, dict[str, Any]]:
        lines = []
        while (line := stream.readline().decode().rstrip("\n")) or not lines:
            lines.append(line)
        facts = dict(own.split(": ", 1) for own in lines if ": " in own)
        return facts["event"], facts["id"], json.loads(facts["data"])

    assert event()[:2] == ("visit", "1")
    assert event()[2]["visits"] == 1
    visited(2)
    name, number, facts = event()
    assert (name, number, facts["seconds"], facts["error"]) == ("visit", "2", 3.0, None)
    assert event()[2]["visits"] == 2
    connection.close()
    # A browser that was cut off goes on after the last event that it has seen.
    answer = workers.ask("GET", "/campaigns/night/events?once=true", headers={"Last-Event-ID": "1"})
    assert answer.body.count(b"event: visit") == 1 and b"id: 2" in answer.body
    assert workers.ask("GET", "/campaigns").json["campaigns"][0]["visits"] == 2


def test_it_is_ready_within_the_time_that_one_core_needs(tmp_path: Path) -> None:
    """Two seconds on a quiet machine (benchmarks/serve.md); processor time counts here, whatever else runs."""
    with running(tmp_path, tokens=False) as own:
        assert own.ask("GET", "/ready").status == 200
        ticks = Path(f"/proc/{own.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        assert (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK") < 4.0


def test_an_end_finishes_what_is_in_flight(tmp_path: Path, run: dict[str, Any]) -> None:
    with running(tmp_path) as own, ThreadPoolExecutor(1) as pool:
        slow = pool.submit(own.ask, "POST", "/explain?samples=64", run)
        until = time.monotonic() + 20
        while "in_flight 2" not in own.ask("GET", "/metrics").body.decode() and time.monotonic() < until:
            assert not slow.done(), "the explanation was too quick to be caught"
        own.signal(signal.SIGTERM)
        assert slow.result(timeout=60).status == 200
        assert own.process.wait(timeout=30) == 0
        with pytest.raises(OSError, match="refused"):
            own.ask("GET", "/health")


def test_nothing_that_was_acknowledged_is_lost_on_kill_9(tmp_path: Path, run: dict[str, Any]) -> None:
    acknowledged: list[str] = []
    with running(tmp_path) as own:
        stop = threading.Event()

        def send(worker: int) -> None:
            number = 0
            with Client(own.url, WRITE, timeout=10) as client:
                while not stop.is_set():
                    name = f"{worker}-{number}"
                    try:
                        client.add_runs(Run.from_json(run | {"run_id": name, "input": name}))
                    except Exception:
                        return
                    acknowledged.append(name)
                    number += 1

        threads = [threading.Thread(target=send, args=(worker,)) for worker in range(3)]
        for thread in threads:
            thread.start()
        until = time.monotonic() + 30
        while len(acknowledged) < 25 and time.monotonic() < until:
            time.sleep(0.01)
        own.process.kill()
        own.process.wait()
        stop.set()
        for thread in threads:
            thread.join()
    assert len(acknowledged) >= 25
    database = sqlite3.connect(tmp_path / "runs.db")
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    kept = {name for (name,) in database.execute("SELECT run_id FROM runs")}
    assert set(acknowledged) <= kept
    database.close()
    with running(tmp_path) as again, Client(again.url) as client:
        assert {own.run_id for own in client.runs()} == kept


def test_children_that_read_uploads_end_with_the_server(tmp_path: Path, model: Path) -> None:
    with running(tmp_path, str(model)) as own:
        own.ask("POST", "/predict", b"app\n", kind="text/csv")
        (child,) = children(own.process.pid)
        own.process.kill()
        own.process.wait()
    until = time.monotonic() + 10
    while _runs(child) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _runs(child)


def _runs(process: int) -> bool:
    """Tell whether a process runs; one that has ended may wait for a parent that takes note of it."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rpartition(") ")[2][0] != "Z"
