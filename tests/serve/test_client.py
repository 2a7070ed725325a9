"""The client, and the commands that ask a server: what comes back is what they would find here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from crossperf.cli import commands
from crossperf.client import Client, ServerError
from crossperf.errors import SettingsError
from crossperf.model.trained import TrainedModel
from crossperf.prediction.answer import predict
from crossperf.records import Run
from crossperf.runs import jsonl
from crossperf.schedule.slurm.table import read
from crossperf.serve.service import Service
from tests.serve.server import WRITE, Running, running


@pytest.fixture(scope="module")
def table(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("client") / "new.jsonl"
    known = service.workloads(limit=300)[::60]
    jsonl.append(path, [service.run_of(own.app, own.input) for own in known])
    return path


def test_a_client_returns_what_the_library_answers(server: Running, shipped: TrainedModel, table: Path) -> None:
    with Client(server.url) as client:
        own = client.predict(table, level=0.9, can=["cpu", "gpu"])
        runs = client.predict(jsonl.read(table), level=0.9, can=["cpu", "gpu"])
    expected = predict(shipped, table, level=0.9, can=["cpu", "gpu"])
    assert (own.predictions, own.notes) == (expected.predictions, expected.notes)
    assert runs.predictions == expected.predictions
    assert own.to_frame().shape == expected.to_frame().shape


@pytest.mark.parametrize("options", [[], ["--relative-to", "fastest", "--level", "0.9"], ["--no-gpu"], ["--joint"]])
def test_predict_prints_the_same_from_a_server(server: Running, table: Path, options: list[str]) -> None:
    run = CliRunner().invoke
    here = run(commands, ["predict", str(table), "--json", "-", *options])
    asked = run(commands, ["predict", "--server", server.url, str(table), "--json", "-", *options])
    assert here.exit_code == asked.exit_code == 0, asked.output
    assert asked.stdout == here.stdout and asked.stderr == here.stderr


@pytest.mark.slow
def test_predict_explains_the_same_from_a_server(server: Running, table: Path, tmp_path: Path) -> None:
    one_run = tmp_path / "new.jsonl"
    jsonl.append(one_run, jsonl.read(table)[:1])
    here = CliRunner().invoke(commands, ["predict", str(one_run), "--explain"])
    asked = CliRunner().invoke(commands, ["predict", "--server", server.url, str(one_run), "--explain"])
    assert "contributions to the time" in here.stdout and asked.stdout == here.stdout


def test_a_server_that_refuses_or_is_not_there_is_one_sentence(server: Running, table: Path) -> None:
    done = CliRunner().invoke(commands, ["predict", "--server", server.url, "nix", str(table)])
    assert isinstance(done.exception, ServerError) and "expected one of crossperf" in str(done.exception)
    with Client("http://127.0.0.1:9") as client, pytest.raises(ServerError, match="Is it running"):
        client.models()
    assert Client("http://127.0.0.1:9").ready() is False and Client(server.url).ready() is True
    with pytest.raises(SettingsError, match="expected http"):
        Client("ftp://x")


def test_a_token_is_taken_from_the_environment(server: Running, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSPERF_TOKEN", "wrong-" + "x" * 30)
    done = CliRunner().invoke(commands, ["predict", "--server", server.url, str(table)])
    assert isinstance(done.exception, ServerError) and done.exception.facts["status"] == 401


def test_a_client_does_what_the_api_offers(server: Running, run: dict[str, Any], tmp_path: Path) -> None:
    with Client(server.url, WRITE) as client:
        assert client.check(run) == [] and client.check(run | {"runtime_s": -1})[0]["pointer"] == "/0/runtime_s"
        assert client.suggest(run)["runs"][0]["app"] == "mine"
        assert client.place(run, [{"name": "q", "platform": run["platform"]}])["choice"] == "q"
        assert client.set_platform("mine-1", {"price_per_hour": 2})["facts"] == {"price_per_hour": 2}
        assert "mine-1" in [own["name"] for own in client.platforms()]
        app = client.workloads(limit=1)[0]["app"]
        assert client.workloads(app, limit=1)[0]["app"] == app
        assert client.add_runs(Run.from_json(run | {"app": "via client", "run_id": "c-1"})) == 1
        assert [own.run_id for own in client.runs(app="via client")] == ["c-1"]
        assert client.drift().keys() == {"overall", "models", "platforms", "weeks"}
        stat = Path("tests/data/perf/software.csv")
        (imported,) = client.import_file(stat, app="a", input="1", platform="p", runtime_s=1.0)
        assert imported.counters["page_faults"]


def test_the_table_of_a_slurm_site_is_refreshed_from_a_server(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no controller answers here
    site = ["--partitions", "small=epyc-1t,large=xeon-16t", "--default", "small"]
    with running(tmp_path / "server") as own, Client(own.url, WRITE) as client:
        local = CliRunner().invoke(
            commands, ["slurm", "table", str(_shipped()), str(table), "-o", str(tmp_path / "here"), *site]
        )
        asked = CliRunner().invoke(
            commands, ["slurm", "table", "--server", own.url, str(table), "-o", str(tmp_path / "asked"), *site]
        )
        assert local.exit_code == asked.exit_code == 0, (local.output, asked.output, local.exception, asked.exception)
        # Without runs of its own, the site goes by what the server keeps.
        client.add_runs(jsonl.read(table))
        kept = CliRunner().invoke(
            commands, ["slurm", "table", "--server", own.url, "-o", str(tmp_path / "kept"), *site]
        )
        assert kept.exit_code == 0, (kept.output, kept.exception)
    rows = {name: _rows(tmp_path / name, table) for name in ("here", "asked", "kept")}
    assert rows["asked"] == rows["here"] and rows["kept"].keys() == rows["here"].keys()


def _shipped() -> Path:
    from crossperf.model import store

    return store.SHIPPED


def _rows(path: Path, table: Path) -> dict[str, Any]:
    stored = read(path)
    rows = {f"{run.app} {run.input}": stored.row((run.app, "", run.input)) for run in jsonl.read(table)}
    return json.loads(json.dumps(rows, default=str))  # type: ignore[no-any-return]
