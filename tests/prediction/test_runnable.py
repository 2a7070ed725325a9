"""Predictions offer a platform only where there is a version of the program for it."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from crossperf.datasets import toy
from crossperf.errors import PredictError
from crossperf.model import load, train
from crossperf.model.trained import TrainedModel
from crossperf.records import CANNOT_RUN, NO_VERSION_KNOWN, Prediction, Run
from tests.limited import CPU_ONLY, limited_runs


@pytest.fixture(scope="module")
def model() -> TrainedModel:
    return train(limited_runs(), "ridge")


@pytest.fixture(scope="module")
def run() -> Run:
    """A run on a CPU that does not tell where else it can run."""
    return replace(limited_runs()[0], runnable=None)


def _one(model: TrainedModel, run: Run, **how: object) -> Prediction:
    return model.predict(run, **how).predictions[0]  # type: ignore[arg-type]


def test_a_run_that_tells_nothing_is_offered_the_class_it_ran_on(model: TrainedModel, run: Run) -> None:
    prediction = _one(model, run)
    assert prediction.offered == ("cpu-a", "cpu-b")
    assert prediction.cannot == {"gpu-a": NO_VERSION_KNOWN, "gpu-b": NO_VERSION_KNOWN}
    assert math.isnan(prediction.relative_time["gpu-a"])
    assert math.isnan(prediction.seconds["gpu-a"])


def test_a_model_that_knows_of_no_limits_offers_everything(run: Run) -> None:
    everywhere = [replace(own, runnable="cpu gpu") for own in toy.make_runs(apps=6, inputs=3, seed=1)]
    for table in (everywhere, [replace(own, runnable=None) for own in everywhere]):
        assert _one(train(table, "ridge"), run).cannot == {}


def test_runnable_of_the_run_counts(model: TrainedModel, run: Run) -> None:
    assert _one(model, replace(run, runnable="cpu")).cannot == {"gpu-a": CANNOT_RUN, "gpu-b": CANNOT_RUN}
    assert _one(model, replace(run, runnable="cpu gpu-b")).cannot == {"gpu-a": CANNOT_RUN}
    assert _one(model, replace(run, runnable="cpu gpu")).cannot == {}


def test_can_overrides_runnable_of_the_run(model: TrainedModel, run: Run) -> None:
    told = replace(run, runnable="cpu")
    assert _one(model, told, can=("cpu", "gpu")).cannot == {}
    assert _one(model, told, can=("gpu-a",)).offered == ("cpu-a", "cpu-b", "gpu-a")


def test_the_class_that_the_run_used_is_understood_unless_platforms_of_it_are_named(
    model: TrainedModel, run: Run
) -> None:
    assert _one(model, run, can=("gpu",)).cannot == {}
    assert _one(model, run, can=("cpu-a", "gpu-a")).offered == ("cpu-a", "gpu-a")
    assert _one(model, run, can=("cpu-b",)).offered == ("cpu-a", "cpu-b")  # it ran on cpu-a


def test_times_of_offered_platforms_do_not_depend_on_the_others(model: TrainedModel, run: Run) -> None:
    some, everywhere = _one(model, run), _one(model, run, can=("gpu",))
    assert all(some.relative_time[name] == everywhere.relative_time[name] for name in some.offered)


def test_a_platform_that_is_not_offered_is_never_the_fastest() -> None:
    times = {"cpu-a": 1.0, "gpu-a": math.nan, "cpu-b": 0.5}
    prediction = Prediction("a", "1", "cpu-a", "source", times, cannot={"gpu-a": CANNOT_RUN})
    assert prediction.fastest == "cpu-b"


def test_chances_are_shared_among_the_platforms_that_are_offered(run: Run) -> None:
    model = train(limited_runs(), trees=8, members=3, width=16, steps=20, vae_steps=20)
    prediction = _one(model, run)
    assert prediction.chance_fastest["gpu-a"] == prediction.chance_fastest["gpu-b"] == 0.0
    assert sum(prediction.chance_fastest.values()) == pytest.approx(1.0)
    assert math.isnan(prediction.low["gpu-a"])
    assert math.isnan(prediction.chance_faster["cpu-a"]["gpu-a"])
    fastest = _one(model, run, relative_to="fastest")
    assert fastest.relative_time[fastest.fastest] == 1.0


def test_a_prediction_comes_back_from_json_as_it_was(model: TrainedModel, run: Run) -> None:
    prediction = _one(model, run)
    text = json.dumps(prediction.to_json(), allow_nan=False)
    assert Prediction.from_json(json.loads(text)) == prediction
    assert json.loads(text)["relative_time"]["gpu-a"] is None
    assert json.loads(text)["cannot"]["gpu-a"] == "no version known"


def test_a_saved_model_remembers_where_its_workloads_can_run(model: TrainedModel, tmp_path: object) -> None:
    model.save(f"{tmp_path}/model")
    known = load(f"{tmp_path}/model")
    assert known.knows_of_limits
    assert known.cells.runnable_w == model.cells.runnable_w
    apps = {
        app for (app, _), runnable in zip(known.workloads, known.cells.runnable_w, strict=True) if runnable == "cpu"
    }
    assert apps == set(CPU_ONLY)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"can": ("gpuu",)}, "can: found 'gpuu' (did you mean 'gpu'?)"),
        ({"can": ()}, "can: found nothing"),
        ({"relative_to": "gpu-a"}, "relative_to: found 'gpu-a' for (app0, n0), which has no version for it"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence(
    model: TrainedModel, run: Run, how: dict[str, object], said: str
) -> None:
    with pytest.raises(PredictError) as caught:
        _one(model, run, **how)
    assert said in str(caught.value)
