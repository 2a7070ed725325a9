from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from crossperf import dataset, model
from crossperf.dataset import Dataset
from crossperf.datasets import toy
from crossperf.errors import PredictError
from crossperf.model.store import Saved
from crossperf.prediction.answer import predict, relative_to_source
from crossperf.records import Prediction, Run
from crossperf.runs.table import RunsTable, from_frame

COUNTER = "counter."


@pytest.fixture(scope="module")
def saved(toy_data: Dataset) -> Saved:
    return Saved.of(model.make("ridge").learn(toy_data), toy_data)


@pytest.fixture(scope="module")
def new_runs() -> RunsTable:
    """Runs of applications that the model has not seen."""
    return toy.make_table(apps=3, inputs=2, repeats=1, seed=9)


def relative(predictions: tuple[Prediction, ...]) -> list[list[float]]:
    return [list(prediction.relative_time.values()) for prediction in predictions]


def test_the_answer_is_what_the_model_predicts_from_the_features(saved: Saved, toy_data: Dataset) -> None:
    log_np = saved.model.predict(toy_data.features_nf)
    expected_np = np.exp(log_np - log_np[np.arange(len(toy_data)), toy_data.source_n][:, None])
    answer = predict(saved, toy.make_table(apps=4, inputs=3, repeats=3, seed=1))
    assert answer.notes == ()
    assert [(p.app, p.input) for p in answer.predictions] == [toy_data.workloads[w] for w in toy_data.workload_n]
    np.testing.assert_allclose(relative(answer.predictions), expected_np, rtol=1e-12)


def test_counters_are_matched_by_name_whatever_their_order(saved: Saved, new_runs: RunsTable) -> None:
    frame = new_runs.frame
    turned = frame.select(reversed(frame.columns))
    assert predict(saved, turned).predictions == predict(saved, new_runs).predictions


def test_an_extra_counter_is_named_and_changes_nothing(saved: Saved, new_runs: RunsTable) -> None:
    extra = new_runs.frame.with_columns(pl.lit(5.0).alias("counter.aaa"))
    answer = predict(saved, extra)
    assert answer.predictions == predict(saved, new_runs).predictions
    assert answer.notes == ("1 counters the model does not know were not used (aaa).",)


def test_a_missing_counter_counts_as_not_measured_and_is_named(saved: Saved, new_runs: RunsTable) -> None:
    name = "counter.instructions"
    absent = predict(saved, new_runs.frame.drop(name))
    empty = predict(saved, new_runs.frame.with_columns(pl.lit(None, pl.Float64).alias(name)))
    assert absent.predictions == empty.predictions
    assert relative(absent.predictions) != relative(predict(saved, new_runs).predictions)
    (note,) = absent.notes
    assert "lacks 1 of the 17 counters it was trained on (instructions)" in note


def test_a_table_with_none_of_the_counters_is_refused(saved: Saved, new_runs: RunsTable) -> None:
    stripped = new_runs.frame.select(~pl.selectors.starts_with(COUNTER), pl.lit(1.0).alias("counter.instruction"))
    with pytest.raises(PredictError, match="none of the 17 counters") as caught:
        predict(saved, stripped)
    assert sorted(caught.value.facts["missing"]) == sorted(saved.counters)


def test_a_model_without_counters_answers_from_runtime_and_source_alone() -> None:
    runs = [Run("a", str(i), p, 1.0 + i, counters={"x": None}) for i in range(3) for p in ("p", "q")]
    data = dataset.build(runs)
    bare = Saved.of(model.make("median").learn(data), data)
    assert predict(bare, runs[:1]).predictions[0].relative_time == {"p": 1.0, "q": 1.0}


def test_an_unknown_platform_is_refused_with_a_suggestion(saved: Saved, new_runs: RunsTable) -> None:
    renamed = new_runs.frame.with_columns(pl.col("platform").str.replace("cpu-a", "cpu_a"))
    with pytest.raises(PredictError, match=r"platform 'cpu_a' .*\(did you mean 'cpu-a'\?\)") as caught:
        predict(saved, renamed)
    assert caught.value.facts["platforms"] == ["cpu_a"]


def test_an_unknown_reference_is_refused_with_a_suggestion(saved: Saved, new_runs: RunsTable) -> None:
    with pytest.raises(PredictError, match=r"'gpu_b' \(did you mean 'gpu-b'\?\), expected 'source', 'fastest' or"):
        predict(saved, new_runs, relative_to="gpu_b")


def test_the_source_platform_is_exactly_one(saved: Saved, new_runs: RunsTable) -> None:
    predictions = predict(saved, new_runs).predictions
    assert len(predictions) == 24
    assert all(prediction.relative_time[prediction.source] == 1.0 for prediction in predictions)
    raw_np = np.array([[0.3, 0.1], [0.2, -0.4]])
    np.testing.assert_allclose(relative_to_source(raw_np, np.array([1, 0])), [[0.2, 0.0], [0.0, -0.6]])


def test_every_reference_tells_the_same_story(saved: Saved, new_runs: RunsTable) -> None:
    by_source = predict(saved, new_runs).predictions
    for reference in ("fastest", *saved.platforms):
        for one, other in zip(by_source, predict(saved, new_runs, relative_to=reference).predictions, strict=True):
            base = one.fastest if reference == "fastest" else reference
            assert other.relative_time[base] == 1.0
            scaled = {name: value / one.relative_time[base] for name, value in one.relative_time.items()}
            assert other.relative_time == pytest.approx(scaled)
            assert other.seconds == one.seconds
            assert other.fastest == one.fastest


def test_seconds_are_the_measured_runtime_times_the_relative_time(saved: Saved, new_runs: RunsTable) -> None:
    runtime_s = {
        (row["app"], row["input"], row["platform"]): row["runtime_s"] for row in new_runs.frame.iter_rows(named=True)
    }
    for prediction in predict(saved, new_runs).predictions:
        here_s = runtime_s[prediction.app, prediction.input, prediction.source]
        assert prediction.seconds[prediction.source] == here_s
        expected = {name: here_s * value for name, value in prediction.relative_time.items()}
        assert prediction.seconds == pytest.approx(expected)


def test_a_run_without_a_runtime_gets_relative_times_and_no_seconds(saved: Saved, new_runs: RunsTable) -> None:
    first_without = pl.when(pl.int_range(pl.len()) > 0).then("runtime_s").alias("runtime_s")
    one, *others = predict(saved, new_runs.frame.with_columns(first_without)).predictions
    assert one.seconds == {}
    assert all(np.isfinite(value) and value > 0 for value in one.relative_time.values())
    assert all(other.seconds for other in others)
    assert not any(p.seconds for p in predict(saved, new_runs.frame.drop("runtime_s")).predictions)


def test_failed_runs_are_left_out_with_a_note(saved: Saved, new_runs: RunsTable) -> None:
    status = pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("oom")).otherwise(pl.lit("ok")).alias("status")
    answer = predict(saved, from_frame(new_runs.frame.with_columns(status), name="mine"))
    assert len(answer.predictions) == 23
    assert answer.notes == ("1 failed runs of mine were left out.",)
    with pytest.raises(PredictError, match="no successful run"):
        predict(saved, new_runs.frame.with_columns(pl.lit("oom").alias("status")))


@pytest.fixture(scope="module")
def ranged(toy_data: Dataset) -> Saved:
    pytest.importorskip("torch")
    quick = {"trees": 16, "members": 4, "width": 32, "steps": 60, "vae_steps": 40, "latent_dim": 4}
    return Saved.of(model.make("crossperf", **quick).learn(toy_data), toy_data)


@pytest.mark.parametrize("relative_to", ["source", "fastest", "gpu-a"])
def test_the_reference_has_no_range_and_every_other_platform_has(
    ranged: Saved, new_runs: RunsTable, relative_to: str
) -> None:
    for prediction in predict(ranged, new_runs, relative_to=relative_to).predictions:
        reference = {"source": prediction.source, "fastest": prediction.fastest}.get(relative_to, relative_to)
        assert prediction.low[reference] == prediction.high[reference] == prediction.relative_time[reference] == 1.0
        others = [name for name in prediction.low if name != reference]
        assert all(prediction.low[name] < prediction.high[name] for name in others)


def test_chances_add_up_and_a_prediction_survives_json(ranged: Saved, new_runs: RunsTable) -> None:
    for prediction in predict(ranged, new_runs, level=0.5).predictions:
        assert sum(prediction.chance_fastest.values()) == pytest.approx(1.0)
        assert prediction.chance_faster["cpu-a"]["gpu-a"] + prediction.chance_faster["gpu-a"]["cpu-a"] <= 1.0
        assert prediction.familiarity is not None
        assert Prediction.from_json(prediction.to_json()) == prediction


def test_a_run_unlike_any_other_is_called_so_with_the_counters_that_make_it_so(
    ranged: Saved, new_runs: RunsTable
) -> None:
    wild = new_runs.frame.with_columns(pl.col("counter.branch_miss_ratio") * 0.0 + 1e6)
    (first, *_) = predict(ranged, wild).predictions
    assert first.familiarity is not None
    assert first.familiarity.word in ("unusual", "unknown")
    assert "branch_miss_ratio" in first.familiarity.because


@pytest.mark.parametrize("level", [0.0, 1.0, 80.0])
def test_a_level_that_is_no_share_is_refused(saved: Saved, new_runs: RunsTable, level: float) -> None:
    with pytest.raises(PredictError, match="--level: found"):
        predict(saved, new_runs, level=level)
