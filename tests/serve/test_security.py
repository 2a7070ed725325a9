"""Who may ask what: hosts, origins, tokens and scopes, sizes, and what answers carry."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crossperf.errors import SettingsError
from crossperf.serve.gate import AccessRules
from crossperf.serve.running import Listening
from crossperf.serve.tokens import Tokens
from tests.serve.server import READ, WRITE, Running, running


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that listens on all addresses, with a token of each scope, and small limits."""
    folder = tmp_path_factory.mktemp("guarded")
    environment = {"CROSSPERF_READ_TOKEN": READ}
    limits = ("--max-upload", "1", "--upload-seconds", "3", "--upload-memory", "1500")
    with running(folder, "--host", "0.0.0.0", *limits, environment=environment) as own:  # noqa: S104
        yield own


def test_another_host_than_this_machine_demands_a_token() -> None:
    with pytest.raises(SettingsError, match="and no token"):
        Listening("0.0.0.0").refuse_open()  # noqa: S104
    Listening("127.0.0.1").refuse_open()
    Listening("0.0.0.0", tokens=Tokens.of({"read": READ})).refuse_open()  # noqa: S104


def test_the_command_refuses_to_listen_to_all_without_a_token() -> None:
    command = [sys.executable, "-m", "crossperf", "serve", "--host", "0.0.0.0", "--port", "0"]  # noqa: S104
    clean = {name: value for name, value in os.environ.items() if "TOKEN" not in name}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=clean, check=False)
    assert done.returncode == 1 and "--token-file" in done.stderr and "Traceback" not in done.stderr


def test_a_file_of_tokens_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"# mine\n\nread {READ}\nwrite {WRITE}\n", encoding="utf-8")
    path.chmod(0o640)
    with pytest.raises(SettingsError, match="chmod 600"):
        Tokens.read(path, {})
    path.chmod(0o600)
    tokens = Tokens.read(path, {})
    assert (tokens.scope_of(READ), tokens.scope_of(WRITE), tokens.scope_of("")) == ("read", "write", None)
    assert READ not in repr(tokens)


@pytest.mark.parametrize("line", ["write short", "admin " + "x" * 30, "write a b", "w" * 40])
def test_a_token_that_can_be_guessed_or_misread_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "tokens"
    path.write_text(line, encoding="utf-8")
    path.chmod(0o600)
    with pytest.raises(SettingsError):
        Tokens.read(path, {})


SCOPES: list[tuple[str, str, Any, str]] = [
    ("GET", "/health", None, "open"),
    ("GET", "/ready", None, "open"),
    ("GET", "/models", None, "read"),
    ("GET", "/metrics", None, "read"),
    ("GET", "/openapi.json", None, "read"),
    ("GET", "/runs", None, "read"),
    ("POST", "/predict", {}, "read"),
    ("POST", "/runs", [], "write"),
    ("PUT", "/platforms/x", {}, "write"),
]


@pytest.mark.parametrize(("method", "path", "body", "scope"), SCOPES)
def test_each_endpoint_needs_its_scope(guarded: Running, method: str, path: str, body: Any, scope: str) -> None:
    nobody, reader, writer = (guarded.ask(method, path, body, token=token).status for token in (None, READ, WRITE))
    assert (nobody == 401) == (scope != "open")
    assert (reader == 403) == (scope == "write")
    assert writer not in (401, 403)


@pytest.mark.parametrize(
    "header", ["Bearer wrong", "Bearer", f"Basic {READ}", f"Bearer {READ}x", f"bearer {READ[:-1]}", "Bearer é"]
)
def test_a_strange_token_is_refused(guarded: Running, header: str) -> None:
    answer = guarded.ask("GET", "/models", headers={"Authorization": header.encode("utf-8").decode("latin-1")})
    assert answer.status == 401 and answer.headers["www-authenticate"].startswith("Bearer")


def test_keeping_a_prediction_needs_the_write_scope(guarded: Running, run: dict[str, Any]) -> None:
    assert guarded.ask("POST", "/predict?keep=true", run, token=READ).status == 403
    assert guarded.ask("POST", "/predict?keep=true", run, token=WRITE).status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "[::1", "a b", "localhost@evil.example"]
)
def test_a_request_that_names_another_host_is_refused(server: Running, host: str) -> None:
    assert server.ask("GET", "/health", headers={"Host": host}).status in (400, 421)


def test_names_that_are_allowed_are_answered() -> None:
    rules = AccessRules.of("10.0.0.5", ["perf.example.org"], Tokens.of({"write": WRITE}))
    assert {"10.0.0.5", "perf.example.org", "localhost"} <= rules.hosts and not rules.open_to_read


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_pages_of_other_sites_cannot_ask(server: Running, run: dict[str, Any], headers: dict[str, str]) -> None:
    assert server.ask("POST", "/predict", run, headers=headers).status == 403


def test_its_own_pages_can_ask(server: Running, run: dict[str, Any]) -> None:
    own = {"Origin": server.url, "Sec-Fetch-Site": "same-origin"}
    assert server.ask("POST", "/predict", run, headers=own).status == 200


def test_a_browser_logs_in_with_a_cookie_that_others_cannot_use(guarded: Running) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", guarded.port, timeout=30)
    connection.request("GET", "/")
    refused = connection.getresponse()
    refused.read()
    assert (refused.status, refused.getheader("Location")) == (303, "/login")
    form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": guarded.url}
    connection.request("POST", "/login", "token=nope", form)
    wrong = connection.getresponse()
    assert wrong.status == 401 and b"not known here" in wrong.read()
    connection.request("POST", "/login", f"token={WRITE}", form)
    entered = connection.getresponse()
    entered.read()
    cookie = entered.getheader("Set-Cookie") or ""
    assert entered.status == 303 and "HttpOnly" in cookie and "SameSite=strict" in cookie
    sent = {"Cookie": cookie.partition(";")[0]}
    assert guarded.ask("GET", "/models", headers=sent).status == 200
    assert guarded.ask("PUT", "/platforms/x", {}, headers=sent | {"Origin": guarded.url}).status == 200
    assert guarded.ask("PUT", "/platforms/x", {}, headers=sent).status == 403


def test_answers_forbid_framing_sniffing_and_foreign_content(server: Running) -> None:
    headers = server.ask("GET", "/health").headers
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "same-origin"
    assert "server" not in headers
    page = server.ask("GET", "/api/../login")
    assert "unsafe" not in page.headers["content-security-policy"]


def test_a_body_beyond_the_limit_is_refused_before_it_is_read(guarded: Running) -> None:
    announced = guarded.ask("POST", "/predict", b"[]", token=READ, headers={"Content-Length": str(2**31)}, timeout=10)
    assert announced.status == 413
    with socket.create_connection(("127.0.0.1", guarded.port), timeout=30) as own:
        own.sendall(
            f"POST /api/v1/predict HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {READ}\r\n"
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        try:
            for _ in range(40):
                own.sendall(chunk)
        except OSError:
            pass
        assert b"413" in own.recv(4096).partition(b"\r\n")[0]


def test_no_answer_names_a_folder_of_the_server(guarded: Running, run: dict[str, Any]) -> None:
    bodies = [
        guarded.ask("POST", "/predict", b"PAR1", token=READ, kind="application/vnd.apache.parquet").body,
        guarded.ask("POST", "/import?format=caliper&name=/etc/passwd", b"x", token=READ, kind="a/b").body,
        guarded.ask("GET", "/models/..%2f..%2fetc", token=READ).body,
        guarded.ask("PUT", "/platforms/x", {"facts": {"cores": "many"}}, token=WRITE).body,
        guarded.ask("GET", "/models/crossperf", token=READ).body,
    ]
    (guarded.folder / "platforms.json").write_text("{", encoding="utf-8")
    bodies.append(guarded.ask("GET", "/platforms", token=READ).body)
    (guarded.folder / "platforms.json").unlink()
    for body in bodies:
        assert str(guarded.folder).encode() not in body and b"crossperf-upload-" not in body, body
        assert b"Traceback" not in body and b"site-packages" not in body and b"/tmp" not in body, body


def test_a_policy_of_a_file_is_not_loaded_for_a_request(guarded: Running, run: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("raise SystemExit", encoding="utf-8")
    queues = [{"name": "a", "platform": "epyc-2t"}]
    body = {"run": run, "queues": queues, "policy": f"{tmp_path}/mine.py:policy"}
    answer = guarded.ask("POST", "/place", body, token=READ)
    assert answer.status == 422 and "expected one of random" in answer.json["detail"]


def test_a_slow_body_does_not_hold_the_server_up(server: Running) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as own:
        own.sendall(b"POST /api/v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
        own.sendall(b"Content-Length: 1000\r\n\r\n[")
        begun = time.monotonic()
        assert server.ask("GET", "/health").status == 200
        assert time.monotonic() - begun < 5
