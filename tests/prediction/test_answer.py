"""Answers: matched by name, relative to any reference, with intervals, chances and familiarity."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from crossperf import dataset, model
from crossperf.dataset import Dataset
from crossperf.datasets import toy
from crossperf.errors import PredictError
from crossperf.model import TrainedModel
from crossperf.prediction.answer import Answer, predict
from crossperf.prediction.explain import explain
from crossperf.records import Prediction, Run
from crossperf.runs.table import RunsTable, from_frame

COUNTER = "counter."


@pytest.fixture(scope="module")
def trained(toy_data: Dataset) -> TrainedModel:
    return TrainedModel.of(model.make("ridge").learn(toy_data), toy_data)


@pytest.fixture(scope="module")
def new_runs() -> RunsTable:
    """Runs of applications that the model has not seen."""
    return toy.make_table(apps=3, inputs=2, repeats=1, seed=9)


def relative(predictions: tuple[Prediction, ...]) -> list[list[float]]:
    return [list(prediction.relative_time.values()) for prediction in predictions]


def test_the_answer_is_what_the_model_predicts_from_the_features(trained: TrainedModel, toy_data: Dataset) -> None:
    log_np = trained.fitted.predict(toy_data.X)
    expected_np = np.exp(log_np - log_np[np.arange(len(toy_data)), toy_data.source_n][:, None])
    answer = predict(trained, toy.make_table(apps=4, inputs=3, repeats=3, seed=1))
    assert answer.notes == ()
    assert [(p.app, p.input) for p in answer.predictions] == [toy_data.workloads[w] for w in toy_data.workload_n]
    np.testing.assert_allclose(relative(answer.predictions), expected_np, rtol=1e-12)


def test_counters_are_matched_by_name_whatever_their_order(trained: TrainedModel, new_runs: RunsTable) -> None:
    frame = new_runs.frame
    turned = frame.select(reversed(frame.columns))
    assert predict(trained, turned).predictions == predict(trained, new_runs).predictions


def test_an_extra_counter_is_named_and_changes_nothing(trained: TrainedModel, new_runs: RunsTable) -> None:
    extra = new_runs.frame.with_columns(pl.lit(5.0).alias("counter.aaa"))
    answer = predict(trained, extra)
    assert answer.predictions == predict(trained, new_runs).predictions
    assert answer.notes == ("1 counters the model does not know were not used (aaa).",)


def test_a_missing_counter_counts_as_not_measured_and_is_named(trained: TrainedModel, new_runs: RunsTable) -> None:
    name = "counter.instructions"
    absent = predict(trained, new_runs.frame.drop(name))
    empty = predict(trained, new_runs.frame.with_columns(pl.lit(None, pl.Float64).alias(name)))
    assert absent.predictions == empty.predictions
    assert relative(absent.predictions) != relative(predict(trained, new_runs).predictions)
    (note,) = absent.notes
    assert "lacks 1 of the 17 counters it was trained on (instructions)" in note


def test_a_table_with_none_of_the_counters_is_refused(trained: TrainedModel, new_runs: RunsTable) -> None:
    stripped = new_runs.frame.select(~pl.selectors.starts_with(COUNTER), pl.lit(1.0).alias("counter.instruction"))
    with pytest.raises(PredictError, match="none of the 17 counters") as caught:
        predict(trained, stripped)
    assert sorted(caught.value.facts["missing"]) == sorted(trained.counters)


def test_a_model_without_counters_answers_from_runtime_and_source_alone() -> None:
    runs = [Run("a", str(i), p, 1.0 + i, counters={"x": None}) for i in range(3) for p in ("p", "q")]
    data = dataset.build(runs)
    bare = TrainedModel.of(model.make("median").learn(data), data)
    assert predict(bare, runs[:1]).predictions[0].relative_time == {"p": 1.0, "q": 1.0}


def test_an_unknown_platform_is_refused_with_a_suggestion(trained: TrainedModel, new_runs: RunsTable) -> None:
    renamed = new_runs.frame.with_columns(pl.col("platform").str.replace("cpu-a", "cpu_a"))
    with pytest.raises(PredictError, match=r"platform 'cpu_a' .*\(did you mean 'cpu-a'\?\)") as caught:
        predict(trained, renamed)
    assert caught.value.facts["platforms"] == ["cpu_a"]


def test_an_unknown_reference_is_refused_with_a_suggestion(trained: TrainedModel, new_runs: RunsTable) -> None:
    with pytest.raises(
        PredictError, match=r"'gpu_b' \(did you mean 'gpu-b'\?\), expected 'source', 'fastest', 'slowest' or"
    ):
        predict(trained, new_runs, relative_to="gpu_b")


def test_times_relative_to_the_slowest_are_at_most_one(trained: TrainedModel, new_runs: RunsTable) -> None:
    for own, other in zip(
        predict(trained, new_runs, relative_to="slowest").predictions,
        predict(trained, new_runs).predictions,
        strict=True,
    ):
        slowest = max(other.relative_time.values())
        assert own.relative_time == pytest.approx({name: t / slowest for name, t in other.relative_time.items()})
        assert max(own.relative_time.values()) == 1.0


def test_the_source_platform_is_exactly_one(trained: TrainedModel, new_runs: RunsTable) -> None:
    predictions = predict(trained, new_runs).predictions
    assert len(predictions) == 24
    assert all(prediction.relative_time[prediction.source] == 1.0 for prediction in predictions)


def test_every_reference_gives_the_same_ratios(trained: TrainedModel, new_runs: RunsTable) -> None:
    by_source = predict(trained, new_runs).predictions
    for reference in ("fastest", *trained.platforms):
        for first, other in zip(by_source, predict(trained, new_runs, relative_to=reference).predictions, strict=True):
            base = first.fastest if reference == "fastest" else reference
            assert other.relative_time[base] == 1.0
            scaled = {name: value / first.relative_time[base] for name, value in first.relative_time.items()}
            assert other.relative_time == pytest.approx(scaled)
            assert other.seconds == first.seconds
            assert other.fastest == first.fastest


def test_seconds_are_the_measured_runtime_times_the_relative_time(trained: TrainedModel, new_runs: RunsTable) -> None:
    runtime_s = {
        (row["app"], row["input"], row["platform"]): row["runtime_s"] for row in new_runs.frame.iter_rows(named=True)
    }
    for prediction in predict(trained, new_runs).predictions:
        here_s = runtime_s[prediction.app, prediction.input, prediction.source]
        assert prediction.seconds[prediction.source] == here_s
        expected = {name: here_s * value for name, value in prediction.relative_time.items()}
        assert prediction.seconds == pytest.approx(expected)


def test_a_run_without_a_runtime_gets_relative_times_and_no_seconds(trained: TrainedModel, new_runs: RunsTable) -> None:
    first_without = pl.when(pl.int_range(pl.len()) > 0).then("runtime_s").alias("runtime_s")
    first, *others = predict(trained, new_runs.frame.with_columns(first_without)).predictions
    assert first.seconds == {}
    assert all(np.isfinite(value) and value > 0 for value in first.relative_time.values())
    assert all(other.seconds for other in others)
    assert not any(p.seconds for p in predict(trained, new_runs.frame.drop("runtime_s")).predictions)


def test_failed_runs_are_left_out_with_a_note(trained: TrainedModel, new_runs: RunsTable) -> None:
    status = pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("oom")).otherwise(pl.lit("ok")).alias("status")
    answer = predict(trained, from_frame(new_runs.frame.with_columns(status), name="mine"))
    assert len(answer.predictions) == 23
    assert answer.notes == ("1 failed runs of mine were left out.",)
    with pytest.raises(PredictError, match="no successful run"):
        predict(trained, new_runs.frame.with_columns(pl.lit("oom").alias("status")))


@pytest.fixture(scope="module")
def ranged(toy_data: Dataset) -> TrainedModel:
    pytest.importorskip("torch")
    quick = {"trees": 16, "members": 4, "width": 32, "steps": 60, "vae_steps": 40, "latent_dim": 4}
    return model.train(toy_data, **quick)


@pytest.mark.parametrize("relative_to", ["source", "fastest", "gpu-a"])
def test_the_reference_has_no_interval_and_every_other_platform_has(
    ranged: TrainedModel, new_runs: RunsTable, relative_to: str
) -> None:
    for prediction in predict(ranged, new_runs, relative_to=relative_to).predictions:
        reference = {"source": prediction.source, "fastest": prediction.fastest}.get(relative_to, relative_to)
        assert prediction.low[reference] == prediction.high[reference] == prediction.relative_time[reference] == 1.0
        others = [name for name in prediction.low if name != reference]
        assert all(prediction.low[name] < prediction.high[name] for name in others)


def test_joint_intervals_are_wider_and_the_times_the_same(ranged: TrainedModel, new_runs: RunsTable) -> None:
    single, joint = (ranged.predict(new_runs, level=0.3, joint=joint).predictions for joint in (False, True))
    for one, other in zip(single, joint, strict=True):
        assert one.relative_time == other.relative_time
        assert all(other.low[name] <= one.low[name] and one.high[name] <= other.high[name] for name in one.low)
        assert any(other.high[name] > one.high[name] for name in one.high)


def test_chances_add_up_and_a_prediction_survives_json(ranged: TrainedModel, new_runs: RunsTable) -> None:
    for prediction in predict(ranged, new_runs, level=0.5).predictions:
        assert sum(prediction.chance_fastest.values()) == pytest.approx(1.0)
        assert prediction.chance_faster["cpu-a"]["gpu-a"] + prediction.chance_faster["gpu-a"]["cpu-a"] <= 1.0
        assert prediction.familiarity is not None
        assert Prediction.from_json(prediction.to_json()) == prediction


def test_a_run_unlike_any_other_is_called_so_with_the_counters_that_make_it_so(
    ranged: TrainedModel, new_runs: RunsTable
) -> None:
    wild = new_runs.frame.with_columns(pl.col("counter.branch_miss_ratio") * 0.0 + 1e6)
    (first, *_) = predict(ranged, wild).predictions
    assert first.familiarity is not None
    assert first.familiarity.word in ("unusual", "unknown")
    assert "branch_miss_ratio" in first.familiarity.because


@pytest.mark.parametrize("level", [0.0, 1.0, 80.0])
def test_a_level_that_is_no_share_is_refused(trained: TrainedModel, new_runs: RunsTable, level: float) -> None:
    with pytest.raises(PredictError, match=r"^level: found .*, expected a share between 0 and 1"):
        predict(trained, new_runs, level=level)


def test_records_a_table_and_a_frame_get_the_same_answer(ranged: TrainedModel, new_runs: RunsTable) -> None:
    """A few records are measured in plain Python, a frame by the query engine."""
    expected = predict(ranged, new_runs).predictions
    for source in (new_runs.runs(), new_runs.frame, [run.to_json() for run in new_runs.runs()]):
        assert predict(ranged, source).predictions == expected


def test_a_single_record_is_a_question_too(trained: TrainedModel, new_runs: RunsTable) -> None:
    run = new_runs.runs()[0]
    assert trained.predict(run).predictions == trained.predict([run]).predictions


def test_an_answer_as_a_frame_has_a_row_for_each_run_and_platform(ranged: TrainedModel, new_runs: RunsTable) -> None:
    answer = ranged.predict(new_runs)
    frame = answer.to_frame()
    assert len(frame) == len(answer) * 4
    first = answer.predictions[0]
    assert list(frame["platform"])[:4] == list(first.relative_time)
    for name in ("relative_time", "seconds", "low", "high", "chance_fastest"):
        assert list(frame[name])[:4] == pytest.approx(list(getattr(first, name).values()))
    assert first.familiarity is not None
    assert next(iter(frame["familiarity"])) == first.familiarity.word


def test_an_answer_prints_in_ten_lines(ranged: TrainedModel, new_runs: RunsTable) -> None:
    lines = repr(ranged.predict(new_runs)).splitlines()
    assert lines[0] == "Answer: 24 predictions"
    assert len(lines) <= 10
    assert "cpu-a 1x" in lines[1]


def test_an_answer_explains_itself(ranged: TrainedModel, new_runs: RunsTable) -> None:
    answer = ranged.predict(new_runs)
    explained = answer.explain(samples=4, limit=2)
    assert explained == explain(ranged, new_runs, samples=4, limit=2)
    assert {part.platform for part in answer.explain("gpu-b", samples=4, limit=2).explanations} == {"gpu-b"}
    with pytest.raises(PredictError, match="Predict again"):
        Answer(answer.predictions).explain()


def test_cells_answered_in_parts_get_the_same_answer(
    trained: TrainedModel, new_runs: RunsTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = predict(trained, new_runs).predictions
    monkeypatch.setattr("crossperf.prediction.answer._CHUNK", 5)
    parts = predict(trained, new_runs).predictions
    assert [part.relative_time for part in parts] == [pytest.approx(part.relative_time) for part in whole]
    assert [part.app for part in parts] == [part.app for part in whole]
