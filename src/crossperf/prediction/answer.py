"""Answers for new runs from a saved model, with words for what it had to do without."""

# N cells, P platforms

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crossperf.dataset.build import Cells, Source, combine, encode, feature_names, open_table
from crossperf.errors import PredictError, did_you_mean, some_of
from crossperf.model.store import Saved
from crossperf.records import FAMILIAR, Familiarity, Prediction

if TYPE_CHECKING:
    from crossperf.model.ranges import Forecast

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Answer:
    """Predictions of the runs of a table, and what to know about all of them."""

    predictions: tuple[Prediction, ...]
    notes: tuple[str, ...] = ()


#: Cells whose errors are drawn at a time.
_CHUNK = 256
#: Counters named as the reason for a run's being unusual.
_REASONS = 3


def predict(saved: Saved, source: Source, *, relative_to: str = "source", level: float = 0.8) -> Answer:
    """Return the relative times of every cell of a table on every platform that the model knows.

    Parameters
    ----------
    relative_to
        ``source`` (where the run was measured), ``fastest`` (the fastest predicted), or a platform's name.
    level
        How often the ranges should hold the truth, for applications that the model has never seen.
    """
    if not 0.0 < level < 1.0:
        raise PredictError(f"--level: found {level:g}, expected a share between 0 and 1, such as 0.8.", level=level)
    if relative_to not in ("source", "fastest", *saved.platforms):
        raise PredictError(
            f"--relative-to: found {relative_to!r}{did_you_mean(relative_to, saved.platforms)}, expected 'source', "
            f"'fastest' or one of the model's platforms: {some_of(saved.platforms, 20)}.",
            relative_to=relative_to,
        )
    table = open_table(source, need_runtime=False)
    cells = combine(table)
    if not len(cells):
        raise PredictError(f"{table.path}: found no successful run, expected at least one to predict from.")
    _refuse_unknown_platforms(cells, saved, table.path)
    counters_nc, notes = match_counters(cells, saved.counters, table.path, _offered(saved, cells))
    if table.n_failed:
        notes.append(f"{table.n_failed:,} failed runs of {table.path} were left out.")
    source_n = np.array([saved.platforms.index(name) for name in cells.platform_n], dtype=np.int64)
    features_nf = encode(counters_nc, cells.runtime_s_n, source_n, len(saved.sources))
    chunks = range(0, len(cells), _CHUNK)
    log_relative_np: list[Floats] = []
    told: list[dict[str, Any]] = []
    for rows in (slice(start, start + _CHUNK) for start in chunks):
        if not hasattr(saved.model, "forecast"):
            log_relative_np.append(saved.model.predict(features_nf[rows]))
            told += [{}] * len(log_relative_np[-1])
            continue
        forecast = saved.model.forecast(features_nf[rows])
        log_relative_np.append(forecast.log_relative_np)
        told += _told(forecast, source_n[rows], saved, relative_to, level)
    return Answer(
        tuple(_predictions(np.concatenate(log_relative_np), told, cells, source_n, saved, relative_to)), tuple(notes)
    )


def _predictions(
    predicted_np: Floats,
    told: Sequence[dict[str, Any]],
    cells: Cells,
    source_n: NDArray[np.int64],
    saved: Saved,
    relative_to: str,
) -> Iterator[Prediction]:
    log_relative_np = relative_to_source(predicted_np, source_n)
    seconds_np = np.exp(log_relative_np) * cells.runtime_s_n[:, None]
    reference_n = _reference(log_relative_np, source_n, saved.platforms, relative_to)
    relative_np = np.exp(log_relative_np - np.take_along_axis(log_relative_np, reference_n[:, None], axis=1))
    for i, (relative_p, seconds_p) in enumerate(zip(relative_np.tolist(), seconds_np.tolist(), strict=True)):
        yield Prediction(
            cells.app_n[i],
            cells.input_n[i],
            cells.platform_n[i],
            relative_to,
            dict(zip(saved.platforms, relative_p, strict=True)),
            {} if np.isnan(cells.runtime_s_n[i]) else dict(zip(saved.platforms, seconds_p, strict=True)),
            **told[i],
        )


def _told(
    forecast: Forecast, source_n: NDArray[np.int64], saved: Saved, relative_to: str, level: float
) -> list[dict[str, Any]]:
    """Return what a prediction says beside its times: ranges, chances and familiarity, by the fields of the record."""
    reference_n = _reference(forecast.log_relative_np, source_n, saved.platforms, relative_to)
    low_np, high_np = forecast.between(level, reference_n)
    fastest_np, faster_npp = forecast.chance_fastest(), forecast.chance_faster()
    names = saved.platforms
    features = feature_names(saved.counters, saved.sources)
    told = []
    for i, word in enumerate(forecast.oddness.words):
        odd_f = forecast.oddness.by_feature_nf[i, : len(saved.counters) + 1]
        because = [] if word == FAMILIAR else np.argsort(-odd_f)[:_REASONS].tolist()
        told.append(
            {
                "level": level,
                "low": dict(zip(names, np.exp(low_np[i]).tolist(), strict=True)),
                "high": dict(zip(names, np.exp(high_np[i]).tolist(), strict=True)),
                "chance_fastest": dict(zip(names, fastest_np[i].tolist(), strict=True)),
                "chance_faster": {
                    name: dict(zip(names, chances, strict=True))
                    for name, chances in zip(names, faster_npp[i].tolist(), strict=True)
                },
                "familiarity": Familiarity(
                    word, float(forecast.oddness.score_n[i]), tuple(features[f] for f in because)
                ),
            }
        )
    return told


def relative_to_source(log_relative_np: Floats, source_n: NDArray[np.int64]) -> Floats:
    """Return predictions with the source platform at exactly 1x, which it is by definition."""
    return np.asarray(log_relative_np - np.take_along_axis(log_relative_np, source_n[:, None], axis=1))


def _offered(saved: Saved, cells: Cells) -> frozenset[str]:
    """Return the counters that runs on the platforms of these cells had in training; all where that was not kept."""
    sources = [saved.platforms.index(name) for name in set(cells.platform_n)]
    rows_nc = saved.features_nf[np.isin(saved.source_n, sources), : len(saved.counters)]
    if not len(rows_nc):
        return frozenset(saved.counters)
    there_c = np.asarray(~np.isnan(rows_nc).all(axis=0))
    return frozenset(name for name, there in zip(saved.counters, there_c, strict=True) if there)


def match_counters(
    cells: Cells, wanted: Sequence[str], where: str, offered: Collection[str] | None = None
) -> tuple[Floats, list[str]]:
    """Return the counters a model wants, by name and in its order; those the cells lack are NaN.

    The lacking ones are named, but for those that runs on the same platforms did not have in training either.

    The models take a missing counter as not measured, so the answer is coarser, not wrong by a made-up value.
    """
    there = {name: i for i, name in enumerate(cells.counters)}
    missing = [name for name in wanted if name not in there]
    extra = [name for name in cells.counters if name not in set(wanted)]
    if wanted and len(missing) == len(wanted):
        raise PredictError(
            f"{where}: found none of the {len(wanted)} counters that the model was trained on, expected "
            f"{some_of(wanted)}{did_you_mean(wanted[0], extra)}. Collect these counters, or train "
            "a model on the ones you have.",
            missing=missing,
        )
    notes = []
    told = [name for name in missing if offered is None or name in offered]
    if told:
        notes.append(
            f"{where} lacks {len(told)} of the {len(wanted)} counters it was trained on ({some_of(told)}): "
            "they count as not measured, and the answer is less certain."
        )
    if extra:
        notes.append(f"{len(extra)} counters the model does not know were not used ({some_of(extra)}).")
    nothing_n = np.full(len(cells), np.nan)
    columns = [cells.counters_nc[:, there[name]] if name in there else nothing_n for name in wanted]
    return np.stack(columns, axis=1) if columns else np.empty((len(cells), 0)), notes


def _refuse_unknown_platforms(cells: Cells, saved: Saved, where: str) -> None:
    known = saved.sources
    unknown = sorted(set(cells.platform_n) - set(known))
    if unknown and unknown[0] in saved.platforms:
        raise PredictError(
            f"{where}: found runs on {unknown[0]!r}, which was added with 'crossperf adapt' and can be predicted but "
            f"not predicted from, expected runs on {some_of(known, 20)}. Train a model with its runs.",
            platforms=unknown,
        )
    if unknown:
        raise PredictError(
            f"{where}: platform {unknown[0]!r} was seen in no training row{did_you_mean(unknown[0], known)}, expected "
            f"runs on {some_of(known, 20)}. Rename it if it is one of these, or train with runs of it.",
            platforms=unknown,
        )


def _reference(
    log_relative_np: Floats, source_n: NDArray[np.int64], platforms: Sequence[str], relative_to: str
) -> NDArray[np.int64]:
    """Return the number of each cell's reference platform."""
    if relative_to == "source":
        return source_n
    if relative_to == "fastest":
        return np.asarray(log_relative_np.argmin(axis=1))
    return np.full(len(log_relative_np), platforms.index(relative_to))
