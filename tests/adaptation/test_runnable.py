"""A platform is added to a model whose table tells of workloads that cannot run everywhere."""

from __future__ import annotations

from dataclasses import replace

from crossperf.adaptation.adapt import adapt
from crossperf.model import train
from tests.limited import limited_runs


def test_a_model_with_limits_takes_a_platform_more_and_keeps_them() -> None:
    runs = limited_runs()
    known = train([run for run in runs if run.platform != "gpu-b"], "ridge")
    added = [replace(run, app="new") for run in runs if run.app == "app5"]
    grown = adapt(known, [*(run for run in runs if run.platform == "gpu-b"), *added]).model
    assert grown.knows_of_limits
    assert grown.cells.runnable_wp.shape == (len(grown.workloads), 4)
    prediction = grown.predict(replace(runs[0], runnable="cpu")).predictions[0]
    assert set(prediction.cannot) == {"gpu-a", "gpu-b"}
