"""Platforms added to a trained model: learned from few workloads, beside columns that stay as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from crossperf.model.adapted import Adapted
from crossperf.model.head import Head, Known, log_prior_g, suggest

from crossperf import dataset, model
from crossperf.dataset import Dataset
from crossperf.datasets import toy
from crossperf.errors import SettingsError
from crossperf.model import Saved
from crossperf.prediction.explain import explain
from tests.model.conftest import QUICK
from tests.prediction.test_explain import Remembering

NEW = "gpu-5"
NOTHING = np.empty(0, np.int64)


@pytest.fixture(scope="module")
def data() -> Dataset:
    """Forty workloads on five platforms, of which the last will be new."""
    return dataset.build(toy.make_table(apps=10, inputs=4, platforms=5, repeats=2, noise=0.01, seed=1))


def known_of(data: Dataset) -> Known:
    return Known.of(data.log_time_wp, data.features_nf, data.source_n, data.workload_n)


def off_by(head: Head, data: Dataset, log_time_w: np.ndarray) -> float:
    """Return the typical factor over all workloads, given their true times on the known platforms."""
    predicted_n = head.predict(data.features_nf, data.y)
    truth_n = log_time_w[data.workload_n] - np.log(data.runtime_s_n)
    return float(np.exp(np.abs(predicted_n - truth_n).mean()))


def test_a_platform_twice_as_slow_as_a_known_one_is_learned_from_three_workloads(data: Dataset) -> None:
    shots = np.array([0, 17, 30])
    for twin in range(len(data.platforms)):
        log_time_w = data.log_time_wp[:, twin] + np.log(2.0)
        head = Head.fit(known_of(data), shots, log_time_w[shots])
        assert off_by(head, data, log_time_w) < 1.05


def test_an_exact_mixture_of_platforms_is_learned_from_one_workload_more_than_there_are_platforms(
    data: Dataset,
) -> None:
    weights_p = np.array([0.5, 0.2, 0.3, 0.0, 0.0])
    log_time_w = data.log_time_wp @ weights_p + 1.0
    shots = np.array([choice.workload for choice in suggest(known_of(data), 6, NOTHING)])
    spread = np.exp(np.abs(log_time_w - data.log_time_wp.mean(axis=1) - 1.0).mean())
    assert off_by(Head.fit(known_of(data), shots, log_time_w[shots]), data, log_time_w) < 1.0 + (spread - 1.0) / 5


def test_more_workloads_bring_the_head_nearer_to_the_truth() -> None:
    whole = dataset.build(toy.make_table(apps=16, inputs=6, platforms=6, repeats=2, noise=0.02, seed=2))
    data, log_time_w = whole.without(whole.platforms[-1]), whole.log_time_wp[:, -1]
    rng = np.random.default_rng(0)
    errors = []
    for count in (3, 10, 40):
        shots = [rng.permutation(len(log_time_w))[:count] for _ in range(4)]
        errors.append(np.mean([off_by(Head.fit(known_of(data), s, log_time_w[s]), data, log_time_w) for s in shots]))
    assert errors[0] > errors[1] > errors[2]


def test_the_error_without_a_workload_is_that_of_a_head_that_never_saw_it(data: Dataset) -> None:
    """The closed form leaves the settings' weights as they are, so the two roads agree closely, not exactly."""
    log_time_w = data.log_time_wp[:, 3] * 0.5 + data.log_time_wp[:, 0] * 0.5 + np.sin(np.arange(40.0)) / 3
    shots = np.arange(0, 40, 2)
    whole = Head.fit(known_of(data), shots, log_time_w[shots])
    for i in (0, 7, 13):
        others = np.delete(shots, i)
        head = Head.fit(known_of(data), others, log_time_w[others])
        cells = np.flatnonzero(data.workload_n == shots[i])
        predicted_n = head.predict(data.features_nf[cells], data.y[cells])
        left_out = (predicted_n + np.log(data.runtime_s_n[cells])).mean() - log_time_w[shots[i]]
        assert whole.left_out_k[i] == pytest.approx(left_out, abs=0.1)


def test_a_prediction_stays_near_what_was_measured_however_strange_the_run(data: Dataset) -> None:
    shots = np.array([0, 1, 2])
    head = Head.fit(known_of(data), shots, data.log_time_wp[shots, 0])
    wild_np = data.y[:1] * 1e6
    contrast_p = data.log_time_wp - data.log_time_wp.mean(axis=1, keepdims=True)
    assert abs(head.predict(data.features_nf[:1], wild_np)[0] - wild_np.mean()) < 3 * np.ptp(contrast_p)


def test_two_known_platforms_and_features_with_gaps_are_enough(data: Dataset) -> None:
    two = dataset.build(toy.make_table(apps=5, inputs=4, platforms=2, repeats=1, seed=1))
    gappy = np.where(np.random.default_rng(0).random(two.counters_nc.shape) < 0.3, np.nan, two.counters_nc)
    features_nf = dataset.encode(gappy, two.runtime_s_n, two.source_n, 2)
    known = Known.of(two.log_time_wp, features_nf, two.source_n, two.workload_n)
    assert not log_prior_g(known, 3).any()
    head = Head.fit(known, np.arange(3), two.log_time_wp[:3, 1] + 1.0)
    assert np.isfinite(head.predict(features_nf, two.y)).all()


def test_a_suggestion_is_unlike_what_was_measured() -> None:
    """Two kinds of workloads; one of the first kind was measured, so the next is of the second, and so in turn."""
    rng = np.random.default_rng(0)
    kind_w = np.arange(20) % 2
    log_time_wp = np.outer(kind_w, [0.0, 2.0, 4.0]) + 0.01 * rng.standard_normal((20, 3))
    workload_n, source_n = np.divmod(np.arange(60), 3)
    features_nf = np.column_stack([1.0 + kind_w[workload_n], np.ones(60), np.eye(3)[source_n]])
    known = Known.of(log_time_wp, features_nf, source_n, workload_n)
    for measured in (0, 1):
        first = suggest(known, 1, np.array([measured]))[0]
        assert kind_w[first.workload] != kind_w[measured]


def test_suggestions_never_repeat_and_gain_less_and_less(data: Dataset) -> None:
    measured = np.array([3, 4])
    choices = suggest(known_of(data), 100, measured)
    assert len(choices) == 38
    assert len({choice.workload for choice in choices} | set(measured)) == 40
    assert all(0.0 <= choice.gain <= 1.0 for choice in choices)


@pytest.mark.parametrize("name", ["ridge", "extra-trees", "dnn"])
def test_the_columns_of_the_base_model_stay_bit_for_bit_and_loading_changes_nothing(
    name: str, data: Dataset, tmp_path: Path
) -> None:
    base = model.make(name, **QUICK[name]).learn(data)
    shots = np.array([0, 11, 22, 33])
    first = Head.fit(known_of(data), shots, data.log_time_wp[shots, 0] + 0.5)
    second = Head.fit(known_of(data), shots, data.log_time_wp[shots, 1] - 0.5)
    once = Adapted.added(base, first, "one")
    twice = Adapted.added(once, second, "two")
    before_np, after_np = base.predict(data.features_nf), twice.predict(data.features_nf)
    np.testing.assert_array_equal(after_np[:, :-2], before_np)
    np.testing.assert_array_equal(after_np[:, :-1], once.predict(data.features_nf))
    assert twice.n_added == 2
    saved = Saved(twice, data.counters, (*data.platforms, "one", "two"), (*data.platform_classes, "cpu", "gpu"))
    model.save(saved, tmp_path / "model")
    loaded = model.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.model.predict(data.features_nf), after_np)
    assert loaded.sources == data.platforms
    assert loaded.model.summary_ == twice.summary_
    assert [added["platform"] for added in twice.summary_["added"]] == ["one", "two"]


def test_an_added_platform_is_explained_with_what_the_base_model_remembers(data: Dataset) -> None:
    base = Remembering().learn(data).remember(data)
    shots = np.array([0, 11, 22, 33])
    grown = Adapted.added(base, Head.fit(known_of(data), shots, data.log_time_wp[shots, 0] + 0.5), NEW)
    log_time_wp = np.column_stack([data.log_time_wp, np.full(len(data.workloads), np.nan)])
    about = (grown, data.counters, (*data.platforms, NEW), (*data.platform_classes, "gpu"), {}, {})
    runs = toy.make_table(apps=1, inputs=1, platforms=5, repeats=1, seed=9)
    answer = explain(Saved(*about, data.workloads, log_time_wp), runs, NEW, samples=4)
    assert answer.notes == ()
    for one in answer.explanations:
        assert one.attribution is not None
        assert one.neighbours[0].relative_time[NEW] is None
    assert not hasattr(Adapted.added(model.make("ridge").learn(data), grown.heads_[0], NEW), "latent")


def test_an_adapted_model_is_not_trained(data: Dataset) -> None:
    with pytest.raises(SettingsError, match="crossperf adapt"):
        model.make("adapted").learn(data)


def test_dropping_a_platform_drops_its_column_its_cells_and_its_feature(data: Dataset) -> None:
    name = data.platforms[2]
    less = data.without(name)
    assert less.platforms == (*data.platforms[:2], *data.platforms[3:])
    built = dataset.build(
        toy.make_table(apps=10, inputs=4, platforms=5, repeats=2, noise=0.01, seed=1).frame.filter(
            pl.col("platform") != name
        )
    )
    np.testing.assert_array_equal(less.features_nf, built.features_nf)
    np.testing.assert_array_equal(less.y, built.y)
    assert less.platform_classes == built.platform_classes
