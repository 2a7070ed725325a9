"""Evaluations of a table in which a third of the workloads cannot run on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from crossperf import dataset, runs
from crossperf.dataset import Dataset
from crossperf.dataset.cells import SPLITS, Split
from crossperf.evaluation import evaluate
from crossperf.evaluation.metrics import ConstantAnswer
from crossperf.report import sentences
from tests.limited import CPU_ONLY, limited_runs


@pytest.fixture(scope="module")
def data() -> Dataset:
    return dataset.build(limited_runs())


def test_the_dataset_knows_what_cannot_run_from_what_was_not_measured(data: Dataset) -> None:
    cpu_only_w = np.array([app in CPU_ONLY for app, _ in data.workloads])
    gpu_p = np.array([kind == "gpu" for kind in data.platform_classes])
    assert (data.runnable_wp == ~(cpu_only_w[:, None] & gpu_p)).all()
    assert data.complete_w.all()
    assert "18 workloads ran on every platform that can run them" in repr(data)


def test_a_hole_is_not_measured_and_no_limit() -> None:
    table = [run for run in limited_runs() if not (run.app == "app5" and run.platform == "gpu-b")]
    data = dataset.build(table)
    assert int((~data.complete_w).sum()) == 3
    facts = runs.info(runs.from_runs(table))
    by_name = {own.name: (own.cannot_run, own.not_measured) for own in facts.platforms}
    assert by_name == {"cpu-a": (0, 0), "cpu-b": (0, 0), "gpu-a": (6, 0), "gpu-b": (6, 3)}
    assert (facts.limited_workloads, facts.complete_workloads) == (6, 15)


def test_what_cannot_run_follows_the_cells(data: Dataset) -> None:
    gpu_b = data.without("gpu-b")
    assert gpu_b.runnable_wp.shape == (18, 3)
    some = data.take(np.flatnonzero(data.app_n == 0)).compact()
    assert some.runnable_w == ("cpu",) * 3


@pytest.mark.parametrize("split", SPLITS)
def test_scores_are_over_the_platforms_that_can_run_a_workload(data: Dataset, split: Split) -> None:
    result = evaluate(data, ["median", "ridge"], split=split, n_folds=3)
    assert any("6 of 18 workloads cannot run everywhere" in caveat for caveat in result.caveats)
    assert not any("lack a platform" in caveat for caveat in result.caveats)
    held = result.held_out
    assert held is not None
    assert held.runnable_w.count("cpu") == 6
    assert all(0.0 <= (own.top1 or 0.0) <= 1.0 and own.typical_factor for _, own in result.scores.items())


def test_the_constant_answer_takes_the_next_platform_where_the_first_cannot_run(data: Dataset) -> None:
    constant = ConstantAnswer.of(data)
    log_time_wp, names = data.log_time_wp, data.platforms
    preferred = [names.index(name) for name in (constant.fastest, *constant.otherwise)]
    picked = [next(p for p in preferred if not np.isnan(row_p[p])) for row_p in log_time_wp]
    right = [row_p[p] == np.nanmin(row_p) for p, row_p in zip(picked, log_time_wp, strict=True)]
    assert constant.fastest_share == pytest.approx(np.mean(right))
    assert "where that cannot run): right for" in sentences.of_constant(constant)
