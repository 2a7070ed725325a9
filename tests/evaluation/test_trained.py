"""A trained model on a table of runs: scored where it can be, and never on what it was trained on."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from crossperf import dataset, model
from crossperf.datasets import toy
from crossperf.errors import DatasetError, ModelFolderError, PredictError
from crossperf.evaluation import metrics
from crossperf.evaluation.metrics import ConstantAnswer
from crossperf.evaluation.trained import assess
from crossperf.model import TrainedModel
from crossperf.runs.table import RunsTable, from_frame


@pytest.fixture(scope="module")
def table() -> RunsTable:
    return toy.make_table(apps=6, inputs=4, seed=3)


@pytest.fixture(scope="module")
def saved(table: RunsTable) -> TrainedModel:
    data = dataset.build(from_frame(table.frame.filter(pl.col("app") != "app5")))
    return TrainedModel.of(model.Ridge().learn(data), data)


def test_scores_are_of_the_workloads_that_were_not_trained_on(table: RunsTable, saved: TrainedModel) -> None:
    result = assess(saved, table)
    new = dataset.build(from_frame(table.frame.filter(pl.col("app") == "app5")))
    expected = metrics.score(new.log_relative_time_np, saved.fitted.predict(new.features), new.source_n)
    assert result.scores["ridge"].typical_factor == pytest.approx(expected.typical_factor)
    assert result.held_out is not None
    assert result.held_out.held_apps == ("app5",)
    assert len(result.held_out.apps) == 6  # the times of the whole table stay, for the figures of the data
    assert result.caveats[0] == "20 workloads that the model was trained on were left out of the scores."


def test_constant_answers_and_noise_are_of_the_workloads_that_are_scored(table: RunsTable, saved: TrainedModel) -> None:
    result = assess(saved, table)
    alone = assess(saved, from_frame(table.frame.filter(pl.col("app") == "app5")))
    assert (result.constant, result.scores) == (alone.constant, alone.scores)
    assert result.constant != ConstantAnswer.of(dataset.build(table))


def test_a_table_it_was_trained_on_gives_no_scores_and_says_why(table: RunsTable, saved: TrainedModel) -> None:
    result = assess(saved, from_frame(table.frame.filter(pl.col("app") != "app5")))
    assert len(result.scores) == 0
    assert result.held_out is not None
    assert result.held_out.predictions == {}
    assert "'crossperf evaluate' does" in result.caveats[0]


def test_without_a_table_the_training_runs_are_shown_and_not_scored(saved: TrainedModel) -> None:
    result = assess(saved)
    assert len(result.scores) == 0
    assert result.held_out is not None
    np.testing.assert_array_equal(result.held_out.log_time_wp, saved.cells.log_time_wp)
    assert result.constant.fastest in saved.platforms
    assert not any("repeats" in caveat for caveat in result.caveats)  # there were some: the model does not keep them


def test_a_new_input_of_a_known_application_is_a_caveat(table: RunsTable, saved: TrainedModel) -> None:
    renamed = table.frame.with_columns((pl.lit("other-") + pl.col("input")).alias("input"))
    assert any(
        "belong to applications it was trained on" in caveat for caveat in assess(saved, from_frame(renamed)).caveats
    )


def test_runs_on_some_of_the_platforms_are_scored_on_those(table: RunsTable, saved: TrainedModel) -> None:
    some = table.frame.filter((pl.col("app") == "app5") & pl.col("platform").is_in(["cpu-b", "gpu-b"]))
    shuffled = some.select(*(name for name in some.columns[::-1]))
    result = assess(saved, from_frame(shuffled))
    assert result.held_out is not None
    assert result.held_out.platforms == saved.platforms
    measured = {saved.platforms[p] for p in np.flatnonzero(~np.isnan(result.held_out.log_time_wp).all(axis=0))}
    assert measured == {"cpu-b", "gpu-b"}
    assert (result.scores["ridge"].typical_factor or 0.0) >= 1.0


def test_a_model_with_a_latent_space_has_a_map_with_the_new_cells_marked(table: RunsTable) -> None:
    data = dataset.build(from_frame(table.frame.filter(pl.col("app") != "app5")))
    made = model.make("crossperf", trees=4, members=3, steps=20, vae_steps=20)
    result = assess(TrainedModel.of(made.learn(data), data), table)
    assert result.latent is not None
    assert {result.latent.workloads[w][0] for w in result.latent.workload_n[result.latent.unseen_n]} == {"app5"}
    assert result.scores["crossperf"].coverage is not None


def test_an_unknown_platform_and_a_single_one_are_one_sentence_each(table: RunsTable, saved: TrainedModel) -> None:
    renamed = from_frame(table.frame.with_columns(pl.col("platform").str.replace("gpu-b", "gpu-bb")))
    with pytest.raises(PredictError, match="'gpu-bb' is not known to the model"):
        assess(saved, renamed)
    with pytest.raises(DatasetError, match="one platform only"):
        assess(saved, from_frame(table.frame.filter(pl.col("platform") == "cpu-a")))


def test_an_old_model_without_its_cells_asks_for_a_table(saved: TrainedModel) -> None:
    with pytest.raises(ModelFolderError, match="Name a TABLE"):
        assess(replace(saved, features=saved.features[:0]))
