"""Visits: repeats in a row are one measurement, and the noise is what lies between visits."""

from __future__ import annotations

import numpy as np
import pytest

from crossperf.dataset import build
from crossperf.dataset.measured import measured_runs, measured_table
from crossperf.dataset.pairing import noise_of
from crossperf.evaluation import metrics
from crossperf.records import Run
from crossperf.runs.summary import info
from crossperf.runs.table import from_runs

VISITS = {"round 1": [1.0, 1.0, 1.0], "round 2": [2.0, 2.2], "round 3": [3.0], "round 4": [9.0, 9.0]}


def of_visits(platform: str = "p", app: str = "a", scale: float = 1.0) -> list[Run]:
    times = [(name, s * scale) for name, seconds in VISITS.items() for s in seconds]
    return [
        Run(app, "1", platform, s, repeat=i, measured_in=name, counters={"x": 1.0}) for i, (name, s) in enumerate(times)
    ]


def test_a_cell_is_the_median_of_its_visits_however_often_each_was_repeated() -> None:
    # Medians of the visits: 1, 2.1, 3, 9. The median of all eight repeats would be 2.1.
    expected = (2.1 + 3.0) / 2
    assert measured_table(from_runs(of_visits())).runtime_s_n == pytest.approx([expected])
    assert measured_runs(of_visits()).runtime_s_n == pytest.approx([expected])


def test_halves_are_the_earlier_and_the_later_visits() -> None:
    earlier, later = measured_table(from_runs(of_visits())).runtime_s_halves_hn[:, 0]
    assert (earlier, later) == (pytest.approx(1.55), pytest.approx(6.0))


def test_the_ceiling_is_the_agreement_of_visits_and_not_of_repeats_in_a_row() -> None:
    # On p the later half of the visits took twice as long as the earlier; within a visit nothing varies.
    runs = [
        Run("a", "1", platform, (2.0 if platform == "p" and visit == "2" else 1.0), repeat=i, measured_in=visit)
        for platform in "pq"
        for i, visit in enumerate(["1", "1", "1", "2", "2", "2"])
    ]
    runs = [Run(**{**run.__dict__, "counters": {"x": 1.0}}) for run in runs]
    assert metrics.noise_ceiling(build(runs)).typical_factor == pytest.approx(2.0)


def test_the_summary_tells_variation_within_visits_from_that_between_them() -> None:
    facts = info(from_runs(of_visits()))
    assert facts.visits is not None
    assert facts.noise_between_visits is not None
    assert (facts.visits.min, facts.visits.max) == (4, 4)
    medians = np.array([1.0, 2.1, 3.0, 9.0])
    assert facts.noise_between_visits.median == pytest.approx(medians.std(ddof=1) / medians.mean())
    assert facts.noise.median == pytest.approx(np.mean([0.0, np.std([2.0, 2.2], ddof=1) / 2.1, 0.0]))


def test_without_visits_the_summary_has_the_variation_of_repeats_alone() -> None:
    facts = info(from_runs([Run("a", "1", "p", s, repeat=i, counters={"x": 1.0}) for i, s in enumerate([1.0, 3.0])]))
    assert facts.visits is None
    assert facts.noise.median == pytest.approx(np.std([1.0, 3.0], ddof=1) / 2.0)


def test_noise_between_two_platforms_is_what_nine_of_ten_workloads_stay_below() -> None:
    rng = np.random.default_rng(0)
    halves_hwp = rng.normal(0, 0.1, (2, 4000, 2))
    # The difference of a ratio between halves is normal with 0.1 * sqrt 4; 90 % of its absolute values lie below 1.645.
    assert noise_of(halves_hwp)[0, 1] == pytest.approx(0.2 * 1.645, rel=0.03)


def test_pairs_within_the_noise_do_not_spoil_the_order() -> None:
    truth_np = np.log([[1.0, 1.05, 4.0], [1.0, 1.05, 4.0], [1.0, 1.05, 4.0]])
    predicted_np = np.log([[1.1, 1.0, 4.0], [1.0, 5.0, 4.0], [1.0, np.nan, 4.0]])
    noise_pp = np.full((3, 3), np.log(1.2))
    assert metrics.same_order(truth_np[:1], predicted_np[:1]).tolist() == [False]
    assert metrics.order_beyond_noise(truth_np[:2], predicted_np[:2], noise_pp).tolist() == [True, False]
    assert metrics.top1_within_noise(truth_np[:2], predicted_np[:2], noise_pp).tolist() == [True, True]


def test_a_platform_that_was_not_measured_is_in_no_pair() -> None:
    truth_np = np.log([[1.0, np.nan, 4.0]])
    noise_pp = np.zeros((3, 3))
    assert metrics.order_beyond_noise(truth_np, np.log([[1.0, 9.0, 2.0]]), noise_pp).tolist() == [True]
    assert metrics.top1_within_noise(truth_np, np.log([[1.0, 0.1, 2.0]]), noise_pp).tolist() == [True]
