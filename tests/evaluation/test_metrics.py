from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import kendalltau
from sklearn.metrics import r2_score, roc_auc_score

from crossperf.evaluation import metrics
from crossperf.evaluation.metrics import Floats
from crossperf.evaluation.scores import METRICS

NAN = np.nan
#: Seconds of three workloads on three platforms, and a prediction of them, both against some reference.
TRUTH = np.log([[1.0, 2.0, 4.0], [3.0, 6.0, 12.0], [8.0, 4.0, 2.0]])
PREDICTED = np.log([[1.0, 4.0, 2.0], [1.0, 2.0, 4.0], [2.0, 4.0, 8.0]])
#: The platform that each of them was profiled on.
SOURCE = np.array([0, 1, 2])


def random_times(seed: int, n: int = 40, p: int = 5) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    truth_np = rng.normal(size=(n, p))
    return truth_np, truth_np + 0.5 * rng.normal(size=(n, p))


def test_times_are_taken_relative_to_the_fastest_of_each_side() -> None:
    truth_np, predicted_np = metrics.to_fastest(TRUTH, PREDICTED)
    np.testing.assert_allclose(np.exp(truth_np), [[1, 2, 4], [1, 2, 4], [4, 2, 1]])
    np.testing.assert_allclose(np.exp(predicted_np), [[1, 4, 2], [1, 2, 4], [1, 2, 4]])


def test_times_over_the_slowest_leave_out_platforms_that_were_not_measured() -> None:
    truth_np, predicted_np = metrics.to_slowest(np.log([[1.0, 4.0, NAN]]), np.log([[2.0, 3.0, 50.0]]))
    np.testing.assert_allclose(np.exp(truth_np), [[1 / 4, 1.0, NAN]])
    np.testing.assert_allclose(np.exp(predicted_np), [[2 / 3, 1.0, NAN]])


def test_every_metric_has_the_value_worked_out_by_hand() -> None:
    scores = metrics.score(TRUTH, PREDICTED, SOURCE, common_order=(0, 1, 2))
    # Relative to the fastest, truth: (1 2 4) (1 2 4) (4 2 1); predicted: (1 4 2) (1 2 4) (1 2 4).
    # Absolute errors without the source: - 2 2, 0 - 0, 3 0 -: their mean is 7 / 6.
    assert scores.mae == pytest.approx(7 / 6)
    # Relative to the source, truth: (- 2 4) (1/2 - 2) (4 2 -); predicted: (- 4 2) (1/2 - 2) (1/4 1/2 -).
    # |log2 error|: 1 1, 0 0, 4 2: mean 8 / 6, so the typical factor is 2 ** (4 / 3).
    assert scores.typical_factor == pytest.approx(2 ** (4 / 3))
    # Platform 1: residual 9, total 6, so -0.5. Platform 2 is constant in truth and left out.
    # Platform 3: residual 4 + 9 = 13, total 6, so 1 - 13 / 6. The mean of both is -5 / 6.
    assert scores.r2 == pytest.approx((-0.5 + (1 - 13 / 6)) / 2)
    # Over the slowest, truth: (1/4 1/2 1) (1/4 1/2 1) (1 1/2 1/4); predicted: (1/4 1 1/2) (1/4 1/2 1) (1/4 1/2 1): the
    # same over 4, but for platform 2, which is left out: the same R2. Speeds over the fastest are one over the first
    # lists: truth 1 1 1/4 against 1 1 1 has residual 9/16, total 3/8; 1/4 1/4 1 against 1/2 1/4 1/4 5/8, total 3/8.
    assert scores.r2_slowest == pytest.approx((-0.5 + (1 - 13 / 6)) / 2)
    assert scores.r2_speed == pytest.approx(((1 - 9 / 16 / (3 / 8)) + (1 - 5 / 8 / (3 / 8))) / 2)
    # In log2, truth 0 0 2 against 0 0 0: residual 4, total 8 / 3. And 2 2 0 against 1 2 2: 5 over 8 / 3.
    assert scores.r2_log == pytest.approx(((1 - 4 / (8 / 3)) + (1 - 5 / (8 / 3))) / 2)
    # One row of three has the whole order; taus are (2 - 1) / 3, 1 and -1.
    assert scores.same_order == pytest.approx(1 / 3)
    assert scores.kendall_tau == pytest.approx((1 / 3 + 1 - 1) / 3)
    # The platform picked is the first in each row: right, right, and 4 times slower than the best.
    assert scores.top1 == pytest.approx(2 / 3)
    assert scores.slowdown == pytest.approx((1 + 1 + 4) / 3)


def test_a_perfect_prediction_reaches_the_best_value_of_each_metric() -> None:
    scores = metrics.score(TRUTH, TRUTH + 3.0, SOURCE, common_order=(0, 1, 2))
    for name in METRICS:
        assert scores[name] == pytest.approx(0.0 if name == "mae" else 1.0, abs=1e-12), name


def test_the_source_platform_counts_in_neither_typical_factor_nor_mae() -> None:
    # A prediction that is twice too slow on every other platform is off by 2, however many platforms there are.
    for platforms in (2, 3, 9):
        truth_np = np.log(np.arange(1.0, platforms + 1.0))[None]
        predicted_np = truth_np + np.log(2.0) * (np.arange(platforms) > 0)
        scores = metrics.score(truth_np, predicted_np, np.array([0]))
        assert scores.typical_factor == pytest.approx(2.0)
        assert scores.mae == pytest.approx(np.exp(truth_np[0, 1:]).mean())


def test_the_typical_factor_is_that_of_the_seconds_which_a_user_reads() -> None:
    # The run took 10 s on p; the model's vector has p at 2, q at 1, so the user reads 5 s on q. It took 20 s.
    scores = metrics.score(np.log([[10.0, 20.0]]), np.log([[2.0, 1.0]]), np.array([0]))
    assert scores.typical_factor == pytest.approx(20 / 5)


def test_a_cell_measured_on_its_source_alone_has_no_typical_factor() -> None:
    scores = metrics.score(np.log([[3.0, NAN]]), np.log([[1.0, 2.0]]), np.array([0]))
    assert (scores.typical_factor, scores.mae) == (None, None)


def test_a_platform_never_measured_counts_nowhere() -> None:
    # The third platform of the first row was not measured: only the pair (1, 2) is left, wrongly ordered.
    truth_np = np.log([[1.0, 2.0, NAN], [1.0, 2.0, 4.0]])
    for guess in (0.001, 1.5, 1000.0):
        predicted_np = np.log([[2.0, 1.0, guess], [1.0, 2.0, 4.0]])
        scores = metrics.score(truth_np, predicted_np, np.array([0, 0]))
        assert scores.same_order == 0.5
        assert scores.kendall_tau == pytest.approx((-1 + 1) / 2)
        assert scores.slowdown == pytest.approx((2 + 1) / 2)
        # Without the source, the first: one of 2x and 1x; relative to the source, 2x and 1/2x. The others are right.
        assert scores.mae == pytest.approx(1 / 3)
        assert scores.typical_factor == pytest.approx(4 ** (1 / 3))
        np.testing.assert_array_equal(metrics.same_order(truth_np, predicted_np), [False, True])
        np.testing.assert_allclose(metrics.kendall_tau(truth_np, predicted_np), [-1, 1])
        np.testing.assert_allclose(metrics.picked_slowdown(truth_np, predicted_np), [2, 1])


def test_an_order_is_right_when_it_is_right_over_the_platforms_measured() -> None:
    truth_np = np.log([[1.0, 2.0, NAN]])
    predicted_np = np.log([[1.0, 3.0, 2.0]])
    assert metrics.same_order(truth_np, predicted_np).tolist() == [True]
    assert metrics.kendall_tau(truth_np, predicted_np).tolist() == [1.0]


def test_kendall_tau_is_scipys_tau_b_also_with_ties_and_gaps() -> None:
    rng = np.random.default_rng(0)
    truth_np = rng.integers(0, 4, (200, 5)).astype(float)
    predicted_np = rng.integers(0, 4, (200, 5)).astype(float)
    truth_np[rng.random(truth_np.shape) < 0.15] = NAN
    truth_np[:, 0] = 1.0  # the source platform is always measured
    expected_n = [
        kendalltau(truth_p[~np.isnan(truth_p)], predicted_p[~np.isnan(truth_p)]).statistic
        for truth_p, predicted_p in zip(truth_np, predicted_np, strict=True)
    ]
    np.testing.assert_allclose(metrics.kendall_tau(truth_np, predicted_np), expected_n, atol=1e-12)


def test_r2_is_scikit_learns_uniform_average() -> None:
    truth_np, predicted_np = random_times(seed=1)
    assert metrics.r2(truth_np, predicted_np) == pytest.approx(r2_score(truth_np, predicted_np))


def test_r2_leaves_gaps_out_platform_by_platform() -> None:
    truth_np, predicted_np = random_times(seed=2, p=2)
    truth_np[:7, 1] = NAN
    expected = (r2_score(truth_np[:, 0], predicted_np[:, 0]) + r2_score(truth_np[7:, 1], predicted_np[7:, 1])) / 2
    assert metrics.r2(truth_np, np.where(np.isnan(truth_np), NAN, predicted_np)) == pytest.approx(expected)


def test_what_the_data_leaves_undefined_is_none() -> None:
    scores = metrics.score(np.log([[1.0, 2.0]]), np.log([[1.0, 3.0]]), np.array([0]), common_order=(0, 1))
    assert {name for name in METRICS if scores[name] is None} == {
        *("r2", "r2_slowest", "r2_speed", "r2_log", "order_auc")
    }
    assert metrics.score(np.zeros((2, 2)), np.zeros((2, 2)), np.array([0, 1])).kendall_tau is None


def test_order_auc_is_the_area_under_the_curve_of_the_margins() -> None:
    # Rows 1 and 2 have the order (1, 0), by predicted margins 3 and -1; rows 3 and 4 have not, by 1 and -2.
    # Of the four pairs, 3 > 1, 3 > -2 and -1 > -2 are right, -1 > 1 is wrong: 3 / 4.
    truth_np = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    predicted_np = np.array([[3.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 2.0]])
    assert metrics.order_auc(truth_np, predicted_np, (1, 0)) == 0.75


def test_order_auc_leaves_incomplete_rows_out() -> None:
    truth_np, predicted_np = random_times(seed=3, n=60, p=3)
    has_order_n = (np.diff(truth_np, axis=1) > 0).all(axis=1)
    margin_n = np.minimum(predicted_np[:, 1] - predicted_np[:, 0], predicted_np[:, 2] - predicted_np[:, 1])
    gap_n = np.arange(60) % 5 == 0
    expected = roc_auc_score(has_order_n[~gap_n], margin_n[~gap_n])
    truth_np[gap_n, 2] = NAN
    assert metrics.order_auc(truth_np, predicted_np, (0, 1, 2)) == pytest.approx(expected)


def test_the_most_common_order_is_counted_over_complete_rows() -> None:
    times = np.array([[2.0, 1.0], [2.0, 1.0], [1.0, 2.0], [1.0, NAN], [1.0, NAN]])
    assert metrics.most_common_order(times) == ((1, 0), pytest.approx(2 / 3))
    assert metrics.most_common_order(times[3:]) is None


def test_the_typical_factor_is_the_same_for_too_fast_and_too_slow() -> None:
    truth_np = np.log([[1.0, 4.0]])
    assert metrics.typical_factor(truth_np, np.log([[3.0, 4.0]])) == pytest.approx(3**0.5)
    assert metrics.typical_factor(truth_np, np.log([[1 / 3, 4.0]])) == pytest.approx(3**0.5)


@given(
    arrays(np.float64, (6, 3), elements=st.integers(-4, 4).map(float)),
    arrays(np.float64, (6, 3), elements=st.integers(-4, 4).map(float)),
    arrays(np.float64, (6, 1), elements=st.integers(-50, 50).map(float)),
)
def test_what_is_constant_over_a_row_changes_no_metric(truth: Floats, predicted: Floats, shift: Floats) -> None:
    source_n = np.array([0, 1, 2, 0, 1, 2])
    scores = metrics.score(truth, predicted, source_n, (0, 1, 2))
    assert metrics.score(truth + shift, predicted, source_n, (0, 1, 2)) == scores
    assert metrics.score(truth, predicted - shift, source_n, (0, 1, 2)) == scores


def test_scores_of_many_platforms_take_little_memory() -> None:
    """All pairs of 300 platforms at once would be 1.4 GB for each table of 4,000 cells."""
    rng = np.random.default_rng(0)
    truth_np, predicted_np = rng.normal(size=(2, 4000, 300))
    tracemalloc.start()
    try:
        metrics.kendall_tau(truth_np, predicted_np)
        metrics.same_order(truth_np, predicted_np)
        metrics.order_beyond_noise(truth_np, predicted_np, np.zeros((300, 300)))
        assert tracemalloc.get_traced_memory()[1] < 150e6
    finally:
        tracemalloc.stop()


def test_orders_are_judged_as_all_pairs_together_judge_them() -> None:
    truth_np, predicted_np = (np.round(times_np, 1) for times_np in random_times(5, n=300, p=6))
    truth_np[::7, 2] = np.nan
    pairs = [(p, q) for p in range(6) for q in range(p + 1, 6)]
    same = [
        all(np.isnan(t[p] - t[q]) or np.sign(t[p] - t[q]) == np.sign(m[p] - m[q]) for p, q in pairs)
        for t, m in zip(truth_np, predicted_np, strict=True)
    ]
    assert metrics.same_order(truth_np, predicted_np).tolist() == same
