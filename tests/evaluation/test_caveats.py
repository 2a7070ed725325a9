"""Caveats: what makes scores mean less than they seem to is named."""

from crossperf import dataset
from crossperf.dataset import Dataset
from crossperf.datasets import toy
from crossperf.evaluation.run import evaluate
from crossperf.evaluation.scores import Scores
from crossperf.records import Run


def test_without_repeats_the_ceiling_is_not_known_and_that_is_a_caveat() -> None:
    data = dataset.build(toy.make_table(apps=3, inputs=3, repeats=1))
    result = evaluate(data, ["median"], n_folds=2)
    assert result.scores.noise_ceiling == Scores()
    assert any("repeats" in caveat for caveat in result.caveats)


def test_few_apps_a_dominant_order_and_the_row_split_are_caveats(toy_data: Dataset) -> None:
    result = evaluate(toy_data, ["median"], split="row", n_folds=2)
    assert any("Few applications (4)" in caveat for caveat in result.caveats)
    assert any("flatters" in caveat for caveat in result.caveats)
    runs = [
        Run("a", str(i), platform, seconds, repeat=0, counters={"c": float(i)})
        for i in range(6)
        for platform, seconds in (("p", 1.0), ("q", 2.0))
    ]
    dominated = evaluate(dataset.build(runs), ["median"], n_folds=2)
    assert any("100% of the workloads have p < q" in caveat for caveat in dominated.caveats)


def test_a_model_at_the_noise_ceiling_is_a_caveat() -> None:
    noisy = dataset.build(toy.make_table(apps=4, inputs=4, noise=2.0))
    result = evaluate(noisy, ["median"], n_folds=2)
    assert any("noise ceiling" in caveat for caveat in result.caveats)
