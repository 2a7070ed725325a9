"""Reads model folders of format 2, which held each model's state under names of its own."""

# N cells, F features, P platforms, S sources, T patterns

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from crossperf.arrays import Floats, Integers
from crossperf.dataset.features import SOURCE, Columns, Features
from crossperf.documents import MEGABYTE, Document, read_bytes
from crossperf.errors import MissingDependencyError, ModelFolderError
from crossperf.model.fitted.adapted import Head, add_platform
from crossperf.model.fitted.boosters import Boosters
from crossperf.model.fitted.model import FittedModel, Part
from crossperf.model.fitted.network import LatentNetwork, Mlp, Network
from crossperf.model.fitted.peers import Forest, Linear, Medians, Trees
from crossperf.model.fitted.scales import Encoder, Limits
from crossperf.model.store import Description, assemble, below, part_class, restore
from crossperf.model.trained import TrainedModel
from crossperf.packing import State
from crossperf.packing import read as read_arrays

#: What a file of weights or arrays may weigh.
_MOST_BYTES = 1024 * MEGABYTE
_TIMES = Document("the times of a model's workloads", "Train the model again.", 0, error=ModelFolderError)


@dataclass(frozen=True, eq=False)
class _WorkloadTimes:
    """What ``workloads.json`` holds."""

    workloads: tuple[tuple[str, str], ...]
    log_time_wp: Floats = field(metadata={"json": "log_time_s"})


def load(source: Path, description: Description) -> TrainedModel:
    """Return the model of a folder of format 2."""
    name, networks = description.model, ("vae-dnn", "dnn")
    state = _read_weights(source / "weights.pt") if name in networks else _read(source / "arrays.npz")
    n_added = len(state["adapted.platforms"]) if name == "adapted" else 0
    platforms = description.platforms
    columns = Columns.of(description.counters, platforms[: len(platforms) - n_added])
    fitted = _fitted(name, description.settings, state, columns)
    # The training cells, none where the folder does not hold them.
    times = _WorkloadTimes((), np.empty((0, len(platforms))))
    if (source / "workloads.json").is_file():
        path = source / "workloads.json"
        times = _TIMES.shaped(_WorkloadTimes, _TIMES.parsed(path), path)
    arrays = _read(source / "cells.npz") if (source / "cells.npz").is_file() else {}
    features = Features(arrays.get("features_nf", np.empty((0, len(columns)))), columns)
    cells_n = (arrays.get(part, np.empty(0, np.int64)) for part in ("workload_n", "source_n"))
    return assemble(replace(description, workloads=times.workloads), fitted, features, times.log_time_wp, *cells_n)


def _read(path: Path) -> State:
    return read_arrays(read_bytes(path, _MOST_BYTES))


def _read_weights(path: Path) -> State:
    try:
        import torch
    except ImportError as error:
        raise MissingDependencyError(
            f"{path}: networks of format 2 are read with PyTorch: pip install 'crossperf[torch]'"
        ) from error
    return {name: tensor.numpy() for name, tensor in torch.load(path, map_location="cpu", weights_only=True).items()}


def _fitted(name: str, settings: Mapping[str, Any], state: State, columns: Columns) -> FittedModel:
    if name != "adapted":
        limits = Limits(state["base.limits_2p"], state["base.contrast_limits_2p"])
        return FittedModel(columns, _part(name, state, columns), limits)
    model = _fitted(settings["base"], settings, below(state, "adapted.base."), columns)
    for i, platform in enumerate(state["adapted.platforms"]):
        model = add_platform(model, restore(Head, below(state, f"adapted.head{i}.")), str(platform))
    return model


def _part(name: str, state: State, columns: Columns) -> Part:
    if name == "crossperf":
        raise ModelFolderError(
            "model: found a default model of format 2, whose members differ from today's, expected one of format 3. "
            "Train it again."
        )
    if name == "median":
        return _medians(state, columns)
    if name in ("xgboost", "lightgbm", "catboost"):
        count = int(state["base.shape"][1])
        boosters: Boosters = part_class(name)(tuple(state[f"booster.{i}"] for i in range(count)))
        return boosters
    encoder = restore(Encoder, below(state, "encoder."))
    if name == "ridge":
        return Linear(encoder, state["weights_pf"], state["bias_p"])
    if name in ("random-forest", "extra-trees"):
        return Trees(encoder, restore(Forest, below(state, "forest.")))
    targets = state["target.mean_p"], state["target.scale_p"]
    if name == "dnn":
        return Network(encoder, *targets, _mlp(state, "network."))
    return LatentNetwork(encoder, *targets, _mlp(state, "network.regressor."), _mlp(state, "network.vae.encoder."))


def _medians(state: State, columns: Columns) -> Part:
    """Return medians by source: the old ones belonged to patterns of 0/1 columns, of which some may be counters."""
    source_s = _sources(state["patterns_sf"], state["flag_f"], columns).tolist()
    overall = len(source_s)
    rows = [source_s.index(source) if source in source_s else overall for source in range(len(columns.sources))]
    return Medians(state["medians_sp"][[*rows, overall]])


def _sources(flags_tf: Floats, flag_f: Any, columns: Columns) -> Integers:
    """Return the source that each pattern of 0/1 columns marks."""
    is_source = columns.mask(SOURCE)[flag_f]
    return np.asarray(flags_tf[:, : len(is_source)][:, is_source].argmax(axis=1), dtype=np.int64)


def _mlp(state: State, prefix: str) -> Mlp:
    """Return the linear layers below a prefix, in their order."""
    layers = sorted(int(hit[1]) for name in state if (hit := re.fullmatch(rf"{re.escape(prefix)}(\d+)\.weight", name)))
    weights, biases = (tuple(state[f"{prefix}{i}.{part}"] for i in layers) for part in ("weight", "bias"))
    return Mlp(weights, biases)
