"""The model that ships: trained on the table that ships, small, and loaded without a learning library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import crossperf as xp
from crossperf import packing
from crossperf.datasets import testbed
from crossperf.model import TrainedModel, release, store
from crossperf.model.default import Crossperf
from crossperf.runs.table import from_frame

CURE = "the testbed or the model's code changed: python tools/release_model.py"


@pytest.fixture(scope="module")
def shipped() -> TrainedModel:
    return xp.load()


@pytest.fixture(scope="module")
def facts() -> dict[str, object]:
    return dict(json.loads((store.SHIPPED / "model.json").read_text(encoding="utf-8")))


def test_it_was_trained_on_the_table_that_ships(shipped: TrainedModel) -> None:
    assert shipped.training is not None
    assert shipped.training.fingerprint == testbed.load().fingerprint, CURE
    assert set(shipped.platforms) == {platform.name for platform in testbed.platforms()}, CURE


def test_it_is_what_was_written_at_release(shipped: TrainedModel, facts: dict[str, object]) -> None:
    assert packing.fingerprint(store.arrays_of(shipped)) == facts["fingerprint"], CURE
    assert shipped.settings == {**Crossperf().get_params(), "device": "cpu", "n_jobs": 1}, CURE


def test_it_weighs_at_most_ten_megabytes() -> None:
    files = [path for path in store.SHIPPED.iterdir() if path.is_file()]
    assert {path.name for path in files} == {"arrays.npz", "model.json"}
    assert sum(path.stat().st_size for path in files) <= release.MOST_BYTES


def test_it_knows_the_times_of_a_workload_that_it_has_seen(shipped: TrainedModel) -> None:
    frame = testbed.load().frame.filter(pl.col("app") == "lennard_jones")
    workload = frame.filter(pl.col("input") == frame["input"].unique().sort()[0])
    seconds = dict(workload.group_by("platform").agg(pl.col("runtime_s").median()).iter_rows())
    source = min(platform for platform in seconds if platform.startswith("epyc"))
    (prediction,) = shipped.predict(
        from_frame(workload.filter(pl.col("platform") == source)), can=("cpu", "gpu")
    ).predictions
    for platform, truth_s in seconds.items():
        assert prediction.relative_time[platform] == pytest.approx(truth_s / seconds[source], rel=0.35)


def test_it_answers_without_a_learning_library() -> None:
    code = (
        "import sys; sys.modules['torch'] = sys.modules['sklearn'] = None\n"
        "import crossperf as xp\n"
        "model = xp.load(); run = xp.Run('a', '1', model.sources[0], 1.0, counters={'instructions': 1e9})\n"
        "print(len(model.predict(run).predictions))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.returncode) == ("1\n", 0), done.stderr


def test_rounding_changes_answers_by_less_than_a_percent(toy_data: xp.Dataset, tmp_path: Path) -> None:
    quick = {"trees": 40, "members": 3, "width": 32, "steps": 60, "vae_steps": 40, "seed": 1}
    full = xp.train(toy_data, **quick)
    small = release.rounded(full)
    factor_np = np.exp(np.abs(small.fitted.predict(toy_data.X) - full.fitted.predict(toy_data.X)))
    assert np.median(factor_np) < 1.002
    assert factor_np.mean() < 1.01
    full.save(tmp_path / "full")
    small.save(tmp_path / "small")
    sizes = [(tmp_path / name / "arrays.npz").stat().st_size for name in ("full", "small")]
    assert sizes[1] < 0.7 * sizes[0]
