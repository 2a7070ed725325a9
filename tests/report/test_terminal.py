"""What the terminal shows of an explanation, and of what cannot run."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from crossperf.dataset import Dataset
from crossperf.datasets import toy
from crossperf.prediction.answer import Answer
from crossperf.prediction.explain import Explanation, explain
from crossperf.records import CANNOT_RUN, NO_VERSION_KNOWN, Prediction
from crossperf.report import terminal
from crossperf.runs import from_runs, info
from tests.limited import limited_runs
from tests.prediction.test_explain import remembering


def test_an_explanation_is_shown_with_its_factors_and_neighbours(
    toy_data: Dataset, capsys: pytest.CaptureFixture[str]
) -> None:
    new_runs = toy.make_table(apps=2, inputs=2, repeats=1, seed=9)
    explained = explain(remembering(toy_data), new_runs, samples=8, limit=1).explanations[0]
    terminal.explanation(explained)
    shown = capsys.readouterr().out
    assert explained.attribution is not None
    strongest = explained.attribution.contributions[0]
    (line,) = (line for line in shown.splitlines() if f" {strongest.feature} " in line)
    factor = max(strongest.factor, 1.0 / strongest.factor)
    assert f"x{factor:.2f} {'slower' if strongest.contribution > 0 else 'faster'}" in line
    assert f"{np.exp(explained.attribution.prediction):,.2f}x is predicted on {explained.platform}" in shown
    for near in explained.neighbours:
        assert any(near.app in line and f"{near.relative_time['gpu-b']:.2f}x" in line for line in shown.splitlines())
    terminal.explanation(Explanation("a", "1", "p", "q", None))
    assert capsys.readouterr().out == ""


def test_what_cannot_run_stands_below_the_platforms_that_are_offered(capsys: pytest.CaptureFixture[str]) -> None:
    times, cannot = {"cpu": 1.0, "gpu": math.nan}, {"gpu": NO_VERSION_KNOWN}
    chances = {"cpu": 1.0, "gpu": 0.0}
    facts = {"level": 0.8, "low": times, "high": times, "chance_fastest": chances, "cannot": cannot}
    prediction = Prediction("a", "1", "cpu", "source", times, **facts)  # type: ignore[arg-type]
    terminal.predictions(Answer((prediction,)))
    single = capsys.readouterr().out
    assert "no version known" in single
    assert "nan" not in single
    assert "if there is one, name its class or platform with --can" in single
    terminal.predictions(Answer((replace(prediction, low={}, cannot={"gpu": CANNOT_RUN}),)))
    many = capsys.readouterr().out
    assert "cannot run" in many
    assert "nan" not in many
    assert "--can" not in many


def test_a_table_of_runs_tells_what_cannot_run_from_what_was_not_measured(capsys: pytest.CaptureFixture[str]) -> None:
    table = [run for run in limited_runs() if not (run.app == "app5" and run.platform == "gpu-b")]
    terminal.info(info(from_runs(table)))
    said = capsys.readouterr().out
    assert "18 workloads (15 on every platform that can run them)" in said
    assert "cannot run" in said
    assert "6 workloads cannot run on some platforms (column runnable), which is no gap" in said


def test_repeats_that_are_visits_of_their_own_are_no_lack_of_repeats(capsys: pytest.CaptureFixture[str]) -> None:
    visits = [replace(run, measured_in=f"round-{run.repeat}") for run in toy.make_runs(apps=2, inputs=2, repeats=3)]
    terminal.info(info(from_runs(visits)))
    shown = capsys.readouterr().out
    assert "repeats of a cell: 3 to 3, median 3; one a visit" in shown
    assert "visits of a cell: 3 to 3, median 3; variation" in shown
