"""Answers for new runs from a saved model, with words for what it had to do without."""

# N cells, P platforms

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crossperf.dataset import Cells, Source, combine, encode, open_table
from crossperf.errors import PredictError, did_you_mean, some_of
from crossperf.model.store import Saved
from crossperf.records import Prediction

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Answer:
    """Predictions of the runs of a table, and what to know about all of them."""

    predictions: tuple[Prediction, ...]
    notes: tuple[str, ...] = ()


def predict(saved: Saved, source: Source, *, relative_to: str = "source") -> Answer:
    """Return the relative times of every cell of a table on every platform that the model knows.

    Parameters
    ----------
    relative_to
        ``source`` (where the run was measured), ``fastest`` (the fastest predicted), or a platform's name.
    """
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
    counters_nc, notes = match_counters(cells, saved.counters, table.path)
    if table.n_failed:
        notes.append(f"{table.n_failed:,} failed runs of {table.path} were left out.")
    source_n = np.array([saved.platforms.index(name) for name in cells.platform_n], dtype=np.int64)
    features_nf = encode(counters_nc, cells.runtime_s_n, source_n, len(saved.sources))
    log_relative_np = relative_to_source(saved.model.predict(features_nf), source_n)
    seconds_np = np.exp(log_relative_np) * cells.runtime_s_n[:, None]
    relative_np = np.exp(log_relative_np - _log_reference(log_relative_np, saved.platforms, relative_to))
    predictions = tuple(
        Prediction(
            cells.app_n[i],
            cells.input_n[i],
            cells.platform_n[i],
            relative_to,
            dict(zip(saved.platforms, relative_p, strict=True)),
            {} if np.isnan(cells.runtime_s_n[i]) else dict(zip(saved.platforms, seconds_p, strict=True)),
        )
        for i, (relative_p, seconds_p) in enumerate(zip(relative_np.tolist(), seconds_np.tolist(), strict=True))
    )
    return Answer(predictions, tuple(notes))


def relative_to_source(log_relative_np: Floats, source_n: NDArray[np.int64]) -> Floats:
    """Return predictions with the source platform at exactly 1x, which it is by definition."""
    return np.asarray(log_relative_np - np.take_along_axis(log_relative_np, source_n[:, None], axis=1))


def match_counters(cells: Cells, wanted: Sequence[str], where: str) -> tuple[Floats, list[str]]:
    """Return the counters a model wants, by name and in its order; those the cells lack are NaN and named.

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
    if missing:
        notes.append(
            f"{where} lacks {len(missing)} of the {len(wanted)} counters it was trained on ({some_of(missing)}): "
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


def _log_reference(log_relative_np: Floats, platforms: Sequence[str], relative_to: str) -> Floats:
    """Return the log time of each cell's reference, itself relative to the source platform."""
    if relative_to == "source":
        return np.zeros((len(log_relative_np), 1))
    if relative_to == "fastest":
        return np.asarray(log_relative_np.min(axis=1, keepdims=True))
    return log_relative_np[:, [platforms.index(relative_to)]]
