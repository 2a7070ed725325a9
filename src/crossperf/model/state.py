"""Fitted models as named arrays, and back: one walk over dataclass fields, no code and no pickles in a file.

Names are paths through the fields (``part.forest.left_m``). A field that is a protocol holds one of several classes;
its path ends in ``.kind`` with the name of the class there.
"""

from __future__ import annotations

import importlib
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from crossperf.model.fitted.model import Part

T = TypeVar("T")
State = dict[str, NDArray[Any]]

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
    return kind(array.item()) if kind in (int, float, bool, str) else array


@cache
def _kinds(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def part_class(kind: str) -> Any:
    """Return the class of a kind of fitted part; a kind that is not known raises `KeyError`."""
    module, _, name = PARTS[kind].partition(".")
    return getattr(importlib.import_module(f"crossperf.model.fitted.{module}"), name)
