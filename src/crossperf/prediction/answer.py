"""Answers for new runs, which are matched to a model by name: relative times, intervals, chances and familiarity."""

# N cells, P platforms

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, repeat
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import numpy as np

from crossperf.arrays import Floats, Mask
from crossperf.dataset.cells import relative_to as relative
from crossperf.dataset.features import COUNTER, MEASURED, RUN_TIME, Features, FeatureSet
from crossperf.dataset.measured import Measured, measured_runs, measured_table
from crossperf.dataset.plainly import measured_plainly
from crossperf.errors import PredictError, did_you_mean, several, some_of
from crossperf.model.fitted.confidence import Forecast
from crossperf.model.trained import TrainedModel
from crossperf.prediction.runnable import Offer, offer
from crossperf.records import FAMILIAR, Familiarity, Prediction
from crossperf.runs.checking import few

if TYPE_CHECKING:
    from crossperf.prediction.explain import Explanations

#: Cells whose errors are drawn at a time.
_CHUNK = 256
#: Counters named as the reason for a run's being unusual.
_REASONS = 3
_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Question:
    """The cells of some runs with their features in the columns of a model, and notes on what it has to do without."""

    measured: Measured
    features: Features
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.measured)

    def take(self, rows: Sequence[int]) -> Question:
        """Return these cells alone."""
        return Question(self.measured.take(rows), self.features[list(rows)], self.notes)


def ask(model: TrainedModel, source: Any) -> Question:
    """Return runs matched to a model: counters and events by name, an absent one as not measured.

    Runs are a path, a `RunsTable`, a data frame, or records; a few records never touch a query engine.
    """
    measured = measure(source, features="all" if model.columns.events else "counters")
    if not len(measured):
        raise PredictError(f"{measured.where}: found no successful run, expected at least one to predict from.")
    _refuse_unknown_platforms(measured, model)
    return Question(measured, measured.features(model.columns), _notes(measured, model))


def measure(source: Any, *, need_runtime: bool = False, features: FeatureSet = "all") -> Measured:
    """Return what was measured, from whatever it comes as; ``features`` is what to read of a large table."""
    if isinstance(source, Measured):
        return source
    plain = measured_plainly(source) if isinstance(source, list) and not need_runtime else None
    if plain is not None:
        return plain
    runs = few(source, need_runtime=need_runtime)
    if runs is not None:
        return measured_runs(runs, fspath(source) if isinstance(source, str | PathLike) else "runs")
    from crossperf.runs.table import read_runs

    return measured_table(read_runs(source, need_runtime=need_runtime), features=features)


def _refuse_unknown_platforms(measured: Measured, model: TrainedModel) -> None:
    known = model.sources
    unknown = sorted(set(measured.platform_n) - set(known))
    if unknown and unknown[0] in model.platforms:
        raise PredictError(
            f"{measured.where}: found runs on {unknown[0]!r}, which was added with 'crossperf adapt' and can be "
            f"predicted but not predicted from, expected runs on {some_of(known, 20)}. Train a model with its runs.",
            platforms=unknown,
        )
    if unknown:
        raise PredictError(
            f"{measured.where}: platform {unknown[0]!r} was seen in no training row"
            f"{did_you_mean(unknown[0], known)}, expected runs on {some_of(known, 20)}. Rename it if it is one of "
            "these, or train with runs of it.",
            platforms=unknown,
        )


def _notes(measured: Measured, model: TrainedModel) -> tuple[str, ...]:
    """Return what the model has to do without, and what it does not use.

    Counters that runs on the same platforms did not have in training either are not worth a note.
    """
    # Of a model that kept no cells it is not known what its sources offer, so every absent counter is named.
    columns, known = model.columns, set(measured.names)
    offered = {name for platform in set(measured.platform_n) for name in model.offered[platform]}
    offered = offered or set(columns.measured)
    extra = [name for name in measured.counters if name not in set(model.counters)]
    notes = []
    for trained, what in ((columns.counters, "counters"), (columns.events, "events")):
        absent = [name for name in trained if name not in known and name in offered]
        if absent:
            notes.append(
                f"{measured.where} lacks {len(absent)} of the {len(trained)} {what} it was trained on "
                f"({some_of(absent)}): they count as not measured, and the answer is less certain."
            )
    if extra:
        notes.append(f"{len(extra)} counters the model does not know were not used ({some_of(extra)}).")
    if measured.failed_runs:
        notes.append(f"{measured.failed_runs:,} failed runs of {measured.where} were left out.")
    return tuple(notes)


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
    can: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.predictions)

    def __repr__(self) -> str:
        lines = [f"Answer: {several(len(self), 'prediction')}"]
        for prediction in self.predictions[:_SHOWN]:
            times = ", ".join(_time(prediction, name) for name in list(prediction.relative_time)[:6])
            lines.append(f"  {prediction.app} {prediction.input} from {prediction.source}: {times}")
        return "\n".join(lines + (["  ..."] if len(self) > _SHOWN else []))

    def _repr_html_(self) -> str:
        return str(self.to_frame()._repr_html_())

    def to_frame(self) -> Any:
        """Return one row for each run and platform: pandas where it is installed, otherwise Polars."""
        from crossperf.runs.frames import to_frame

        figures = ("relative_time", "seconds", "low", "high", "chance_fastest")
        rows = [
            {
                **{name: getattr(prediction, name) for name in ("app", "input", "source")},
                "platform": platform,
                **{name: getattr(prediction, name).get(platform) for name in figures},
                "familiarity": prediction.familiarity.word if prediction.familiarity else None,
                "cannot": prediction.cannot.get(platform),
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
        return explain(self.model, self.question, platform, can=self.can, **options)


def _time(prediction: Prediction, platform: str) -> str:
    return f"{platform} {prediction.cannot.get(platform) or f'{prediction.relative_time[platform]:.3g}x'}"


def predict(
    model: TrainedModel,
    runs: Any,
    *,
    relative_to: str = "source",
    level: float = 0.8,
    can: Sequence[str] | None = None,
    joint: bool = False,
) -> Answer:
    """Return the relative times of runs on every platform that a model knows and that can run them.

    Parameters
    ----------
    model
        What `crossperf.train` or `crossperf.load` returned.
    runs
        A path, a `RunsTable`, records, or a data frame; runs without a runtime are welcome.
    relative_to
        ``source`` (where the run was measured), ``fastest`` or ``slowest`` (of those predicted), or a platform's name.
    level
        How often each interval should hold the truth.
    can
        The platform classes or platforms for which there is a version of the program, such as ``("cpu", "gpu")``;
        that of the run itself is understood. ``None``: as ``runnable`` of the runs says. Where that says nothing, a
        model whose table tells of workloads that cannot run everywhere offers the class on which the run was profiled.
    joint
        Whether the intervals of a run should hold all at once that often; they are wider then.

    Returns
    -------
    Answer
        One `Prediction` for each workload and source platform, ``to_frame()`` and ``explain()``.

    >>> from crossperf.datasets import toy
    >>> from crossperf.model import train
    >>> runs = toy.make_runs(apps=3, inputs=2, seed=1)
    >>> predict(train(runs, "ridge"), runs[0], relative_to="gpu-a").predictions[0].relative_time["gpu-a"]
    1.0
    """
    question = runs if isinstance(runs, Question) else ask(model, runs)
    return answered(model, question, relative_to=relative_to, level=level, can=can, joint=joint)


def answered(
    model: TrainedModel,
    question: Question,
    *,
    relative_to: str = "source",
    level: float = 0.8,
    can: Sequence[str] | None = None,
    joint: bool = False,
    pairs: bool = True,
    forecast: Forecast | None = None,
    threads: int = 1,
) -> Answer:
    """Return the answer to a question, as `predict` does.

    Parameters
    ----------
    pairs
        Whether to tell how likely each platform beats each other one, which is most of a large answer.
    forecast
        That of the question's cells, where it was made already, together with others.
    threads
        How many chunks of cells are worked on at the same time.
    """
    if not 0.0 < level < 1.0:
        message = f"level: found {level:g}, expected a share between 0 and 1, such as 0.8."
        raise PredictError(message, argument="level", level=level)
    if relative_to not in ("source", "fastest", "slowest", *model.platforms):
        raise PredictError(
            f"relative_to: found {relative_to!r}{did_you_mean(relative_to, model.platforms)}, expected 'source', "
            f"'fastest', 'slowest' or one of the model's platforms: {some_of(model.platforms, 20)}.",
            argument="relative_to",
            relative_to=relative_to,
        )
    offered = offer(model, question.measured, can)
    if relative_to in model.platforms:
        offered.refuse_reference(relative_to)
    starts = range(0, len(question), _CHUNK)
    how = (relative_to, level, joint, pairs, forecast)

    def chunk(start: int) -> list[Prediction]:
        return list(_predictions(model, question, offered, slice(start, start + _CHUNK), *how))

    if threads == 1 or len(starts) == 1:
        chunks = list(map(chunk, starts))
    else:  # NumPy lets go of the interpreter's lock for most of it
        with ThreadPoolExecutor(threads) as pool:
            chunks = list(pool.map(chunk, starts))
    return Answer(tuple(chain.from_iterable(chunks)), question.notes, model, question, can)


def _predictions(
    model: TrainedModel,
    question: Question,
    offered: Offer,
    rows: slice,
    relative_to: str,
    level: float,
    joint: bool,
    pairs: bool,
    known: Forecast | None,
) -> Iterator[Prediction]:
    """Yield the predictions of some cells, with what the model knows of its confidence."""
    features, measured, names = question.features[rows], question.measured, model.platforms
    source_n, runtime_s_n = question.features.source_n[rows], measured.runtime_s_n[rows]
    forecast = known[rows] if known else model.fitted.forecast(features) if model.fitted.forecasts else None
    offered_np, cannot_n = offered.offered_np[rows], offered.cannot[rows]
    log_np = relative(model.fitted.predict(features) if forecast is None else forecast.log_relative_np, source_n)
    log_np = np.where(offered_np, log_np, np.nan)
    if relative_to == "source":
        reference_n = source_n
    elif relative_to in ("fastest", "slowest"):
        reference_n = (np.nanargmin if relative_to == "fastest" else np.nanargmax)(log_np, axis=1)
    else:
        reference_n = np.full(len(log_np), names.index(relative_to))
    runs = zip(measured.app_n[rows], measured.input_n[rows], measured.platform_n[rows], strict=True)
    relative_np, seconds_np = np.exp(relative(log_np, reference_n)), np.exp(log_np) * runtime_s_n[:, None]
    confidence: Iterable[dict[str, Any]] = repeat({}, len(log_np))
    if forecast:
        low_high = forecast.between(level, reference_n, joint=joint)
        confidence = _confidence(model, forecast, low_high, offered_np, level, pairs)
    answers = zip(runs, relative_np, seconds_np, cannot_n, confidence, strict=True)
    for run, relative_p, seconds_p, cannot, facts in answers:
        seconds = {} if np.isnan(seconds_p).all() else _by_name(names, seconds_p)  # NaN without a runtime
        yield Prediction(*run, relative_to, _by_name(names, relative_p), seconds, **facts, cannot=cannot)


def _confidence(
    model: TrainedModel,
    forecast: Forecast,
    low_high: tuple[Floats, Floats],
    offered_np: Mask,
    level: float,
    pairs: bool,
) -> Iterator[dict[str, Any]]:
    """Yield intervals, chances and familiarity of each cell by the fields of a `Prediction`."""
    names, columns, novelty = model.platforms, model.columns, forecast.novelty
    low_np, high_np = (np.where(offered_np, np.exp(log_np), np.nan) for log_np in low_high)
    fastest_np = forecast.chance_fastest(offered_np)
    faster_npp: Sequence[Floats] = [np.empty((0, 0))] * len(low_np)
    if pairs:
        both_npp = offered_np[:, :, None] & offered_np[:, None, :]
        faster_npp = list(np.where(both_npp, forecast.chance_faster(), np.nan))
    # Counters have names that people know; raw events speak where there is nothing else.
    place_f = np.flatnonzero(columns.mask(*((COUNTER,) if columns.counters else MEASURED), RUN_TIME))
    for i, (word, score) in enumerate(zip(novelty.words, novelty.score_n.tolist(), strict=True)):
        strangest = np.argsort(-novelty.by_feature_nf[i, place_f])[:_REASONS] if word != FAMILIAR else ()
        yield {
            "level": level,
            "low": _by_name(names, low_np[i]),
            "high": _by_name(names, high_np[i]),
            "chance_fastest": _by_name(names, fastest_np[i]),
            "chance_faster": {name: _by_name(names, row_p) for name, row_p in zip(names, faster_npp[i], strict=pairs)},
            "familiarity": Familiarity(word, score, tuple(columns.names[place_f[f]] for f in strangest)),
        }


def _by_name(names: Sequence[str], values_p: Floats) -> dict[str, float]:
    # One NaN for all: it equals itself where objects are compared, as those read from a file are.
    return {name: math.nan if math.isnan(own) else own for name, own in zip(names, values_p.tolist(), strict=True)}
