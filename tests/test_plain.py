"""Dataclasses to JSON and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from crossperf.plain import from_json, to_json


@dataclass(frozen=True)
class Inner:
    name: str
    size: float | None = None


@dataclass(frozen=True, eq=False)
class Outer:
    inner: Inner
    many: tuple[Inner, ...] = ()
    pair: tuple[str, int] = ("a", 1)
    by_name: Mapping[str, Inner] = field(default_factory=dict)
    numbers_np: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 2)))


def test_nested_records_come_back_as_they_were() -> None:
    made = Outer(Inner("x", 2.5), (Inner("y"),), ("b", 2), {"z": Inner("z", 1.0)}, np.array([[1.0, np.nan]]))
    again = from_json(Outer, json.loads(json.dumps(to_json(made), allow_nan=False)))
    assert (again.inner, again.many, again.pair, again.by_name) == (made.inner, made.many, made.pair, made.by_name)
    np.testing.assert_array_equal(again.numbers_np, made.numbers_np)


def test_keys_of_a_later_version_are_passed_over_and_absent_ones_take_their_default() -> None:
    assert from_json(Inner, {"name": "x", "colour": "red"}) == Inner("x")


@pytest.mark.parametrize("facts", [{}, {"name": 3}, {"name": "x", "size": "large"}, ["x"], None])
def test_what_does_not_fit_is_refused(facts: object) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        from_json(Inner, facts)
