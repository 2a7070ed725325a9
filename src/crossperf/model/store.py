"""A trained model as a folder: ``model.json`` and its numbers, readable without running anyone's code.

``arrays.npz`` holds what the model learned and the cells it learned from (`packing`), ``model.json`` everything else.
Folders of format 2 are read by `store_v2`.

A fitted model is named arrays in a file: one walk over dataclass fields, and back. Names are paths through the fields
(``part.forest.left_m``). A field that is a protocol holds one of several classes; its path ends in ``.kind`` with the
name of the class there.
"""

# N cells, F features, W workloads, P platforms

from __future__ import annotations

import hashlib
import importlib
import json
import os
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from crossperf import packing, plain
from crossperf.arrays import Floats, Integers
from crossperf.dataset.cells import Cells, TableFacts
from crossperf.dataset.features import Features
from crossperf.documents import MEGABYTE, Document, parse, read_bytes
from crossperf.errors import CrossperfError, ModelFolderError, shortened
from crossperf.files import Folder
from crossperf.model import soundness
from crossperf.model.fitted.model import FittedModel, Part
from crossperf.model.trained import TrainedModel
from crossperf.packing import State

T = TypeVar("T")

FORMAT = 3
_DESCRIPTION = "model.json"
_ARRAYS = "arrays.npz"
_MOST_BYTES = 4096 * MEGABYTE
#: The model that comes with the package (tools/release_model.py).
SHIPPED = Path(__file__).parent / "data"
#: What the folders of models hold, those of format 2 among them.
_FILES = {_DESCRIPTION, _ARRAYS, "cells.npz", "workloads.json", "weights.pt"}


def _ours(folder: Path) -> bool:
    """Tell whether a folder holds a model and nothing else."""
    try:
        description = parse(read_bytes(folder / _DESCRIPTION, _MOST_BYTES), lenient=True)
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


#: The kinds whose bytes are parsed by a library of their own, which damage can crash: only behind a digest.
NATIVE = ("catboost", "lightgbm", "xgboost")


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
    for part in fields(kind):
        own = {name: array for name, array in state.items() if name == part.name or name.startswith(part.name + ".")}
        if not own and part.default is not MISSING:
            continue
        if not own:
            raise KeyError(part.name)
        below = {name.removeprefix(part.name).removeprefix("."): array for name, array in own.items()}
        values[part.name] = _value(_kinds(kind)[part.name], below, part.name)
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
        meant = np.dtype(typing.get_args(arguments[1])[0])
        if array.dtype.kind not in ("iu" if meant.kind in "iu" else meant.kind):
            raise ValueError(f"{name} holds {array.dtype}, expected {meant}")
        with np.errstate(over="ignore"):  # what a narrower type cannot hold is infinite there, and refused as such
            return array.astype(meant, copy=False)
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
        sealed = {"digest": digest_of(description, (part / _ARRAYS).read_bytes()), **description}
        (part / _DESCRIPTION).write_text(json.dumps(sealed, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def digest_of(description: Mapping[str, Any], arrays: bytes) -> str:
    """Return the SHA-256 over all parts of a folder: what ``model.json`` holds beside it, and the file of arrays."""
    own = {name: value for name, value in description.items() if name != "digest"}
    canonical = json.dumps(own, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode() + b"\x00" + hashlib.sha256(arrays).digest()).hexdigest()


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


def load(folder: str | os.PathLike[str] | None = None, *, trust: bool = False) -> TrainedModel:
    """Return the model of a folder, ready to predict; without one the model that comes with crossperf.

    Parameters
    ----------
    folder
        A folder that `save`, ``TrainedModel.save`` or 'crossperf train' wrote, of this format or the one before it.
        ``None``: the model that ships, which was trained on `crossperf.datasets.testbed`.
    trust
        Read a folder without a digest, as crossperf once wrote them. Boosted trees are parsed by their own library,
        which damaged bytes can crash.

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
    description = read_description(source)
    try:
        model = _load(source, description, trust)
        soundness.refuse_unsound(model.fitted, model.features, model.cells)
    except CrossperfError:
        raise
    except Exception as error:  # whatever the libraries underneath raise on a damaged folder
        reason = shortened(f"{type(error).__name__}: {error}".splitlines()[0], 300)
        raise ModelFolderError(
            f"{source}: the model does not load ({reason}), expected what 'crossperf train' wrote. Train it again.",
            path=str(source),
        ) from error
    return model


def _load(source: Path, description: Description, trust: bool) -> TrainedModel:
    if description.format == FORMAT:
        data = _bytes(source / _ARRAYS)
        _refuse_changed(source, description, data, trust)
        arrays = packing.read(data)
        learned = restore(FittedModel, below(arrays, "fitted.")), restore(Features, below(arrays, "features."))
        cells = (arrays[f"cells.{name}"].astype(kind, copy=False) for name, kind in _OF_CELLS.items())
        return assemble(description, *learned, *cells)
    from crossperf.model import store_v2

    if {description.model, description.settings.get("base")} & {*NATIVE} and not trust:
        raise _unsealed(source)
    return store_v2.load(source, description)


def _refuse_changed(source: Path, description: Description, data: bytes, trust: bool) -> None:
    """Raise unless the digest in the description is that of the folder; nothing else of the arrays is read before."""
    if not description.digest:
        if trust:
            return
        raise _unsealed(source)
    if description.digest != digest_of(description.written, data):
        raise ModelFolderError(
            f"{source}: its digest is not that of its content, expected the folder as 'crossperf train' wrote it. It "
            "was changed or damaged since: copy it again, or train it again.",
            path=str(source),
        )


def _unsealed(source: Path) -> ModelFolderError:
    return ModelFolderError(
        f"{source}: found no digest in {_DESCRIPTION}, expected one over all parts of the folder. Train it again; if "
        "you know who wrote it, 'crossperf convert' reads it and writes one with a digest.",
        path=str(source),
    )


def assemble(
    description: Description, fitted: FittedModel, features: Features, log_time_wp: Floats, *cells_n: Integers
) -> TrainedModel:
    """Return the model of a description, what it learned, and its cells: times, then workload and source of each."""
    if description.format == FORMAT and description.counters != fitted.columns.counters:
        raise ValueError("its counters are not those of its features")
    names = description.platforms, description.platform_classes, description.workloads
    cells = Cells(*names, log_time_wp, *cells_n, runnable_w=description.runnable)
    rest = description.settings, description.training, description.fit, description.versions
    return TrainedModel(description.model, fitted, cells, features, *rest)


@dataclass(frozen=True)
class Description:
    """What ``model.json`` holds; `written` is all of it."""

    format: int
    model: str
    counters: tuple[str, ...]
    platforms: tuple[str, ...]
    platform_classes: tuple[str, ...]
    settings: Mapping[str, Any]
    fit: Mapping[str, Any]
    versions: Mapping[str, str]
    training: TableFacts | None
    workloads: tuple[tuple[str, str], ...] = ()
    runnable: tuple[str | None, ...] = ()
    digest: str = ""
    written: Mapping[str, Any] = field(default_factory=dict)


_DOCUMENT = Document(
    "a model's description",
    "Train the model again, or use the crossperf that wrote it.",
    FORMAT,
    oldest=2,
    error=ModelFolderError,
    most_bytes=256 * MEGABYTE,
)


def read_description(source: Path) -> Description:
    """Return what the ``model.json`` of a folder holds."""
    path = source / _DESCRIPTION
    if not path.is_file():
        what = "a folder without model.json" if source.is_dir() else "no such folder"
        raise ModelFolderError(f"{source}: found {what}, expected a model folder. 'crossperf train' makes one.")
    facts = _DOCUMENT.read(path)
    return replace(_DOCUMENT.shaped(Description, {**facts, "written": {}}, path), written=facts)


def _bytes(path: Path) -> bytes:
    try:
        return read_bytes(path, _MOST_BYTES)
    except OSError as error:
        raise ModelFolderError(
            f"{path}: cannot be read ({error.strerror}), expected the numbers of a model. Train it again.",
            path=str(path),
        ) from error


def below(state: State, prefix: str) -> State:
    """Return the arrays whose names start with a prefix, without it."""
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}
