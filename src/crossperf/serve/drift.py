"""Drift: how far off past predictions were, by model, platform and week, from the runs that came after them."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from crossperf.serve.store import ComparedRun


@dataclass(frozen=True)
class DriftFigures:
    """Errors of some predictions: the typical factor, the bias, and how often the interval held the truth.

    ``typical_factor`` is exp of the mean absolute log error (1.0 is perfect); ``bias`` is exp of the mean log error, so
    1.2 means that runs took 20 % longer than predicted. ``inside`` is the share of runs within their interval and
    ``level`` the share that was promised; both are ``None`` where no interval was kept.
    """

    name: str
    runs: int
    typical_factor: float
    bias: float
    inside: float | None
    level: float | None

    @classmethod
    def of(cls, name: str, outcomes: Sequence[ComparedRun]) -> DriftFigures:
        """Return the figures of some outcomes, of one at least.

        >>> rest = (10.0, 9.0, 30.0, 0.8, True)
        >>> figures = DriftFigures.of("q", [ComparedRun(0.0, "m", "a", "1", "p", "q", s, *rest) for s in (20.0, 5.0)])
        >>> round(figures.typical_factor, 6), round(figures.bias, 6), figures.inside
        (2.0, 1.0, 0.5)
        """
        logs = [math.log(own.actual_s / own.predicted_s) for own in outcomes]
        ranged = [own for own in outcomes if own.low_s is not None and own.high_s is not None]
        held = [(own.low_s or 0.0) <= own.actual_s <= (own.high_s or 0.0) for own in ranged]
        levels = [own.level for own in ranged if own.level is not None]
        return cls(
            name,
            len(outcomes),
            math.exp(statistics.fmean(map(abs, logs))),
            math.exp(statistics.fmean(logs)),
            statistics.fmean(held) if held else None,
            statistics.fmean(levels) if levels else None,
        )


@dataclass(frozen=True)
class Drift:
    """The figures of all outcomes, ``None`` without any, and of those of each model, platform and week."""

    overall: DriftFigures | None
    models: tuple[DriftFigures, ...] = ()
    platforms: tuple[DriftFigures, ...] = ()
    weeks: tuple[DriftFigures, ...] = ()


def drift(outcomes: Sequence[ComparedRun]) -> Drift:
    """Return how far off past predictions were."""
    if not outcomes:
        return Drift(None)
    return Drift(
        DriftFigures.of("all", outcomes),
        _by(outcomes, lambda own: own.model),
        _by(outcomes, lambda own: own.platform),
        _by(outcomes, _week),
    )


def _by(outcomes: Iterable[ComparedRun], key: Callable[[ComparedRun], str]) -> tuple[DriftFigures, ...]:
    groups: dict[str, list[ComparedRun]] = defaultdict(list)
    for own in outcomes:
        groups[key(own)].append(own)
    return tuple(DriftFigures.of(name, groups[name]) for name in sorted(groups))


def _week(outcome: ComparedRun) -> str:
    """Return the week of an outcome as ISO 8601 has it, such as 2026-W07."""
    year, week, _ = datetime.fromtimestamp(outcome.made, UTC).isocalendar()
    return f"{year}-W{week:02d}"
