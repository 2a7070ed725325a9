"""A trained model as a folder: ``model.json`` and its numbers, readable without running anyone's code.

Networks keep a state dict (``weights.pt``, loaded with ``weights_only=True``), the others named arrays
(``arrays.npz``, loaded with ``allow_pickle=False``). ``workloads.json`` holds what the training workloads took
on each platform and ``cells.npz`` their features; a folder without them predicts all the same.
"""

# N cells, F features, W workloads, P platforms

from __future__ import annotations

import json
import os
import pickle
import platform
import zipfile
import zlib
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import crossperf.model as models
from crossperf import plain
from crossperf.dataset.build import Dataset
from crossperf.errors import CrossperfError, ModelFolderError
from crossperf.files import Folder
from crossperf.model.base import Predictor, State

FORMAT = 2
#: What reading a damaged folder can raise, in the libraries underneath.
_DAMAGE = (
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    OSError,
    RuntimeError,
    EOFError,
    pickle.UnpicklingError,
    zipfile.BadZipFile,
    zlib.error,
)
_DESCRIPTION = "model.json"
_WORKLOADS = "workloads.json"
_CELLS = "cells.npz"
_CELL_FIELDS = ("features_nf", "source_n", "workload_n")
_FOLDER = Folder("model", lambda folder: (folder / _DESCRIPTION).is_file(), ModelFolderError)


@dataclass(frozen=True)
class Saved:
    """A trained model with what is needed to ask it: its counters and platforms, in their order."""

    model: Predictor
    counters: tuple[str, ...]
    platforms: tuple[str, ...]
    platform_classes: tuple[str, ...]
    #: What it was trained on: the table's facts and how many cells.
    training: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    #: The workloads (app, input) of the training cells; none where an older crossperf saved the model.
    workloads: tuple[tuple[str, str], ...] = ()
    #: Their log seconds on each platform, NaN where one never ran there.
    log_time_wp: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    #: The features of the training cells, with the number of each cell's source platform and workload.
    features_nf: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    source_n: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    workload_n: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def sources(self) -> tuple[str, ...]:
        """The platforms that a run may have been measured on; those added later can only be predicted."""
        return self.platforms[: len(self.platforms) - self.model.n_added]

    @classmethod
    def of(cls, model: Predictor, data: Dataset) -> Saved:
        """Return a model trained on a dataset, ready to be saved."""
        training = {**plain.to_json(data.table), "cells": len(data)}
        there_w, workload_n = np.unique(data.workload_n, return_inverse=True)
        workloads = tuple(data.workloads[w] for w in there_w)
        about = (model, data.counters, data.platforms, data.platform_classes, training, versions())
        cells = (data.features_nf, data.source_n, workload_n.astype(np.int64))
        return cls(*about, workloads, data.log_time_wp[there_w], *cells)


def save(saved: Saved, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a model folder; it appears whole or not at all, and replaces another only when told to.

    Only a folder that holds a crossperf model is ever replaced.
    """
    with _FOLDER.whole(folder, overwrite=overwrite) as part:
        _write_state(part / saved.model.state_file, saved.model.get_state())
        description = {
            "format": FORMAT,
            "model": saved.model.name,
            "settings": saved.model.get_params(),
            "counters": list(saved.counters),
            "platforms": list(saved.platforms),
            "platform_classes": list(saved.platform_classes),
            "training": saved.training,
            "fit": saved.model.summary_,
            "versions": saved.versions,
        }
        (part / _DESCRIPTION).write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
        if saved.workloads:
            _write_workloads(part / _WORKLOADS, saved)
        if len(saved.features_nf):
            _write_state(part / _CELLS, {name: getattr(saved, name) for name in _CELL_FIELDS})


def refuse_unless_free(target: Path, *, overwrite: bool) -> None:
    """Raise unless a model may be written there; asked before training as well, so that no fit is lost."""
    _FOLDER.refuse_unless_free(target, overwrite=overwrite)


def load(folder: str | os.PathLike[str]) -> Saved:
    """Return the model of a folder, ready to predict."""
    source = Path(folder)
    facts = _read_description(source)
    try:
        model = models.make(facts["model"], **_as_settings(facts["settings"]))
        model.set_state(_read_state(source / model.state_file))
        workloads, log_time_wp = _read_workloads(source / _WORKLOADS, len(facts["platforms"]))
        features_nf, source_n, workload_n = _read_cells(source / _CELLS)
        return Saved(
            model,
            tuple(facts["counters"]),
            tuple(facts["platforms"]),
            tuple(facts["platform_classes"]),
            facts["training"],
            facts["versions"],
            workloads,
            log_time_wp,
            features_nf,
            source_n,
            workload_n,
        )
    except CrossperfError:
        raise
    except _DAMAGE as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ModelFolderError(
            f"{source}: the model does not load ({reason}), expected what 'crossperf train' wrote. Train it again."
        ) from error


def _read_description(source: Path) -> dict[str, Any]:
    path = source / _DESCRIPTION
    if not path.is_file():
        found = "a folder without model.json" if source.is_dir() else "no such folder"
        raise ModelFolderError(f"{source}: found {found}, expected a model folder. 'crossperf train' makes one.")
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        found_format = facts["format"]
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise ModelFolderError(f"{path}: does not read as a model's description. Train the model again.") from error
    if found_format != FORMAT:
        newer = isinstance(found_format, int) and found_format > FORMAT
        todo = "Upgrade crossperf" if newer else "Train the model again"
        raise ModelFolderError(
            f"{path}: found format {found_format!r}, expected {FORMAT}. {todo}, or use the crossperf that wrote it.",
            found=found_format,
            expected=FORMAT,
        )
    return dict(facts)


def _as_settings(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}


def _write_state(path: Path, state: State) -> None:
    if path.suffix == ".pt":
        import torch

        torch.save({name: torch.from_numpy(np.array(value)) for name, value in state.items()}, path)
    else:
        with path.open("wb") as file:
            np.savez_compressed(file, **state)  # type: ignore[arg-type]


def _read_state(path: Path) -> State:
    if path.suffix == ".pt":
        import torch

        tensors = torch.load(path, map_location="cpu", weights_only=True)
        return {name: tensor.numpy() for name, tensor in tensors.items()}
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def _write_workloads(path: Path, saved: Saved) -> None:
    """Write names and log seconds; JSON keeps every digit of a float, and a gap is null."""
    log_times = [[None if np.isnan(value) else value for value in row] for row in saved.log_time_wp.tolist()]
    facts = {"workloads": [list(workload) for workload in saved.workloads], "log_time_s": log_times}
    path.write_text(json.dumps(facts) + "\n", encoding="utf-8")


def _read_workloads(path: Path, n_platforms: int) -> tuple[tuple[tuple[str, str], ...], NDArray[np.float64]]:
    if not path.is_file():
        return (), np.empty((0, n_platforms))
    facts = json.loads(path.read_text(encoding="utf-8"))
    workloads = tuple((str(app), str(input_)) for app, input_ in facts["workloads"])
    log_time_wp = np.array(facts["log_time_s"], dtype=np.float64)
    if log_time_wp.shape != (len(workloads), n_platforms):
        raise ValueError(f"{path.name} holds {log_time_wp.shape} times of {len(workloads)} x {n_platforms}")
    return workloads, log_time_wp


def _read_cells(path: Path) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    if not path.is_file():
        return np.empty((0, 0)), np.empty(0, np.int64), np.empty(0, np.int64)
    state = _read_state(path)
    features_nf, source_n, workload_n = (state[name] for name in _CELL_FIELDS)
    return features_nf, source_n, workload_n


def versions() -> dict[str, str]:
    """Return the versions of what a result depends on."""
    found = {"python": platform.python_version()}
    for name in ("crossperf", "numpy", "scikit-learn", "torch", "xgboost-cpu"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
