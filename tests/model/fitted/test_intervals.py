"""Intervals: coverage on applications never seen, against errors drawn from a law that we know."""

import numpy as np
import pytest

from crossperf.model.fitted.confidence import LEVELS, Forecast, Intervals, Residuals, _quantile_of


def draw(rng: np.random.Generator, apps: int, each: int = 30) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return errors, indicators of difficulty and applications: each application is off in its own way."""
    app = np.repeat(np.arange(apps), each)
    hard = rng.uniform(0, 2, apps * each)
    own = rng.standard_normal((apps, 4))[app] * 0.3 + rng.standard_normal((apps * each, 4)) * 0.2
    return own * np.exp(hard - 1)[:, None], hard[:, None], app


def fit(errors: np.ndarray, signs: np.ndarray, apps: np.ndarray) -> Intervals:
    """Return intervals of errors that were all held out in one way."""
    return Intervals((Residuals.fit(errors, signs, apps, seed=0),))


def forecast(intervals: Intervals, signs: np.ndarray, share: np.ndarray | None = None) -> Forecast:
    share = np.ones((len(signs), 1)) if share is None else share
    errors = intervals.errors(signs, share)
    return Forecast(np.zeros(errors.shape[::2]), errors, intervals.coverage(share), None)  # type: ignore[arg-type]


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
def test_intervals_cover_the_share_they_promise_of_applications_never_seen(level: float) -> None:
    rng = np.random.default_rng(0)
    held = []
    for _ in range(12):
        errors, signs, apps = draw(rng, 25)
        made = fit(errors, signs, apps)
        new_errors, new_signs, _ = draw(rng, 25)
        reference = rng.integers(4, size=len(new_errors))
        low, high = forecast(made, new_signs).between(level, reference)
        truth = new_errors - np.take_along_axis(new_errors, reference[:, None], axis=1)
        other = np.arange(4) != reference[:, None]
        held.append(((low <= truth) & (truth <= high))[other].mean())
    assert np.mean(held) == pytest.approx(level, abs=0.03)


def test_a_harder_cell_gets_a_wider_interval_and_the_reference_none() -> None:
    errors, signs, apps = draw(np.random.default_rng(1), 25)
    made = fit(errors, signs, apps)
    low, high = forecast(made, np.array([[0.1], [1.9]])).between(0.8, np.array([2, 2]))
    width = high - low
    assert (width[1, [0, 1, 3]] > 2 * width[0, [0, 1, 3]]).all()
    assert (width[:, 2] == 0).all()


def test_a_higher_level_is_never_narrower() -> None:
    errors, signs, apps = draw(np.random.default_rng(2), 8)
    made = fit(errors, signs, apps)
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
    made = fit(errors, signs, np.zeros(len(errors), int))
    np.testing.assert_allclose(made.coverage(np.ones((1, 1)))[0], LEVELS)


def test_an_interval_holds_the_truth_at_just_the_levels_from_the_one_needed() -> None:
    rng = np.random.default_rng(4)
    errors, signs, apps = draw(rng, 12)
    made = fit(errors, signs, apps)
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


def test_a_cell_that_is_as_likely_near_as_far_has_errors_of_both_kinds() -> None:
    """Near errors are a tenth of far ones: their mixture has half of its errors from each."""
    rng = np.random.default_rng(5)
    near, far = (rng.standard_normal((300, 2)) * size for size in (0.1, 1.0))
    blank, groups = np.zeros((300, 1)), np.arange(300)
    made = Intervals((Residuals.fit(near, blank, groups, seed=0), Residuals.fit(far, blank, groups, seed=0)))
    sizes = np.abs(made.errors(blank[:3], np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]))).mean(axis=(1, 2))
    assert sizes[0] == pytest.approx(np.abs(near).mean(), rel=0.1)
    assert sizes[2] == pytest.approx(np.abs(far).mean(), rel=0.1)
    assert sizes[1] == pytest.approx((sizes[0] + sizes[2]) / 2, rel=0.15)


def test_joint_ranges_hold_all_platforms_at_once_as_often_as_they_promise() -> None:
    """With four platforms whose errors are independent, single ranges for 80 % hold all three others far less often."""
    rng = np.random.default_rng(6)
    errors, blank = rng.standard_normal((2000, 4)), np.zeros((2000, 1))
    made = forecast(fit(errors[:1000], blank[:1000], np.arange(1000)), blank[:1000])
    truth = errors[1000:] - errors[1000:, :1]
    reference = np.zeros(1000, int)
    held = []
    for joint in (False, True):
        low, high = made.between(0.8, reference, joint=joint)
        held.append(((low <= truth) & (truth <= high)).all(axis=1).mean())
    assert held[0] < 0.7
    assert held[1] == pytest.approx(0.8, abs=0.05)
