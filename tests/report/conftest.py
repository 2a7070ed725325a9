"""Evaluations of three shapes, quick to make, and the pages made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from crossperf import dataset, report
from crossperf.datasets import toy
from crossperf.evaluation.result import Evaluation
from crossperf.evaluation.run import evaluate
from crossperf.evaluation.scores import ModelScores, Scoreboard
from crossperf.model import make
from crossperf.runs.table import from_frame
from tests.browser import launched
from tests.model.conftest import QUICK
from tests.report.opened import PAGES, Opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

#: A name that would leave its place in the page if it were not escaped.
HOSTILE = """</script><b class="x">'&amp;'</b>"""


def evaluation_of(apps: int, inputs: int, platforms: int, models: tuple[str, ...], folds: int = 4) -> Evaluation:
    """Return an evaluation of toy runs, one run of which failed and one application of which has a hostile name."""
    table = toy.make_table(apps, inputs, platforms, repeats=2, seed=3)
    frame = table.frame.with_columns(
        pl.col("app").replace({"app0": HOSTILE, "app00": HOSTILE}),
        pl.when(pl.int_range(pl.len()) == 5).then(pl.lit("out of memory")).otherwise(pl.lit("ok")).alias("status"),
    )
    data = dataset.build(from_frame(frame, name="runs/toy & co.csv"))
    makers = {name: (lambda name=name: make(name, **QUICK[name])) for name in models}
    return evaluate(data, makers, n_folds=folds, scored_folds=min(folds, 2))


@pytest.fixture(scope="session")
def ordinary() -> Evaluation:
    """Six platforms, twelve applications, three models: much like the testbed."""
    return evaluation_of(12, 4, 6, ("crossperf", "ridge", "median"))


@pytest.fixture(scope="session")
def wide() -> Evaluation:
    """Eighteen platforms."""
    return evaluation_of(10, 3, 18, ("ridge", "median"))


@pytest.fixture(scope="session")
def least() -> Evaluation:
    """Two platforms and one application: the least there can be."""
    return evaluation_of(1, 6, 2, ("ridge",), folds=2)


@pytest.fixture(scope="session")
def unscored(ordinary: Evaluation) -> Evaluation:
    """What comes of a trained model without a table: no scores, nothing held out."""
    assert ordinary.held_out is not None
    return replace(ordinary, split="new", scores=Scoreboard(), held_out=replace(ordinary.held_out, predictions={}))


@pytest.fixture(scope="session")
def harder(ordinary: Evaluation) -> Evaluation:
    """The same table and models under the split 'app', each further off and one model fewer."""
    held = ordinary.held_out
    assert held is not None
    noise_np = np.random.default_rng(0).normal(0.0, 0.5, held.log_relative_time_np.shape)
    predictions = {
        name: replace(own, predicted_np=own.predicted_np + noise_np)
        for name, own in held.predictions.items()
        if name != "ridge"
    }
    models = {name: own for name, own in ordinary.scores.models.items() if name != "ridge"}
    worse = {name: ModelScores.of([replace(own.mean, top1=0.2, r2=-0.5, slowdown=2.0)]) for name, own in models.items()}
    board = replace(ordinary.scores, models=worse)
    return replace(ordinary, split="app", scores=board, held_out=replace(held, predictions=predictions), latent=None)


@pytest.fixture(scope="session")
def pages(
    ordinary: Evaluation,
    wide: Evaluation,
    least: Evaluation,
    harder: Evaluation,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Path]:
    """The pages by name, as files."""
    folder = tmp_path_factory.mktemp("pages")
    shown = {"ordinary": ordinary, "wide": wide, "least": least, "several": [ordinary, harder]}
    for name, evaluations in shown.items():
        (folder / f"{name}.html").write_text(report.render(evaluations), encoding="utf-8")
    return {path.stem: path for path in folder.iterdir()}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@pytest.fixture(scope="module", params=PAGES)
def each(request: pytest.FixtureRequest, browser: Browser, pages: dict[str, Path]) -> Iterator[Opened]:
    opened = Opened(browser, pages[request.param])
    yield opened
    opened.context.close()


@pytest.fixture(scope="module")
def ordinary_page(browser: Browser, pages: dict[str, Path]) -> Iterator[Opened]:
    opened = Opened(browser, pages["ordinary"])
    yield opened
    opened.context.close()
