"""What models scored, side by side: every metric, fold by fold and as a mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from crossperf import display
from crossperf.display import ColumnView, RowView, TableView
from crossperf.runs.frames import to_frame

#: The metrics in the order of the tables, with what each tells in a few words.
METRICS: dict[str, str] = {
    "typical_factor": "typical factor between predicted and measured time over that on the source; 1 is perfect",
    "r2": "variance of time over that on the fastest platform explained, mean over platforms; 1 is perfect",
    "r2_slowest": "variance of time over that on the slowest platform explained; 1 is perfect",
    "r2_speed": "variance of speed over that on the fastest platform explained; 1 is perfect",
    "r2_log": "variance of logarithms of relative times explained, where 2x too slow and 2x too fast weigh the same",
    "same_order": "share of cells whose whole order of platforms is right",
    "order_beyond_noise": "the same, counting only pairs of platforms that differ by more than the noise",
    "kendall_tau": "agreement of the order, pair by pair; 1 is the same, -1 reversed",
    "top1": "share of cells whose fastest platform is predicted",
    "top1_within_noise": "share of cells whose pick is the fastest platform, or within the noise of it",
    "slowdown": "time on the platform picked over time on the best",
    "order_auc": "area under the ROC curve of the most common order; 0.5 is chance",
    "mae": "mean absolute error of the times relative to the fastest platform",
}
#: The metrics of which less is better.
LOWER_IS_BETTER = frozenset({"mae", "typical_factor", "slowdown"})
_IN_BRIEF = ("typical_factor", "r2", "same_order", "top1", "slowdown")  # the metrics that the text form shows


@dataclass(frozen=True)
class Scores:
    """Every figure of one model; ``None`` where the data or the model leaves one undefined.

    ``coverage`` is the share of measured times inside the intervals, ``interval_factor`` the typical factor from the
    middle of an interval to its ends. ``share_familiar`` is the share of cells that look familiar to the model,
    ``factor_familiar`` their typical factor; so for the other words.
    """

    r2: float | None = None
    r2_slowest: float | None = None
    r2_speed: float | None = None
    r2_log: float | None = None
    mae: float | None = None
    typical_factor: float | None = None
    same_order: float | None = None
    order_beyond_noise: float | None = None
    kendall_tau: float | None = None
    top1: float | None = None
    top1_within_noise: float | None = None
    slowdown: float | None = None
    order_auc: float | None = None
    fit_s: float | None = None
    predict_s: float | None = None
    coverage: float | None = None
    interval_factor: float | None = None
    share_familiar: float | None = None
    factor_familiar: float | None = None
    share_unusual: float | None = None
    factor_unusual: float | None = None
    share_unknown: float | None = None
    factor_unknown: float | None = None

    def __getitem__(self, metric: str) -> float | None:
        value: float | None = getattr(self, metric)
        return value

    @classmethod
    def mean(cls, folds: Sequence[Scores]) -> Scores:
        """Return the mean of each figure over the folds that have it.

        >>> Scores.mean([Scores(r2=1.0), Scores(r2=0.0, order_auc=0.8)]).r2
        0.5
        """
        columns = {name: [fold[name] for fold in folds] for name in FIGURES}
        known = {name: [value for value in column if value is not None] for name, column in columns.items()}
        return cls(**{name: float(np.mean(column)) for name, column in known.items() if column})


#: Every figure of `Scores` by name.
FIGURES = tuple(figure.name for figure in fields(Scores))


@dataclass(frozen=True)
class ModelScores:
    """The scores of one model: the mean over the folds, and those of each fold."""

    mean: Scores
    folds: tuple[Scores, ...] = ()

    @classmethod
    def of(cls, folds: Sequence[Scores]) -> ModelScores:
        """Return the scores of folds, with their mean."""
        return cls(Scores.mean(folds), tuple(folds))


@dataclass(frozen=True, repr=False)
class Scoreboard:
    """The scores of models by name, beside the noise ceiling.

    >>> board = Scoreboard({"ridge": ModelScores.of([Scores(r2=0.5)])}, Scores(r2=0.9))
    >>> board["ridge"].r2, list(board), len(board.to_frame())
    (0.5, ['ridge'], 2)
    """

    models: Mapping[str, ModelScores] = field(default_factory=dict)
    #: What one half of the visits scores in predicting the other half.
    noise_ceiling: Scores = Scores()

    def __getitem__(self, model: str) -> Scores:
        return self.models[model].mean

    def __iter__(self) -> Iterator[str]:
        return iter(self.models)

    def __len__(self) -> int:
        return len(self.models)

    def items(self) -> list[tuple[str, Scores]]:
        """Return the models' names and mean scores."""
        return [(name, scores.mean) for name, scores in self.models.items()]

    def best(self, metric: str) -> float | None:
        """Return the best value of a metric among several models; ``None`` where there is nothing to compare."""
        values = [value for _, scores in self.items() if (value := scores[metric]) is not None]
        if len(values) < 2:
            return None
        return min(values) if metric in LOWER_IS_BETTER else max(values)

    def to_frame(self) -> Any:
        """Return a data frame with a row for each model and the noise ceiling: pandas if installed, else Polars."""
        rows = [*self.items(), ("noise ceiling", self.noise_ceiling)]
        figures = {name: [scores[name] for _, scores in rows] for name in FIGURES}
        return to_frame({"model": [name for name, _ in rows], **figures})

    def view(self, metrics: Sequence[str] = tuple(METRICS)) -> TableView:
        """Return the table of models and metrics, the best of each marked, the noise ceiling below."""
        best = {metric: self.best(metric) for metric in metrics}

        def row(name: str, scores: Scores, best: Mapping[str, float | None]) -> RowView:
            values = {metric: scores[metric] for metric in metrics}
            cells = [display.number(v, best=v is not None and v == best.get(metric)) for metric, v in values.items()]
            return (name, *cells, display.number(scores.fit_s, 2), display.number(scores.predict_s, 3))

        headings = [ColumnView(heading(metric), METRICS[metric]) for metric in metrics]
        seconds = (ColumnView("fit (s)", "seconds to fit one fold"), ColumnView("predict (s)", "to predict one fold"))
        return TableView(
            "Scores of the models on what was held out",
            (*display.words("model"), *headings, *seconds),
            tuple(row(name, scores, best) for name, scores in self.items()),
            (row("noise ceiling", self.noise_ceiling, {}),),
        )

    def __repr__(self) -> str:
        return display.to_text(self.view(_IN_BRIEF))

    def _repr_html_(self) -> str:
        return display.to_html(self.view())


def heading(metric: str) -> str:
    r"""Return a metric's name as a heading, with the direction that is better.

    >>> heading("same_order")
    'same order\xa0↑'
    """
    return f"{metric.replace('_', ' ')}\N{NO-BREAK SPACE}{'↓' if metric in LOWER_IS_BETTER else '↑'}"
