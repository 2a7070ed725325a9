"""Intervals: coverage on applications never seen, against errors drawn from a law that we know."""

import numpy as np
import pytest

from crossperf.model.fitted.confidence import Forecast, Intervals, _quantile_of


def draw(rng: np.random.Generator, apps: int, each: int = 30) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return errors, indicators of difficulty and applications: each application is off in its own way."""
    app = np.repeat(np.arange(apps), each)
    hard = rng.uniform(0, 2, apps * each)
    own = rng.standard_normal((apps, 4))[app] * 0.3 + rng.standard_normal((apps * each, 4)) * 0.2
    return own * np.exp(hard - 1)[:, None], hard[:, None], app


def forecast(intervals: Intervals, signs: np.ndarray, platforms: int = 4) -> Forecast:
    scale = intervals.scale(signs)
    return Forecast(np.zeros((len(signs), platforms)), intervals.errors(scale), intervals, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
def test_intervals_cover_the_share_they_promise_of_applications_never_seen(level: float) -> None:
    rng = np.random.default_rng(0)
    held = []
    for _ in range(12):
        errors, signs, apps = draw(rng, 25)
        made = Intervals.fit(errors, signs, apps, np.ones(len(apps), bool), seed=0)
        new_errors, new_signs, _ = draw(rng, 25)
        reference = rng.integers(4, size=len(new_errors))
        low, high = forecast(made, new_signs).between(level, reference)
        truth = new_errors - np.take_along_axis(new_errors, reference[:, None], axis=1)
        other = np.arange(4) != reference[:, None]
        held.append(((low <= truth) & (truth <= high))[other].mean())
    assert np.mean(held) == pytest.approx(level, abs=0.03)


def test_a_harder_cell_gets_a_wider_interval_and_the_reference_none() -> None:
    errors, signs, apps = draw(np.random.default_rng(1), 25)
    made = Intervals.fit(errors, signs, apps, np.ones(len(apps), bool), seed=0)
    low, high = forecast(made, np.array([[0.1], [1.9]])).between(0.8, np.array([2, 2]))
    width = high - low
    assert (width[1, [0, 1, 3]] > 2 * width[0, [0, 1, 3]]).all()
    assert (width[:, 2] == 0).all()


def test_a_higher_level_is_never_narrower() -> None:
    errors, signs, apps = draw(np.random.default_rng(2), 8)
    made = Intervals.fit(errors, signs, apps, np.ones(len(apps), bool), seed=0)
    widths = [
        np.subtract(*forecast(made, signs[:5]).between(level, np.zeros(5, int))[::-1]) for level in (0.5, 0.8, 0.95)
    ]
    assert (widths[0] <= widths[1]).all()
    assert (widths[1] <= widths[2]).all()


def test_chances_are_counted_from_the_errors() -> None:
    """Two platforms, the first predicted faster by 1; in one of four draws an error of 2 turns that round."""
    errors = np.array([[0.0, 0.0], [0.0, 0.5], [2.0, 0.0], [0.0, -0.5]])
    forecast = Forecast(np.array([[0.0, 1.0]]), errors[None], None, None)  # type: ignore[arg-type]
    np.testing.assert_allclose(forecast.chance_fastest(), [[0.75, 0.25]])
    np.testing.assert_allclose(forecast.chance_faster()[0], [[0.0, 0.75], [0.25, 0.0]])


def test_with_a_single_application_the_nominal_level_is_taken_as_it_is() -> None:
    errors, signs, _ = draw(np.random.default_rng(3), 4)
    made = Intervals.fit(errors, signs, np.zeros(len(errors), int), np.ones(len(errors), bool), seed=0)
    assert made.nominal(0.8) == pytest.approx(0.8, abs=1e-6)


def test_an_interval_holds_the_truth_at_just_the_levels_from_the_one_needed() -> None:
    rng = np.random.default_rng(4)
    errors, signs, apps = draw(rng, 12)
    made = Intervals.fit(errors, signs, apps, np.ones(len(apps), bool), seed=0)
    new_errors, new_signs, _ = draw(rng, 12)
    reference = rng.integers(4, size=len(new_errors))
    truth = new_errors - np.take_along_axis(new_errors, reference[:, None], axis=1)
    other = np.arange(4) != reference[:, None]
    needed = forecast(made, new_signs).level_needed(truth, reference)
    assert (np.isnan(needed) == ~other).all()
    for level in (0.5, 0.8, 0.9):
        low, high = forecast(made, new_signs).between(level, reference)
        np.testing.assert_array_equal(((low <= truth) & (truth <= high))[other], needed[other] <= level)


def test_a_single_error_makes_an_interval_that_holds_itself_alone() -> None:
    np.testing.assert_array_equal(_quantile_of(np.array([[1.0, 2.0]]), np.array([[[1.0, 1.0]]])), [[0.0, np.inf]])
