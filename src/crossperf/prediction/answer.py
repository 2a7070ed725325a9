"""Answers for new runs from a trained model: relative times, intervals, chances and familiarity."""

# N cells, P platforms

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from crossperf.arrays import Floats, Integers
from crossperf.dataset.cells import relative_to as relative
from crossperf.dataset.features import COUNTER, RUN_TIME
from crossperf.errors import PredictError, did_you_mean, some_of
from crossperf.model.fitted.intervals import Forecast
from crossperf.model.trained import TrainedModel
from crossperf.prediction.question import Question, ask
from crossperf.records import FAMILIAR, Familiarity, Prediction

if TYPE_CHECKING:
    from crossperf.prediction.explain import Explanations

#: Cells whose errors are drawn at a time.
_CHUNK = 256
#: Counters named as the reason for a run's being unusual.
_REASONS = 3
_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Answer:
    """The predictions of some runs, and notes on all of them.

    >>> from crossperf.datasets import toy
    >>> from crossperf.model import train
    >>> runs = toy.make_runs(apps=3, inputs=2, seed=1)
    >>> answer = train(runs, "ridge").predict(runs[:1])
    >>> answer.predictions[0].source, answer.to_frame().shape[0]
    ('cpu-a', 4)
    """

    predictions: tuple[Prediction, ...]
    notes: tuple[str, ...] = ()
    model: TrainedModel | None = field(default=None, repr=False)
    question: Question | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.predictions)

    def __repr__(self) -> str:
        lines = [f"Answer: {len(self):,} predictions"]
        for prediction in self.predictions[:_SHOWN]:
            times = ", ".join(f"{name} {time:.3g}x" for name, time in list(prediction.relative_time.items())[:6])
            lines.append(f"  {prediction.app} {prediction.input} from {prediction.source}: {times}")
        return "\n".join(lines + (["  ..."] if len(self) > _SHOWN else []))

    def _repr_html_(self) -> str:
        html = self.to_frame()._repr_html_()
        return str(html)

    def to_frame(self) -> Any:
        """Return one row for each run and platform: pandas where it is installed, otherwise Polars."""
        from crossperf.runs.frames import to_frame

        rows = [
            {
                "app": prediction.app,
                "input": prediction.input,
                "source": prediction.source,
                "platform": platform,
                "relative_time": prediction.relative_time[platform],
                "seconds": prediction.seconds.get(platform),
                "low": prediction.low.get(platform),
                "high": prediction.high.get(platform),
                "chance_fastest": prediction.chance_fastest.get(platform),
                "familiarity": prediction.familiarity.word if prediction.familiarity else None,
            }
            for prediction in self.predictions
            for platform in prediction.relative_time
        ]
        return to_frame({name: [row[name] for row in rows] for name in rows[0]})

    def explain(self, platform: str | None = None, **options: Any) -> Explanations:
        """Return which counters drive each prediction, and the nearest known workloads; see `explain.explain`."""
        from crossperf.prediction.explain import explain

        if self.model is None or self.question is None:
            raise PredictError("This answer was read from a file, expected one that a model just gave. Predict again.")
        return explain(self.model, self.question, platform, **options)


def predict(model: TrainedModel, runs: Any, *, relative_to: str = "source", level: float = 0.8) -> Answer:
    """Return the relative times of runs on every platform that a model knows.

    Parameters
    ----------
    model
        What `crossperf.train` or `crossperf.load` returned.
    runs
        A path, a `RunsTable`, records, or a data frame; runs without a runtime are welcome.
    relative_to
        ``source`` (where the run was measured), ``fastest`` (the fastest predicted), or a platform's name.
    level
        How often the intervals should hold the truth, for applications that the model has never seen.

    Returns
    -------
    Answer
        One `Prediction` for each workload and source platform, ``to_frame()`` and ``explain()``.
    """
    if not 0.0 < level < 1.0:
        message = f"level: found {level:g}, expected a share between 0 and 1, such as 0.8."
        raise PredictError(message, argument="level", level=level)
    if relative_to not in ("source", "fastest", *model.platforms):
        raise PredictError(
            f"relative_to: found {relative_to!r}{did_you_mean(relative_to, model.platforms)}, expected 'source', "
            f"'fastest' or one of the model's platforms: {some_of(model.platforms, 20)}.",
            argument="relative_to",
            relative_to=relative_to,
        )
    question = runs if isinstance(runs, Question) else ask(model, runs)
    predictions: list[Prediction] = []
    for start in range(0, len(question), _CHUNK):
        features = question.features[start : start + _CHUNK]
        forecast = model.fitted.forecast(features) if model.fitted.forecasts else None
        log_relative_np = model.fitted.predict(features) if forecast is None else forecast.log_relative_np
        part = _Chunk(model, question, start, relative_to, level, log_relative_np, forecast)
        predictions += part.predictions()
    return Answer(tuple(predictions), question.notes, model, question)


@dataclass(frozen=True, eq=False)
class _Chunk:
    """Some cells of a question with what the model predicts for them."""

    model: TrainedModel
    question: Question
    start: int
    relative_to: str
    level: float
    log_relative_np: Floats
    forecast: Forecast | None

    def predictions(self) -> list[Prediction]:
        """Return the records of these cells."""
        rows = slice(self.start, self.start + len(self.log_relative_np))
        source_n, runtime_s_n = self.question.source_n[rows], self.question.measured.runtime_s_n[rows]
        log_relative_np = relative(self.log_relative_np, source_n)
        reference_n = self._reference(log_relative_np, source_n)
        relative_np = np.exp(relative(log_relative_np, reference_n))
        seconds_np = np.exp(log_relative_np) * runtime_s_n[:, None]
        confidence = self._confidence(reference_n)
        measured, names = self.question.measured, self.model.platforms
        return [
            Prediction(
                measured.app_n[self.start + i],
                measured.input_n[self.start + i],
                measured.platform_n[self.start + i],
                self.relative_to,
                dict(zip(names, relative_p, strict=True)),
                {} if np.isnan(runtime_s_n[i]) else dict(zip(names, seconds_p, strict=True)),
                **confidence[i],
            )
            for i, (relative_p, seconds_p) in enumerate(zip(relative_np.tolist(), seconds_np.tolist(), strict=True))
        ]

    def _reference(self, log_relative_np: Floats, source_n: Integers) -> Integers:
        """Return the number of each cell's reference platform."""
        if self.relative_to == "source":
            return source_n
        if self.relative_to == "fastest":
            return np.asarray(log_relative_np.argmin(axis=1))
        return np.full(len(log_relative_np), self.model.platforms.index(self.relative_to))

    def _confidence(self, reference_n: Integers) -> list[dict[str, Any]]:
        """Return intervals, chances and familiarity by the fields of the record; nothing where the model has none."""
        if self.forecast is None:
            return [{}] * len(reference_n)
        low_np, high_np = self.forecast.between(self.level, reference_n)
        fastest_np, faster_npp = self.forecast.chance_fastest(), self.forecast.chance_faster()
        by_platform = [np.exp(low_np).tolist(), np.exp(high_np).tolist(), fastest_np.tolist()]
        names = self.model.platforms
        return [
            {
                "level": self.level,
                "low": dict(zip(names, low_p, strict=True)),
                "high": dict(zip(names, high_p, strict=True)),
                "chance_fastest": dict(zip(names, fastest_p, strict=True)),
                "chance_faster": {
                    n: dict(zip(names, row_p, strict=True)) for n, row_p in zip(names, faster, strict=True)
                },
                "familiarity": familiarity,
            }
            for low_p, high_p, fastest_p, faster, familiarity in zip(
                *by_platform, faster_npp.tolist(), self._familiarity(), strict=True
            )
        ]

    def _familiarity(self) -> Sequence[Familiarity]:
        """Return how familiar each run looks, with the counters that make it unusual."""
        assert self.forecast is not None  # noqa: S101
        novelty, columns = self.forecast.novelty, self.model.columns
        place_f = np.flatnonzero(columns.mask(COUNTER, RUN_TIME))
        share_nf = novelty.by_feature_nf[:, place_f]
        return [
            Familiarity(
                word,
                float(novelty.score_n[i]),
                ()
                if word == FAMILIAR
                else tuple(columns.names[place_f[f]] for f in np.argsort(-share_nf[i])[:_REASONS]),
            )
            for i, word in enumerate(novelty.words)
        ]
