"""Runs of known workloads are recognised though what varies within a workload varies together, and by their time."""

import numpy as np
import pytest
from scipy.spatial.distance import mahalanobis
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from crossperf.arrays import Floats, Integers
from crossperf.model.fitted.recognition import Recognised, Recognition, Runs
from crossperf.model.fitted.workloads import FARTHEST
from crossperf.model.learn.recognition import fit_recognition, time_spread

WORKLOADS, SOURCES, FEATURES, PLATFORMS = 40, 5, 6, 5


@pytest.fixture(scope="module")
def cells() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return features, sources, workloads and contrasts: one disturbance moves all features of a run at once."""
    rng = np.random.default_rng(0)
    workload, source = np.divmod(np.arange(WORKLOADS * SOURCES), SOURCES)
    value, effect = rng.standard_normal((WORKLOADS, FEATURES)), rng.standard_normal((SOURCES, FEATURES))
    together = 3.0 * rng.standard_normal((len(source), 1)) * np.linspace(0.5, 1.5, FEATURES)
    features = value[workload] + effect[source] + together + 0.1 * rng.standard_normal((len(source), FEATURES))
    contrast = rng.standard_normal((WORKLOADS, PLATFORMS))
    return features, source, workload, contrast[workload]


def runs_of(features: Floats, source: Integers, log_time: Floats | float = np.nan) -> Runs:
    return Runs(features, source, np.broadcast_to(log_time, len(source)))


def learned(
    features: Floats, source: Integers, workload: Integers, contrast: Floats, log_time: Floats | float = np.nan
) -> Recognition:
    """Return what runs teach whose times repeat within a tenth."""
    runs = runs_of(features, source, log_time)
    return fit_recognition(runs, workload, contrast, sources=SOURCES, spread_p=np.full(SOURCES, 0.1))


def split(cells: tuple[np.ndarray, ...]) -> tuple[Recognition, np.ndarray]:
    """Return what was learned without the last run of every second workload, and which runs these are."""
    features, source, workload, contrast = cells
    held = (source == SOURCES - 1) & (workload % 2 == 0)
    return learned(*(part[~held] for part in (features, source, workload, contrast))), held


def named(known: Recognition, contrast: np.ndarray) -> np.ndarray:
    """Return the workload whose contrast each row is; -1 where it is none's."""
    apart = np.abs(contrast[:, None] - known.contrast_wp).max(axis=2)
    return np.where(apart.min(axis=1) < 1e-3, apart.argmin(axis=1), -1)


def test_a_run_is_recognised_where_feature_by_feature_it_is_not(cells: tuple[np.ndarray, ...]) -> None:
    features, source, workload, _ = cells
    known, held = split(cells)
    recognised, distance, _ = known.recognise(runs_of(features[held], source[held]))
    right = (named(known, recognised) == workload[held]).mean()
    square, common = known.profiles.apart(known.profiles.own(features[held], source[held]))
    assert ((square / common).argmin(axis=1) == workload[held]).mean() < 0.6
    assert right > 0.9
    assert np.median(distance) == pytest.approx(1.0, abs=0.5), "in units of what varies within a workload"


def test_it_is_linear_discriminant_analysis_with_equal_priors(cells: tuple[np.ndarray, ...]) -> None:
    features, source, workload, _ = cells
    known, held = split(cells)
    own = features - known.profiles.platform_sf[source]
    analysis = LinearDiscriminantAnalysis("lsqr", priors=np.full(WORKLOADS, 1 / WORKLOADS))
    theirs = analysis.fit(own[~held], workload[~held]).predict(own[held])
    assert (named(known, known.recognise(runs_of(features[held], source[held]))[0]) == theirs).mean() > 0.9


def test_correlations_are_those_within_workloads() -> None:
    rng = np.random.default_rng(1)
    workload, source = np.divmod(np.arange(8000), 4)
    noise = rng.multivariate_normal([0, 0, 0], [[1, 0.8, 0], [0.8, 1, 0], [0, 0, 1]], len(workload))
    value = rng.standard_normal((2000, 1)) * [5.0, -5.0, 5.0]
    known = learned(value[workload] + noise, source, workload, np.zeros((len(workload), SOURCES)))
    assert known.within_ff == pytest.approx(np.array([[1, 0.8, 0], [0.8, 1, 0], [0, 0, 1]]), abs=0.04)
    assert known.profiles.spread_f == pytest.approx(np.ones(3), rel=0.03)


def test_what_was_not_measured_does_not_count(cells: tuple[np.ndarray, ...]) -> None:
    """Distances to a workload are those of scipy, over the features that cells and workloads share."""
    features, source, workload, contrast = cells
    features = features.copy()
    features[source < 2, 4:] = np.nan
    features[workload >= 30, 0] = np.nan
    known = learned(features, source, workload, contrast)
    assert {tuple(view) for view in known.seen_vf} == {
        (True,) * 6,
        (True,) * 4 + (False,) * 2,
        (False,) + (True,) * 5,
        (False,) + (True,) * 3 + (False,) * 2,
    }
    asked = np.flatnonzero(workload == 7)
    _, distance, _ = known.recognise(runs_of(features[asked], source[asked]))
    own = known.profiles.own(features[asked], source[asked])
    for i, row in enumerate(own):
        near = []
        for mean, seen in zip(known.profiles.mean_wf / known.profiles.spread_f, known.profiles.seen_wf, strict=True):
            common = seen & ~np.isnan(row)
            inverse = np.linalg.inv(known.within_ff[np.ix_(common, common)].astype(float))
            near.append(mahalanobis(row[common], mean[common], inverse) / np.sqrt(common.sum()))
        assert distance[i] == pytest.approx(min(near), rel=1e-4)


def test_copies_of_a_workload_share_a_run(cells: tuple[np.ndarray, ...]) -> None:
    features, source, workload, contrast = cells
    own = workload == 3
    copied = [np.concatenate([part, part[own]]) for part in (features, source, workload, contrast)]
    copied[2][-SOURCES:], copied[3][-SOURCES:] = WORKLOADS, 9.0
    known = learned(*copied)
    expected = (contrast[own] + 9.0) / 2
    assert known.recognise(runs_of(features[own], source[own]))[0] == pytest.approx(expected, abs=1e-5)


def test_of_more_copies_than_are_compared_exactly_the_nearest_share_a_run(cells: tuple[np.ndarray, ...]) -> None:
    features, source, workload, contrast = cells
    own = workload == 3
    copied = [np.concatenate([part, *[part[own]] * 100]) for part in (features, source, workload, contrast)]
    copied[2][len(workload) :] = WORKLOADS + np.arange(100).repeat(SOURCES)
    recognised, *_ = learned(*copied).recognise(runs_of(features[own], source[own]))
    assert recognised == pytest.approx(contrast[own], abs=1e-5)


def test_a_run_that_is_nowhere_near_is_as_far_as_it_is_and_no_workloads(cells: tuple[np.ndarray, ...]) -> None:
    features, source, workload, contrast = cells
    known = learned(features, source, workload, contrast)
    far = features[:5] + 1e4 * np.array([1, -1, 1, -1, 1, -1])
    recognised, distance, _ = known.recognise(runs_of(far, source[:5]))
    assert recognised == pytest.approx(np.tile(known.contrast_wp.mean(axis=0), (5, 1)), abs=1e-6)
    own, means = known.profiles.own(far, source[:5]), known.profiles.mean_wf / known.profiles.spread_f
    inverse = np.linalg.inv(known.within_ff.astype(float))
    nearest = [min(mahalanobis(row, mean, inverse) for mean in means) / np.sqrt(FEATURES) for row in own]
    assert distance == pytest.approx(nearest, rel=1e-3)
    assert (distance > 1000).all()


def test_runs_that_are_asked_about_together_get_what_each_gets_alone(cells: tuple[np.ndarray, ...]) -> None:
    features, source, workload, contrast = cells
    rng = np.random.default_rng(4)
    known = learned(features, source, workload, contrast, 1.0)
    asked = features + 0.1 * rng.standard_normal(features.shape)
    asked[rng.random(features.shape) < 0.1] = np.nan
    runs = runs_of(asked, source, rng.uniform(0.9, 1.1, len(source)))
    together = known.recognise(runs)
    alone = Recognised(
        *map(np.concatenate, zip(*(known.recognise(runs[[row]]) for row in range(len(runs))), strict=True))
    )
    assert together.contrast_np == pytest.approx(alone.contrast_np, abs=1e-6)
    assert together.away_n == pytest.approx(alone.away_n, rel=1e-6)
    assert together.lead_n == pytest.approx(alone.lead_n, abs=1e-4)


def test_the_lead_is_how_many_times_as_far_the_second_nearest_workload_is(cells: tuple[np.ndarray, ...]) -> None:
    features, source, workload, contrast = cells
    own = np.flatnonzero(workload == 3)
    known = learned(features, source, workload, contrast)
    runs = runs_of(features[own], source[own])
    without = workload != 3
    others = learned(*(part[without] for part in cells))
    # What varies within workloads is learned again without the third, and is a little different.
    expected = np.log(others.recognise(runs).away_n / known.recognise(runs).away_n)
    assert known.recognise(runs).lead_n == pytest.approx(expected, abs=0.3)
    assert (known.recognise(runs).lead_n > 0.3).all()


def test_a_workload_of_which_there_are_copies_has_no_lead(cells: tuple[np.ndarray, ...]) -> None:
    features, source, workload, contrast = cells
    own = workload == 3
    copied = [np.concatenate([part, part[own]]) for part in (features, source, workload, contrast)]
    copied[2][-SOURCES:] = WORKLOADS
    assert learned(*copied).recognise(runs_of(features[own], source[own])).lead_n == pytest.approx(0.0, abs=1e-3)


def test_one_workload_alone_leads_by_as_much_as_can_be(cells: tuple[np.ndarray, ...]) -> None:
    features, source, _, contrast = (part[:SOURCES] for part in cells)
    known = learned(features, source, np.zeros(SOURCES, int), contrast)
    lead = known.recognise(runs_of(features, source)).lead_n
    assert np.isfinite(lead).all()
    assert (lead > 1.0).all()


def test_a_run_with_few_features_is_compared_one_by_one_and_with_next_to_none_is_far(
    cells: tuple[np.ndarray, ...],
) -> None:
    features, source, workload, contrast = cells
    known = learned(features, source, workload, contrast)
    some, few = features[:5].copy(), features[:5].copy()
    some[:, :2], few[:, :4] = np.nan, np.nan
    recognised, distance, _ = known.recognise(runs_of(some, source[:5]))
    assert distance == pytest.approx(known.profiles.distance(some, source[:5]), rel=1e-4)
    recognised, distance, _ = known.recognise(runs_of(few, source[:5]))
    assert (distance == FARTHEST).all()
    assert recognised == pytest.approx(np.tile(known.contrast_wp.mean(axis=0), (5, 1)), abs=1e-6)
    assert known.recognise(runs_of(features[:0], source[:0]))[0].shape == (0, PLATFORMS)


def test_a_run_that_was_completed_from_a_known_one_is_as_far_as_what_was_measured_of_it(
    cells: tuple[np.ndarray, ...],
) -> None:
    features, source, workload, contrast = cells
    known = learned(features, source, workload, contrast)
    measured = features[:5] + 30.0 * (np.arange(FEATURES) % 2)
    measured[:, 5] = np.nan
    _, away, _ = known.look(measured, runs_of(features[:5], source[:5]))
    assert away == pytest.approx(known.profiles.distance(measured, source[:5]))
    assert (away > known.recognise(runs_of(features[:5], source[:5]))[1]).all()


@pytest.fixture(scope="module")
def twins() -> tuple[np.ndarray, ...]:
    """Return features, sources, workloads, contrasts and log times: every second workload counts as the one before."""
    rng = np.random.default_rng(2)
    workload, source = np.divmod(np.arange(WORKLOADS * SOURCES), SOURCES)
    value = rng.standard_normal((WORKLOADS, FEATURES)).repeat(2, axis=0)[::2].repeat(2, axis=0)[:WORKLOADS]
    contrast = rng.standard_normal((WORKLOADS, PLATFORMS))
    contrast -= contrast.mean(axis=1, keepdims=True)
    log_time = rng.uniform(0.0, 5.0, WORKLOADS)[workload] + contrast[workload, source]
    features = value[workload] + 0.1 * rng.standard_normal((len(source), FEATURES))
    return features, source, workload, contrast[workload], log_time


def test_where_counters_are_alike_the_time_tells_which_workload_it_is(twins: tuple[np.ndarray, ...]) -> None:
    features, source, workload, contrast, log_time = twins
    held = source == workload % SOURCES
    known = learned(*(part[~held] for part in twins))
    right = {}
    for name, time in (("unknown", np.nan), ("the same", log_time[held]), ("a tenth off", log_time[held] + 0.1)):
        recognised, *_ = known.recognise(runs_of(features[held], source[held], time))
        right[name] = (np.abs(recognised - contrast[held]).max(axis=1) < 0.01).mean()
    assert right["unknown"] < 0.7
    assert right["the same"] > 0.9
    assert right["a tenth off"] > 0.85, "another measurement, as far off as two of them lie apart"


def test_a_time_counts_as_one_feature_more_in_spreads_between_two_measurements() -> None:
    """By hand, for two workloads with the same counters: (0.05 / 0.1)^2 beside (0.2 / 0.1)^2."""
    source, workload = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    features, contrast = np.ones((4, 3)), np.zeros((4, SOURCES))
    contrast[workload == 1] = 0.25 * (np.arange(SOURCES) < 2)
    known = learned(features, source, workload, contrast, 2.0 + contrast[np.arange(4), source])
    assert known.log_time_w == pytest.approx([2.0, 2.0])
    share = np.exp(-(4 - 0.25) / 0.1) / (1 + np.exp(-(4 - 0.25) / 0.1))
    recognised, distance, _ = known.recognise(runs_of(features[:1], source[:1], 2.05))
    assert recognised[0] == pytest.approx(share * contrast[2], abs=1e-6)
    assert distance == pytest.approx(np.sqrt(0.25 / (3 + 1)), rel=1e-4)
    halfway, *_ = known.recognise(runs_of(features[:1], source[:1], 2.125))
    assert halfway[0] == pytest.approx(contrast[2] / 2, abs=1e-4), "as far from either"


def test_a_time_without_a_platform_says_nothing(twins: tuple[np.ndarray, ...]) -> None:
    features, source, _, _, log_time = twins
    known = learned(*twins)
    nowhere = np.full_like(source, -1)
    with_time = known.recognise(runs_of(features, nowhere, log_time))
    without = known.recognise(runs_of(features, nowhere))
    assert np.array_equal(with_time[0], without[0]) and np.array_equal(with_time[1], without[1])


def test_a_workload_that_was_never_timed_is_recognised_by_its_counters(twins: tuple[np.ndarray, ...]) -> None:
    features, source, workload, contrast, log_time = twins
    untimed = np.where(workload == 4, np.nan, log_time)
    known = learned(features, source, workload, contrast, untimed)
    assert known.timed_w.sum() == WORKLOADS - 1
    recognised, *_ = known.recognise(runs_of(features[workload == 4], source[workload == 4], 40.0))
    assert recognised == pytest.approx(contrast[workload == 4], abs=1e-5)


def test_how_far_times_lie_apart_is_that_of_the_halves_of_the_visits() -> None:
    rng = np.random.default_rng(3)
    noise = rng.standard_normal((4000, 3)) * [0.3, 0.05, 0.0001]
    noise[:100] *= 100
    assert time_spread(noise) == pytest.approx([0.31, 0.051, 0.005], rel=0.05)
    noise = noise[:, :2]
    noise[10:, 0] = 0.0
    assert time_spread(noise)[0] == pytest.approx(1.4826 * np.median(np.abs(noise[noise != 0]))), "too few of its own"
