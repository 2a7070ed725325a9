"""Arrays in a file: narrower, and exactly what they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from crossperf import packing

RNG = np.random.default_rng(0)
ARRAYS = {
    "halves": np.array([0.5, -2.0, np.nan, np.inf]),
    "thirds": np.array([1.0 / 3.0, np.nan]),
    "singles": RNG.normal(size=(3, 4)).astype(np.float32),
    "too large for half": np.array([1e5, 70000.0]),
    "counts": np.array([0, 255]),
    "negative": np.array([-129, 3], dtype=np.int32),
    "large": np.array([2**40, -(2**40)]),
    "children": np.arange(100_000, dtype=np.int32) + 1,
    "empty": np.empty((0, 3)),
    "words": np.array("blend"),
    "flags": np.array([True, False]),
}


def test_arrays_come_back_as_they_were_however_narrow_the_file(tmp_path: Path) -> None:
    packing.write(tmp_path / "arrays.npz", ARRAYS)
    back = packing.read((tmp_path / "arrays.npz").read_bytes())
    assert back.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(back[name], array)


def test_places_that_count_up_take_a_byte_each(tmp_path: Path) -> None:
    packing.write(tmp_path / "arrays.npz", {"children": ARRAYS["children"]})
    assert (tmp_path / "arrays.npz").stat().st_size < 1000


def test_a_fingerprint_changes_with_a_value_a_name_and_a_shape() -> None:
    prints = [
        packing.fingerprint(state)
        for state in (
            {"a": np.array([1.0, 2.0])},
            {"b": np.array([1.0, 2.0])},
            {"a": np.array([[1.0, 2.0]])},
            {"a": np.array([1.0, 2.0 + 1e-12])},
        )
    ]
    assert len(set(prints)) == 4


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1.0, 1e9])
def test_rounding_is_off_by_one_in_two_thousand_at_most(kind: type, size: float) -> None:
    array: NDArray[np.float64] = (RNG.normal(size=5000) * size).astype(kind)
    array[3] = np.nan
    rounded = packing.rounded(array)
    assert rounded.dtype == array.dtype
    large = np.abs(array) > 1e-3 * size
    np.testing.assert_array_less(np.abs(rounded[large] / array[large] - 1.0), 2.0**-11 + 1e-9)
    assert np.isnan(rounded[3])
    assert packing.narrowed(rounded).itemsize == (2 if size == 1.0 else 4)


def test_small_arrays_and_whole_numbers_are_not_rounded() -> None:
    small, whole = np.array([1.0 / 3.0]), np.arange(10_000)
    assert packing.rounded(small) is small
    assert packing.rounded(whole) is whole
