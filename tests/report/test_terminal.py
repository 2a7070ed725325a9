"""What the terminal shows of an explanation."""

from __future__ import annotations

import numpy as np
import pytest

from crossperf.dataset import Dataset
from crossperf.datasets import toy
from crossperf.prediction.explain import Explanation, explain
from crossperf.report import terminal
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
