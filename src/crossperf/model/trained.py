"""A trained model with everything needed to ask it: its columns by name, its platforms, and the cells it has seen."""

# N cells, W workloads, P platforms

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from crossperf.dataset.cells import Cells, TableFacts
from crossperf.dataset.features import Columns, Features
from crossperf.errors import DatasetError, some_of
from crossperf.model.fitted.model import FittedModel
from crossperf.versions import versions

if TYPE_CHECKING:
    from crossperf.dataset.features import FeatureSet
    from crossperf.dataset.pairing import Dataset
    from crossperf.model.base import Predictor
    from crossperf.prediction.answer import Answer

#: Training on fewer workloads teaches nothing about how workloads differ.
LEAST_WORKLOADS = 2


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A model that answers, on plain arrays.

    Parameters
    ----------
    cells, features
        The training cells and their features; none where an old file did not keep them.
    training
        Facts of the table it was trained on; ``None`` where an old file did not keep them.
    summary
        What the fit reports about itself.

    >>> from crossperf.datasets import toy
    >>> model = train(toy.make_table(apps=3, inputs=2, seed=1), "ridge")
    >>> len(model.counters), model.sources
    (17, ('cpu-a', 'cpu-b', 'gpu-a', 'gpu-b'))
    """

    name: str
    fitted: FittedModel
    cells: Cells
    features: Features
    settings: Mapping[str, Any] = field(default_factory=dict)
    training: TableFacts | None = None
    summary: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Predictor, data: Dataset) -> TrainedModel:
        """Return a model that has learned from a dataset."""
        kept = data.compact()
        facts = (model.get_params(), data.table, model.summary_, versions())
        features = kept.features.matched(model.fitted_.columns)
        return cls(model.name, model.fitted_, Cells(**kept.shared()), features, *facts)

    def __repr__(self) -> str:
        where, events = f" on {self.training.path}" if self.training else "", self.columns.events
        return (
            f"TrainedModel {self.name!r}, trained{where}\n"
            f"  {len(self.cells):,} cells of {len(self.workloads):,} workloads\n"
            f"  platforms: {some_of(self.platforms, 8)}\n"
            f"  {len(self.counters)} counters: {some_of(self.counters, 4)}"
            + (f"\n  {len(events)} events: {some_of(events, 4)}" if events else "")
        )

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms it predicts for, in the order of its answers."""
        return self.cells.platforms

    @property
    def workloads(self) -> tuple[tuple[str, str], ...]:
        """The workloads (app, input) of the training cells."""
        return self.cells.workloads

    @property
    def columns(self) -> Columns:
        """The columns of its features, by name."""
        return self.fitted.columns

    @property
    def counters(self) -> tuple[str, ...]:
        """The counters it was trained on."""
        return self.columns.counters

    @property
    def sources(self) -> tuple[str, ...]:
        """The platforms that a run may have been measured on; those added later can only be predicted."""
        return self.columns.sources

    @cached_property
    def offered(self) -> Mapping[str, frozenset[str]]:
        """The counters and events that training runs had, by the platform they were measured on."""
        known_nc, names_c = ~np.isnan(self.features.measured_nc), np.array(self.columns.measured, dtype=object)
        measured_pc = (known_nc[self.cells.source_n == p].any(axis=0) for p in range(len(self.sources)))
        return {name: frozenset(names_c[known_c]) for name, known_c in zip(self.sources, measured_pc, strict=True)}

    @cached_property
    def knows_of_limits(self) -> bool:
        """Whether its table tells of a workload that cannot run on some platform."""
        return not self.cells.runnable_wp.all()

    def predict(
        self,
        runs: Any,
        *,
        relative_to: str = "source",
        level: float = 0.8,
        can: Sequence[str] | None = None,
        joint: bool = False,
    ) -> Answer:
        """Return the relative times of runs on every platform; see `crossperf.predict`."""
        from crossperf.prediction.answer import predict

        return predict(self, runs, relative_to=relative_to, level=level, can=can, joint=joint)

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model as a folder that `crossperf.load` reads."""
        from crossperf.model.store import save

        save(self, folder, overwrite=overwrite)


def train(
    runs: Any,
    model: Any = "crossperf",
    *,
    seed: int = 0,
    platforms: Any = None,
    features: FeatureSet = "all",
    **settings: Any,
) -> TrainedModel:
    """Return a model trained on all of a table.

    Parameters
    ----------
    runs
        A path, a `RunsTable`, records, a data frame, or a `Dataset`.
    model
        The name of a model, or an unfitted one of crossperf's own classes.
    seed
        Seed of every random draw of the fit.
    platforms
        The platforms to learn about; all of the table's when ``None``.
    features
        What to learn from, as in `crossperf.build`; a `Dataset` brings its own.
    settings
        Settings of the model, such as ``trees=200``.

    Returns
    -------
    TrainedModel
        Ask it with ``predict``, keep it with ``save``.

    >>> from crossperf.datasets import toy
    >>> train(toy.make_table(apps=3, inputs=2, seed=1), "ridge").platforms
    ('cpu-a', 'cpu-b', 'gpu-a', 'gpu-b')
    """
    from crossperf import model as models
    from crossperf.dataset.pairing import Dataset, build
    from crossperf.model.wrapped import as_predictor

    made = models.make(model, **settings) if isinstance(model, str) else as_predictor(model)
    if isinstance(model, str) and "seed" in made.get_params() and "seed" not in settings:
        made.set_params(seed=seed)
    made.refuse_unless_savable()
    data = runs if isinstance(runs, Dataset) else build(runs, platforms=platforms, features=features)
    if len(np.unique(data.workload_n)) < LEAST_WORKLOADS:
        raise DatasetError(
            f"{data.table.path}: found a single workload, expected at least {LEAST_WORKLOADS} to learn how workloads "
            "differ. Measure more applications or inputs.",
            workloads=1,
        )
    return TrainedModel.of(made.learn(data), data)
