"""A trained model as a folder: ``model.json`` and its numbers, readable without running anyone's code.

``arrays.npz`` holds what the model learned and the cells it learned from (`packing`), ``model.json`` everything else.
Folders of format 2 are read by `store_v2`.

A fitted model is named arrays in a file: one walk over dataclass fields, and back. Names are paths through the fields
(``part.forest.left_m``). A field that is a protocol holds one of several classes; its path ends in ``.kind`` with the
name of the class there.
"""

# N cells, F features, W workloads, P platforms

from __future__ import annotations

import importlib
import json
import os
import pickle
import types
import typing
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from crossperf import plain
from crossperf.arrays import Floats, Integers
from crossperf.dataset.cells import Cells, TableFacts
from crossperf.dataset.features import Features
from crossperf.errors import CrossperfError, ModelFolderError
from crossperf.files import Folder
from crossperf.model import packing
from crossperf.model.fitted.model import FittedModel, Part
from crossperf.model.packing import State
from crossperf.model.trained import TrainedModel

T = TypeVar("T")

FORMAT = 3
#: What reading a damaged folder can raise, in the libraries underneath.
_BUILT_IN = (LookupError, ValueError, TypeError, AttributeError, OSError, RuntimeError, EOFError)
_DAMAGE = (*_BUILT_IN, pickle.UnpicklingError, zipfile.BadZipFile, zlib.error)
_DESCRIPTION = "model.json"
_ARRAYS = "arrays.npz"
#: The model that comes with the package (tools/release_model.py).
SHIPPED = Path(__file__).parent / "data"
#: What the folders of models hold, those of format 2 among them.
_FILES = {_DESCRIPTION, _ARRAYS, "cells.npz", "workloads.json", "weights.pt"}


def _ours(folder: Path) -> bool:
    """Tell whether a folder holds a model and nothing else."""
    try:
        description = json.loads((folder / _DESCRIPTION).read_text(encoding="utf-8"))
        is_model = isinstance(description, dict) and {"format", "platforms"} <= description.keys()
        return is_model and {path.name for path in folder.iterdir()} <= _FILES
    except (OSError, ValueError, RecursionError):
        return False


_FOLDER = Folder("model", _ours, ModelFolderError)
_OF_CELLS: dict[str, Any] = {"log_time_wp": np.float64, "workload_n": np.int64, "source_n": np.int64}
#: Where the class of each kind of fitted part lives.
PARTS: dict[str, str] = {
    "adapted": "adapted.Adapted",
    "adapted-forecaster": "adapted.AdaptedForecaster",
    "blend": "blend.Blend",
    "catboost": "boosters.CatBoosters",
    "latent-network": "network.LatentNetwork",
    "lightgbm": "boosters.LightGBMs",
    "linear": "peers.Linear",
    "medians": "peers.Medians",
    "network": "network.Network",
    "trees": "peers.Trees",
    "xgboost": "boosters.XGBoosters",
}


def flatten(value: Any, path: str = "") -> State:
    """Return the leaves of a tree of dataclasses as arrays by their path; ``None`` leaves nothing behind.

    A part of a kind that `restore` could not read raises `KeyError`: it would be a pickle.

    >>> from crossperf.model.fitted.peers import Linear
    >>> from crossperf.model.fitted.scales import Encoder
    >>> linear = Linear(Encoder.fit(np.ones((1, 1))), np.array([[2.0]]), np.array([3.0]))
    >>> sorted(flatten(linear))
    ['bias_p', 'encoder.mean_f', 'encoder.scale_f', 'encoder.spread_f', 'weights_pf']
    """
    return dict(_leaves(value, path))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, NDArray[Any]]]:
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            part = getattr(value, field.name)
            below = f"{path}.{field.name}" if path else field.name
            if _kinds(type(value))[field.name] is Part:
                part_class(part.kind)
                yield f"{below}.kind", np.array(part.kind)
            yield from _leaves(part, below)
    elif isinstance(value, tuple) and any(is_dataclass(part) or isinstance(part, np.ndarray) for part in value):
        for i, part in enumerate(value):
            yield from _leaves(part, f"{path}.{i}")
    elif value is not None:
        yield path, np.asarray(value)


def restore(kind: type[T], state: Mapping[str, NDArray[Any]]) -> T:
    """Return the dataclass that `flatten` took apart; what is absent or does not fit raises.

    >>> from crossperf.model.fitted.scales import Limits
    >>> limits = Limits.of(np.array([[0.0, 1.0], [0.0, 3.0]]))
    >>> restore(Limits, flatten(limits)).target_2p.tolist() == limits.target_2p.tolist()
    True
    """
    return typing.cast(T, _restored(kind, state))


def _restored(kind: Any, state: Mapping[str, NDArray[Any]]) -> Any:
    values = {}
    for field in fields(kind):
        own = {name: array for name, array in state.items() if name == field.name or name.startswith(field.name + ".")}
        if not own and field.default is not MISSING:
            continue
        if not own:
            raise KeyError(field.name)
        below = {name.removeprefix(field.name).removeprefix("."): array for name, array in own.items()}
        values[field.name] = _value(_kinds(kind)[field.name], below, field.name)
    return kind(**values)


def _value(kind: Any, state: Mapping[str, NDArray[Any]], name: str) -> Any:
    """Return the value of a field from the arrays below its path; the empty path is the value itself."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        kind = next(part for part in arguments if part is not type(None))
        return _value(kind, state, name) if state else None
    if kind is Part:
        return _restored(part_class(str(state["kind"])), {path: own for path, own in state.items() if path != "kind"})
    if is_dataclass(kind):
        return _restored(kind, state)
    if origin is tuple and "" not in state:
        count = len({path.split(".")[0] for path in state})
        parts = (
            {path.partition(".")[2]: a for path, a in state.items() if path.split(".")[0] == str(i)}
            for i in range(count)
        )
        return tuple(_value(arguments[0], part, name) for part in parts)
    if "" not in state:
        raise KeyError(name)
    array = state[""]
    if origin is tuple:
        return tuple(arguments[0](value) for value in array.tolist())
    if origin is np.ndarray:
        # NDArray[T] is ndarray[shape, dtype[T]]; a file may hold a narrower type.
        return array.astype(typing.get_args(arguments[1])[0], copy=False)
    return kind(array.item()) if kind in (int, float, bool, str) else array


@cache
def _kinds(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def part_class(kind: str) -> Any:
    """Return the class of a kind of fitted part; a kind that is not known raises `KeyError`."""
    module, _, name = PARTS[kind].partition(".")
    return getattr(importlib.import_module(f"crossperf.model.fitted.{module}"), name)


def save(model: TrainedModel, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a model folder; it appears whole or not at all, and replaces another only where `overwrite` is set.

    Only a folder that holds a crossperf model is ever replaced.
    """
    try:
        arrays = arrays_of(model)
    except KeyError as error:
        raise CrossperfError(
            f"The model {model.name!r} cannot be saved: only its own library can write what it learned, as a pickle, "
            "which crossperf neither writes nor reads. Train another model to keep.",
            model=model.name,
        ) from error
    with _FOLDER.whole(folder, overwrite=overwrite) as part:
        packing.write(part / _ARRAYS, arrays)
        description = {"fingerprint": packing.fingerprint(arrays), **_description(model)}
        (part / _DESCRIPTION).write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")


def arrays_of(model: TrainedModel) -> State:
    """Return every number of a model by name: what it learned, and the cells it learned from."""
    cells = {name: getattr(model.cells, name) for name in _OF_CELLS}
    return {
        **flatten(model.fitted, "fitted"),
        **flatten(model.features, "features"),
        **{f"cells.{name}": array for name, array in cells.items()},
    }


def _description(model: TrainedModel) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "model": model.name,
        "settings": plain.to_json(model.settings),
        "counters": list(model.counters),
        "events": list(model.columns.events),
        "platforms": list(model.platforms),
        "platform_classes": list(model.cells.platform_classes),
        "training": plain.to_json(model.training),
        "fit": plain.to_json(model.summary),
        "versions": dict(model.versions),
        "workloads": [list(workload) for workload in model.workloads],
        "runnable": list(model.cells.runnable_w),
    }


def refuse_unless_free(target: Path, *, overwrite: bool) -> None:
    """Raise unless a model may be written there; asked before training as well, so that no fit is lost."""
    _FOLDER.refuse_unless_free(target, overwrite=overwrite)


def load(folder: str | os.PathLike[str] | None = None) -> TrainedModel:
    """Return the model of a folder, ready to predict; without one the model that comes with crossperf.

    Parameters
    ----------
    folder
        A folder that `save`, ``TrainedModel.save`` or 'crossperf train' wrote, of this format or the one before it.
        ``None``: the model that ships, which was trained on `crossperf.datasets.testbed`.

    Returns
    -------
    TrainedModel
        It predicts what it did before it was saved, bit for bit.

    >>> import pathlib, tempfile
    >>> from crossperf.datasets import toy
    >>> from crossperf.model import train
    >>> with tempfile.TemporaryDirectory() as place:
    ...     train(toy.make_table(apps=3, inputs=2, seed=1), "ridge").save(pathlib.Path(place) / "model")
    ...     load(pathlib.Path(place) / "model").name
    'ridge'
    """
    source = SHIPPED if folder is None else Path(folder)
    facts = _read_description(source)
    try:
        if facts["format"] == FORMAT:
            arrays = packing.read(source / _ARRAYS)
            learned = restore(FittedModel, below(arrays, "fitted.")), restore(Features, below(arrays, "features."))
            cells = (arrays[f"cells.{name}"].astype(kind, copy=False) for name, kind in _OF_CELLS.items())
            return assemble(facts, *learned, *cells)
        from crossperf.model import store_v2

        return store_v2.load(source, facts)
    except CrossperfError:
        raise
    except _DAMAGE as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ModelFolderError(
            f"{source}: the model does not load ({reason}), expected what 'crossperf train' wrote. Train it again."
        ) from error


def assemble(
    facts: Mapping[str, Any], fitted: FittedModel, features: Features, log_time_wp: Floats, *cells_n: Integers
) -> TrainedModel:
    """Return the model of a description, what it learned, and its cells: times, then workload and source of each."""
    workloads = tuple((str(app), str(input_)) for app, input_ in facts["workloads"])
    platforms, classes = tuple(facts["platforms"]), tuple(facts["platform_classes"])
    if log_time_wp.shape != (len(workloads), len(platforms)):
        raise ValueError(f"found times of shape {log_time_wp.shape} for its workloads and platforms")
    cells = Cells(platforms, classes, workloads, log_time_wp, *cells_n, runnable_w=tuple(facts.get("runnable", ())))
    training = plain.from_json(TableFacts, facts["training"]) if facts["training"] else None
    rest = facts["settings"], training, facts["fit"], facts["versions"]
    return TrainedModel(facts["model"], fitted, cells, features, *rest)


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


def below(state: State, prefix: str) -> State:
    """Return the arrays whose names start with a prefix, without it."""
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}
