"""A table of the normal kind: a third of the workloads have no version for a GPU."""

from __future__ import annotations

from dataclasses import replace

from crossperf.datasets import toy
from crossperf.records import Run

CPU_ONLY = ("app0", "app1")


def limited_runs(apps: int = 6, inputs: int = 3, seed: int = 1) -> list[Run]:
    """Return runs of the toy whose first two applications run on CPUs alone."""
    runs = toy.make_runs(apps=apps, inputs=inputs, seed=seed)
    kept = (run for run in runs if not (run.app in CPU_ONLY and run.platform_class == "gpu"))
    return [replace(run, runnable="cpu" if run.app in CPU_ONLY else "cpu gpu") for run in kept]
