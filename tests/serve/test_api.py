"""The API over a real connection: its answers are those of the library."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from crossperf import plain
from crossperf.model.trained import TrainedModel
from crossperf.prediction.answer import predict
from crossperf.prediction.explain import explain
from crossperf.records import Prediction, Run
from crossperf.runs import read_runs
from crossperf.schedule import policies
from crossperf.schedule.policies import Ask, Options
from crossperf.serve.service import Service
from tests.serve.server import WRITE, Running

JSONL, CSV, PARQUET = "application/x-ndjson", "text/csv", "application/vnd.apache.parquet"


def predictions_of(answer: Any) -> list[Prediction]:
    return [Prediction.from_json(own) for own in answer.json["predictions"]]


@pytest.fixture(scope="module")
def runs(service: Service) -> list[dict[str, Any]]:
    """Some runs of several sources."""
    known = service.workloads(limit=200)[::25]
    return [service.run_of(own.app, own.input, own.sources[-1]).to_json() for own in known]


def test_a_prediction_is_what_the_library_predicts(server: Running, shipped: TrainedModel, run: dict[str, Any]) -> None:
    answer = server.ask("POST", "/predict?pairs=true&level=0.9&relative_to=fastest", run)
    assert answer.status == 200
    assert predictions_of(answer) == list(predict(shipped, run, level=0.9, relative_to="fastest").predictions)


def test_a_prediction_tells_order_fastest_seconds_range_chance_and_trust(server: Running, run: dict[str, Any]) -> None:
    own = server.ask("POST", "/predict", run).json["predictions"][0]
    times = {name: time for name, time in own["relative_time"].items() if time is not None}
    assert own["order"] == sorted(times, key=times.__getitem__) and own["fastest"] == own["order"][0]
    assert own["low"][own["fastest"]] <= times[own["fastest"]] <= own["high"][own["fastest"]]
    assert sum(own["chance_fastest"].values()) == pytest.approx(1.0)
    assert own["seconds"][own["source"]] == pytest.approx(run["runtime_s"])
    assert own["familiarity"]["word"] in ("familiar", "unusual", "unknown") and "chance_faster" not in own


def test_every_format_gives_the_same_answer(server: Running, runs: list[dict[str, Any]], tmp_path: Path) -> None:
    expected = predictions_of(server.ask("POST", "/predict?pairs=true", runs))
    assert len(expected) == len(runs)
    table = read_runs(runs)
    for ending, kind in (("jsonl", JSONL), ("csv", CSV), ("parquet", PARQUET)):
        path = tmp_path / f"runs.{ending}"
        table.write(path)
        own = predictions_of(server.ask("POST", "/predict?pairs=true", path.read_bytes(), kind=kind))
        assert [p.app for p in own] == [p.app for p in expected], ending
        for mine, theirs in zip(own, expected, strict=True):
            assert mine.relative_time == pytest.approx(theirs.relative_time, nan_ok=True), ending


def test_many_runs_are_answered_as_each_alone(server: Running, runs: list[dict[str, Any]]) -> None:
    copies = [own | {"input": f"{own['input']} {copy}"} for copy in range(12) for own in runs]
    answered = {(own.app, own.input): own for own in predictions_of(server.ask("POST", "/predict", copies))}
    assert len(answered) == len(copies)
    alone = predictions_of(server.ask("POST", "/predict", copies[5]))[0]
    assert answered[alone.app, alone.input].relative_time == pytest.approx(alone.relative_time, rel=1e-3, nan_ok=True)


def test_csv_has_a_row_for_each_platform(server: Running, run: dict[str, Any]) -> None:
    own = server.ask("POST", "/predict", run).json["predictions"][0]
    answer = server.ask("POST", "/predict", run, headers={"Accept": "text/csv"})
    rows = {row["platform"]: row for row in csv.DictReader(io.StringIO(answer.body.decode()))}
    assert answer.headers["content-type"].startswith("text/csv") and set(rows) == set(own["relative_time"])
    for name, row in rows.items():
        assert (float(row["relative_time"]) if row["relative_time"] else None) == own["relative_time"][name]
        assert row["cannot"] == own["cannot"].get(name, "")


def test_where_there_is_a_version_is_heeded(server: Running, run: dict[str, Any]) -> None:
    plain_run = {name: value for name, value in run.items() if name != "runnable"}
    with_gpu = server.ask("POST", "/predict?can=cpu,gpu", plain_run).json["predictions"][0]
    without = server.ask("POST", "/predict?can=cpu", plain_run).json["predictions"][0]
    assert "h200" in with_gpu["order"] and without["cannot"] == {"h200": "cannot run"}


def test_a_price_becomes_the_cost_of_a_run(server: Running, run: dict[str, Any]) -> None:
    facts = server.ask("GET", "/platforms/xeon-4t").json
    priced = facts | {"facts": facts["facts"] | {"price_per_hour": 1.8}}
    assert server.ask("PUT", "/platforms/xeon-4t", priced, token=WRITE).status == 200
    own = server.ask("POST", "/predict", run).json["predictions"][0]
    # Other tests of the same server may have put prices on other platforms.
    facts_of = {name: server.ask("GET", f"/platforms/{name}").json["facts"] for name in own["seconds"]}
    prices = {name: price for name, facts in facts_of.items() if (price := facts.get("price_per_hour")) is not None}
    assert prices["xeon-4t"] == 1.8
    assert own["cost"] == {name: pytest.approx(own["seconds"][name] * prices[name] / 3600) for name in prices}
    kept = {own["name"]: own for own in server.ask("GET", "/platforms").json["platforms"]}
    assert kept["xeon-4t"]["facts"] == priced["facts"]


def test_models_tell_their_platforms_counters_and_fingerprint(server: Running, shipped: TrainedModel) -> None:
    (own,) = server.ask("GET", "/models").json["models"]
    whole = server.ask("GET", f"/models/{own['id']}").json
    assert [each["name"] for each in whole["platforms"]] == list(shipped.platforms)
    assert whole["counters"] == list(shipped.counters) and whole["fingerprint"] == own["fingerprint"] != ""
    assert server.ask("GET", "/ready").json["models"] == {own["id"]: own["fingerprint"]}


def test_an_explanation_is_what_the_library_explains(
    server: Running, shipped: TrainedModel, run: dict[str, Any]
) -> None:
    answer = server.ask("POST", "/explain?samples=16&neighbours=3&seed=5", run).json
    expected = explain(shipped, run, samples=16, neighbours=3, seed=5).explanations[0]
    assert answer["explanations"] == [json.loads(json.dumps(expected.to_json()))]


def test_what_to_measure_next_names_lacking_counters_and_platforms(server: Running, run: dict[str, Any]) -> None:
    less = run | {"counters": {name: value for name, value in run["counters"].items() if name != "mem_ratio"}}
    (own,) = server.ask("POST", "/suggest", less).json["runs"]
    assert "mem_ratio" in own["counters"] and run["platform"] not in [each["platform"] for each in own["platforms"]]
    gains = [each["saves"] for each in own["platforms"]]
    assert gains == sorted(gains, reverse=True) and all(0.0 <= gain < 1.0 for gain in gains)


@pytest.mark.slow
def test_workloads_are_named_for_a_new_platform(server: Running, shipped: TrainedModel) -> None:
    named = server.ask("POST", "/suggest?count=3").json["workloads"]
    assert len(named) == 3 and all((own["app"], own["input"]) in shipped.workloads for own in named)


def test_every_problem_of_a_table_is_named_with_its_pointer(server: Running, run: dict[str, Any]) -> None:
    bad = [run, run | {"input": "8", "runtime_s": -1, "counters": {"instructions": "many", "int_ratio": 1.5}}]
    answer = server.ask("POST", "/runs/check", bad).json
    assert not answer["usable"]
    places = {own["pointer"]: own["severity"] for own in answer["problems"]}
    assert places["/1/runtime_s"] == places["/1/counters/instructions"] == "error"
    assert server.ask("POST", "/runs/check", run).json == {"usable": True, "problems": []}


def test_a_profile_becomes_runs(server: Running) -> None:
    path = next(Path("tests/data/perf").glob("*.csv"), None) or next(Path("tests/data/perf").glob("stat*"))
    names = "app=sort&input=10&platform=epyc-1t&runtime_s=2.5"
    answer = server.ask("POST", f"/import?name={path.name}&{names}", path.read_bytes(), kind="application/octet-stream")
    assert answer.status == 200, answer.body
    (own,) = answer.json["runs"]
    assert (own["app"], own["input"], own["platform"], own["runtime_s"]) == ("sort", "10", "epyc-1t", 2.5)
    assert own["imported_from"] == path.name


def test_known_workloads_are_found_by_words_and_come_as_runs(server: Running, shipped: TrainedModel) -> None:
    app, input_ = shipped.workloads[7]
    listed = server.ask("GET", f"/workloads?like={app}&limit=10000").json["workloads"]
    assert {(own["app"], own["input"]) for own in listed} >= {(app, input_)}
    assert all(app.lower() in f"{own['app']} {own['input']}".lower() for own in listed)
    own = next(own for own in listed if (own["app"], own["input"]) == (app, input_))
    from urllib.parse import urlencode

    run = server.ask("GET", "/workloads/run?" + urlencode({"app": app, "input": input_})).json
    assert run["platform"] in own["sources"]
    # Numbers of the model that ships are of half precision.
    assert run["runtime_s"] == pytest.approx(own["seconds"][run["platform"]], rel=1e-3)
    assert server.ask("POST", "/predict", run).json["predictions"][0]["familiarity"]["word"] == "familiar"


QUEUES = [
    {"name": "small", "platform": "epyc-2t", "nodes": 64, "free_nodes": 3, "wait_s": 5.0},
    {"name": "large", "platform": "xeon-16t", "nodes": 8, "free_nodes": 0, "queued": 12, "wait_s": 900.0},
    {"name": "gpus", "platform": "h200", "nodes": 4},
    {"name": "old", "platform": "vax"},
]


@pytest.mark.parametrize("policy", ["considerate", "turnaround", "fastest", "wait-time"])
def test_a_job_is_placed_by_the_policies_that_the_simulator_uses(
    server: Running, shipped: TrainedModel, run: dict[str, Any], policy: str
) -> None:
    own = run | {"runnable": "cpu"}
    answer = server.ask("POST", "/place", {"run": own, "queues": QUEUES, "policy": policy}).json
    prediction = predict(shipped, own).predictions[0]
    names = ["epyc-2t", "xeon-16t"]
    options = Options.of(
        names,
        run_s=[prediction.seconds[name] for name in names],
        low_s=[prediction.low[name] * run["runtime_s"] for name in names],
        high_s=[prediction.high[name] * run["runtime_s"] for name in names],
        nodes=[64, 8],
        free_nodes=[3, 0],
        queued=[0, 12],
        wait_s=[5.0, 900.0],
    )
    chosen = policies.make(policy)(Ask(1, run["runtime_s"]), options, None)  # type: ignore[arg-type]
    assert answer["choice"] == ["small", "large"][chosen]
    assert answer["cannot"] == {"gpus": "cannot run", "old": "platform not known to the model"}


def test_a_job_whose_run_looks_unknown_stays_where_it_is(server: Running, run: dict[str, Any]) -> None:
    odd = run | {"counters": {name: value * 1e9 for name, value in run["counters"].items() if value}, "events": {}}
    answer = server.ask("POST", "/place", {"run": odd, "queues": QUEUES}).json
    assert answer["familiarity"]["word"] == "unknown" and answer["choice"] is None


def test_finished_runs_are_kept_once_and_given_back(server: Running, run: dict[str, Any]) -> None:
    finished = [run | {"app": "kept", "run_id": f"job-{number}", "runtime_s": 1.0 + number} for number in range(3)]
    assert server.ask("POST", "/runs", finished, token=WRITE).json == {"added": 3, "known": 0}
    again = server.ask("POST", "/runs", finished[:1], token=WRITE)
    assert (again.status, again.json) == (200, {"added": 0, "known": 1})
    kept = server.ask("GET", "/runs?app=kept").json["runs"]
    assert [Run.from_json(own) for own in kept] == [Run.from_json(own) for own in finished]
    first = server.ask("GET", "/runs?app=kept&limit=2").json
    rest = server.ask("GET", f"/runs?app=kept&after={first['next']}").json
    assert [own["run_id"] for own in rest["runs"]] == ["job-2"] and rest["next"] is None
    lines = server.ask("GET", "/runs?app=kept", headers={"Accept": JSONL}).body.splitlines()
    assert [json.loads(line)["run_id"] for line in lines] == ["job-0", "job-1", "job-2"]


def test_runs_of_an_accounting_need_no_counters_in_any_format(server: Running, tmp_path: Path) -> None:
    own = {"app": "billed", "input": "1", "platform": "epyc-1t", "runtime_s": 3.0}
    assert server.ask("POST", "/runs", own | {"run_id": "b-1"}, token=WRITE).status == 201
    text = b"app,input,platform,runtime_s,run_id\nbilled,1,epyc-1t,4.0,b-2\n"
    assert server.ask("POST", "/runs", text, kind=CSV, token=WRITE).json == {"added": 1, "known": 0}
    kept = server.ask("GET", "/runs?app=billed").json["runs"]
    assert [each["runtime_s"] for each in kept] == [3.0, 4.0]


def test_what_was_predicted_is_compared_with_what_came(server: Running, run: dict[str, Any]) -> None:
    own = run | {"app": "drifting", "runnable": "cpu"}
    answer = server.ask("POST", "/predict?keep=true", own, token=WRITE).json["predictions"][0]
    target = next(name for name in answer["order"] if name != own["platform"])
    slow = {"app": "drifting", "input": own["input"], "platform": target, "run_id": "d-1"}
    slow["runtime_s"] = 2.0 * answer["seconds"][target]
    before = server.ask("GET", "/drift").json["overall"]
    assert server.ask("POST", "/runs", slow, token=WRITE).json["added"] == 1
    after = server.ask("GET", "/drift").json
    assert after["overall"]["runs"] == (before["runs"] if before else 0) + 1
    if before is None:
        assert after["overall"]["typical_factor"] == pytest.approx(2.0)
        assert after["overall"]["bias"] == pytest.approx(2.0) and after["overall"]["inside"] == 0.0


def test_figures_of_operation_are_prometheus_text(server: Running, run: dict[str, Any]) -> None:
    server.ask("POST", "/predict", run)
    answer = server.ask("GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = [line for line in answer.body.decode().splitlines() if not line.startswith("#")]
    values = {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}
    count = values['crossperf_requests_total{route="predict",status="200"}']
    assert count >= 1 and values['crossperf_request_seconds_bucket{route="predict",le="+Inf"}'] >= count
    ends = [value for name, value in values.items() if 'bucket{route="predict"' in name]
    assert ends == sorted(ends)
    assert any(name.startswith('crossperf_model_info{model="crossperf",fingerprint="') for name in values)


@pytest.mark.slow
def test_the_map_has_a_dot_for_each_workload(server: Running, shipped: TrainedModel) -> None:
    own = server.ask("GET", "/map", timeout=180).json
    assert [(dot["app"], dot["input"]) for dot in own["workloads"]] == list(shipped.workloads)
    assert all(abs(dot["x"]) <= 1.001 and abs(dot["y"]) <= 1.001 for dot in own["workloads"])
    assert plain.to_json(own["platforms"]) == list(shipped.platforms)
