"""Held-out predictions: every cell once, the truth beside it, and the same after a file."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crossperf import dataset, model, plain
from crossperf.dataset import Dataset
from crossperf.datasets import toy
from crossperf.errors import CrossperfError
from crossperf.evaluation import Evaluation, metrics, read
from crossperf.evaluation import run as evaluate
from crossperf.evaluation.heldout import LEVEL, HeldOut, HeldOutPredictions


@pytest.fixture(scope="module")
def result() -> Evaluation:
    data = dataset.build(toy.make_table(apps=6, inputs=4, seed=2))
    small = {
        "crossperf": lambda: model.make("crossperf", trees=8, members=3, steps=40, vae_steps=40),
        "ridge": model.Ridge,
    }
    return evaluate.evaluate(data, small, split="workload", n_folds=3, seed=1)


def held_out(result: Evaluation) -> HeldOut:
    assert result.held_out is not None
    return result.held_out


def test_every_cell_is_held_out_once_with_its_own_truth(toy_data: Dataset) -> None:
    cells = held_out(evaluate.evaluate(toy_data, ["median"], n_folds=3))
    mine = {(cells.workloads[w], int(s)) for w, s in zip(cells.workload_n, cells.source_n, strict=True)}
    assert len(cells) == len(mine) == len(toy_data)
    for row in range(len(cells)):
        own = toy_data.workloads.index(cells.workloads[cells.workload_n[row]])
        np.testing.assert_array_equal(cells.log_time_wp[cells.workload_n[row]], toy_data.log_time_wp[own])


def test_the_scores_follow_from_the_predictions_fold_by_fold(result: Evaluation) -> None:
    cells = held_out(result)
    order = tuple(cells.platforms.index(name) for name in result.constant.order)
    for fold, kept in enumerate(result.scores.models["ridge"].folds):
        rows = cells.fold_n == fold
        truth_np, predicted_np = cells.log_relative_time_np[rows], cells.predictions["ridge"].predicted_np[rows]
        scores = metrics.score(truth_np, predicted_np, cells.source_n[rows], order)
        # How much two measurements differ is not kept with the predictions: these two follow from the dataset.
        noisy = {"order_beyond_noise": kept.order_beyond_noise, "top1_within_noise": kept.top1_within_noise}
        assert replace(scores, **noisy) == replace(kept, fit_s=None, predict_s=None)
        assert scores.same_order is not None
        assert scores.same_order <= (kept.order_beyond_noise or 0.0)


def test_only_a_model_with_intervals_has_coverage_and_words(result: Evaluation) -> None:
    predictions = held_out(result).predictions
    assert predictions["crossperf"].low_np is not None
    assert predictions["ridge"].low_np is None
    assert predictions["ridge"].words == ()
    assert predictions["ridge"].coverage([0.8]) == []
    assert set(predictions["crossperf"].words) <= {"familiar", "unusual", "unknown"}
    assert result.scores["ridge"].coverage is None


def test_the_level_needed_gives_the_same_coverage_as_the_intervals(result: Evaluation) -> None:
    """Two roads: counting truths inside the intervals of one level, and ranking each truth among the errors drawn."""
    cells, own = held_out(result), held_out(result).predictions["crossperf"]
    truth_np = cells.log_relative_time_np
    other_np = np.arange(4) != cells.source_n[:, None]
    inside = ((own.low_np <= truth_np) & (truth_np <= own.high_np))[other_np].mean()
    assert own.coverage([LEVEL])[0] == pytest.approx(inside, abs=0.01)
    curve = own.coverage(np.linspace(0, 1, 11))
    assert curve == sorted(curve)


def test_a_file_keeps_the_cells_to_the_fifth_digit(result: Evaluation, tmp_path: Path) -> None:
    result.write(tmp_path / "e.json")
    again = read(tmp_path / "e.json")
    assert again == result
    before, after = held_out(result), held_out(again)
    for name in ("workloads", "platforms", "platform_classes"):
        assert getattr(before, name) == getattr(after, name)
    for name in ("log_time_wp", "workload_n", "source_n", "fold_n"):
        np.testing.assert_allclose(getattr(before, name), getattr(after, name), atol=1e-5)
    first, second = before.predictions["crossperf"], after.predictions["crossperf"]
    for name in ("predicted_np", "low_np", "high_np", "oddness_n"):
        np.testing.assert_allclose(getattr(first, name), getattr(second, name), atol=1e-5)
    assert first.coverage([0.2, 0.8, 0.99]) == pytest.approx(second.coverage([0.2, 0.8, 0.99]), abs=0.02)
    assert again.latent is not None
    assert again.latent.model == "crossperf"


def test_long_columns_take_one_line_each_and_the_rest_is_for_people(result: Evaluation, tmp_path: Path) -> None:
    result.write(tmp_path / "e.json")
    lines = (tmp_path / "e.json").read_text().splitlines()
    assert [line.split(":")[0].strip() for line in lines if len(line) > 2000] == ['"held_out"', '"latent"']
    assert '  "split": "workload",' in lines


def test_gaps_in_the_truth_stay_gaps(tmp_path: Path) -> None:
    cells = HeldOut(
        ("p", "q"),
        ("cpu", "gpu"),
        (("a", "1"),),
        np.array([[0.0, np.nan]]),
        np.array([0]),
        np.array([0]),
        np.array([0]),
        {"m": HeldOutPredictions(np.array([[0.0, 1.0]]), level_needed_np=np.array([[np.nan, np.inf]]))},
    )
    again = plain.from_json(HeldOut, json.loads(json.dumps(cells.to_json())))
    assert np.isnan(again.log_time_wp[0, 1])
    assert again.predictions["m"].level_needed_np is not None
    assert np.isnan(again.predictions["m"].level_needed_np[0, 0])
    assert again.predictions["m"].level_needed_np[0, 1] > 1.0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "is not JSON"),
        ("[]", "found a list of 0, expected what 'crossperf evaluate --json' writes, which is an object"),
        ("{}", "found no format, expected what 'crossperf evaluate --json' writes"),
        (
            '{"format": 1}',
            "found format 1, expected what 'crossperf evaluate --json' writes of format 2 or 3. Eval",
        ),
        ('{"format": 4}', "found format 4, expected what 'crossperf evaluate --json' writes of format 2 or 3. Upgrade"),
        ('{"format": 2}', "found no 'models', expected one"),
        ('{"format": 3}', "found no 'table', expected one"),
    ],
)
def test_what_is_no_evaluation_is_one_clear_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "e.json"
    path.write_text(text)
    with pytest.raises(CrossperfError, match=sentence) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))
    with pytest.raises(CrossperfError, match="cannot be read"):
        read(tmp_path / "nowhere.json")


def test_columns_that_do_not_fit_together_are_refused(result: Evaluation) -> None:
    for column, number in (("workload", 10_000), ("workload", -1), ("source", 10_000)):
        facts = json.loads(json.dumps(result.to_json()))
        facts["held_out"][column][0] = number
        with pytest.raises(CrossperfError, match="do not fit together"):
            Evaluation.from_json(facts)
    facts = json.loads(json.dumps(result.to_json()))
    facts["held_out"]["predictions"]["ridge"]["log_relative_time"].pop()
    with pytest.raises(CrossperfError, match="do not fit together"):
        Evaluation.from_json(facts)
