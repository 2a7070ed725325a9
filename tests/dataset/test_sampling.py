from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from crossperf.cli import commands
from crossperf.dataset import Dataset, build, sample
from crossperf.datasets import toy
from crossperf.errors import SettingsError


@pytest.fixture(scope="module")
def data() -> Dataset:
    return build(toy.make_table(apps=6, inputs=5, repeats=1, seed=2))


def test_whole_workloads_are_drawn_up_to_a_number_of_cells(data: Dataset) -> None:
    part = sample(data, 50)
    assert len(part) == 48
    assert len(part.workloads) == 12
    assert np.bincount(part.workload_n).tolist() == [4] * 12
    places = [data.workloads.index(workload) for workload in part.workloads]
    np.testing.assert_array_equal(part.log_time_wp, data.log_time_wp[places])


def test_another_seed_draws_other_workloads_and_the_same_seed_the_same(data: Dataset) -> None:
    assert sample(data, 40, seed=1).workloads == sample(data, 40, seed=1).workloads
    assert sample(data, 40, seed=1).workloads != sample(data, 40, seed=2).workloads


def test_a_short_dataset_is_used_as_it_is(data: Dataset) -> None:
    assert sample(data, len(data)) is data


def test_two_workloads_are_kept_at_least(data: Dataset) -> None:
    assert len(sample(data, 1).workloads) == 2


def test_no_cells_are_no_sample(data: Dataset) -> None:
    with pytest.raises(SettingsError, match="sample: found 0, expected a number of cells above 0"):
        sample(data, 0)


def test_train_and_evaluate_take_a_sample(tmp_path: Path) -> None:
    table = tmp_path / "runs.jsonl"
    toy.make_table(apps=4, inputs=4, repeats=1, seed=1).write(table)
    arguments = ["train", str(table), "--model", "ridge", "--sample", "24", "-o", str(tmp_path / "model")]
    assert "trained ridge on 24 cells: 6 workloads" in CliRunner().invoke(commands, arguments).output
    arguments = ["evaluate", str(table), "--models", "median", "--sample", "24", "--folds", "2"]
    assert CliRunner().invoke(commands, arguments).exit_code == 0


def test_about_the_same_share_of_every_application_is_drawn_and_one_workload_at_least() -> None:
    runs = [run for run in toy.make_runs(apps=12, inputs=30, repeats=1, seed=3) if run.app != "app00"]
    runs += [run for run in toy.make_runs(apps=12, inputs=30, repeats=1, seed=3) if run.app == "app00"][:8]
    data = build(runs)
    for seed in range(5):
        part = sample(data, len(data) // 5, seed=seed)
        assert part.apps == data.apps
        share_a = np.bincount(part.app_w, minlength=12) / np.bincount(data.app_w, minlength=12)
        assert share_a[1:] == pytest.approx(0.2, abs=0.05)


def test_workloads_of_a_platform_that_was_seldom_measured_are_drawn_too() -> None:
    runs = toy.make_runs(apps=4, inputs=50, repeats=1, seed=3)
    rare = {("app0", "n7"), ("app2", "n3")}
    kept = [run for run in runs if run.platform != "gpu-b" or (run.app, run.input) in rare]
    part = sample(build(kept), 60)
    assert rare <= set(part.workloads)
