"""Adds a platform to a trained model from a few workloads that were measured there, and says which to measure."""

# N cells, F features, K workloads measured on the new platform, W workloads, P platforms

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crossperf import plain
from crossperf.adaptation import head
from crossperf.arrays import Floats, Integers
from crossperf.dataset.cells import Cells, Workload
from crossperf.dataset.features import Features
from crossperf.dataset.measured import Measured, measured_table
from crossperf.errors import DatasetError, ModelFolderError, SettingsError, did_you_mean, some_of
from crossperf.model.fitted.adapted import Adapted, add_platform
from crossperf.model.trained import TrainedModel
from crossperf.runs.table import RunsTable, Source, read_runs

Workloads = Sequence[Workload]
#: With fewer workloads than this, nothing beyond the general level can be learned.
LEAST = 2


@dataclass(frozen=True)
class Adaptation:
    """A model with one more platform, and what it was learned from."""

    model: TrainedModel
    platform: str
    platform_class: str
    #: The workloads it was learned from, and log(predicted / measured) of each from all the others.
    workloads: tuple[Workload, ...]
    left_out_k: Floats
    notes: tuple[str, ...]

    @property
    def left_out_factor(self) -> float:
        """The typical factor of each measured workload predicted from the others and its true times elsewhere."""
        return float(np.exp(np.abs(self.left_out_k).mean()))

    def to_json(self) -> dict[str, Any]:
        """Return the same facts as JSON's own types."""
        each = zip(self.workloads, np.exp(self.left_out_k).tolist(), strict=True)
        return {
            "format": 1,
            "platform": self.platform,
            "platform_class": self.platform_class,
            "known_platforms": list(self.model.platforms[:-1]),
            "left_out_factor": self.left_out_factor,
            "workloads": [{"app": app, "input": input_, "left_out": ratio} for (app, input_), ratio in each],
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Suggestion:
    """A workload to measure next on the new platform, and why."""

    app: str
    input: str
    #: The share of the variance that is left, over all known workloads, that measuring it takes away.
    gain: float
    why: str

    def to_json(self) -> dict[str, Any]:
        """Return the same facts as JSON's own types."""
        return dict(plain.to_json(self))


def adapt(model: TrainedModel, runs: Source, *, platform: str | None = None, seed: int = 0) -> Adaptation:
    """Return the model with the platform of new runs added; its predictions for the others stay as they are.

    Parameters
    ----------
    runs
        Runs on one platform that the model does not know, of workloads that it knows, or that the table also has
        on known platforms.
    platform
        Which platform to add, where the table has runs on several that are not known.

    Returns
    -------
    Adaptation
        ``.model`` is the new model; ``.left_out_factor`` estimates how good its new column is.

    >>> from crossperf.datasets import toy
    >>> from crossperf.model import train
    >>> runs = toy.make_runs(apps=3, inputs=2, seed=1)
    >>> known = train([run for run in runs if run.platform != "gpu-b"], "ridge")
    >>> adapt(known, [run for run in runs if run.platform == "gpu-b"]).model.platforms
    ('cpu-a', 'cpu-b', 'gpu-a', 'gpu-b')
    """
    new = _read(model, runs, platform)
    if len(new.shots) < LEAST:
        raise DatasetError(
            f"{new.where}: found {len(new.shots)} usable workloads on {new.platform!r}, expected at least {LEAST} that "
            f"the model knows (such as {_words(model.workloads[:3])}) or that the table also has on a known platform. "
            "'crossperf adapt MODEL --suggest 5' names good ones.",
            platform=new.platform,
        )
    fitted_head = head.fit_head(new.known, new.shots, new.log_time_k, seed)
    log_time_w = np.full(len(new.cells.workloads), np.nan)
    log_time_w[new.shots] = new.log_time_k
    cells = replace(
        new.cells,
        platforms=(*model.platforms, new.platform),
        platform_classes=(*model.cells.platform_classes, new.platform_class),
        log_time_wp=np.column_stack([new.cells.log_time_wp, log_time_w]),
    )
    fitted = add_platform(model.fitted, fitted_head, new.platform)
    added = fitted.part.summary if isinstance(fitted.part, Adapted) else []
    summary = {"base": model.name, **model.summary, "added": added}
    grown = replace(model, name="adapted", fitted=fitted, cells=cells, features=new.features, summary=summary)
    used = tuple(new.cells.workloads[w] for w in new.shots)
    return Adaptation(grown, new.platform, new.platform_class, used, fitted_head.left_out_k, tuple(new.notes))


def suggest(
    model: TrainedModel, count: int, runs: Source | None = None, *, platform: str | None = None, seed: int = 0
) -> list[Suggestion]:
    """Return which known workloads to measure next on a new platform to learn most, the best first.

    Parameters
    ----------
    count
        How many to name.
    runs
        What was measured on it already; ``None`` for nothing.

    Returns
    -------
    list of Suggestion
        Each with the share of the remaining variance that measuring it takes away, and why.

    >>> from crossperf.datasets import toy
    >>> from crossperf.model import train
    >>> len(suggest(train(toy.make_table(apps=3, inputs=2, seed=1), "ridge"), count=2))
    2
    """
    if count < 1:
        raise SettingsError(f"count: found {count}, expected 1 or more workloads.", argument="count", count=count)
    weights_g = None
    if runs is None:
        known, shots, workloads = _known(model), np.empty(0, np.int64), model.workloads
    else:
        new = _read(model, runs, platform)
        known, shots, workloads = new.known, new.shots, new.cells.workloads
        if len(shots) >= LEAST:
            weights_g = head.fit_head(known, shots, new.log_time_k, seed).setting_weights_g
    choices = head.suggest(known, count, shots, setting_weights_g=weights_g, seed=seed)
    return [
        Suggestion(
            *workloads[choice.workload], choice.gain, _why(choice, model.sources, first=not i and not len(shots))
        )
        for i, choice in enumerate(choices)
    ]


def _why(choice: head.Suggested, platforms: Sequence[str], *, first: bool) -> str:
    if first:
        return "ordinary, so it sets the general level"
    if abs(choice.stands_out) < 1.0:
        return "ordinary, and stands for many"
    word = "slow" if choice.stands_out > 0 else "fast"
    often = "very" if abs(choice.stands_out) > 2.0 else "rather"
    return f"{often} {word} on {platforms[choice.platform]} for a workload"


@dataclass(frozen=True, eq=False)
class _New:
    """New runs beside what the model knows: its cells and features, with those that the table adds."""

    where: str
    platform: str
    platform_class: str
    cells: Cells
    features: Features
    shots: Integers
    log_time_k: Floats
    notes: list[str]

    @property
    def known(self) -> head.KnownWorkloads:
        return head.KnownWorkloads.of(self.cells, self.features)


def _known(model: TrainedModel) -> head.KnownWorkloads:
    if not model.workloads or not len(model.features):
        raise ModelFolderError(
            "The model was saved without the times and features of its training workloads, expected both. Train it "
            "again with this crossperf."
        )
    return head.KnownWorkloads.of(model.cells, model.features)


def _read(model: TrainedModel, runs: Source, platform: str | None) -> _New:
    _known(model)
    table = read_runs(runs)
    measured = measured_table(table)
    name = _new_platform(table, measured, model, platform)
    cell_of_n = zip(measured.workload_of_n, measured.platform_n, strict=True)
    time_of = dict(zip(cell_of_n, measured.runtime_s_n.tolist(), strict=True))
    on_new = [workload for workload in measured.workloads if (workload, name) in time_of]
    trained_on = set(model.workloads)
    added = [w for w in on_new if w not in trained_on and any((w, source) in time_of for source in model.sources)]
    cells, features = _with_added(model, measured, added)
    number = {workload: i for i, workload in enumerate(cells.workloads)}
    used = [workload for workload in on_new if workload in number]
    return _New(
        where=table.path,
        platform=name,
        platform_class=table.platform_classes.get(name, "unknown"),
        cells=cells,
        features=features,
        shots=np.array([number[workload] for workload in used], dtype=np.int64),
        log_time_k=np.log([time_of[workload, name] for workload in used]),
        notes=_notes(measured, model, name, on_new, used, added),
    )


def _with_added(model: TrainedModel, measured: Measured, added: Workloads) -> tuple[Cells, Features]:
    """Return the model's cells and features, with those on known platforms of workloads that it does not know."""
    cells = model.cells
    workloads = (*cells.workloads, *added)
    number = {workload: i for i, workload in enumerate(workloads)}
    log_time_wp = np.vstack([cells.log_time_wp, np.full((len(added), len(cells.platforms)), np.nan)])
    of_added = zip(measured.workload_of_n, measured.platform_n, strict=True)
    rows = [i for i, (workload, on) in enumerate(of_added) if workload in set(added) and on in model.sources]
    stated = dict(zip(measured.workload_of_n, measured.runnable_n, strict=False))
    runnable_w = (*(cells.runnable_w or [None] * len(cells.workloads)), *(stated.get(own) for own in added))
    cells = replace(cells, workloads=workloads, log_time_wp=log_time_wp, runnable_w=runnable_w)
    if not rows:
        return cells, model.features
    own = measured.take(rows)
    workload_m = np.array([number[workload] for workload in own.workload_of_n], dtype=np.int64)
    features = own.features(model.columns)
    log_time_wp[workload_m, features.source_n] = np.log(own.runtime_s_n)
    grown = replace(
        cells,
        log_time_wp=log_time_wp,
        workload_n=np.append(cells.workload_n, workload_m),
        source_n=np.append(cells.source_n, features.source_n),
    )
    return grown, Features(np.vstack([model.features.values_nf, features.values_nf]), model.columns)


def _new_platform(table: RunsTable, measured: Measured, model: TrainedModel, platform: str | None) -> str:
    """Return the platform to add, or raise where it is not clear or known already."""
    measured_on = sorted(set(measured.platform_n))
    unknown = [name for name in measured_on if name not in model.platforms]
    if platform in model.platforms:
        raise DatasetError(
            f"platform: found {platform!r}, which the model knows already, expected a new one. Train a model again "
            "to learn more about a known platform.",
            argument="platform",
            platform=platform,
        )
    if platform is not None and platform not in measured_on:
        raise DatasetError(
            f"platform: found {platform!r}{did_you_mean(platform, measured_on)}, without a successful run in "
            f"{table.path}, expected one of {some_of(unknown) or 'its platforms'}.",
            argument="platform",
            platform=platform,
        )
    if platform is None and not unknown:
        raise DatasetError(
            f"{table.path}: found runs on {some_of(measured_on) or 'no platform'} alone, which the model knows, "
            f"expected runs on exactly one that it does not know. The model knows {some_of(model.platforms, 20)}.",
            platforms=measured_on,
        )
    if platform is None and len(unknown) > 1:
        raise DatasetError(
            f"platform: none was named, and {table.path} has runs on {len(unknown)} platforms that the model does not "
            f"know, expected one of {some_of(unknown)}.",
            argument="platform",
            platforms=unknown,
        )
    return platform or unknown[0]


def _notes(
    measured: Measured, model: TrainedModel, name: str, on_new: Workloads, used: Workloads, added: Workloads
) -> list[str]:
    notes = []
    if measured.failed_runs:
        notes.append(f"{measured.failed_runs:,} failed runs were left out.")
    strange = [workload for workload in on_new if workload not in set(used)]
    if strange:
        notes.append(
            f"{len(strange):,} workloads on {name!r} were not used ({_words(strange)}): the model does not know them, "
            "and the table has them on no known platform."
        )
    if added:
        notes.append(f"{len(added):,} workloads that the model did not know were used with the table's own times.")
    others = sorted(set(measured.platform_n) - {name, *model.sources})
    if others:
        notes.append(f"runs on {some_of(others)} were not used; add one platform at a time.")
    pairs = zip(measured.workload_of_n, measured.platform_n, strict=True)
    unused = sum(platform in model.sources and workload not in set(added) for workload, platform in pairs)
    if unused:
        notes.append(f"{unused:,} cells on known platforms were not used; the model's own times stand.")
    return notes


def _words(workloads: Workloads) -> str:
    return some_of([f"{app} {input_}" for app, input_ in workloads], 3)
