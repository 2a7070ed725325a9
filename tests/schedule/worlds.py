"""Small worlds for the tests of scheduling: jobs, machines and times made by hand."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from crossperf.schedule import engine
from crossperf.schedule.jobs import Jobs
from crossperf.schedule.machines import Machines
from crossperf.schedule.times import RelativeTimes
from tests.collect.real import unavailable

DR_EVT = Path(__file__).parents[3] / "shared" / "datasets" / "dr_evt"


def need_dr_evt() -> Path:
    """Go on only where the tables of the dr_evt study are at hand."""
    if not DR_EVT.is_dir():
        unavailable("shared/datasets/dr_evt is not beside this checkout")
    return DR_EVT


def jobs(*rows: tuple[float, int, float, float]) -> Jobs:
    """Return jobs from (submit, nodes, run, requested)."""
    submit_s, nodes, run_s, requested_s = (np.array(column) for column in zip(*rows, strict=True))
    unknown = np.full(len(rows), -1)
    return Jobs(
        submit_s.astype(float), nodes.astype(np.int64), run_s.astype(float), requested_s.astype(float), unknown, unknown
    )


def random_jobs(seed: int, count: int, size: int, load: float = 1.0, sure: bool = False) -> Jobs:
    """Return jobs of up to `size` nodes that fill them to `load`; the limits are exact where they are sure."""
    rng = np.random.default_rng(seed)
    nodes = rng.integers(1, size + 1, count) if seed % 2 else np.minimum(size, 2 ** rng.integers(0, 5, count))
    run_s = rng.integers(1, 200, count).astype(float)
    limit_s = run_s * (1 if sure else rng.integers(1, 4, count))
    span = max(1, int((nodes * run_s).sum() / size / load))
    submit_s = 1000.0 + np.sort(rng.integers(0, span, count))
    return Jobs(submit_s, nodes, run_s, limit_s, rng.integers(1, 5, count), rng.integers(1, 5, count))


def one_cluster(work: Jobs, size: int, *, backfill: int = engine.EASY, places: int = 32) -> np.ndarray:
    """Return when each job starts on one cluster."""
    state = engine.empty([size], work.nodes, places)
    state.limit_j[:], state.run_j[:], state.expected_j[:] = work.requested_s, work.run_s, work.run_s
    done = 0
    while done < len(work):
        done = engine.replay(state, done, work.submit_s, np.zeros(len(work), np.int64), backfill)
        state = engine.tidied(state)
    engine.advance(state, np.inf, backfill)
    return state.start_j


def times(modes: Sequence[str], *rows: Sequence[float], apps: Sequence[str] | None = None) -> RelativeTimes:
    """Return relative times by workload; NaN where one cannot run."""
    apps = apps or [f"app{w}" for w in range(len(rows))]
    return RelativeTimes.of([(app, f"n{w}") for w, app in enumerate(apps)], modes, np.array(rows, float))


TWO = Machines.of({"slow": 8, "fast": 4}, {"slow": 1.0, "fast": 3.0})


def interpreted(module: ModuleType) -> ModuleType:
    """Return a module as it stands where numba is not installed: nothing in it is compiled."""
    spec = importlib.util.spec_from_file_location(f"{module.__name__}_interpreted", str(module.__file__))
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "numba", None)
        spec.loader.exec_module(made)
    return made
