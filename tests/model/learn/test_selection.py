"""The choice among raw events, on training cells alone."""

from __future__ import annotations

import numpy as np
import pytest

from crossperf.dataset import Columns, Features
from crossperf.model.learn import selection
from crossperf.model.learn.selection import selected

RNG = np.random.default_rng(0)
COUNT = 60
TARGET_NP = RNG.normal(size=(COUNT, 2))


def features_of(**columns: np.ndarray) -> Features:
    """Return features with a column for each name; an event's double underscore stands for its prefix."""
    names = [name.replace("__", "event.t.") for name in columns]
    made = Columns.of(names, ["p"])
    return Features.of(np.column_stack(list(columns.values())), np.ones(COUNT), np.zeros(COUNT, np.int64), made)


def counts(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).lognormal(5.0, 2.0, size=COUNT)


def events_of(features: Features) -> list[str]:
    return [name.removeprefix("event.t.") for name in selected(features, TARGET_NP).columns.events]


def test_an_event_that_repeats_a_counter_or_an_earlier_event_is_dropped() -> None:
    own = counts(2)
    features = features_of(x=counts(1), __same=64.0 * counts(1), __own=own, __again=own / 8.0, __other=counts(3))
    assert events_of(features) == ["own", "other"]


def test_an_event_that_repeats_a_counter_where_it_was_measured_is_dropped() -> None:
    half = np.where(np.arange(COUNT) < COUNT // 2, counts(1), np.nan)
    assert events_of(features_of(x=counts(1), __half=half)) == []
    # The counter was not measured where the event was, so that it cannot stand for it.
    assert events_of(features_of(x=half, __whole=counts(1))) == ["whole"]


def test_constant_and_unmeasured_events_are_dropped_and_counters_never_are() -> None:
    features = features_of(
        x=np.full(COUNT, 3.0), y=counts(1), z=counts(1), __never=np.full(COUNT, np.nan), __constant=np.full(COUNT, 64.0)
    )
    assert events_of(features) == []
    assert selected(features, TARGET_NP).columns.counters == ("x", "y", "z")


def test_of_too_many_events_those_that_tell_of_the_targets_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "MOST_EVENTS", 2)
    telling = {f"__t{p}": np.exp(TARGET_NP[:, p]) for p in range(2)}
    features = features_of(x=counts(1), __a=counts(2), **telling, __b=counts(3))
    assert events_of(features) == ["t0", "t1"]


def test_features_without_events_stay_as_they_are() -> None:
    features = features_of(x=counts(1))
    assert selected(features, TARGET_NP) is features
