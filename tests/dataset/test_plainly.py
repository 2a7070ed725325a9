"""The fast road for plain runs gives what the careful one does, or nothing."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossperf.dataset.measured import measured_runs
from crossperf.dataset.plainly import measured_plainly
from crossperf.errors import CrossperfError
from crossperf.runs.checking import checked

RUN: dict[str, Any] = {
    "app": "a",
    "input": "1",
    "platform": "p",
    "platform_class": "cpu",
    "runtime_s": 2.0,
    "status": "ok",
    "counters": {"instructions": 7, "int_ratio": 0.5, "other": None},
    "events": {"valgrind": {"Ir": 5, "Dr": 2.5}},
}


def assert_same(runs: list[Any]) -> None:
    fast = measured_plainly(json.loads(json.dumps(runs)))
    if fast is None:
        return
    careful = measured_runs(checked(runs, need_runtime=False))
    for name in ("names", "app_n", "input_n", "platform_n", "failed_runs"):
        assert getattr(fast, name) == getattr(careful, name), name
    assert tuple(fast.runnable_n) == tuple(careful.runnable_n)
    np.testing.assert_array_equal(fast.values_nc, careful.values_nc)
    np.testing.assert_array_equal(fast.runtime_s_n, careful.runtime_s_n)


def test_plain_runs_take_the_fast_road_and_come_out_the_same() -> None:
    runs = [RUN, RUN | {"input": "2", "counters": {"other": 1.5, "cycles": 3}}, RUN | {"app": "Z", "runtime_s": None}]
    assert measured_plainly(runs) is not None
    assert_same(runs)


@pytest.mark.parametrize(
    "odd",
    [
        {"status": "timeout"},
        {"runtime_s": -1.0},
        {"runtime_s": "2.0"},
        {"runtime_s": True},
        {"runtime_s": 10**400},
        {"app": " nan "},
        {"app": 3},
        {"input": None},
        {"surprise": 1},
        {"counters": {}},
        {"counters": [1]},
        {"counters": {"instructions": -1}},
        {"counters": {"instructions": "7"}},
        {"counters": {"instructions": True}},
        {"counters": {"instructions": 10**400}},
        {"repeat": -1},
        {"repeat": 1.5},
        {"runnable": "gpu"},
        {"runnable": "none"},
        {"runs_format": 2},
    ],
)
def test_whatever_is_unusual_takes_the_careful_road(odd: dict[str, Any]) -> None:
    assert measured_plainly([RUN | odd]) is None


@pytest.mark.parametrize(
    "second",
    [{}, {"input": "2", "platform_class": "gpu"}, {"input": "2", "run_id": "x"}],
    ids=["the same cell", "another class of the platform", "the same id"],
)
def test_runs_that_clash_take_the_careful_road(second: dict[str, Any]) -> None:
    assert measured_plainly([RUN | {"run_id": "x"}, RUN | {"run_id": "y"} | second]) is None


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 2**70), st.floats(), st.sampled_from(["", "nan", "1e3", "x"])
)
RUNS = st.lists(
    st.fixed_dictionaries(
        {
            "app": st.sampled_from(["a", "b", "", "NaN"]),
            "input": st.sampled_from(["1", "2", ""]),
            "platform": st.just("p"),
        },
        optional={
            "runtime_s": VALUES,
            "counters": st.dictionaries(st.sampled_from(["instructions", "int_ratio", "odd"]), VALUES),
            "events": st.one_of(VALUES, st.dictionaries(st.just("qemu"), st.dictionaries(st.just("loads"), VALUES))),
            "status": st.sampled_from(["ok", "failed", None]),
            "run_id": st.sampled_from(["x", "y", None]),
            "platform_class": st.sampled_from(["cpu", "gpu", None]),
            "runnable": st.sampled_from(["cpu", "gpu p", "", None]),
            "repeat": VALUES,
        },
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=300, deadline=None)
@given(RUNS)
def test_both_roads_agree_on_any_runs(runs: list[Any]) -> None:
    fast = measured_plainly(runs)
    try:
        careful = measured_runs(checked(runs, need_runtime=False))
    except CrossperfError:
        assert fast is None
        return
    if fast is not None:
        np.testing.assert_array_equal(fast.values_nc, careful.values_nc)
        np.testing.assert_array_equal(fast.runtime_s_n, careful.runtime_s_n)
        assert (fast.names, fast.app_n, fast.runnable_n) == (careful.names, careful.app_n, careful.runnable_n)
