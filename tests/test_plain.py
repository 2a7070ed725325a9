"""Dataclasses to JSON and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from crossperf.plain import Between, MisfitError, OneOf, from_json, to_json


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


@dataclass(frozen=True)
class Bounded:
    share: Annotated[float, Between(0.0, 1.0)] = 0.5
    seconds: Annotated[float, Between(above=0.0)] | None = None
    word: Annotated[str, OneOf(("low", "high"))] = "low"
    flag: Literal["a", "b"] = "a"
    counts: tuple[int, ...] = ()


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"share": 1.5}, "at share: found 1.5, expected 0 to 1"),
        ({"share": True}, "at share: found true, expected a number"),
        ({"share": 10**400}, "at share: found a number too large to compute with, expected a finite number"),
        ({"share": float("inf")}, "at share: found a number too large to compute with, expected a finite number"),
        ({"seconds": 0}, "at seconds: found 0, expected a number above 0"),
        ({"seconds": []}, "at seconds: found a list of 0, expected a number"),
        ({"word": "middle"}, "at word: found 'middle', expected one of 'low', 'high'"),
        ({"flag": 3}, "at flag: found 3, expected a text"),
        ({"counts": [1, 2.5]}, "at counts[1]: found 2.5, expected a whole number"),
        ({"counts": {"a": 1}}, "at counts: found an object, expected a list"),
        ({"counts": [True]}, "at counts[0]: found true, expected a whole number"),
        ([], "found a list of 0, expected an object"),
    ],
)
def test_a_misfit_is_named_with_its_place(facts: object, sentence: str) -> None:
    with pytest.raises(MisfitError) as caught:
        from_json(Bounded, facts)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        ([[1.0], [1.0, 2.0]], "at numbers_np: found lists of different lengths, expected rows of the same length"),
        ([["x"]], "at numbers_np: found 'x', expected numbers"),
        ([[True]], "at numbers_np: found true, expected numbers"),
        (["x" * 10_000_000] + [1.0] * 1000, f"at numbers_np: found '{'x' * 60}…', expected numbers"),
        ([[10**400]], "at numbers_np: found a number too large to compute with, expected numbers of 64 bits"),
        (5, "at numbers_np: found 5, expected a list of numbers"),
    ],
)
def test_an_array_that_does_not_fit_is_named_with_its_place(numbers: object, sentence: str) -> None:
    with pytest.raises(MisfitError) as caught:
        from_json(Outer, {"inner": {"name": "x"}, "numbers_np": numbers})
    assert str(caught.value) == sentence


def test_a_whole_number_of_400_digits_is_between_none_but_infinite_limits() -> None:
    assert not Between(0, 100).holds(10**400)
    assert Between().holds(10**400)
    assert Between(0, 100).holds(math.nan)
