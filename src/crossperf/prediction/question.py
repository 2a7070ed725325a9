"""Runs as a trained model sees them: the one place where new measurements are matched to a model by name."""

# N cells

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

from crossperf.arrays import Integers
from crossperf.dataset.features import Features
from crossperf.dataset.measured import Measured, measured_runs, measured_table
from crossperf.errors import PredictError, did_you_mean, some_of
from crossperf.model.trained import TrainedModel
from crossperf.runs.checking import few


@dataclass(frozen=True, eq=False)
class Question:
    """The cells of some runs with their features in the columns of a model, and notes on what it has to do without."""

    measured: Measured
    features: Features
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.measured)

    @property
    def source_n(self) -> Integers:
        """The number of each cell's source platform among the model's platforms."""
        return self.features.source_n

    def take(self, count: int | None) -> Question:
        """Return the first cells alone."""
        rows = range(len(self))[:count]
        return Question(self.measured.take(rows), self.features[list(rows)], self.notes)


def ask(model: TrainedModel, source: Any) -> Question:
    """Return runs matched to a model: counters by name, an absent one as not measured.

    Parameters
    ----------
    source
        A path, a `RunsTable`, a data frame, or records; a few records never touch a query engine.
    """
    measured = measure(source)
    if not len(measured):
        raise PredictError(f"{measured.where}: found no successful run, expected at least one to predict from.")
    _refuse_unknown_platforms(measured, model)
    return Question(measured, measured.features(model.columns), _notes(measured, model))


def measure(source: Any, *, need_runtime: bool = False) -> Measured:
    """Return what was measured, from whatever it comes as."""
    if isinstance(source, Measured):
        return source
    runs = few(source, need_runtime=need_runtime)
    if runs is not None:
        return measured_runs(runs, fspath(source) if isinstance(source, str | PathLike) else "runs")
    from crossperf.runs.table import read_runs

    return measured_table(read_runs(source, need_runtime=need_runtime))


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
    offered = {name for platform in set(measured.platform_n) for name in model.offered[platform]} or set(model.counters)
    absent = [name for name in model.counters if name not in set(measured.counters) and name in offered]
    extra = [name for name in measured.counters if name not in set(model.counters)]
    notes = []
    if absent:
        notes.append(
            f"{measured.where} lacks {len(absent)} of the {len(model.counters)} counters it was trained on "
            f"({some_of(absent)}): they count as not measured, and the answer is less certain."
        )
    if extra:
        notes.append(f"{len(extra)} counters the model does not know were not used ({some_of(extra)}).")
    if measured.failed_runs:
        notes.append(f"{measured.failed_runs:,} failed runs of {measured.where} were left out.")
    return tuple(notes)
