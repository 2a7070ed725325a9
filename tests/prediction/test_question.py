"""Questions: new runs in the columns of a model, and what it has to do without."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from crossperf import model
from crossperf.dataset import Dataset
from crossperf.datasets import toy
from crossperf.errors import PredictError
from crossperf.model import TrainedModel
from crossperf.prediction.answer import Question, ask, measure
from crossperf.records import Run
from crossperf.runs.table import RunsTable


@pytest.fixture(scope="module")
def trained(toy_data: Dataset) -> TrainedModel:
    return model.train(toy_data, "ridge")


def test_the_runs_of_training_are_the_features_of_training(
    trained: TrainedModel, toy_table: RunsTable, toy_data: Dataset
) -> None:
    question = ask(trained, toy_table)
    assert question.notes == ()
    assert question.features.columns == trained.columns
    np.testing.assert_array_equal(question.features.values_nf, toy_data.X.values_nf)
    np.testing.assert_array_equal(question.features.source_n, toy_data.source_n)


def test_a_few_records_are_the_same_question_as_their_table(trained: TrainedModel) -> None:
    table = toy.make_table(apps=2, inputs=2, repeats=2, seed=9)
    few, many = ask(trained, table.runs()), ask(trained, table.frame)
    np.testing.assert_allclose(few.features.values_nf, many.features.values_nf, rtol=1e-15)
    assert few.measured.workload_of_n == many.measured.workload_of_n


def test_some_cells_alone(trained: TrainedModel, toy_table: RunsTable) -> None:
    question = ask(trained, toy_table)
    part = question.take(range(3))
    assert isinstance(part, Question)
    assert len(part) == len(part.features) == 3
    np.testing.assert_array_equal(part.features.values_nf, question.features.values_nf[:3])


def test_a_counter_that_a_platform_never_had_is_no_reason_for_a_note(trained: TrainedModel) -> None:
    """No run on a CPU had warp blocks in training, so the model does not miss them."""
    run = toy.make_runs(apps=1, inputs=1, repeats=1, seed=9)[0]
    assert run.platform == "cpu-a"
    counters = {name: value for name, value in run.counters.items() if value is not None}
    assert set(trained.counters) - set(counters)
    assert ask(trained, Run("a", "1", "cpu-a", 1.0, counters=counters)).notes == ()
    del counters["instructions"]
    (note,) = ask(trained, Run("a", "1", "cpu-a", 1.0, counters=counters)).notes
    assert "(instructions)" in note


def test_a_platform_that_was_added_can_be_predicted_but_not_predicted_from() -> None:
    from crossperf.adaptation.adapt import adapt

    frame = toy.make_table(apps=4, inputs=2, platforms=5, repeats=1, seed=1).frame
    on_new = pl.col("platform") == "cpu-4"
    grown = adapt(model.train(frame.filter(~on_new), "ridge"), frame.filter(on_new)).model
    with pytest.raises(PredictError, match="'cpu-4', which was added with 'crossperf adapt'") as caught:
        ask(grown, frame.filter(on_new))
    assert caught.value.facts["platforms"] == ["cpu-4"]


def test_runs_that_all_failed_leave_nothing_to_ask(trained: TrainedModel) -> None:
    with pytest.raises(PredictError, match="found no successful run"):
        ask(trained, [Run("a", "1", "cpu-a", None, status="oom", counters={"instructions": 1.0})])


def test_what_is_measured_already_is_taken_as_it_is() -> None:
    measured = measure([Run("a", "1", "p", 1.0, counters={"x": 1.0})])
    assert measure(measured) is measured
