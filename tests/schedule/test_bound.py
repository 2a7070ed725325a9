"""The search for the best placement of small cases, beside every placement that there is."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from crossperf.schedule.rules import Rules
from crossperf.schedule.simulate import simulate
from tests.schedule.worlds import times

FILE = Path(__file__).parents[2] / "benchmarks" / "bound.py"
MODES = ["dane", "mammoth", "tioga-cpu", "tioga-gpu", "tuolumne", "matrix"]
NAN = float("nan")
TRUTH = times(MODES, [1.0, 1.2, 2.0, 0.4, NAN, NAN], [1.0, 0.8, NAN, NAN, 0.5, 0.3], [1.0, 3.0, NAN, NAN, NAN, NAN])


@pytest.fixture(scope="module")
def bound() -> ModuleType:
    pytest.importorskip("ortools", reason="OR-Tools is not installed: pip install ortools")
    spec = importlib.util.spec_from_file_location("bound", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bound"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", [1, 2])
def test_the_search_finds_the_best_of_all_placements_and_no_schedule_beats_the_bound(
    bound: ModuleType, seed: int
) -> None:
    case = bound.a_case(TRUTH, 6, 4.0, seed)
    options = [np.flatnonzero(np.isfinite(run_c)) for run_c in case.run_jc]
    every = [bound.under_easy(case, np.array(places)) for places in itertools.product(*options)]
    bound_s, from_search, optimal = bound.best_schedule(case)
    outcome = simulate(case.jobs, bound.CLUSTERS, TRUTH, TRUTH, "turnaround", rules=Rules(), seed=seed)
    best_s = bound.best_placement(case, [from_search, outcome.cluster])
    assert optimal
    assert len(every) > 100
    assert best_s == pytest.approx(min(every))
    assert bound_s <= min(every) + 20.0  # it counts in units of 10 s, arrivals and run times rounded down
    assert outcome.turnaround_s.mean() >= min(every) - 1e-6


def test_a_placement_by_hand_is_simulated_as_the_policy_that_chooses_it(bound: ModuleType) -> None:
    case = bound.a_case(TRUTH, 12, 3.0, 5)
    outcome = simulate(case.jobs, bound.CLUSTERS, TRUTH, TRUTH, "turnaround", rules=Rules(), seed=5)
    fastest = case.run_jc[np.arange(12), outcome.cluster]
    assert outcome.run_s == pytest.approx(fastest)  # of two modes on one cluster the faster one is taken
    assert bound.under_easy(case, outcome.cluster) == pytest.approx(outcome.turnaround_s.mean())
