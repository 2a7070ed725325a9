"""The service without HTTP: what it keeps, compares, follows and batches."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from crossperf.campaign import log
from crossperf.campaign.progress import SitePlatformProgress, SiteProgress
from crossperf.datasets import toy
from crossperf.errors import CrossperfError, SettingsError
from crossperf.model import train
from crossperf.model.trained import TrainedModel
from crossperf.prediction.answer import answered, ask, predict
from crossperf.prediction.measuring import next_measurements
from crossperf.records import Run
from crossperf.serve.answers import as_json
from crossperf.serve.batching import Batches
from crossperf.serve.drift import drift
from crossperf.serve.following import Campaign
from crossperf.serve.metrics import BUCKETS, Metrics
from crossperf.serve.models import Models, UnknownNameError
from crossperf.serve.placing import JobQueue, place
from crossperf.serve.service import Service
from crossperf.serve.store import ComparedRun, NotOfferedError, RunStore, StoreError

T = TypeVar("T")


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a thread of its own: a browser of another test may have a loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


@pytest.fixture
def runs(service: Service) -> list[Run]:
    return [service.run_of(own.app, own.input) for own in service.workloads(limit=300)[::30]]


def test_a_batch_of_requests_is_answered_as_each_alone(shipped: TrainedModel, runs: list[Run]) -> None:
    async def together() -> tuple[list[Any], int]:
        batches = Batches()
        questions = [ask(shipped, [run.to_json()]) for run in runs]
        levels = [0.5 + 0.04 * number for number in range(len(runs))]
        own = await asyncio.gather(
            *(batches.predict(shipped, each, level=level) for each, level in zip(questions, levels, strict=True))
        )
        return list(zip(own, levels, strict=True)), batches.passes

    pairs, passes = _run(together())
    assert passes == 1
    for (own, level), run in zip(pairs, runs, strict=True):
        (alone,) = predict(shipped, [run.to_json()], level=level).predictions
        (batched,) = own.predictions
        # Matrix products of several rows round otherwise, and the distances of the process to known cells are of
        # single precision.
        assert batched.relative_time == pytest.approx(alone.relative_time, rel=1e-3, nan_ok=True)
        assert batched.low == pytest.approx(alone.low, rel=2e-3, nan_ok=True) and batched.level == level


def test_a_fault_in_one_request_of_a_batch_is_its_own(shipped: TrainedModel, runs: list[Run]) -> None:
    async def together() -> list[Any]:
        batches, questions = Batches(), [ask(shipped, [run.to_json()]) for run in runs[:3]]
        asked = [
            batches.predict(shipped, own, level=level) for own, level in zip(questions, (0.8, 7.0, 0.8), strict=True)
        ]
        return await asyncio.gather(*asked, return_exceptions=True)

    first, second, third = _run(together())
    assert len(first) == len(third) == 1 and isinstance(second, CrossperfError)


def test_threads_and_chunks_change_no_answer(shipped: TrainedModel, runs: list[Run]) -> None:
    copies = [replace(run, input=f"{run.input} {copy}").to_json() for run in runs for copy in range(40)]
    question = ask(shipped, copies)
    assert len(question) > 256
    assert answered(shipped, question, threads=3).predictions == answered(shipped, question).predictions


def test_json_of_the_fast_road_is_json_of_the_records(service: Service, runs: list[Run]) -> None:
    served = service.model()
    answer = predict(served.model, [run.to_json() for run in runs])
    own = json.loads(as_json(answer, served, {}, pairs=True))["predictions"]
    for fast, prediction in zip(own, answer.predictions, strict=True):
        assert {name: fast[name] for name in prediction.to_json()} == json.loads(json.dumps(prediction.to_json()))


def test_measuring_what_decides_is_worth_most(shipped: TrainedModel, runs: list[Run]) -> None:
    """The expected improvement against a second road: the mean over draws of the choice once the time is known."""
    question = ask(shipped, [runs[0].to_json()])
    (own,) = next_measurements(shipped, question, can=["cpu"])
    drawn_bp = shipped.fitted.forecast(question.features).drawn(question.features.source_n)[0]
    offered = [p for p, kind in enumerate(shipped.cells.platform_classes) if kind == "cpu"]
    mean_p = drawn_bp.mean(axis=0)
    for each in own.platforms:
        p = shipped.platforms.index(each.platform)
        rest = min(mean_p[q] for q in offered if q != p)
        chosen_b = [drawn_bp[b, p] if drawn_bp[b, p] < rest else rest for b in range(len(drawn_bp))]
        expected = 1.0 - math.exp(float(np.mean(chosen_b)) - min(rest, mean_p[p]))
        assert each.saves == pytest.approx(max(expected, 0.0), abs=1e-12)


def test_the_store_keeps_runs_across_processes_and_forks(tmp_path: Path, runs: list[Run]) -> None:
    import os

    store = RunStore(tmp_path / "runs.db")
    assert store.add([replace(runs[0], run_id="1")]) == [True]
    child = os.fork()
    if not child:
        os._exit(0 if store.add([replace(runs[0], run_id="2")]) == [True] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [run.run_id for _, run in RunStore(tmp_path / "runs.db").runs()] == ["1", "2"]
    assert store.add([replace(runs[0], run_id="2")]) == [False]


def test_a_database_of_something_else_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "runs.db").write_bytes(b"this is no database, " * 100)
    with pytest.raises(StoreError, match="not a database"):
        RunStore(tmp_path / "runs.db")
    with pytest.raises(StoreError, match="unable to open"):
        RunStore(tmp_path / "no folder" / "runs.db")


def test_a_finished_run_is_compared_with_a_kept_profile_where_nothing_was_asked(
    tmp_path: Path, shipped: TrainedModel, runs: list[Run]
) -> None:
    service = Service.open(runs_file=tmp_path / "runs.db")
    profile = replace(runs[0], app="new", run_id="p")
    service.add_runs([profile])
    assert service.drift().overall is None
    target = next(name for name in shipped.platforms if name.startswith("xeon"))
    finished = Run("new", profile.input, target, 5.0, run_id="f")
    service.add_runs([finished])
    (prediction,) = predict(shipped, [profile], can=[target]).predictions
    (outcome,) = service._kept_runs.outcomes()
    assert outcome.predicted_s == pytest.approx(prediction.seconds[target], rel=1e-6) and not outcome.kept
    overall = service.drift().overall
    assert overall is not None
    assert overall.typical_factor == pytest.approx(math.exp(abs(math.log(5.0 / prediction.seconds[target]))))


def test_drift_is_told_by_model_platform_and_week() -> None:
    def outcome(day: float, platform: str, actual_s: float) -> ComparedRun:
        return ComparedRun(86400.0 * day, "m", "a", "1", "p", platform, actual_s, 1.0, 0.5, 2.0, 0.8, True)

    own = drift([outcome(4, "x", 1.0), outcome(4, "y", 4.0), outcome(11, "y", 1.0)])
    assert own.overall is not None and own.overall.inside == pytest.approx(2 / 3)
    assert own.overall.bias == pytest.approx(4 ** (1 / 3))
    assert [(each.name, each.runs) for each in own.platforms] == [("x", 1), ("y", 2)]
    assert [each.name for each in own.weeks] == ["1970-W02", "1970-W03"]


def test_what_was_not_given_is_not_offered(service: Service) -> None:
    with pytest.raises(NotOfferedError, match="--runs"):
        service.runs()
    with pytest.raises(NotOfferedError, match="--platforms"):
        service.set_price("h200", 1.0)
    with pytest.raises(UnknownNameError, match="knows none"):
        service.campaign("x")


def test_a_price_is_kept_beside_the_other_facts_and_can_be_taken_away(tmp_path: Path) -> None:
    service = Service.open(platforms_file=tmp_path / "platforms.json")
    cores = service.platform("xeon-4t").facts.cores
    assert service.set_price("xeon-4t", 2.5).facts.cores == cores and service.prices == {"xeon-4t": 2.5}
    service.set_price("xeon-4t", None)
    assert service.prices == {} and service.platform("xeon-4t").facts.cores == cores
    with pytest.raises(CrossperfError, match="0 or more"):
        service.set_price("xeon-4t", -1.0)


def test_models_of_the_same_name_get_numbers(tmp_path: Path) -> None:
    small = train(toy.make_runs(apps=3, inputs=2, seed=1), "ridge")
    for part in ("a", "b"):
        small.save(tmp_path / part / "model")
    models = Models.load([tmp_path / "a" / "model", tmp_path / "b" / "model"])
    assert [own.id for own in models] == ["model", "model-2"]
    assert len({own.fingerprint for own in models}) == 1 and models.default.id == "model"


def test_a_queue_without_a_price_costs_what_its_platform_does(shipped: TrainedModel, runs: list[Run]) -> None:
    (prediction,) = predict(shipped, [runs[0]], can=["cpu"]).predictions
    queues = [JobQueue("a", "xeon-4t"), JobQueue("b", "xeon-16t", price_per_node_hour=9.0)]
    placed = place(prediction, queues, policy="cheapest", prices={"xeon-4t": 3.0})
    costs = {option.name: option.cost for option in placed.options}
    assert costs["a"] == pytest.approx(prediction.seconds["xeon-4t"] * 3.0 / 3600)
    assert costs["b"] == pytest.approx(prediction.seconds["xeon-16t"] * 9.0 / 3600)
    assert placed.choice == min(costs, key=lambda name: costs[name] or 0.0)


def test_a_campaign_is_followed_from_its_log(tmp_path: Path) -> None:
    spec = tmp_path / "spec.toml"
    path = tmp_path / "campaign" / log.TIMES
    path.parent.mkdir()
    (tmp_path / "program").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "program").chmod(0o755)
    (tmp_path / "inputs.toml").write_text('[a]\ninputs = ["1", "2"]\n', encoding="utf-8")
    spec.write_text(
        'inputs = ["inputs.toml"]\nvisits = 2\n[platforms.p]\nprogram = "program"\nthreads = 1\n', encoding="utf-8"
    )
    log.add(path, {"round": "2026-01-01T00:00:00.000Z-aa", "platforms": ["p"]})
    campaign = Campaign.parse(f"night={path.parent},{spec}")
    about = {"platform": "p", "round": "2026-01-01T00:00:00.000Z-aa", "workload": "a"}
    log.add(path, {**about, "input": "1", "started": "2026-01-01T00:00:00+00:00", "seconds": [1.0, 3.0]})
    for seconds in (2.0, 3.0):
        log.add(path, {"platform": "p", "calibration": "a 1", "when": "before", "seconds": [seconds]})
    progress, visits = campaign.read()
    assert (progress.visits, progress.left, progress.failed) == (1, 3, 0) and visits[0].seconds == 2.0
    assert progress.platforms[0].calibration == (1.0, 1.5) and progress.seconds_left is None
    log.add(path, {**about, "input": "2", "started": "2026-01-01T00:00:10+00:00", "error": "timeout"})
    progress, visits = campaign.read()
    assert (progress.visits, progress.left, progress.failed) == (2, 2, 1) and visits[1].error == "timeout"
    assert progress.seconds_left == pytest.approx(20.0)


def test_a_campaign_on_a_site_is_followed_without_its_spec(tmp_path: Path) -> None:
    log.add(tmp_path / log.TIMES, {"round": "2026-01-01T00:00:00.000Z-aa", "platforms": ["p", "q"]})
    campaign = Campaign.parse(f"night={tmp_path}")
    assert campaign.read()[0].left is None
    own = SitePlatformProgress("p", total=9, done=2, failed=1, running=2, seconds_left=30.0, waits="Resources")
    other = SitePlatformProgress("q", total=4, done=4, seconds_left=0.0)
    SiteProgress((own, other), 1.0, unreachable="no answer.").write(tmp_path)
    progress, _ = campaign.read()
    assert (progress.left, progress.seconds_left, progress.unreachable) == (6, 30.0, "no answer.")
    assert [(own.running, own.pending, own.waits) for own in progress.platforms] == [(2, 4, "Resources"), (0, 0, "")]


@pytest.mark.parametrize("text", ["", "=x", "a b=x", "../x=y", "n="])
def test_a_campaign_needs_a_plain_name_and_a_folder(text: str) -> None:
    with pytest.raises(SettingsError, match="campaign: found"):
        Campaign.parse(text)


def test_latencies_fall_into_their_buckets() -> None:
    metrics = Metrics(["predict"], workers=2)
    for worker, seconds in ((0, 0.0001), (1, 0.0015), (1, 99.0)):
        metrics.worker = worker
        metrics.observe("predict", 200, seconds)
    text = metrics.text({"m": "f"})
    counts = [line.rpartition(" ")[2] for line in text.splitlines() if "_bucket" in line]
    assert counts == ["1", "1", *["2"] * (len(BUCKETS) - 2), "3"]
    assert 'crossperf_model_info{model="m",fingerprint="f"} 1' in text and 'status="200"} 3' in text
