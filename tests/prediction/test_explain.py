"""Explanations: contributions that add up, compared with runs of the same platform, also where one was added."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

from crossperf import model
from crossperf.adaptation.adapt import adapt
from crossperf.arrays import Floats, Integers
from crossperf.dataset import Dataset, Features
from crossperf.datasets import toy
from crossperf.errors import PredictError
from crossperf.model import TrainedModel
from crossperf.model.fitted.model import FittedModel, KnownRuns
from crossperf.model.fitted.peers import Linear
from crossperf.model.peers import Ridge
from crossperf.prediction.answer import predict
from crossperf.prediction.explain import Explanation, explain
from crossperf.runs.table import RunsTable


@dataclass(frozen=True)
class Remembering(Linear):
    """A ridge that keeps what an explanation needs; its latent space is its encoded features."""

    kind: ClassVar[str] = "remembering"
    background: Features
    known_latent_bk: Floats
    known_workload_b: Integers

    def latent(self, features: Features) -> Floats:
        return np.nan_to_num(self.encoder(features.values_nf))


class PlainRidge(Ridge):
    """A ridge on the features themselves, times relative to the source as its target."""

    sees_derived: ClassVar[bool] = False


def remembering(data: Dataset, background: Features | None = None) -> TrainedModel:
    ridge = PlainRidge(target="source").learn(data)
    part = ridge.fitted_.part
    latent_nk = np.nan_to_num(part.encoder(data.X.values_nf))
    known = data.X[::3] if background is None else background
    kept = Remembering(part.encoder, part.weights_pf, part.bias_p, known, latent_nk, data.workload_n)
    assert isinstance(kept, KnownRuns)
    ridge.fitted_ = FittedModel(ridge.fitted_.columns, kept, ridge.fitted_.limits)
    return TrainedModel.of(ridge, data)


@pytest.fixture(scope="module")
def trained(toy_data: Dataset) -> TrainedModel:
    return remembering(toy_data)


@pytest.fixture(scope="module")
def new_runs() -> RunsTable:
    return toy.make_table(apps=2, inputs=2, repeats=1, seed=9)


def test_the_factors_lead_from_known_runs_to_the_prediction(trained: TrainedModel, new_runs: RunsTable) -> None:
    predictions = predict(trained, new_runs).predictions
    answer = explain(trained, new_runs, samples=64)
    assert answer.notes == ()
    assert len(answer.explanations) == len(predictions) == 16
    for explained, prediction in zip(answer.explanations, predictions, strict=True):
        assert _names(explained) == (prediction.app, prediction.input, prediction.source)
        assert explained.attribution is not None
        factors = np.prod([part.factor for part in explained.attribution.contributions])
        expected = prediction.relative_time[explained.platform]
        assert np.exp(explained.attribution.base) * factors == pytest.approx(expected)


def test_the_fastest_other_platform_is_explained_unless_it_is_named(trained: TrainedModel, new_runs: RunsTable) -> None:
    predictions = predict(trained, new_runs).predictions
    assert any(prediction.fastest == prediction.source for prediction in predictions)
    for explained, prediction in zip(explain(trained, new_runs, samples=4).explanations, predictions, strict=True):
        time = prediction.relative_time
        faster = [platform for platform in time if time[platform] < time[explained.platform]]
        assert explained.platform != explained.source
        assert set(faster) <= {explained.source}
    named = explain(trained, new_runs, "gpu-a", samples=4).explanations
    assert {explained.platform for explained in named} == {"gpu-a"}


def test_a_known_workload_is_its_own_nearest_with_its_measured_times(
    trained: TrainedModel, toy_table: RunsTable, toy_data: Dataset
) -> None:
    for i, explained in enumerate(explain(trained, toy_table, samples=4).explanations):
        near = explained.neighbours[0]
        workload = toy_data.workload_n[i]
        assert (near.app, near.input) == (explained.app, explained.input) == toy_data.workloads[workload]
        assert near.distance == pytest.approx(0.0, abs=1e-9)
        time_p = np.exp(toy_data.log_time_wp[workload])
        own_s = time_p[toy_data.platforms.index(explained.source)]
        assert list(near.relative_time.values()) == pytest.approx(list(time_p / own_s))
        assert len({(n.app, n.input) for n in explained.neighbours}) == len(explained.neighbours) == 5


def test_the_answer_for_a_cell_does_not_depend_on_the_rest_of_its_table(
    trained: TrainedModel, new_runs: RunsTable
) -> None:
    whole = explain(trained, new_runs, samples=8).explanations
    assert explain(trained, new_runs, samples=8, limit=3).explanations == whole[:3]
    last = [run for run in new_runs.runs() if (run.app, run.input, run.platform) == _names(whole[-1])]
    assert explain(trained, last, samples=8).explanations == whole[-1:]


def _names(explained: Explanation) -> tuple[str, str, str]:
    return explained.app, explained.input, explained.source


def test_a_model_that_keeps_nothing_says_so(toy_data: Dataset, new_runs: RunsTable) -> None:
    answer = explain(model.train(toy_data, "ridge"), new_runs)
    assert len(answer.explanations) == 16
    assert all(part.attribution is None and part.neighbours == () for part in answer.explanations)
    (note,) = answer.notes
    assert note.startswith("The model 'ridge' keeps no known runs to compare with")
    assert "neither the contributions of counters nor the nearest workloads" in note


def test_a_source_without_known_runs_is_noted(toy_data: Dataset, new_runs: RunsTable) -> None:
    forgetful = remembering(toy_data, toy_data.X[toy_data.source_n != 0])
    answer = explain(forgetful, new_runs, samples=8)
    assert answer.notes == (
        "The model keeps no known runs on cpu-a: runs measured on it are compared with those on all others.",
    )


def test_an_unknown_platform_is_refused_with_a_suggestion(trained: TrainedModel, new_runs: RunsTable) -> None:
    with pytest.raises(PredictError, match=r"^platform: found 'gpu_a' \(did you mean 'gpu-a'\?\), expected one of"):
        explain(trained, new_runs, "gpu_a")


def test_an_explanation_turns_to_json(trained: TrainedModel, new_runs: RunsTable) -> None:
    explained = explain(trained, new_runs, samples=8, limit=1).explanations[0]
    facts = json.loads(json.dumps(explained.to_json(), allow_nan=False))
    assert explained.attribution is not None
    strongest = explained.attribution.contributions[0]
    assert facts["attribution"]["contributions"][0]["feature"] == strongest.feature
    assert [near["app"] for near in facts["neighbours"]] == [near.app for near in explained.neighbours]


ADDED = ("cpu-4", "cpu-5")


@pytest.fixture(scope="module")
def grown() -> list[TrainedModel]:
    """A default model of four platforms, the same with one platform added, and with two."""
    pytest.importorskip("torch")
    frame = toy.make_table(apps=6, inputs=3, platforms=6, repeats=1, seed=1).frame
    quick = {"trees": 8, "members": 3, "width": 16, "steps": 30, "latent_dim": 3, "vae_steps": 20, "n_jobs": 1}
    models = [model.train(frame.filter(~pl.col("platform").is_in(ADDED)), **quick)]
    for name in ADDED:
        few = frame.filter((pl.col("platform") == name) & pl.col("app").is_in(["app0", "app2", "app4"]))
        models.append(adapt(models[-1], few).model)
    return models


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_run_is_compared_with_runs_of_its_own_platform_however_many_were_added(
    grown: list[TrainedModel], new_runs: RunsTable, count: int
) -> None:
    """The base of an attribution is the mean prediction of the known runs on the run's own platform."""
    trained = grown[count]
    part = trained.fitted.part
    assert isinstance(part, KnownRuns)
    background = part.background
    predicted_np = trained.fitted.predict(background)
    answer = explain(trained, new_runs, trained.platforms[-1], samples=4 * len(background))
    assert answer.notes == ()
    for explained in answer.explanations:
        attribution, source = explained.attribution, trained.platforms.index(explained.source)
        assert attribution is not None
        same_b = background.source_n == source
        assert attribution.background == same_b.sum()
        expected = (predicted_np[same_b, -1] - predicted_np[same_b, source]).mean()
        assert attribution.base == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_every_counter_and_the_runtime_contribute_and_no_source_does(
    grown: list[TrainedModel], new_runs: RunsTable, count: int
) -> None:
    trained = grown[count]
    predictions = predict(trained, new_runs).predictions
    for explained, prediction in zip(explain(trained, new_runs, samples=16).explanations, predictions, strict=True):
        attribution = explained.attribution
        assert attribution is not None
        assert {part.feature for part in attribution.contributions} == {*trained.counters, "runtime_s"}
        total = sum(part.contribution for part in attribution.contributions)
        assert total == pytest.approx(attribution.prediction - attribution.base, abs=1e-9)
        expected = prediction.relative_time[explained.platform]
        assert np.exp(attribution.prediction) == pytest.approx(expected, rel=1e-3)
        (runtime,) = (part for part in attribution.contributions if part.feature == "runtime_s")
        assert runtime.value == pytest.approx(prediction.seconds[prediction.source])


def test_an_added_platform_has_no_times_of_workloads_that_were_not_measured_there(
    grown: list[TrainedModel], new_runs: RunsTable
) -> None:
    trained = grown[2]
    measured = dict(zip(trained.workloads, trained.cells.log_time_wp, strict=True))
    for explained in explain(trained, new_runs, ADDED[0], samples=4, neighbours=20).explanations:
        assert explained.neighbours
        for near in explained.neighbours:
            times = measured[near.app, near.input]
            assert [near.relative_time[name] is None for name in trained.platforms] == np.isnan(times).tolist()


def test_a_model_without_known_runs_keeps_none_when_a_platform_is_added(new_runs: RunsTable) -> None:
    frame = toy.make_table(apps=6, inputs=2, platforms=5, repeats=1, seed=1).frame
    ridge = model.train(frame.filter(pl.col("platform") != "cpu-4"), "ridge")
    adapted = adapt(ridge, frame.filter(pl.col("platform") == "cpu-4")).model
    assert not isinstance(adapted.fitted.part, KnownRuns)
    assert not adapted.fitted.forecasts
    assert explain(adapted, new_runs).notes[0].startswith("The model 'adapted' keeps no known runs")
