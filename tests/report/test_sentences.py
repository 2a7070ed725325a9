"""Sentences about scores: the numbers in them are those of the table, and the constant answer stands beside."""

import shlex
from dataclasses import replace

import click
import pytest

from crossperf import dataset
from crossperf.cli import commands
from crossperf.dataset import Dataset
from crossperf.datasets import toy
from crossperf.evaluation.metrics import ConstantAnswer
from crossperf.evaluation.result import Evaluation
from crossperf.evaluation.run import ablation, evaluate
from crossperf.evaluation.scores import ModelScores, Scoreboard, Scores
from crossperf.report import sentences
from crossperf.report.constant import constant_pick
from tests.report.figures.evaluations import by_hand


@pytest.fixture(scope="module")
def result() -> Evaluation:
    return evaluate(dataset.build(toy.make_table(apps=4, inputs=3, seed=1)), ["median", "ridge"], n_folds=3)


def board(**scores: Scores) -> Scoreboard:
    return Scoreboard({name: ModelScores.of([own]) for name, own in scores.items()})


def test_the_headline_names_the_most_accurate_model_and_the_constant_answer(result: Evaluation) -> None:
    scores = board(good=Scores(typical_factor=1.2, top1=0.9), bad=Scores(typical_factor=1.5, top1=0.97))
    made = replace(result, scores=scores, constant=ConstantAnswer("h200", 0.7))
    assert sentences.headline(made) == (
        "good picks the fastest platform 9 times in 10 for inputs it has never seen; always taking h200 would: "
        "7 times in 10. Its times are off by a factor of 1.20 typically."
    )


def test_without_scores_the_headline_says_so(result: Evaluation) -> None:
    assert sentences.headline(replace(result, scores=Scoreboard())) == "No model was scored here."


def test_the_best_is_the_highest_or_the_lowest_as_the_metric_has_it() -> None:
    made = board(a=Scores(r2=0.5, mae=2.0), b=Scores(r2=0.7, mae=3.0))
    assert (made.best("r2"), made.best("mae"), made.best("order_auc")) == (0.7, 2.0, None)
    assert board(a=Scores(r2=0.5)).best("r2") is None


def test_the_command_is_one_that_the_command_line_takes(result: Evaluation) -> None:
    text = sentences.command(replace(result, scored_folds=1, table=replace(result.table, path="my runs.csv")))
    assert text is not None
    name, verb, *rest = shlex.split(text)
    assert name == "crossperf"
    command = commands.get_command(click.Context(commands), verb)
    assert command is not None
    context = command.make_context(verb, rest)
    assert str(context.params["table"]) == "my runs.csv"
    assert (context.params["models"], context.params["scored_folds"]) == ("median,ridge", 1)
    assert context.params["platforms"] is None


def test_an_ablation_has_its_own_command_and_models_of_ones_own_have_none(result: Evaluation) -> None:
    scores = result.scores.models["ridge"]
    ablated = Scoreboard(dict.fromkeys(ablation(), scores))
    assert "--ablation" in str(sentences.command(replace(result, scores=ablated)))
    assert sentences.command(replace(result, scores=Scoreboard({"mine": scores}))) is None


def test_platforms_that_were_left_out_are_in_the_command(toy_data: Dataset) -> None:
    data = dataset.build(toy.make_table(apps=4, inputs=3, seed=1), platforms=["cpu-a", "gpu-b"])
    assert "--platforms cpu-a,gpu-b" in str(sentences.command(evaluate(data, ["median"], n_folds=2)))


def test_shares_that_tenths_would_make_equal_are_given_in_hundredths(result: Evaluation) -> None:
    scores, constant = board(good=Scores(typical_factor=1.2, top1=0.76)), ConstantAnswer("h200", 0.84)
    headline = sentences.headline(replace(result, scores=scores, constant=constant))
    assert "76 times in 100" in headline
    assert "always taking h200 would: 84 times in 100" in headline


def test_an_evaluation_without_models_has_no_command(result: Evaluation) -> None:
    assert sentences.command(replace(result, scores=Scoreboard())) is None


def test_where_the_constant_pick_wins_it_is_said(result: Evaluation) -> None:
    bare = replace(result, held_out=None)
    losing = replace(bare, scores=board(m=Scores(typical_factor=1.2, top1=0.3, slowdown=1.5)))
    wins = sentences.of_winner(replace(losing, constant=ConstantAnswer("h200", 0.8)))
    assert wins == [
        "The constant pick wins here: always taking h200 is right for 80% of these cells, the best model for 30%."
    ]
    assert "would: 8 times in 10 and is the better choice." in sentences.headline(
        replace(losing, constant=ConstantAnswer("h200", 0.8))
    )
    assert sentences.of_winner(replace(losing, constant=ConstantAnswer("h200", 0.1))) == []
    assert sentences.of_winner(replace(bare, scores=Scoreboard())) == []


def test_the_constant_pick_is_judged_on_the_held_out_cells() -> None:
    # p1 is fastest for two workloads of three, and takes twice as long for the third.
    nan = float("nan")
    evaluation = by_hand([[2.0, 1.0], [3.0, 1.0], [1.0, 2.0]], {})
    constant = constant_pick(replace(evaluation, constant=ConstantAnswer("p1", 0.99)))
    assert constant.top1 == pytest.approx(2 / 3)
    assert constant.slowdown == pytest.approx((1 + 1 + 2) / 3)
    # Where it cannot run, the next one is taken.
    gaps = by_hand([[2.0, 1.0, 9.0], [3.0, nan, 1.0]], {})
    otherwise = ConstantAnswer("p1", 0.99, otherwise=("p2", "p0"))
    assert constant_pick(replace(gaps, constant=otherwise)).top1 == 1.0


def test_three_numbers_tell_picks_times_and_what_is_lost(result: Evaluation) -> None:
    made = replace(
        result,
        held_out=None,
        scores=replace(board(m=Scores(typical_factor=1.234, top1=0.813, slowdown=1.046)), noise_ceiling=Scores()),
        constant=ConstantAnswer("h200", 0.35),
    )
    picks, times, lost = sentences.numbers(made, "m")
    assert (picks.number, picks.unit, picks.against) == ("81", "of 100", "always taking h200: 35")
    assert (times.number, times.against) == ("1.23", "1x is perfect")
    assert (lost.number, lost.against) == ("4.6%", "")


def test_r2_is_told_in_three_forms_and_a_negative_one_is_called_worse_than_a_constant(result: Evaluation) -> None:
    scores = board(m=Scores(typical_factor=1.2, top1=0.9, r2=-0.2, r2_slowest=0.5, r2_speed=0.4))
    lines = sentences.sentences(replace(result, scores=scores))
    assert (
        "m: R2 of the paper's vector: -0.20 as time over the fastest, 0.50 as time over the slowest, 0.40 as speed "
        "over the fastest (below 0: worse than answering each platform's mean every time)." in lines
    )
