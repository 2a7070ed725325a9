"""The same question has the same answer, bit for bit, whatever answers it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from crossperf import dataset
from crossperf.dataset import Dataset
from crossperf.datasets import toy
from crossperf.evaluation.parcels import ModelSpec
from crossperf.evaluation.run import evaluate
from crossperf.workers import Here, Workers, processes, threads
from crossperf.workers.dask_cluster import dask
from crossperf.workers.site_jobs import site
from tests.cluster.conftest import nodes, slurm  # noqa: F401, fixtures
from tests.workers.test_site_jobs import site_file

pytestmark = pytest.mark.slow
MODELS = {
    "ridge": ModelSpec("ridge"),
    "forest": ModelSpec("random-forest", {"n_estimators": 20, "seed": 3}),
    "net": ModelSpec("vae-dnn", {"epochs": 2, "tune": False, "seed": 3}),
}


@pytest.fixture(scope="module")
def data() -> Dataset:
    return dataset.build(toy.make_table(apps=5, inputs=4, repeats=2, seed=1))


def numbers(data: Dataset, workers: Workers | None, *names: str) -> dict[str, Any]:
    """Return all that was predicted, scored and drawn, but for how long it took."""
    chosen = {name: MODELS[name] for name in names or MODELS}
    result = evaluate(data, chosen, n_folds=2, scored_folds=1, seed=1, workers=workers)
    assert result.held_out is not None and result.latent is not None
    predicted = {name: own.predicted_np.tobytes() for name, own in result.held_out.predictions.items()}
    facts = result.to_json(cells=False)["scores"]["models"]
    scores = {
        (name, fold): {figure: value for figure, value in own.items() if not figure.endswith("_s")}
        for name, model in facts.items()
        for fold, own in enumerate(model["folds"])
    }
    return {"predicted": predicted, "scores": scores, "latent": (result.latent.model, result.latent.xy_n2.tobytes())}


@contextmanager
def on_dask() -> Iterator[Workers]:
    distributed = pytest.importorskip("distributed")
    how: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**how) as cluster, dask(cluster.scheduler_address) as workers:
        yield workers


def test_processes_and_dask_answer_as_this_process_does(data: Dataset) -> None:
    with threads.limited(1):
        here, plain = numbers(data, Here()), numbers(data, None)
    assert here == plain
    engines: list[Callable[[], AbstractContextManager[Workers]]] = [lambda: processes(2), on_dask]
    for engine in engines:
        with engine() as workers:
            assert numbers(data, workers) == here


def test_jobs_of_a_site_answer_as_processes_do(data: Dataset, slurm: Any, tmp_path: Path) -> None:  # noqa: F811
    pytest.importorskip("submitit")
    with processes(1) as workers:
        expected = numbers(data, workers, "ridge", "net")
    with site(site_file(tmp_path), tmp_path / "jobs") as workers:
        assert numbers(data, workers, "ridge", "net") == expected
