from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from crossperf.errors import SettingsError
from crossperf.schedule import predictors
from crossperf.schedule.compare import METRIC, PolicyScores, compare, differences, holm
from tests.schedule.worlds import TWO, jobs, random_jobs, times

TRUTH = times(["slow", "fast"], [1.0, 0.3], [1.0, 3.0], apps=["a", "b"])


def scores(policy: str, predictor: str, *turnaround_s: float) -> PolicyScores:
    return PolicyScores(policy, predictor, {METRIC: np.array(turnaround_s)})


def test_every_policy_meets_every_predictor_on_the_same_jobs() -> None:
    steps: list[tuple[int, int]] = []
    tables = [predictors.ideal(TRUTH), predictors.machine_average(TRUTH)]
    result = compare(
        lambda seed: random_jobs(seed, 200, 4),
        TWO,
        TRUTH,
        tables,
        ["fastest", "random"],
        [0, 1, 2],
        progress=lambda _, done, total: steps.append((done, total)),
    )
    assert [(each.policy, each.predictor) for each in result.scores] == [
        ("fastest", "ideal"),
        ("fastest", "machine-average"),
        ("random", "ideal"),
        ("random", "machine-average"),
    ]
    assert all(len(each.metrics[METRIC]) == 3 for each in result.scores)
    assert steps == [(i + 1, 12) for i in range(12)]
    assert len(result.differences) == 4
    assert result.counts.jobs == 12 * 200
    json.dumps(result.to_json(), allow_nan=False)


def test_a_comparison_prints_in_ten_lines_and_is_a_frame_of_its_combinations() -> None:
    result = compare(lambda seed: random_jobs(seed, 50, 4), TWO, TRUTH, [TRUTH], ["fastest", "random"], [0, 1])
    assert len(repr(result).splitlines()) <= 10
    assert "mean over 2 seeds (0 to 1)" in repr(result)
    assert result._repr_html_().startswith("<table")
    frame = result.to_frame()
    assert list(frame["policy"]) == ["fastest", "random"]
    assert frame[METRIC][0] == pytest.approx(result.scores[0].metrics[METRIC].mean())


def test_the_paired_test_is_that_of_scipy_on_logs() -> None:
    first, second = (10.0, 12.0, 9.0, 14.0), (11.0, 15.0, 9.5, 15.0)
    (difference,) = differences([scores("p", "x", *first), scores("q", "x", *second)])
    expected = stats.ttest_rel(np.log(first), np.log(second))
    assert difference.p == pytest.approx(expected.pvalue)
    low, high = expected.confidence_interval(0.95)
    assert (difference.low, difference.high) == (pytest.approx(np.exp(low)), pytest.approx(np.exp(high)))


def test_only_combinations_that_share_a_policy_or_a_predictor_are_compared() -> None:
    several = [scores(policy, predictor, 1.0, 2.0) for policy in "pq" for predictor in "xy"]
    pairs = {(each.first.name, each.second.name) for each in differences(several)}
    assert ("p with x", "q with y") not in pairs
    assert len(pairs) == 4


def test_a_difference_in_noise_is_not_called_real_more_often_than_promised() -> None:
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(300):
        several = [scores(f"p{i}", "x", *np.exp(rng.normal(0, 0.1, 8))) for i in range(5)]
        wrong += any(each.real for each in differences(several))
    assert wrong / 300 < 0.08


def test_a_plain_difference_is_called_real_and_a_tie_is_not() -> None:
    (difference,) = differences([scores("p", "x", 10, 11, 12, 10), scores("q", "x", 20, 23, 25, 19)])
    assert difference.real
    assert difference.factor == pytest.approx(np.exp(np.log([10 / 20, 11 / 23, 12 / 25, 10 / 19]).mean()))
    (tie,) = differences([scores("p", "x", 10, 11), scores("q", "x", 10, 11)])
    assert (tie.real, tie.factor, tie.p) == (False, 1.0, 1.0)


def test_a_single_seed_has_no_interval_and_no_verdict() -> None:
    assert scores("p", "x", 3.0).interval(METRIC) == (3.0, None)
    assert differences([scores("p", "x", 3.0), scores("q", "x", 4.0)]) == []


def test_the_interval_is_students() -> None:
    mean, half = scores("p", "x", 1.0, 2.0, 3.0).interval(METRIC)
    assert (mean, half) == (2.0, pytest.approx(4.302653 / np.sqrt(3)))


def test_holm_keeps_the_order_and_stops_at_one() -> None:
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([0.01, 0.02, 0.03, 0.04]) == pytest.approx([0.04, 0.06, 0.06, 0.06])


def test_each_combination_counts_its_own_jobs() -> None:
    policies = ["fastest", "random"]
    result = compare(lambda seed: random_jobs(seed, 50, 4), TWO, TRUTH, [TRUTH], policies, [0, 1])
    assert [each.counts.placed for each in result.scores] == [100, 100]
    assert (result.counts.placed, result.counts.killed) == (200, 0)


def test_what_cannot_be_compared_raises_one_sentence() -> None:
    with pytest.raises(SettingsError, match="a name twice"):
        compare(lambda _: random_jobs(0, 5, 2), TWO, TRUTH, [TRUTH, TRUTH], ["fastest"], [1])
    with pytest.raises(SettingsError, match="each once"):
        compare(lambda _: random_jobs(0, 5, 2), TWO, TRUTH, [TRUTH], ["fastest"], [1, 1])
    with pytest.raises(SettingsError, match="no job can be placed"):
        compare(lambda _: jobs((0, 99, 1, 1)), TWO, TRUTH, [TRUTH], ["fastest"], [1])
