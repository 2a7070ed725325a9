"""What to measure next: counters that a run lacks, and platforms whose time would help the choice most.

A platform is worth measuring by its expected improvement: how much shorter the run is expected to be on the platform
that is chosen once the time there is known, over the choice by predictions alone (Jones et al. 1998).
"""

# N cells, B draws, P platforms

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crossperf.arrays import Floats
from crossperf.dataset.cells import relative_to
from crossperf.model.trained import TrainedModel
from crossperf.prediction.answer import Question, ask
from crossperf.prediction.runnable import offer


@dataclass(frozen=True)
class NextPlatform:
    """A platform to time the run on; `saves` is the share of the run's time that knowing it is expected to save."""

    platform: str
    saves: float | None


@dataclass(frozen=True)
class NextMeasurements:
    """What to measure next for one run: counters that its source offers and it lacks, and platforms, best first."""

    app: str
    input: str
    source: str
    counters: tuple[str, ...]
    platforms: tuple[NextPlatform, ...]


def next_measurements(model: TrainedModel, runs: Any, *, can: Sequence[str] | None = None) -> list[NextMeasurements]:
    """Return what to measure next for each run.

    Parameters
    ----------
    can
        Where there is a version of the program, as for `crossperf.predict`.

    >>> from crossperf.datasets import toy
    >>> from crossperf.model import train
    >>> runs = toy.make_runs(apps=3, inputs=2, seed=1)
    >>> [platform.platform for platform in next_measurements(train(runs, "ridge"), runs[0])[0].platforms][-1] != "cpu-a"
    True
    """
    question = runs if isinstance(runs, Question) else ask(model, runs)
    measured, features = question.measured, question.features
    offered_np = offer(model, measured, can).offered_np
    forecast = model.fitted.forecast(features) if model.fitted.forecasts else None
    log_np = model.fitted.predict(features) if forecast is None else forecast.log_relative_np
    log_np = relative_to(log_np, features.source_n)
    drawn_nbp = None if forecast is None else forecast.drawn(features.source_n)
    cells = zip(measured.app_n, measured.input_n, measured.platform_n, strict=True)
    wanted = []
    for i, cell in enumerate(cells):
        others = [p for p in np.flatnonzero(offered_np[i]).tolist() if p != features.source_n[i]]
        order = sorted(others, key=lambda p: log_np[i, p])
        platforms = [NextPlatform(model.platforms[p], None) for p in order]
        if drawn_nbp is not None:
            saves = {p: _saves(drawn_nbp[i], p, np.flatnonzero(offered_np[i])) for p in others}
            platforms = [NextPlatform(model.platforms[p], saves[p]) for p in sorted(others, key=lambda p: -saves[p])]
        wanted.append(NextMeasurements(*cell, _lacking(model, question, i), tuple(platforms)))
    return wanted


def _saves(drawn_bp: Floats, platform: int, offered: Any) -> float:
    """Return the share of the time that knowing one platform's time is expected to save."""
    mean_p = drawn_bp.mean(axis=0)
    rest = [p for p in offered.tolist() if p != platform]
    best_rest = float(mean_p[rest].min()) if rest else math.inf
    known = float(np.minimum(drawn_bp[:, platform], best_rest).mean())
    return max(0.0, 1.0 - math.exp(known - min(best_rest, float(mean_p[platform]))))


def _lacking(model: TrainedModel, question: Question, cell: int) -> tuple[str, ...]:
    """Return the counters that training runs on a run's platform had and it has not."""
    measured = question.measured
    values = dict(zip(measured.names, measured.values_nc[cell].tolist(), strict=True))
    offered = model.offered[measured.platform_n[cell]]
    return tuple(name for name in model.counters if name in offered and math.isnan(values.get(name, math.nan)))
