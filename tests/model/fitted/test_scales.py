"""The encoding of features: fitted on training rows, bounded, blind to units."""

import numpy as np

from crossperf.model.fitted.scales import Encoder
from crossperf.model.store import flatten, restore


def test_the_encoding_does_not_depend_on_the_unit_of_a_counter() -> None:
    values = np.random.default_rng(0).lognormal(size=(50, 3))
    scaled = values * [1.0, 1e9, 1e-6]
    assert np.allclose(Encoder.fit(values)(values), Encoder.fit(scaled)(scaled))


def test_training_rows_get_zero_mean_and_unit_spread_on_the_log_scale() -> None:
    values = np.random.default_rng(0).lognormal(2.0, 1.5, size=(500, 2))
    encoder = Encoder.fit(values)
    standard = (encoder.log(values) - encoder.mean_f) / encoder.spread_f
    assert np.allclose(standard.mean(axis=0), 0.0)
    assert np.allclose(standard.std(axis=0), 1.0)


def test_a_value_far_outside_training_stays_within_the_reach() -> None:
    values = np.linspace(1.0, 2.0, 30)[:, None]
    encoder = Encoder.fit(values)
    assert np.abs(encoder(np.array([[1e300], [-1e300], [0.0]]))).max() <= encoder.reach


def test_missing_zero_and_negative_are_three_different_things() -> None:
    encoder = Encoder.fit(np.array([[1.0], [2.0], [4.0]]))
    missing, zero, negative = encoder(np.array([[np.nan], [0.0], [-2.0]]))[:, 0]
    assert np.isnan(missing)
    assert negative < zero


def test_a_constant_column_and_one_missing_everywhere_do_no_harm() -> None:
    encoder = Encoder.fit(np.array([[5.0, np.nan, 1.0], [5.0, np.nan, 2.0]]))
    encoded = encoder(np.array([[5.0, np.nan, 1.5], [7.0, 3.0, 1.5]]))
    assert np.isfinite(encoded[0, [0, 2]]).all()
    assert encoded[0, 0] == 0.0
    assert np.isfinite(encoded[1]).all()


def test_saving_brings_the_encoder_back() -> None:
    values = np.random.default_rng(1).lognormal(size=(20, 4))
    encoder = Encoder.fit(values)
    assert np.array_equal(restore(Encoder, flatten(encoder))(values), encoder(values))


def test_the_inverse_leads_back_to_what_was_measured_within_the_reach() -> None:
    values = np.random.default_rng(2).lognormal(1.0, 2.0, size=(200, 3)) - 0.5
    encoder = Encoder.fit(values)
    near = np.abs((encoder.log(values) - encoder.mean_f) / encoder.spread_f) < 10
    assert near.any(axis=0).all()
    np.testing.assert_allclose(encoder.inverse(encoder(values))[near], values[near], rtol=1e-9)
    np.testing.assert_array_equal(encoder.inverse(encoder(values)[:, :2]), encoder.inverse(encoder(values))[:, :2])


def test_a_feature_too_large_for_its_scale_is_as_far_as_can_be() -> None:
    encoder = Encoder.fit(np.array([[1e-3], [2e-3], [4e-3]]))
    standard_nf = encoder(np.array([[1e308], [-1e308], [np.nan]]))
    np.testing.assert_allclose(standard_nf[:2, 0], [3.0, -3.0], atol=1e-2)
    assert np.isnan(standard_nf[2, 0])
