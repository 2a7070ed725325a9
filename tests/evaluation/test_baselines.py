"""What scores are compared with: the noise of the data, worked out by hand, and constant answers."""

import numpy as np
import pytest

from crossperf import dataset
from crossperf.datasets import toy
from crossperf.evaluation.metrics import ConstantAnswer, noise_ceiling
from crossperf.records import Run


def test_the_noise_ceiling_is_perfect_without_noise_and_worse_with_it() -> None:
    silent = dataset.build(toy.make_table(apps=3, inputs=3, noise=0.0))
    noisy = dataset.build(toy.make_table(apps=3, inputs=3, noise=0.5))
    assert noise_ceiling(silent).typical_factor == pytest.approx(1.0)
    assert noise_ceiling(silent).same_order == 1.0
    worse = noise_ceiling(noisy).typical_factor
    assert worse is not None
    assert worse > 1.2


def test_the_noise_ceiling_worked_by_hand() -> None:
    runs = [
        Run("a", "1", platform, seconds, repeat=i, counters={"c": 1.0})
        for platform, times in {"p": (1.0, 1.0), "q": (2.0, 4.0)}.items()
        for i, seconds in enumerate(times)
    ]
    # In one half q takes 2x the time of p, in the other 4x: off by 2 as seen from p, and as seen from q.
    ceiling = noise_ceiling(dataset.build(runs))
    assert ceiling.typical_factor == pytest.approx(2.0)
    # Relative to the fastest, p: |2 - 4| on q as seen from p, |1 - 1| on p as seen from q.
    assert ceiling.mae == pytest.approx(1.0)


def test_constant_answers_are_the_most_common_order_and_the_platform_fastest_most_often() -> None:
    seconds = {"a": (1.0, 2.0, 3.0), "b": (1.0, 3.0, 2.0), "c": (1.0, 3.0, 2.0), "d": (2.0, 1.0, np.nan)}
    runs = [
        Run(app, "1", platform, time, counters={"c": 1.0})
        for app, times in seconds.items()
        for platform, time in zip("pqr", times, strict=True)
        if not np.isnan(time)
    ]
    # d, which never ran on r, does not vote for an order, and has q before p.
    assert ConstantAnswer.of(dataset.build(runs)) == ConstantAnswer("p", 3 / 4, ("p", "r", "q"), 2 / 4)
