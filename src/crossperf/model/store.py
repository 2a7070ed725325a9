"""A trained model as a folder: ``model.json`` and its numbers, readable without running anyone's code.

``arrays.npz`` holds what the model learned and the cells it learned from (loaded with ``allow_pickle=False``),
``model.json`` everything else. Folders of format 2 are read by `store_v2`.
"""

# N cells, F features, W workloads, P platforms

from __future__ import annotations

import json
import os
import pickle
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from crossperf import plain
from crossperf.dataset.cells import Cells, TableFacts
from crossperf.dataset.features import Features
from crossperf.errors import CrossperfError, ModelFolderError
from crossperf.files import Folder
from crossperf.model.fitted.model import FittedModel
from crossperf.model.state import State, flatten, restore
from crossperf.model.trained import TrainedModel

FORMAT = 3
#: What reading a damaged folder can raise, in the libraries underneath.
_BUILT_IN = (LookupError, ValueError, TypeError, AttributeError, OSError, RuntimeError, EOFError)
_DAMAGE = (*_BUILT_IN, pickle.UnpicklingError, zipfile.BadZipFile, zlib.error)
_DESCRIPTION = "model.json"
_ARRAYS = "arrays.npz"
_FOLDER = Folder("model", lambda folder: (folder / _DESCRIPTION).is_file(), ModelFolderError)


def save(model: TrainedModel, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a model folder; it appears whole or not at all, and replaces another only where `overwrite` is set.

    Only a folder that holds a crossperf model is ever replaced.
    """
    try:
        fitted = flatten(model.fitted, "fitted")
    except KeyError as error:
        raise CrossperfError(
            f"The model {model.name!r} cannot be saved: only its own library can write what it learned, as a pickle, "
            "which crossperf neither writes nor reads. Train another model to keep.",
            model=model.name,
        ) from error
    with _FOLDER.whole(folder, overwrite=overwrite) as part:
        arrays = {
            **fitted,
            **flatten(model.features, "features"),
            "cells.log_time_wp": model.cells.log_time_wp,
            "cells.workload_n": model.cells.workload_n,
            "cells.source_n": model.cells.source_n,
        }
        with (part / _ARRAYS).open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
        (part / _DESCRIPTION).write_text(json.dumps(_description(model), indent=2) + "\n", encoding="utf-8")


def _description(model: TrainedModel) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "model": model.name,
        "settings": plain.to_json(model.settings),
        "counters": list(model.counters),
        "platforms": list(model.platforms),
        "platform_classes": list(model.cells.platform_classes),
        "training": plain.to_json(model.training),
        "fit": plain.to_json(model.summary),
        "versions": dict(model.versions),
        "workloads": [list(workload) for workload in model.workloads],
    }


def refuse_unless_free(target: Path, *, overwrite: bool) -> None:
    """Raise unless a model may be written there; asked before training as well, so that no fit is lost."""
    _FOLDER.refuse_unless_free(target, overwrite=overwrite)


def load(folder: str | os.PathLike[str]) -> TrainedModel:
    """Return the model of a folder, ready to predict.

    Parameters
    ----------
    folder
        A folder that `save`, ``TrainedModel.save`` or 'crossperf train' wrote, of this format or the one before it.
    """
    source = Path(folder)
    facts = _read_description(source)
    try:
        if facts["format"] == FORMAT:
            return _model(facts, read_arrays(source / _ARRAYS))
        from crossperf.model import store_v2

        return store_v2.load(source, facts)
    except CrossperfError:
        raise
    except _DAMAGE as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ModelFolderError(
            f"{source}: the model does not load ({reason}), expected what 'crossperf train' wrote. Train it again."
        ) from error


def _model(facts: Mapping[str, Any], arrays: State) -> TrainedModel:
    cells = Cells(
        tuple(facts["platforms"]),
        tuple(facts["platform_classes"]),
        tuple((str(app), str(input_)) for app, input_ in facts["workloads"]),
        arrays["cells.log_time_wp"],
        arrays["cells.workload_n"],
        arrays["cells.source_n"],
    )
    if cells.log_time_wp.shape != (len(cells.workloads), len(cells.platforms)):
        raise ValueError(f"found times of shape {cells.log_time_wp.shape} for its workloads and platforms")
    return TrainedModel(
        name=facts["model"],
        fitted=restore(FittedModel, below(arrays, "fitted.")),
        cells=cells,
        features=restore(Features, below(arrays, "features.")),
        settings=facts["settings"],
        training=plain.from_json(TableFacts, facts["training"]) if facts["training"] else None,
        summary=facts["fit"],
        versions=facts["versions"],
    )


def _read_description(source: Path) -> dict[str, Any]:
    path = source / _DESCRIPTION
    if not path.is_file():
        what = "a folder without model.json" if source.is_dir() else "no such folder"
        raise ModelFolderError(f"{source}: found {what}, expected a model folder. 'crossperf train' makes one.")
    try:
        facts = dict(json.loads(path.read_text(encoding="utf-8")))
        written = facts["format"]
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise ModelFolderError(f"{path}: does not read as a model's description. Train the model again.") from error
    if written not in (FORMAT - 1, FORMAT):
        newer = isinstance(written, int) and written > FORMAT
        todo = "Upgrade crossperf" if newer else "Train the model again"
        raise ModelFolderError(
            f"{path}: found format {written!r}, expected {FORMAT - 1} or {FORMAT}. {todo}, or use the crossperf that "
            "wrote it.",
            found=written,
            expected=FORMAT,
        )
    return facts


def read_arrays(path: Path) -> State:
    """Return the arrays of a file by name; pickled objects are refused."""
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def below(state: State, prefix: str) -> State:
    """Return the arrays whose names start with a prefix, without it."""
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}
