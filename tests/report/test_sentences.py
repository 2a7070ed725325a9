"""Sentences about scores: the numbers in them are those of the table, and the constant answer stands beside."""

import shlex
from dataclasses import replace

import pytest

from crossperf import dataset
from crossperf.cli import commands
from crossperf.dataset.build import Dataset
from crossperf.datasets import toy
from crossperf.evaluation.run import Evaluation, ablation, evaluate
from crossperf.report import sentences as meaning


@pytest.fixture(scope="module")
def result() -> Evaluation:
    return evaluate(dataset.build(toy.make_table(apps=4, inputs=3, seed=1)), ["median", "ridge"], n_folds=3)


def test_the_headline_names_the_most_accurate_model_and_the_constant_answer(result: Evaluation) -> None:
    scores = {"r2": 0.0, "slowdown": 1.0, "same_order": 0.5}
    made = replace(
        result,
        models={
            "good": {"typical_factor": 1.2, "top1": 0.9, **scores},
            "bad": {"typical_factor": 1.5, "top1": 0.97, **scores},
        },
        constant={"fastest": "h200", "fastest_share": 0.7, "order": [], "order_share": None},
    )
    assert meaning.headline(made) == (
        "good picks the fastest platform 9 times in 10 for inputs it has never seen; always taking h200 would: "
        "7 times in 10. Its times are off by a factor of 1.20 typically."
    )


def test_without_scores_the_headline_says_so(result: Evaluation) -> None:
    assert meaning.headline(replace(result, models={})) == "No model was scored here."


def test_the_best_is_the_highest_or_the_lowest_as_the_metric_has_it(result: Evaluation) -> None:
    models = {"a": {"r2": 0.5, "mae": 2.0, "order_auc": None}, "b": {"r2": 0.7, "mae": 3.0, "order_auc": None}}
    made = replace(result, models=models)
    assert (meaning.best(made, "r2"), meaning.best(made, "mae"), meaning.best(made, "order_auc")) == (0.7, 2.0, None)
    assert meaning.best(replace(result, models={"a": models["a"]}), "r2") is None


def test_the_command_is_one_that_the_command_line_takes(result: Evaluation) -> None:
    text = meaning.command(replace(result, scored_folds=1, table={**result.table, "path": "my runs.csv"}))
    assert text is not None
    name, verb, *rest = shlex.split(text)
    assert name == "crossperf"
    context = commands.commands[verb].make_context(verb, rest)
    assert str(context.params["table"]) == "my runs.csv"
    assert (context.params["models"], context.params["scored_folds"]) == ("median,ridge", 1)
    assert context.params["platforms"] is None


def test_an_ablation_has_its_own_command_and_models_of_ones_own_have_none(result: Evaluation) -> None:
    scores = result.models["ridge"]
    assert "--ablation" in str(meaning.command(replace(result, models=dict.fromkeys(ablation(), scores))))
    assert meaning.command(replace(result, models={"mine": scores})) is None


def test_platforms_that_were_left_out_are_in_the_command(toy_data: Dataset) -> None:
    data = dataset.build(toy.make_table(apps=4, inputs=3, seed=1), platforms=["cpu-a", "gpu-b"])
    assert "--platforms cpu-a,gpu-b" in str(meaning.command(evaluate(data, ["median"], n_folds=2)))


def test_shares_that_tenths_would_make_alike_are_told_in_hundredths(result: Evaluation) -> None:
    scores = {"good": {"typical_factor": 1.2, "top1": 0.76}}
    constant = {"fastest": "h200", "fastest_share": 0.84, "order": [], "order_share": None}
    told = meaning.headline(replace(result, models=scores, constant=constant))
    assert "76 times in 100" in told
    assert "always taking h200 would: 84 times in 100" in told


def test_an_evaluation_without_models_has_no_command(result: Evaluation) -> None:
    assert meaning.command(replace(result, models={})) is None
