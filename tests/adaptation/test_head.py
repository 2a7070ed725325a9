"""The head of a new platform: what it learns from few workloads, and which workloads it asks for."""

from __future__ import annotations

import numpy as np
import pytest

from crossperf import dataset
from crossperf.adaptation.head import KnownWorkloads, fit_head, log_prior_g, suggest
from crossperf.arrays import Floats
from crossperf.dataset import Cells, Columns, Dataset, Features
from crossperf.datasets import toy
from crossperf.model.fitted.adapted import Head
from tests.model.conftest import with_gaps

NOTHING = np.empty(0, np.int64)


@pytest.fixture(scope="module")
def data() -> Dataset:
    """Forty workloads on five platforms, of which the last will be new."""
    return dataset.build(toy.make_table(apps=10, inputs=4, platforms=5, repeats=2, noise=0.01, seed=1))


def known_of(data: Dataset) -> KnownWorkloads:
    return KnownWorkloads.of(data, data.X)


def off_by(head: Head, data: Dataset, log_time_w: Floats) -> float:
    """Return the typical factor over all workloads, given their true times on the known platforms."""
    predicted_n = head.predict(data.X, data.y)
    truth_n = log_time_w[data.workload_n] - np.log(data.X.column("runtime_s"))
    return float(np.exp(np.abs(predicted_n - truth_n).mean()))


def test_a_platform_twice_as_slow_as_a_known_one_is_learned_from_three_workloads(data: Dataset) -> None:
    shots = np.array([0, 17, 30])
    for twin in range(len(data.platforms)):
        log_time_w = data.log_time_wp[:, twin] + np.log(2.0)
        head = fit_head(known_of(data), shots, log_time_w[shots])
        assert off_by(head, data, log_time_w) < 1.05


def test_an_exact_mixture_of_platforms_is_learned_from_one_workload_more_than_there_are_platforms(
    data: Dataset,
) -> None:
    weights_p = np.array([0.5, 0.2, 0.3, 0.0, 0.0])
    log_time_w = data.log_time_wp @ weights_p + 1.0
    shots = np.array([choice.workload for choice in suggest(known_of(data), 6, NOTHING)])
    spread = np.exp(np.abs(log_time_w - data.log_time_wp.mean(axis=1) - 1.0).mean())
    assert off_by(fit_head(known_of(data), shots, log_time_w[shots]), data, log_time_w) < 1.0 + (spread - 1.0) / 5


def test_more_workloads_bring_the_head_nearer_to_the_truth() -> None:
    whole = dataset.build(toy.make_table(apps=16, inputs=6, platforms=6, repeats=2, noise=0.02, seed=2))
    data, log_time_w = whole.without(whole.platforms[-1]), whole.log_time_wp[:, -1]
    rng = np.random.default_rng(0)
    errors = []
    for count in (3, 10, 40):
        shots = [rng.permutation(len(log_time_w))[:count] for _ in range(4)]
        errors.append(np.mean([off_by(fit_head(known_of(data), s, log_time_w[s]), data, log_time_w) for s in shots]))
    assert errors[0] > errors[1] > errors[2]


def test_the_error_without_a_workload_is_that_of_a_head_that_never_saw_it(data: Dataset) -> None:
    """The closed form leaves the settings' weights as they are, so the two roads agree closely, not exactly."""
    log_time_w = data.log_time_wp[:, 3] * 0.5 + data.log_time_wp[:, 0] * 0.5 + np.sin(np.arange(40.0)) / 3
    shots = np.arange(0, 40, 2)
    whole = fit_head(known_of(data), shots, log_time_w[shots])
    for i in (0, 7, 13):
        others = np.delete(shots, i)
        head = fit_head(known_of(data), others, log_time_w[others])
        cells = np.flatnonzero(data.workload_n == shots[i])
        predicted_n = head.predict(data.X[cells], data.y[cells])
        left_out = (predicted_n + np.log(data.X.column("runtime_s")[cells])).mean() - log_time_w[shots[i]]
        assert whole.left_out_k[i] == pytest.approx(left_out, abs=0.1)


def test_a_prediction_stays_near_what_was_measured_however_strange_the_run(data: Dataset) -> None:
    shots = np.array([0, 1, 2])
    head = fit_head(known_of(data), shots, data.log_time_wp[shots, 0])
    wild_np = data.y[:1] * 1e6
    contrast_p = data.log_time_wp - data.log_time_wp.mean(axis=1, keepdims=True)
    assert abs(head.predict(data.X[:1], wild_np)[0] - wild_np.mean()) < 3 * np.ptp(contrast_p)


def test_two_known_platforms_and_features_with_gaps_are_enough(data: Dataset) -> None:
    two = dataset.build(toy.make_table(apps=5, inputs=4, platforms=2, repeats=1, seed=1))
    counters_nc = with_gaps(two.X, 0.3).measured_nc
    features = Features.of(counters_nc, two.X.column("runtime_s"), two.source_n, two.X.columns)
    known = KnownWorkloads.of(two, features)
    assert not log_prior_g(known, 3).any()
    head = fit_head(known, np.arange(3), two.log_time_wp[:3, 1] + 1.0)
    assert np.isfinite(head.predict(features, two.y)).all()


def test_a_suggestion_is_unlike_what_was_measured() -> None:
    """Two kinds of workloads; one of the first kind was measured, so the next is of the second, and so in turn."""
    rng = np.random.default_rng(0)
    kind_w = np.arange(20) % 2
    log_time_wp = np.outer(kind_w, [0.0, 2.0, 4.0]) + 0.01 * rng.standard_normal((20, 3))
    workload_n, source_n = np.divmod(np.arange(60), 3)
    columns = Columns.of(["kind"], ["p", "q", "r"])
    features = Features.of(1.0 + kind_w[workload_n], np.ones(60), source_n, columns)
    workloads = tuple((str(w), "1") for w in range(20))
    known = KnownWorkloads.of(
        Cells(columns.sources, ("cpu",) * 3, workloads, log_time_wp, workload_n, source_n), features
    )
    for measured in (0, 1):
        first = suggest(known, 1, np.array([measured]))[0]
        assert kind_w[first.workload] != kind_w[measured]


def test_suggestions_never_repeat_and_gain_less_and_less(data: Dataset) -> None:
    measured = np.array([3, 4])
    choices = suggest(known_of(data), 100, measured)
    assert len(choices) == 38
    assert len({choice.workload for choice in choices} | set(measured)) == 40
    assert all(0.0 <= choice.gain <= 1.0 for choice in choices)


def test_suggestions_keep_to_the_candidates(data: Dataset) -> None:
    candidates = np.array([2, 8, 20])
    choices = suggest(known_of(data), 10, NOTHING, candidates=candidates)
    assert sorted(choice.workload for choice in choices) == candidates.tolist()


def test_of_many_workloads_a_sample_stands_for_all(data: Dataset) -> None:
    measured = np.array([3, 39])
    choices = suggest(known_of(data), 3, measured, most=10, seed=1)
    assert len({choice.workload for choice in choices} | set(measured.tolist())) == 5


def test_a_platform_that_is_no_source_is_passed_over(data: Dataset) -> None:
    """An adapted model knows times of its added platform, and no run that was measured there."""
    log_time_w = data.log_time_wp[:, 1] + 0.3
    added = data.on((*data.platforms, "new"), (*data.platform_classes, "cpu"))
    assert added.log_time_wp.shape[1] == 6
    shots = np.array([0, 11, 22])
    with_it, without = (
        fit_head(KnownWorkloads.of(known, data.X), shots, log_time_w[shots]).predict(data.X, data.y)
        for known in (added, data)
    )
    np.testing.assert_array_equal(with_it, without)
