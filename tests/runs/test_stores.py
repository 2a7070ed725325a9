"""Tables in object stores: a real server that speaks S3, on loopback, read through Polars' own readers."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

from crossperf import runs
from crossperf.datasets import toy
from crossperf.errors import RunsTableError
from crossperf.runs.places import parts_below, spelled
from crossperf.runs.table import RunsTable

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def table() -> RunsTable:
    return toy.make_table(apps=3, inputs=2, seed=1)


@pytest.fixture(scope="module")
def settings() -> Iterator[dict[str, str]]:
    """Start moto's server, and yield the environment that leads to it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{address}/moto-api/", timeout=1)  # noqa: S310
                break
            except OSError:
                time.sleep(0.1)
        yield {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": "someone",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }
    finally:
        server.terminate()
        server.wait(10)


@pytest.fixture(scope="module")
def store(settings: dict[str, str], table: RunsTable, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Put a table into the store: as one file of each format, and divided by platform."""
    import boto3

    folder = tmp_path_factory.mktemp("store")
    for kind in ("parquet", "csv", "jsonl"):
        table.write(folder / f"runs.{kind}")
    runs.convert(folder / "runs.parquet", folder / "divided", by="platform")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        client = boto3.client("s3")
        client.create_bucket(Bucket="site")
        for path in filter(Path.is_file, folder.rglob("*")):
            client.put_object(Bucket="site", Key=str(path.relative_to(folder)), Body=path.read_bytes())
        yield


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_a_file_in_a_store_is_the_table_that_was_put_there(table: RunsTable, kind: str) -> None:
    read = runs.read(f"s3://site/runs.{kind}")
    assert (read.fingerprint, read.path) == (table.fingerprint, f"s3://site/runs.{kind}")
    assert runs.read(Path(f"s3://site/runs.{kind}")).fingerprint == table.fingerprint
    assert runs.check(f"s3://site/runs.{kind}") == []


@pytest.mark.usefixtures("store")
def test_a_divided_table_and_a_pattern_are_read_as_on_a_disk(table: RunsTable) -> None:
    assert runs.info(runs.read("s3://site/divided")).cells == runs.info(table).cells
    assert runs.read("s3://site/divided/platform=cpu*/*.parquet").platforms == ["cpu-a", "cpu-b"]


@pytest.mark.usefixtures("store")
def test_what_is_not_in_the_store_is_said_in_one_sentence() -> None:
    for address in ("s3://site/gone.parquet", "s3://other/runs.parquet", "s3://site/gone/"):
        with pytest.raises(RunsTableError, match="found no such file in the store, expected a runs table") as caught:
            runs.read(address)
        assert str(caught.value).startswith(address)


def test_commands_read_a_store_and_never_write_one(settings: dict[str, str], store: None, tmp_path: Path) -> None:
    def crossperf(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "crossperf", *arguments]
        return subprocess.run(
            command, env={**os.environ, **settings}, capture_output=True, text=True, cwd=tmp_path, check=False
        )

    checked = crossperf("runs", "check", "s3://site/runs.parquet")
    assert "s3://site/runs.parquet can be used; errors: 0" in checked.stdout, checked.stderr
    trained = crossperf("train", "s3://site/divided", "--model", "ridge", "-o", "model")
    assert "trained ridge on 24 cells" in trained.stdout, trained.stderr
    refused = crossperf("runs", "convert", "s3://site/runs.csv", "-o", "s3://site/new.parquet")
    assert refused.returncode != 0
    assert "an address in an object store, expected a file or folder of this machine" in refused.stderr


def test_a_store_that_does_not_answer_is_named_with_what_to_check(settings: dict[str, str]) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nobody listens
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
        program = "from crossperf import runs; print(runs.check('s3://site/runs.parquet')[0])"
        environment = {**os.environ, **settings, "AWS_ENDPOINT_URL": nobody}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
    assert done.stdout.startswith("found no answer of the store (")
    assert done.stdout.rstrip().endswith("the credentials and the endpoint in the environment.")


class Recorder(BaseHTTPRequestHandler):
    """A store without files, which keeps how it was asked."""

    signatures: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.signatures.append(self.headers.get("Authorization"))
        self.send_response(404)
        self.end_headers()

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("named", [True, False])
def test_credentials_are_taken_from_the_environment_alone(tmp_path: Path, named: bool) -> None:
    # A file in the home folder, which AWS's own tools would take, is passed over.
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text("[default]\naws_access_key_id=FILE\naws_secret_access_key=b\n")
    others = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    keys = {"AWS_ACCESS_KEY_ID": "ENVIRONMENT", "AWS_SECRET_ACCESS_KEY": "b"} if named else {}
    Recorder.signatures.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Recorder) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        where = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}", "AWS_REGION": "x", "AWS_ALLOW_HTTP": "1"}
        program = "from crossperf import runs; print(runs.check('s3://site/runs.parquet')[0])"
        command, environment = [sys.executable, "-c", program], others | keys | where | {"HOME": str(tmp_path)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        server.shutdown()
    assert "found no such file in the store" in done.stdout
    assert Recorder.signatures
    for signature in Recorder.signatures:
        assert "Credential=ENVIRONMENT/" in str(signature) if named else signature is None


def test_labels_in_addresses_are_columns_too() -> None:
    part = parts_below("s3://site/runs", ["s3://site/runs/platform=a/class=x%20y/0.parquet"])[0]
    assert part.labels == {"platform": "a", "class": "x y"}
    assert spelled(Path("gs://site/runs.csv")) == "gs://site/runs.csv"
