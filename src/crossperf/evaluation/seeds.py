"""Cross-validation repeated over seeds: how much of a score is the draw of the folds and of the models."""

# S seeds

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from crossperf.dataset.cells import Split
from crossperf.dataset.pairing import Dataset
from crossperf.display import CellView, RowView, TableView, numbers, to_html, to_text, words
from crossperf.errors import SettingsError
from crossperf.evaluation.parcels import pack
from crossperf.evaluation.pieces import STUDY, FoldAnswer
from crossperf.evaluation.result import Evaluation
from crossperf.evaluation.run import CrossValidation, Models
from crossperf.files import write_json
from crossperf.workers import Here, Kept, Progress, Workers

FORMAT = 1
#: The metrics that the table shows.
_SHOWN = ("typical_factor", "r2", "r2_log", "same_order", "order_beyond_noise", "top1", "slowdown")


@dataclass(frozen=True, repr=False)
class SeedStudy:
    """The evaluations of the same models on the same table under several seeds."""

    evaluations: tuple[Evaluation, ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the folds and of the models."""
        return tuple(own.seed for own in self.evaluations)

    @property
    def about(self) -> str:
        """What the numbers of the table are, in a sentence."""
        return (
            f"mean over {len(self.seeds)} seeds ({self.seeds[0]} to {self.seeds[-1]}) ± half of its 95 % interval; "
            f"{self.evaluations[0].about}"
        )

    @property
    def caveats(self) -> tuple[str, ...]:
        """What to know before believing them: those of any of the evaluations, each once."""
        return tuple(dict.fromkeys(caveat for own in self.evaluations for caveat in own.caveats))

    def interval(self, model: str, metric: str) -> tuple[float, float | None] | None:
        """Return the mean of a metric over the seeds and half of its 95 % interval; ``None`` where it is not defined.

        The interval tells how far the mean would be off with other seeds, not with other applications.
        """
        values = [own.scores[model][metric] for own in self.evaluations]
        value_s = np.array([value for value in values if value is not None])
        if not len(value_s):
            return None
        if len(value_s) < 2:
            return float(value_s.mean()), None
        half = stats.t.ppf(0.975, len(value_s) - 1) * value_s.std(ddof=1) / np.sqrt(len(value_s))
        return float(value_s.mean()), float(half)

    def table(self, caption: str = "") -> TableView:
        """Return a row for each model: the mean of each metric over the seeds, and half of its 95 % interval."""
        rows: list[RowView] = [
            (name, *(_cell(self.interval(name, metric)) for metric in _SHOWN)) for name in self.evaluations[0].scores
        ]
        return TableView(caption, (*words("model"), *numbers(*_SHOWN)), tuple(rows))

    def __repr__(self) -> str:
        return "\n".join([self.about, to_text(self.table())])

    def _repr_html_(self) -> str:
        return to_html(self.table(self.about))

    def to_json(self) -> dict[str, Any]:
        """Return the evaluations as JSON's own types, without the predictions of each cell."""
        means = {
            model: {metric: self.interval(model, metric) for metric in _SHOWN} for model in self.evaluations[0].scores
        }
        evaluations = [own.to_json(cells=False) for own in self.evaluations]
        return {"format": FORMAT, "seeds": list(self.seeds), "means": means, "evaluations": evaluations}

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write all of it as JSON; the file appears whole or not at all."""
        write_json(path, self.to_json())


def over_seeds(
    data: Dataset,
    models: Callable[[int], Models],
    seeds: Sequence[int],
    *,
    split: Split = "workload",
    n_folds: int = 5,
    scored_folds: int | None = None,
    progress: Progress | None = None,
    workers: Workers | None = None,
    kept: Kept | None = None,
) -> SeedStudy:
    """Return the scores of models under several seeds, whose folds are all pieces of one study.

    Parameters
    ----------
    models
        The models of a seed, as `crossperf.evaluate` takes them; names, since they travel.
    seeds
        Seeds of the folds and of the models.
    split, n_folds, scored_folds, progress, workers, kept
        As in `crossperf.evaluate`.

    >>> from crossperf.dataset import build
    >>> from crossperf.datasets import toy
    >>> data = build(toy.make_table(apps=4, inputs=3, seed=1))
    >>> over_seeds(data, lambda seed: ["ridge"], range(3), n_folds=2).seeds
    (0, 1, 2)
    """
    if not seeds or len(set(seeds)) < len(seeds):
        raise SettingsError(f"seeds: found {list(seeds)}, expected at least one, each once.", argument="seeds")
    plans = [CrossValidation.of(data, models(seed), split, n_folds, seed, scored_folds) for seed in seeds]
    table = pack(data)
    asked = [(plan, name) for plan in plans for _, name in plan.asked]
    questions = [own for plan in plans for own in plan.questions(table, f"seed {plan.seed} ")]
    by_place = dict(STUDY.answers(questions, workers or Here(), kept, progress))
    answers = [(plan, FoldAnswer.of(by_place[i], name)) for i, (plan, name) in enumerate(asked)]
    return SeedStudy(tuple(plan.evaluation([own for of, own in answers if of is plan]) for plan in plans))


def _cell(interval: tuple[float, float | None] | None) -> CellView | str:
    if interval is None:
        return "–"
    mean, half = interval
    return CellView(f"{mean:.3f}" + ("" if half is None else f" ± {half:.3f}"), mean)
