"""What models said of held-out cells: every cell once, the truth beside it, and the same after a file."""

import json
from pathlib import Path

import numpy as np
import pytest

from crossperf import dataset, model
from crossperf.dataset.build import Dataset
from crossperf.datasets import toy
from crossperf.errors import CrossperfError
from crossperf.evaluation import metrics
from crossperf.evaluation import run as evaluate
from crossperf.evaluation.heldout import LEVEL, HeldOut, Said


@pytest.fixture(scope="module")
def result() -> evaluate.Evaluation:
    data = dataset.build(toy.make_table(apps=6, inputs=4, seed=2))
    small = {
        "crossperf": lambda: model.make("crossperf", trees=8, members=3, steps=40, vae_steps=40),
        "ridge": model.Ridge,
    }
    return evaluate.evaluate(data, small, split="workload", n_folds=3, seed=1)


def held_out(result: evaluate.Evaluation) -> HeldOut:
    assert result.held_out is not None
    return result.held_out


def test_every_cell_is_held_out_once_with_its_own_truth(toy_data: Dataset) -> None:
    cells = held_out(evaluate.evaluate(toy_data, ["median"], n_folds=3))
    mine = {(cells.workloads[w], int(s)) for w, s in zip(cells.workload_n, cells.source_n, strict=True)}
    assert len(cells) == len(mine) == len(toy_data)
    for row in range(len(cells)):
        there = toy_data.workloads.index(cells.workloads[cells.workload_n[row]])
        np.testing.assert_array_equal(cells.log_time_wp[cells.workload_n[row]], toy_data.log_time_wp[there])


def test_the_scores_follow_from_what_was_said_fold_by_fold(result: evaluate.Evaluation) -> None:
    cells = held_out(result)
    order = tuple(cells.platforms.index(name) for name in result.constant["order"])
    for fold in range(3):
        rows = cells.fold_n == fold
        scores = metrics.score(cells.log_relative_time_np[rows], cells.said["ridge"].predicted_np[rows], order)
        told = result.models["ridge"]["folds"][fold]
        assert scores == {name: told[name] for name in scores}


def test_only_a_model_that_tells_how_sure_it_is_has_ranges_and_words(result: evaluate.Evaluation) -> None:
    said = held_out(result).said
    assert said["crossperf"].sure
    assert not said["ridge"].sure
    assert said["ridge"].words == ()
    assert said["ridge"].coverage([0.8]) == []
    assert set(said["crossperf"].words) <= {"familiar", "unusual", "unknown"}


def test_the_level_needed_tells_the_same_coverage_as_the_ranges(result: evaluate.Evaluation) -> None:
    """Two roads: counting truths inside the ranges of one level, and ranking each truth among the errors drawn."""
    cells, said = held_out(result), held_out(result).said["crossperf"]
    truth_np = cells.log_relative_time_np
    other_np = np.arange(4) != cells.source_n[:, None]
    inside = ((said.low_np <= truth_np) & (truth_np <= said.high_np))[other_np].mean()
    assert said.coverage([LEVEL])[0] == pytest.approx(inside, abs=0.01)
    curve = said.coverage(np.linspace(0, 1, 11))
    assert curve == sorted(curve)


def test_a_file_keeps_the_cells_to_the_fifth_digit(result: evaluate.Evaluation, tmp_path: Path) -> None:
    result.write(tmp_path / "e.json")
    again = evaluate.read(tmp_path / "e.json")
    assert again == result
    one, other = held_out(result), held_out(again)
    assert (one.workloads, one.platforms, one.platform_classes) == (
        other.workloads,
        other.platforms,
        other.platform_classes,
    )
    for name in ("log_time_wp", "workload_n", "source_n", "fold_n"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-5)
    for name in ("predicted_np", "low_np", "high_np", "odd_n"):
        np.testing.assert_allclose(
            getattr(one.said["crossperf"], name), getattr(other.said["crossperf"], name), atol=1e-5
        )
    for levels in ([0.2, 0.8, 0.99],):
        assert one.said["crossperf"].coverage(levels) == pytest.approx(
            other.said["crossperf"].coverage(levels), abs=0.02
        )
    assert again.latent is not None
    assert again.latent.model == "crossperf"


def test_long_columns_take_one_line_each_and_the_rest_is_for_people(
    result: evaluate.Evaluation, tmp_path: Path
) -> None:
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
        {"m": Said(np.array([[0.0, 1.0]]), level_needed_np=np.array([[np.nan, np.inf]]))},
    )
    again = HeldOut.from_json(json.loads(json.dumps(cells.to_json())))
    assert np.isnan(again.log_time_wp[0, 1])
    assert again.said["m"].level_needed_np is not None
    assert np.isnan(again.said["m"].level_needed_np[0, 0])
    assert again.said["m"].level_needed_np[0, 1] > 1.0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "is not JSON"),
        ("[]", "found no evaluation"),
        ("{}", "found no evaluation"),
        ('{"format": 1}', "an evaluation of format 1 was found, expected 2"),
        ('{"format": 2}', "the evaluation does not read"),
    ],
)
def test_what_is_no_evaluation_is_one_clear_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "e.json"
    path.write_text(text)
    with pytest.raises(CrossperfError, match=sentence) as caught:
        evaluate.read(path)
    assert str(caught.value).startswith(str(path))
    with pytest.raises(CrossperfError, match="cannot be read"):
        evaluate.read(tmp_path / "nowhere.json")


def test_columns_that_do_not_fit_together_are_refused(result: evaluate.Evaluation) -> None:
    for column, number in (("workload", 10_000), ("workload", -1), ("source", 10_000)):
        facts = json.loads(json.dumps(result.to_json()))
        facts["held_out"][column][0] = number
        with pytest.raises(CrossperfError, match="does not read"):
            evaluate.Evaluation.from_json(facts)
    facts = json.loads(json.dumps(result.to_json()))
    facts["held_out"]["said"]["ridge"]["log_relative_time"].pop()
    with pytest.raises(CrossperfError, match="does not read"):
        evaluate.Evaluation.from_json(facts)
