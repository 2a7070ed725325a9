"""Adds a platform to a trained model from a few workloads that were measured there, and says which to measure."""

# N cells, F features, K workloads measured on the new platform, W workloads, P platforms

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossperf.dataset.build import Cells, Source, combine, encode, open_table
from crossperf.errors import DatasetError, ModelFolderError, SettingsError, did_you_mean, some_of
from crossperf.model import head
from crossperf.model.adapted import Adapted
from crossperf.model.store import Saved
from crossperf.prediction.answer import match_counters
from crossperf.runs.table import RunsTable

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Workload = tuple[str, str]

#: Fewer workloads than this tell nothing beyond the general level.
LEAST = 2


@dataclass(frozen=True)
class Adaptation:
    """A model with one more platform, and what it was learned from."""

    saved: Saved
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
            "known_platforms": list(self.saved.platforms[:-1]),
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
        return {"app": self.app, "input": self.input, "gain": self.gain, "why": self.why}


def adapt(saved: Saved, source: Source, *, platform: str | None = None, seed: int = 0) -> Adaptation:
    """Return the model with the platform of new runs added; what it predicted before stays as it is.

    Parameters
    ----------
    source
        Runs on one platform that the model does not know, of workloads that it knows, or that the table also has
        on known platforms.
    platform
        Which platform to add, where the table has runs on several that are not known.
    """
    new = _read(saved, source, platform)
    if len(new.shots) < LEAST:
        raise DatasetError(
            f"{new.where}: found {len(new.shots)} usable workloads on {new.platform!r}, expected at least {LEAST} that "
            f"the model knows (such as {_words(saved.workloads[:3])}) or that the table also has on a known platform. "
            "'crossperf adapt MODEL --suggest 5' names good ones.",
            platform=new.platform,
        )
    fitted = head.Head.fit(new.known, new.shots, new.log_time_k, seed)
    n_new = len(new.workloads) - len(saved.workloads)
    log_time_w = np.full(len(new.workloads), np.nan)
    log_time_w[new.shots] = new.log_time_k
    former_wp = np.vstack([saved.log_time_wp, np.full((n_new, len(saved.platforms)), np.nan)])
    former_wp[:, : len(saved.sources)] = new.known.log_time_wp
    grown = replace(
        saved,
        model=Adapted.added(saved.model, fitted, new.platform),
        platforms=(*saved.platforms, new.platform),
        platform_classes=(*saved.platform_classes, new.platform_class),
        workloads=new.workloads,
        log_time_wp=np.column_stack([former_wp, log_time_w]),
        features_nf=new.features_nf,
        source_n=new.source_n,
        workload_n=new.workload_n,
    )
    used = tuple(new.workloads[w] for w in new.shots)
    return Adaptation(grown, new.platform, new.platform_class, used, fitted.left_out_k, tuple(new.notes))


def suggest(
    saved: Saved, count: int, source: Source | None = None, *, platform: str | None = None, seed: int = 0
) -> list[Suggestion]:
    """Return which known workloads to measure next on a new platform to learn most, the best first.

    Parameters
    ----------
    source
        What was measured there already; ``None`` for nothing.
    """
    if count < 1:
        raise SettingsError(f"--suggest: found {count}, expected 1 or more workloads.", count=count)
    if source is None:
        known, shots, weights_g, workloads = _known(saved), np.empty(0, np.int64), None, saved.workloads
    else:
        new = _read(saved, source, platform)
        known, shots, workloads = new.known, new.shots, new.workloads
        enough = len(shots) >= LEAST
        weights_g = head.Head.fit(known, shots, new.log_time_k, seed).setting_weights_g if enough else None
    choices = head.suggest(known, count, shots, setting_weights_g=weights_g, seed=seed)
    return [
        Suggestion(
            *workloads[choice.workload], choice.gain, _why(choice, saved.sources, first=not i and not len(shots))
        )
        for i, choice in enumerate(choices)
    ]


def _why(choice: head.Choice, platforms: Sequence[str], *, first: bool) -> str:
    if first:
        return "ordinary, so it sets the general level"
    if abs(choice.stands_out) < 1.0:
        return "ordinary, and speaks for many"
    word = "slow" if choice.stands_out > 0 else "fast"
    often = "very" if abs(choice.stands_out) > 2.0 else "rather"
    return f"{often} {word} on {platforms[choice.platform]} for a workload"


@dataclass(frozen=True)
class _New:
    """New runs beside what the model knows: its workloads and cells, with those that the table adds."""

    where: str
    platform: str
    platform_class: str
    workloads: tuple[Workload, ...]
    known: head.Known
    features_nf: Floats
    source_n: Integers
    workload_n: Integers
    shots: Integers
    log_time_k: Floats
    notes: list[str]


def _known(saved: Saved) -> head.Known:
    if not saved.workloads or not len(saved.features_nf):
        raise ModelFolderError(
            "The model was saved without the times and features of its training workloads, expected them in "
            "workloads.json and cells.npz. Train it again with this crossperf."
        )
    return head.Known.of(
        saved.log_time_wp[:, : len(saved.sources)], saved.features_nf, saved.source_n, saved.workload_n
    )


def _read(saved: Saved, source: Source, platform: str | None) -> _New:
    _known(saved)
    table = open_table(source)
    cells = combine(table)
    name = _new_platform(table, cells, saved, platform)
    there = {workload: i for i, workload in enumerate(saved.workloads)}
    time_of = dict(zip(zip(cells.app_n, cells.input_n, cells.platform_n, strict=True), cells.runtime_s_n, strict=True))
    on_new = [workload for workload in _workloads(cells) if (*workload, name) in time_of]
    added = [
        workload
        for workload in on_new
        if workload not in there and any((*workload, known) in time_of for known in saved.sources)
    ]
    workloads = (*saved.workloads, *added)
    number = {workload: i for i, workload in enumerate(workloads)}
    used = [workload for workload in on_new if workload in number]
    log_time_wp = np.full((len(workloads), len(saved.sources)), np.nan)
    log_time_wp[: len(there)] = saved.log_time_wp[:, : len(saved.sources)]
    rows, features_mf, source_m = _added_cells(cells, saved, set(added), table.path)
    workload_m = np.array([number[(cells.app_n[i], cells.input_n[i])] for i in rows], dtype=np.int64)
    log_time_wp[workload_m, source_m] = np.log(cells.runtime_s_n[rows])
    features_nf = np.vstack([saved.features_nf, features_mf])
    source_n, workload_n = np.append(saved.source_n, source_m), np.append(saved.workload_n, workload_m)
    classes: Mapping[str, str] = {}
    if "platform_class" in table.frame.columns:
        classes = dict(table.frame.select("platform", "platform_class").drop_nulls().unique().iter_rows())
    return _New(
        where=table.path,
        platform=name,
        platform_class=classes.get(name, "unknown"),
        workloads=workloads,
        known=head.Known.of(log_time_wp, features_nf, source_n, workload_n),
        features_nf=features_nf,
        source_n=source_n,
        workload_n=workload_n,
        shots=np.array([number[workload] for workload in used], dtype=np.int64),
        log_time_k=np.log([time_of[(*workload, name)] for workload in used]),
        notes=_notes(table, cells, saved, name, on_new, used, added),
    )


def _new_platform(table: RunsTable, cells: Cells, saved: Saved, platform: str | None) -> str:
    """Return the platform to add, or raise where it is not clear or known already."""
    there = sorted(set(cells.platform_n))
    unknown = [name for name in there if name not in saved.platforms]
    if platform in saved.platforms:
        raise DatasetError(
            f"--platform: found {platform!r}, which the model knows already, expected a new one. Train a model again "
            "to learn more about a known platform.",
            platform=platform,
        )
    if platform is not None and platform not in there:
        raise DatasetError(
            f"{table.path}: found no successful run on {platform!r}{did_you_mean(platform, there)}, expected "
            f"--platform to be one of {some_of(unknown) or 'its platforms'}.",
            platform=platform,
        )
    if platform is None and len(unknown) != 1:
        found = f"{len(unknown)} ({some_of(unknown)})" if unknown else f"none among {some_of(there) or 'no runs'}"
        todo = "Name one with --platform." if unknown else f"The model knows {some_of(saved.platforms, 20)}."
        raise DatasetError(
            f"{table.path}: found {found} of the platforms that the model does not know, expected runs on exactly "
            f"one. {todo}",
            platforms=unknown,
        )
    return platform or unknown[0]


def _workloads(cells: Cells) -> list[Workload]:
    return list(dict.fromkeys(zip(cells.app_n, cells.input_n, strict=True)))


def _added_cells(cells: Cells, saved: Saved, added: set[Workload], where: str) -> tuple[Integers, Floats, Integers]:
    """Return the cells on known platforms of workloads that the model does not know: rows, features and sources."""
    rows = np.array(
        [
            i
            for i in range(len(cells))
            if (cells.app_n[i], cells.input_n[i]) in added and cells.platform_n[i] in saved.sources
        ],
        dtype=np.int64,
    )
    source_m = np.array([saved.sources.index(cells.platform_n[i]) for i in rows], dtype=np.int64)
    if not len(rows):
        return rows, np.empty((0, saved.features_nf.shape[1])), source_m
    counters_nc, _ = match_counters(cells, saved.counters, where)
    return rows, encode(counters_nc[rows], cells.runtime_s_n[rows], source_m, len(saved.sources)), source_m


def _notes(
    table: RunsTable,
    cells: Cells,
    saved: Saved,
    name: str,
    on_new: list[Workload],
    used: list[Workload],
    added: list[Workload],
) -> list[str]:
    notes = []
    if table.n_failed:
        notes.append(f"{table.n_failed:,} failed runs were left out.")
    strange = [workload for workload in on_new if workload not in set(used)]
    if strange:
        notes.append(
            f"{len(strange):,} workloads on {name!r} were not used ({_words(strange)}): the model does not know them, "
            "and the table has them on no known platform."
        )
    if added:
        notes.append(f"{len(added):,} workloads that the model did not know were used with the table's own times.")
    others = sorted(set(cells.platform_n) - {name, *saved.sources})
    if others:
        notes.append(f"runs on {some_of(others)} were not used; add one platform at a time.")
    known = sum(
        platform in saved.sources and workload not in set(added)
        for workload, platform in zip(zip(cells.app_n, cells.input_n, strict=True), cells.platform_n, strict=True)
    )
    if known:
        notes.append(f"{known:,} cells on known platforms were not used; the model's own times stand.")
    return notes


def _words(workloads: Sequence[Workload]) -> str:
    return some_of([f"{app} {input_}" for app, input_ in workloads], 3)
