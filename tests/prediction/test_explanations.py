"""Explanations as text and as a table."""

from __future__ import annotations

import numpy as np

from crossperf.datasets import toy
from crossperf.model import train


def test_explanations_print_in_ten_lines_and_their_factors_multiply_to_the_prediction() -> None:
    runs = toy.make_runs(apps=3, inputs=3, seed=1)
    explanations = train(runs, steps=20, members=2).predict(runs).explain(samples=16, limit=6)
    assert len(repr(explanations).splitlines()) <= 10
    frame = explanations.to_frame()
    first = explanations.explanations[0]
    assert first.attribution is not None
    rows = frame[(frame["app"] == first.app) & (frame["input"] == first.input) & (frame["source"] == first.source)]
    difference = first.attribution.prediction - first.attribution.base
    np.testing.assert_allclose(np.log(rows["factor"].to_numpy()).sum(), difference, atol=1e-9)
