"""Known workloads: runs of the same one are recognised on whichever platform they ran."""

import numpy as np
import pytest

from crossperf.model.fitted.workloads import FARTHEST, WorkloadProfiles

WORKLOADS, SOURCES, FEATURES = 30, 4, 6


def cells(rng: np.random.Generator, noise: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return features that are a workload's value plus a platform's effect plus noise, sources, workloads, effects."""
    value, effect = rng.standard_normal((WORKLOADS, FEATURES)), rng.standard_normal((SOURCES, FEATURES))
    workload, source = np.divmod(np.arange(WORKLOADS * SOURCES), SOURCES)
    return (
        value[workload] + effect[source] + noise * rng.standard_normal((len(source), FEATURES)),
        source,
        workload,
        effect,
    )


def test_effects_of_platforms_are_found_though_each_ran_other_workloads() -> None:
    """Half of the cells are gone at random, so that means of platforms are those of different workloads."""
    rng = np.random.default_rng(0)
    features, source, workload, effect = cells(rng, 0.0)
    kept = rng.random(len(source)) < 0.5
    known = WorkloadProfiles.fit(features[kept], source[kept], workload[kept], SOURCES)
    between = known.platform_sf[:SOURCES] - known.platform_sf[:1]
    np.testing.assert_allclose(between, effect - effect[:1], atol=0.05)


def test_a_run_of_a_known_workload_is_near_and_one_of_another_is_far() -> None:
    rng = np.random.default_rng(1)
    features, source, workload, _ = cells(rng, 0.02)
    held = (source == 2) & (workload < 10)
    known = WorkloadProfiles.fit(features[~held], source[~held], workload[~held], SOURCES)
    assert known.spread_f == pytest.approx(np.full(FEATURES, 0.02), rel=0.25)
    near = known.distance(features[held], source[held])
    assert near.max() < 3.0, "in units of the noise, whose root mean square over features is about 1"
    never_seen = ~np.isin(workload, np.arange(10))
    others = WorkloadProfiles.fit(features[never_seen], source[never_seen], workload[never_seen], SOURCES)
    assert others.distance(features[held], source[held]).min() > 10.0


def test_a_feature_that_varies_within_a_workload_hardly_counts() -> None:
    rng = np.random.default_rng(2)
    features, source, workload, _ = cells(rng, 0.02)
    features[:, 0] = 5.0 * rng.standard_normal(len(features))
    known = WorkloadProfiles.fit(features, source, workload, SOURCES)
    moved = features[:3].copy()
    moved[:, 0] += 5.0
    assert (known.distance(moved, source[:3]) < 3.0).all()


def test_the_distance_is_over_what_both_have_and_as_far_as_can_be_with_next_to_nothing() -> None:
    rng = np.random.default_rng(3)
    features, source, workload, _ = cells(rng, 0.02)
    known = WorkloadProfiles.fit(features, source, workload, SOURCES)
    some, few = features[:5].copy(), features[:5].copy()
    some[:, :3], few[:, :4] = np.nan, np.nan
    assert (known.distance(some, source[:5]) < 3.0).all()
    assert (known.distance(few, source[:5]) == FARTHEST).all()
    assert known.distance(features[:0], source[:0]).shape == (0,)


def test_a_run_of_an_unknown_platform_counts_as_it_is() -> None:
    rng = np.random.default_rng(4)
    features, source, workload, _ = cells(rng, 0.0)
    known = WorkloadProfiles.fit(features, source, workload, SOURCES)
    np.testing.assert_array_equal(known.platform_sf[-1], 0.0)
    assert np.isfinite(known.distance(features[:2], np.full(2, -1))).all()
