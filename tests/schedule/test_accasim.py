"""The engine beside AccaSim 1.1.3, a simulator that others wrote, on one cluster and the same trace.

Under FCFS both say the same. AccaSim's EASY differs in two ways, and with both named every start is explained:

- As published it hands its allocator an empty list of reserved nodes. So any job that fits starts, and the first in the
  queue can be put off again and again: that is our naive simulator with the rule ``any``.
- With the reservation kept it lets jobs jump that end before it, and none that would run past it on nodes which the
  first leaves over, as EASY allows: the rule ``ends-before``. Where every job wants one node or all of them no node is
  ever left over, the two rules are one, and both simulators start every job at the same second.

It also keeps a reservation that an early end has made too late, so the limits of these traces are exact.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from crossperf.schedule.jobs import Jobs
from crossperf.schedule.traces.swf import write_swf
from tests.collect.real import unavailable
from tests.schedule import naive
from tests.schedule.worlds import one_cluster, random_jobs

pytestmark = pytest.mark.slow

RUNNER = Path(__file__).parents[2] / "benchmarks" / "accasim_runner.py"
SIZE = 16


def accasim(work: Jobs, rule: str, folder: Path) -> list[float]:
    if importlib.util.find_spec("accasim") is None:
        unavailable("AccaSim is not installed: pip install accasim==1.1.3")
    write_swf(folder / "trace.swf", work)
    command = [sys.executable, "-W", "ignore", str(RUNNER), str(folder / "trace.swf"), str(SIZE), rule]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True, timeout=120)
    starts = json.loads(done.stdout.splitlines()[-1])["starts"]
    return [float(starts[str(i + 1)]) for i in range(len(work))]


def by_hand(work: Jobs, rule: str) -> list[float]:
    rows = zip(work.submit_s, work.nodes, work.run_s, strict=True)
    return naive.schedule([naive.Job(float(s), int(n), float(r), float(r)) for s, n, r in rows], SIZE, rule)


@pytest.fixture
def mixed() -> Jobs:
    return random_jobs(4, 300, SIZE, load=1.2, sure=True)


def test_fcfs_starts_every_job_when_accasim_does(mixed: Jobs, tmp_path: Path) -> None:
    assert one_cluster(mixed, SIZE, backfill=0).tolist() == accasim(mixed, "fcfs", tmp_path)


def test_easy_starts_every_job_when_accasim_does_where_no_node_is_left_over(mixed: Jobs, tmp_path: Path) -> None:
    nodes = np.where(np.random.default_rng(0).random(len(mixed)) < 0.85, 1, SIZE)
    work = Jobs(mixed.submit_s, nodes, mixed.run_s, mixed.run_s, mixed.user, mixed.executable)
    starts = one_cluster(work, SIZE)
    assert (np.diff(starts) < 0).sum() > 20
    assert starts.tolist() == accasim(work, "easy-reserved", tmp_path)


def test_where_easy_differs_the_two_rules_of_accasim_explain_every_start(mixed: Jobs, tmp_path: Path) -> None:
    assert accasim(mixed, "easy", tmp_path) == by_hand(mixed, "any")
    assert accasim(mixed, "easy-reserved", tmp_path) == by_hand(mixed, "ends-before")
    ours = one_cluster(mixed, SIZE).tolist()
    assert ours == by_hand(mixed, "easy")
    assert ours != by_hand(mixed, "any")
    assert ours != by_hand(mixed, "ends-before")
