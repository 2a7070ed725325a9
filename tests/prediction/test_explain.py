from __future__ import annotations

import json
from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from crossperf import model
from crossperf.dataset import Dataset
from crossperf.datasets import toy
from crossperf.errors import PredictError
from crossperf.model.peers import Ridge
from crossperf.model.store import Saved
from crossperf.prediction.answer import predict
from crossperf.prediction.explain import Explanation, explain
from crossperf.report import terminal as show
from crossperf.runs.table import RunsTable

Floats = NDArray[np.float64]


class Remembering(Ridge):
    """A ridge that keeps what an explanation needs; its latent space is its encoded features."""

    name: ClassVar[str] = "remembering"

    def remember(self, data: Dataset) -> Remembering:
        self.background_bf_ = data.features_nf[::3]
        self.training_latent_nk_ = self.latent(data.features_nf)
        self.training_workload_n_ = data.workload_n
        return self

    def latent(self, features_nf: Floats) -> Floats:
        return self._encode(features_nf)


@pytest.fixture(scope="module")
def saved(toy_data: Dataset) -> Saved:
    return Saved.of(Remembering().learn(toy_data).remember(toy_data), toy_data)


@pytest.fixture(scope="module")
def new_runs() -> RunsTable:
    return toy.make_table(apps=2, inputs=2, repeats=1, seed=9)


def test_the_factors_lead_from_known_runs_to_the_prediction(saved: Saved, new_runs: RunsTable) -> None:
    predictions = predict(saved, new_runs).predictions
    answer = explain(saved, new_runs, samples=64)
    assert answer.notes == ()
    assert len(answer.explanations) == len(predictions) == 16
    for one, prediction in zip(answer.explanations, predictions, strict=True):
        assert (one.app, one.input, one.source) == (prediction.app, prediction.input, prediction.source)
        assert one.attribution is not None
        factors = np.prod([push.factor for push in one.attribution.pushes])
        assert np.exp(one.attribution.base) * factors == pytest.approx(prediction.relative_time[one.platform])


def test_the_fastest_other_platform_is_explained_unless_one_is_named(saved: Saved, new_runs: RunsTable) -> None:
    predictions = predict(saved, new_runs).predictions
    assert any(prediction.fastest == prediction.source for prediction in predictions)
    for one, prediction in zip(explain(saved, new_runs, samples=4).explanations, predictions, strict=True):
        slower = [p for p, time in prediction.relative_time.items() if time < prediction.relative_time[one.platform]]
        assert one.platform != one.source
        assert set(slower) <= {one.source}
    assert {one.platform for one in explain(saved, new_runs, "gpu-a", samples=4).explanations} == {"gpu-a"}


def test_a_known_workload_is_its_own_nearest_with_its_measured_times(
    saved: Saved, toy_table: RunsTable, toy_data: Dataset
) -> None:
    for i, one in enumerate(explain(saved, toy_table, samples=4).explanations):
        near = one.neighbours[0]
        workload = toy_data.workload_n[i]
        assert (near.app, near.input) == (one.app, one.input) == toy_data.workloads[workload]
        assert near.distance == pytest.approx(0.0, abs=1e-9)
        time_p = np.exp(toy_data.log_time_wp[workload])
        own_s = time_p[toy_data.platforms.index(one.source)]
        assert list(near.relative_time.values()) == pytest.approx(list(time_p / own_s))
        assert len({(n.app, n.input) for n in one.neighbours}) == len(one.neighbours) == 5


def test_the_answer_for_a_cell_does_not_depend_on_the_rest_of_its_table(saved: Saved, new_runs: RunsTable) -> None:
    whole = explain(saved, new_runs, samples=8).explanations
    assert explain(saved, new_runs, samples=8, limit=3).explanations == whole[:3]
    last = [run for run in new_runs.runs() if (run.app, run.input, run.platform) == _names(whole[-1])]
    assert explain(saved, last, samples=8).explanations == whole[-1:]


def _names(one: Explanation) -> tuple[str, str, str]:
    return one.app, one.input, one.source


def test_a_model_that_keeps_nothing_says_so(toy_data: Dataset, new_runs: RunsTable) -> None:
    plain = Saved.of(model.make("ridge").learn(toy_data), toy_data)
    answer = explain(plain, new_runs)
    assert all(one.attribution is None and one.neighbours == () for one in answer.explanations)
    assert [note.split(", so ")[0] for note in answer.notes] == [
        "The model 'ridge' keeps no known runs to compare with",
        "The model 'ridge' keeps no latent space of known workloads",
    ]


def test_a_source_without_known_runs_is_noted(toy_data: Dataset, new_runs: RunsTable) -> None:
    remembering = Remembering().learn(toy_data).remember(toy_data)
    remembering.background_bf_ = toy_data.features_nf[toy_data.source_n != 0]
    answer = explain(Saved.of(remembering, toy_data), new_runs, samples=8)
    assert answer.notes == (
        "The model keeps no known runs on cpu-a: runs from there are compared with those on all others.",
    )


def test_an_unknown_platform_is_refused_with_a_suggestion(saved: Saved, new_runs: RunsTable) -> None:
    with pytest.raises(PredictError, match=r"'gpu_a' \(did you mean 'gpu-a'\?\), expected one of the model's"):
        explain(saved, new_runs, "gpu_a")


def test_an_explanation_turns_to_json(saved: Saved, new_runs: RunsTable) -> None:
    one = explain(saved, new_runs, samples=8, limit=1).explanations[0]
    facts = json.loads(json.dumps(one.to_json(), allow_nan=False))
    assert one.attribution is not None
    assert facts["attribution"]["pushes"][0]["feature"] == one.attribution.pushes[0].feature
    assert [near["app"] for near in facts["neighbours"]] == [near.app for near in one.neighbours]


def test_an_explanation_is_shown_with_its_factors_and_neighbours(
    saved: Saved, new_runs: RunsTable, capsys: pytest.CaptureFixture[str]
) -> None:
    one = explain(saved, new_runs, samples=8, limit=1).explanations[0]
    show.explanation(one)
    shown = capsys.readouterr().out
    assert one.attribution is not None
    strongest = one.attribution.pushes[0]
    (line,) = (line for line in shown.splitlines() if f" {strongest.feature} " in line)
    factor = max(strongest.factor, 1.0 / strongest.factor)
    assert f"x{factor:.2f} {'slower' if strongest.contribution > 0 else 'faster'}" in line
    assert f"{np.exp(one.attribution.prediction):,.2f}x is predicted on {one.platform}" in shown
    for near in one.neighbours:
        assert any(near.app in line and f"{near.relative_time['gpu-b']:.2f}x" in line for line in shown.splitlines())
    show.explanation(Explanation("a", "1", "p", "q", None))
    assert capsys.readouterr().out == ""
