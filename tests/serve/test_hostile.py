"""What strangers may send: every bad request ends in a problem document, and the server goes on."""

from __future__ import annotations

import io
import json
import random
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crossperf.runs import read_runs
from crossperf.serve.bodies import parse
from crossperf.serve.problems import RequestError
from crossperf.serve.readers import Readers, UploadError, UploadLimits
from crossperf.serve.table import ENDPOINTS
from tests.serve.server import WRITE, Answered, Running

JSON, JSONL, CSV, PARQUET = (
    "application/json", "application/x-ndjson", "text/csv", "application/vnd.apache.parquet",
)  # fmt: skip
RUN = {"app": "a", "input": "1", "platform": "epyc-1t", "runtime_s": 1.0, "counters": {"instructions": 1e9}}


def problem(answer: Answered) -> dict[str, Any]:
    """Return the problem document of an answer, whose shape is checked."""
    assert answer.headers["content-type"] == "application/problem+json", answer
    facts = answer.json
    assert facts["status"] == answer.status and facts["title"] and facts["type"].startswith("urn:crossperf:problem:")
    assert facts["detail"] and "Traceback" not in facts["detail"] and 'File "' not in facts["detail"]
    assert all(own["detail"] for own in facts.get("errors", []))
    return dict(facts)


#: What is sent to /predict, its type, the status, and a word of the detail.
BAD_BODIES: list[tuple[str, Any, str, int, str]] = [
    ("nothing", b"", JSON, 422, "empty"),
    ("blanks", b" \n ", JSON, 422, "empty"),
    ("no JSON", b"{", JSON, 422, "not JSON"),
    ("a number", b"7", JSON, 422, "expected a run as an object"),
    ("a text", b'"x"', JSON, 422, "expected a run as an object"),
    ("null", b"null", JSON, 422, "expected a run as an object"),
    ("an empty list", b"[]", JSON, 422, "no runs"),
    ("an empty run", b"{}", JSON, 422, "no column 'app'"),
    ("a list of numbers", b"[1, 2]", JSON, 422, "found a int"),
    ("a list of nulls", b"[null]", JSON, 422, "expected one JSON object"),
    ("deep nesting", b"[" * 100_000, JSON, 422, "nested more than 50 deep"),
    ("deep nesting that ends", b"[" * 5000 + b"]" * 5000, JSON, 422, "nested more than 50 deep"),
    ("NaN", b'{"app": NaN}', JSON, 422, "not JSON"),
    ("a number of many digits", b'{"app": ' + b"9" * 5000 + b"}", JSON, 422, ""),
    ("bytes that are no text", b'{"app": "\xff\xfe"}', JSON, 422, "not UTF-8"),
    ("half a character", b'{"app": "\\ud800"}', JSON, 422, "surrogate"),
    ("a negative runtime", RUN | {"runtime_s": -1}, JSON, 422, "seconds above 0"),
    ("counters as a list", RUN | {"counters": [1]}, JSON, 422, "under 'counters'"),
    ("counters as texts", RUN | {"counters": {"instructions": "many"}}, JSON, 422, "expected a number"),
    ("no counter that the model knows", RUN | {"counters": {"nix": 1}}, JSON, 422, "none of the"),
    ("an unknown platform", RUN | {"platform": "vax"}, JSON, 422, "seen in no training row"),
    ("a newer format", RUN | {"runs_format": 99}, JSON, 422, "Upgrade"),
    ("only failed runs", RUN | {"status": "timeout"}, JSON, 422, "no successful run"),
    ("no type", json.dumps(RUN).encode(), "", 415, "Content-Type"),
    ("XML", b"<a/>", "application/xml", 415, "Content-Type"),
    ("a pickle", b"\x80\x04N.", "application/octet-stream", 415, "Content-Type"),
    ("a form", b"a=1", "application/x-www-form-urlencoded", 415, "Content-Type"),
    ("JSONL with a torn line", json.dumps(RUN).encode() + b'\n{"app', JSONL, 422, "not JSON"),
    ("CSV without rows", b"hello\n", CSV, 422, "no runs"),
    ("CSV without columns", b"hello\nyou\n", CSV, 422, "no column"),
    ("CSV of zeros", b"\x00" * 1000, CSV, 422, ""),
    ("no Parquet", b"PAR1 and nothing", PARQUET, 422, "parquet"),
    ("JSON as Parquet", json.dumps(RUN).encode(), PARQUET, 422, "parquet"),
    ("Parquet as JSON", b"PAR1\x15\x04", JSON, 422, "not JSON"),
]


@pytest.mark.parametrize(("_", "body", "kind", "status", "word"), BAD_BODIES, ids=[own[0] for own in BAD_BODIES])
def test_a_bad_body_is_one_problem_document(
    server: Running, _: str, body: Any, kind: str, status: int, word: str
) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = server.ask("POST", "/predict", data, headers={"Content-Type": kind})
    assert answer.status == status and word in problem(answer)["detail"], answer.body


BAD_REQUESTS: list[tuple[str, str, Any, int, str]] = [
    ("GET", "/nix", None, 404, "nothing at this path"),
    ("DELETE", "/models", None, 405, "method"),
    ("POST", "/health", {}, 405, "method"),
    ("GET", "/models/nix", None, 404, "expected one of crossperf"),
    ("GET", "/platforms/nix", None, 404, "not known here"),
    ("GET", "/workloads?limit=0", None, 422, "limit: found '0'"),
    ("GET", "/workloads?limit=many&like=a&nix=1", None, 422, "limit: found 'many'"),
    ("GET", "/workloads/run?app=nix", None, 404, "does not know"),
    ("GET", "/campaigns/nix/events", None, 404, "knows none"),
    ("POST", "/predict?level=2", RUN, 422, "level: found '2'"),
    ("POST", "/predict?level=nan", RUN, 422, "level"),
    ("POST", "/predict?level=0", RUN, 422, "between 0 and 1"),
    ("POST", "/predict?relative_to=vax", RUN, 422, "relative_to: found 'vax'"),
    ("POST", "/predict?can=toaster", RUN, 422, "can: found 'toaster'"),
    ("POST", "/predict?model=nix", RUN, 404, "model: found 'nix'"),
    ("POST", "/explain?platform=vax", RUN, 422, "platform: found 'vax'"),
    ("POST", "/explain?samples=99999", RUN, 422, "samples"),
    ("POST", "/explain", [RUN | {"input": str(i)} for i in range(21)], 413, "at most 1,280 walks"),
    ("POST", "/explain?samples=1024", [RUN | {"input": str(i)} for i in range(2)], 413, "1,024 samples each"),
    ("POST", "/predict", [RUN] * 50_001, 413, "at most 50,000"),
    ("POST", "/place", {}, 422, "run"),
    ("POST", "/place", {"run": RUN, "queues": []}, 422, ""),
    ("POST", "/place", {"run": RUN, "queues": [{"name": 1}]}, 422, "queues/0"),
    ("POST", "/place", {"run": RUN, "queues": [{"name": "a", "platform": "h200"}], "policy": "nix"}, 422, "policy"),
    ("POST", "/place", {"run": 7, "queues": [{"name": "a", "platform": "h200"}]}, 422, ""),
    ("POST", "/runs", RUN | {"runtime_s": None}, 422, "seconds above 0"),
    ("PUT", "/platforms/x", [], 422, "expected an object"),
    ("PUT", "/platforms/x", {"name": "y"}, 422, "name: found 'y'"),
    ("PUT", "/platforms/x", {"facts": {"cores": -1}}, 422, "/facts/cores"),
    ("PUT", "/platforms/x", {"facts": {"price_per_hour": "free"}}, 422, "price_per_hour"),
    ("PUT", "/platforms/%20", {}, 422, "names"),
    ("POST", "/import?format=nix", None, 422, ""),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "word"), BAD_REQUESTS)
def test_a_bad_request_is_one_problem_document(
    server: Running, method: str, path: str, body: Any, status: int, word: str
) -> None:
    answer = server.ask(method, path, body, token=WRITE)
    assert answer.status == status and word in problem(answer)["detail"], answer.body


def test_all_faults_are_named_at_once_each_with_its_pointer(server: Running) -> None:
    bad = [RUN, RUN | {"input": "2", "runtime_s": 0}, RUN | {"input": "3", "counters": {"instructions": -5}}]
    errors = problem(server.ask("POST", "/predict", bad))["errors"]
    assert {own["pointer"] for own in errors} == {"/1/runtime_s", "/2/counters/instructions"}
    assert all(own["found"] and own["expected"] and own["advice"] for own in errors)
    (alone,) = problem(server.ask("POST", "/predict", bad[1]))["errors"]
    assert alone["pointer"] == "/runtime_s"
    queues = [{"name": "a"}, {"name": "b", "platform": "h200"}, {"name": "c", "platform": "h200", "nodes": 0}]
    errors = problem(server.ask("POST", "/place", {"run": RUN, "queues": queues}))["errors"]
    assert [own["pointer"] for own in errors] == ["/queues/0", "/queues/2/nodes"]  # the first has no platform
    errors = problem(server.ask("GET", "/workloads?limit=x&nix=1"))["errors"]
    assert [own["parameter"] for own in errors] == ["limit", "nix"]


RAW = [
    b"\x00\x01\x02\x03\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET /api/v1/health HTTP/9.9\r\n\r\n",
    b"GET /api/v1/health HTTP/1.1\r\n\r\n",
    b"GET " + b"/a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
    b"POST /api/v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
    b"POST /api/v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nzz",
    b"POST /api/v1/predict HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    b"GET /api/v1/models HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]


@pytest.mark.parametrize("data", RAW, ids=range(len(RAW)))
def test_bytes_that_are_no_request_do_nothing(server: Running, data: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=2) as own:
        try:
            own.sendall(data)
            own.recv(65536)
        except OSError:
            pass
    assert server.ask("GET", "/health").status == 200


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return some bytes with a few of them changed, cut, doubled or replaced by what parsers dislike."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        if not out:
            break
        place = rng.randrange(len(out))
        choice = rng.randrange(5)
        if choice == 0:
            out[place] = rng.randrange(256)
        elif choice == 1:
            del out[place : place + rng.randint(1, 40)]
        elif choice == 2:
            out[place:place] = out[place : place + rng.randint(1, 40)]
        elif choice == 3:
            out[place : place + 4] = struct.pack("<i", rng.choice([-1, 2**31 - 1, 0, 1 << 20]))
        else:
            out[place:place] = rng.choice([b"\x00", b'"', b"{", b"\xff\xff", b"1e999", b"null", b",", b"[" * 60, b"-"])
    return bytes(out)


def seeds(tmp: Path) -> Iterator[tuple[str, bytes]]:
    table = read_runs([RUN, RUN | {"input": "2"}])
    yield JSON, json.dumps([RUN, RUN | {"input": "2"}]).encode()
    for ending, kind in (("jsonl", JSONL), ("csv", CSV), ("parquet", PARQUET)):
        path = tmp / f"seed.{ending}"
        table.write(path)
        yield kind, path.read_bytes()


_BODIED = sorted({(own.method, own.path) for own in ENDPOINTS if own.body and own.path not in ("/explain",)})


@pytest.mark.parametrize(("method", "path"), _BODIED)
def test_whatever_bytes_come_an_endpoint_answers_and_never_fails(
    server: Running, tmp_path: Path, method: str, path: str
) -> None:
    rng, place = random.Random(path), path.replace("{name}", "fuzzed")  # noqa: S311
    examples = [json.dumps(own.example).encode() for own in ENDPOINTS if (own.method, own.path) == (method, path)]
    for kind, data in [*seeds(tmp_path), (JSON, examples[0]), ("application/octet-stream", b"# started on Mon\n\n")]:
        for _ in range(4 if kind in (JSON, JSONL) else 2):
            answer = server.ask(method, place, mutated(data, rng), kind=kind, token=WRITE)
            assert answer.status < 500 or answer.status == 501, (kind, answer.body)
            if answer.status >= 400:
                problem(answer)
    assert server.ask("GET", "/health").status == 200
    assert "met a defect" not in server.log


@pytest.fixture(scope="module")
def readers() -> Iterator[Readers]:
    own = Readers(UploadLimits(seconds=60.0, memory_bytes=1500 * 2**20), count=1)
    yield own
    own.close()


def test_a_file_that_takes_too_much_memory_costs_a_child_alone(readers: Readers, tmp_path: Path) -> None:
    """A megabyte of Parquet that unpacks to gigabytes."""
    import polars as pl

    zeros, path = pl.zeros(10_000_000, eager=True), tmp_path / "bomb.parquet"
    names = {"app": pl.lit("a"), "input": pl.lit("x"), "platform": pl.lit("p"), "runtime_s": pl.lit(1.0)}
    counters = pl.DataFrame({f"counter.{number}": zeros for number in range(30)})
    counters.with_columns(**names).write_parquet(path)
    assert path.stat().st_size < 2_000_000
    with pytest.raises(UploadError, match="memory"):
        readers.measure(path.read_bytes(), "parquet")
    assert len(readers.measure(csv_of(RUN), "csv")) == 1


def csv_of(run: dict[str, Any]) -> bytes:
    stream = io.StringIO()
    stream.write("app,input,platform,runtime_s,counter.instructions\n")
    stream.write(f"{run['app']},{run['input']},{run['platform']},1.0,1e9\n")
    return stream.getvalue().encode()


def test_a_reader_that_hangs_or_dies_costs_a_child_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children whose reader never ends, or crashes as native code does, on the word of the file."""
    script = (
        "import crossperf.serve.child as child, os, time\n"
        "def bad(path, **_):\n"
        "    word = path.read_text()\n"
        "    time.sleep(60) if word == 'hang' else os.kill(os.getpid(), 11) if word == 'crash' else None\n"
        "    return {'problems': []}, b''\n"
        "child._TASKS = {'check': bad}\n"
        "child.main()\n"
    )
    own = Readers(UploadLimits(seconds=4.0), count=1)
    import crossperf.serve.readers as module

    real = module.subprocess.Popen

    def started(command: list[str], **how: Any) -> Any:
        return real([command[0], "-c", script, *command[3:]], **how)

    monkeypatch.setattr(module.subprocess, "Popen", started)
    try:
        for word, sentence in (("crash", "took down the process"), ("hang", "took more than 4 s")):
            begun = time.monotonic()
            with pytest.raises(UploadError, match=sentence):
                own.check(word.encode(), "csv")
            assert time.monotonic() - begun < 20
            assert own.check(b"fine", "csv") == []
    finally:
        own.close()


def test_a_child_that_met_a_fault_reads_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ran out of memory may leave native threads that never answer again: the next file gets another child."""
    script = (
        "import crossperf.serve.child as child, time\n"
        "met = []\n"
        "def bad(path, **_):\n"
        "    time.sleep(60) if met else None\n"
        "    word = path.read_text()\n"
        "    if word != 'fine':\n"
        "        met.append(word)\n"
        "        raise {'large': MemoryError, 'strange': ZeroDivisionError}[word]\n"
        "    return {'problems': []}, b''\n"
        "child._TASKS = {'check': bad}\n"
        "child.main()\n"
    )
    own = Readers(UploadLimits(seconds=10.0), count=1)
    import crossperf.serve.readers as module

    real = module.subprocess.Popen
    started: list[Any] = []

    def counted(command: list[str], **how: Any) -> Any:
        started.append(real([command[0], "-c", script, *command[3:]], **how))
        return started[-1]

    monkeypatch.setattr(module.subprocess, "Popen", counted)
    try:
        for word, sentence in (("large", "more memory than one file"), ("strange", "a fault")):
            with pytest.raises(UploadError, match=sentence):
                own.check(word.encode(), "csv")
            assert own.check(b"fine", "csv") == own.check(b"fine", "csv") == []
        assert len(started) == 3  # the first, and one after each fault
    finally:
        own.close()


def test_json_is_read_by_the_rules_of_every_other_document() -> None:
    assert parse(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}
    for data in (b"[Infinity]", b"[NaN]", b"[" * 60 + b"]" * 60, b'["\\ud800"]', b"\xff"):
        with pytest.raises(RequestError, match="not JSON"):
            parse(data)
