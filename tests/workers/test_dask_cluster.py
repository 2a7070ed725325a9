"""A real cluster of dask.distributed on loopback: answers, faults, other versions, TLS."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import crossperf
from crossperf.errors import DatasetError, SettingsError, WorkerError
from crossperf.workers import Kept
from crossperf.workers.dask_cluster import Tls, dask
from tests.collect.real import need
from tests.workers.test_processes import until
from tests.workers.work import DOUBLE, LIBRARIES, begun, pids, questions

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two workers, each below a nanny that starts it again."""
    with distributed.LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=":0") as started:
        yield started


def worker_of(address: str, folder: Path, **env: str) -> subprocess.Popen[bytes]:
    """Start one more worker by Dask's own command."""
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--no-dashboard"]
    more = ["--nthreads", "1", "--name", "other", "--local-directory", str(folder)]
    log = (folder / "worker.log").open("wb")
    return subprocess.Popen([*command, *more], cwd=folder, env={**os.environ, **env}, stdout=log, stderr=log)


def test_a_study_is_answered_and_an_error_arrives_as_it_was(cluster: Any, tmp_path: Path) -> None:
    with dask(cluster.scheduler_address) as workers, Kept(tmp_path / "kept") as kept:
        answers = dict(DOUBLE.answers(questions(tmp_path / "log", 5), workers, kept))
        assert [answers[n].facts["number"] for n in range(5)] == [0, 2, 4, 6, 8]
        assert len(set(pids(tmp_path / "log"))) == 2  # both work
        with pytest.raises(DatasetError, match=r"^runs.csv: found nothing, expected something.$"):
            list(DOUBLE.answers(questions(tmp_path / "log", 7, n6={"fails": True}), workers, kept))
        assert len(kept) >= 5


def test_a_worker_works_on_one_piece_at_a_time_with_one_thread_and_keeps_its_memory(
    cluster: Any, tmp_path: Path
) -> None:
    """Dask's workers have two threads here, and nannies that ask for memory to be given back after each array."""
    with dask(cluster.scheduler_address) as workers:
        assert workers.capacity() == 2
        for _, answer in LIBRARIES.answers(questions(tmp_path / "log", 2), workers):
            assert set(answer.facts["pools"].values()) == {1}
            assert answer.facts["torch"] == 1
            assert not answer.facts["trimmed"]


def test_a_worker_that_is_killed_costs_its_own_piece_and_no_other(cluster: Any, tmp_path: Path) -> None:
    log = tmp_path / "log"
    asked = questions(log, 6, n1={"dies": "once"}, n0={"sleep_s": 1.0})
    with dask(cluster.scheduler_address) as workers:
        answers = dict(DOUBLE.answers(asked, workers))
        assert [answers[n].facts["number"] for n in range(6)] == [2 * n for n in range(6)]
        assert {n: begun(log).count(n) for n in range(6)} == {0: 1, 1: 2, 2: 1, 3: 1, 4: 1, 5: 1}
        until(lambda: workers.capacity() == 2, "second worker again")


def test_an_address_that_does_not_answer_is_one_sentence() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        closed = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    sentence = r"no Dask scheduler answered within 1 s .*, expected one\. Check the address"
    with pytest.raises(WorkerError, match=sentence), dask(closed, timeout_s=1.0):
        pass
    with socket.socket() as mute:  # takes the connection and says nothing
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        address, start = f"tcp://127.0.0.1:{mute.getsockname()[1]}", time.monotonic()
        with pytest.raises(WorkerError, match=sentence), dask(address, timeout_s=1.0):
            pass
        assert time.monotonic() - start < 10
    with pytest.raises(WorkerError, match="no Dask scheduler answered"), dask("nonsense://x", timeout_s=1.0):
        pass


def test_a_scheduler_without_workers_is_one_sentence() -> None:
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty:
        sentence = r"found a scheduler without workers, expected at least one\. Start some with 'dask worker"
        with pytest.raises(WorkerError, match=sentence), dask(empty.scheduler_address, timeout_s=0.5):
            pass


@pytest.mark.parametrize("kind", ["version", "code"])
def test_a_worker_with_another_crossperf_is_refused_with_both_versions(kind: str, tmp_path: Path) -> None:
    """One has an older release before ours on its path; the other the same release with another line of code."""
    site = tmp_path / "site"
    shutil.copytree(ROOT / "src" / "crossperf", site / "crossperf", ignore=shutil.ignore_patterns("data", "static"))
    if kind == "version":
        facts = site / "crossperf-0.0.9.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: crossperf\nVersion: 0.0.9\n")
        sentence = rf"worker tcp://.*: found crossperf 0\.0\.9, expected crossperf {crossperf.__version__} as here\."
    else:
        with (site / "crossperf" / "records.py").open("a") as file:
            file.write("# a line more\n")
        release = crossperf.__version__
        sentence = rf"found crossperf {release} with other code \(\w+\), expected crossperf {release} \(code \w+\) as"
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as own:
        other = worker_of(own.scheduler_address, tmp_path, PYTHONPATH=str(site))
        try:
            with pytest.raises(WorkerError, match=sentence), dask(own.scheduler_address, timeout_s=60):
                pass
        finally:
            other.terminate()
            other.wait(timeout=20)


def test_a_scheduler_that_is_lost_is_one_sentence_and_finished_pieces_stay(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    file = tmp_path / "scheduler.json"
    scheduler = subprocess.Popen(
        [*command, "--no-dashboard", "--scheduler-file", str(file)], stderr=subprocess.DEVNULL, cwd=tmp_path
    )
    until(file.exists, "address of the scheduler")
    address = json.loads(file.read_text())["address"]
    worker = worker_of(address, tmp_path, PYTHONPATH=str(ROOT))
    try:
        asked = questions(tmp_path / "log", 4, n1={"sleep_s": 2.0})
        with Kept(tmp_path / "kept") as kept, dask(address, timeout_s=60) as workers:
            answers = DOUBLE.answers(asked, workers, kept)
            next(answers)
            os.kill(scheduler.pid, signal.SIGKILL)
            with pytest.raises(WorkerError, match=r"the Dask scheduler was lost.*Finished pieces stay"):
                list(answers)
            assert len(kept) >= 1
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait(timeout=20)


def certificates(folder: Path) -> Tls:
    """Make an authority, and a certificate that it signed, with OpenSSL."""
    need("openssl")
    ca, cert, key = folder / "ca.pem", folder / "cert.pem", folder / "key.pem"

    def openssl(*words: object) -> None:
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)

    new = ("-newkey", "rsa:2048", "-nodes", "-subj")
    openssl("req", "-x509", *new, "/CN=authority", "-days", 2, "-keyout", folder / "ca.key", "-out", ca)
    openssl("req", *new, "/CN=localhost", "-keyout", key, "-out", folder / "request.pem")
    signed = ("-CA", ca, "-CAkey", folder / "ca.key", "-CAcreateserial", "-days", 2)
    openssl("x509", "-req", "-in", folder / "request.pem", *signed, "-out", cert)
    return Tls(ca, cert, key)


def test_a_cluster_on_a_shared_host_is_reached_by_tls_and_not_without(tmp_path: Path) -> None:
    tls = certificates(tmp_path)
    files = {"tls_ca_file": tls.ca, **{f"tls_{who}_cert": tls.cert for who in ("client", "scheduler", "worker")}}
    files |= {f"tls_{who}_key": tls.key for who in ("client", "scheduler", "worker")}
    security = distributed.Security(require_encryption=True, **{name: str(path) for name, path in files.items()})
    how = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0", "protocol": "tls://"}
    with distributed.LocalCluster(security=security, **how) as secured:
        address = secured.scheduler_address
        assert address.startswith("tls://")
        with dask(address, tls=tls) as workers:
            answers = dict(DOUBLE.answers(questions(tmp_path / "log", 2), workers))
        assert [answers[n].facts["number"] for n in range(2)] == [0, 2]
        with pytest.raises(WorkerError, match="no Dask scheduler answered"):
            dask(address.replace("tls://", "tcp://"), timeout_s=1.0).__enter__()
    with pytest.raises(SettingsError, match="tls: found none for tls://"):
        dask("tls://127.0.0.1:1").__enter__()
    with pytest.raises(SettingsError, match=r"tls_key: found '.*nowhere.pem', which is no file"):
        Tls(tls.ca, tls.cert, tmp_path / "nowhere.pem")
