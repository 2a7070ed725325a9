"""Datasets as plain facts and arrays that travel to workers, and back; and models by name and settings."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from crossperf import model, plain, plugins
from crossperf.dataset.cells import TableFacts
from crossperf.dataset.features import Columns, Features
from crossperf.dataset.pairing import Dataset
from crossperf.errors import SettingsError
from crossperf.model.base import Predictor
from crossperf.model.wrapped import maker_of
from crossperf.versions import version_of
from crossperf.workers.parcels import Parcel

_OF_CELLS = ("log_time_wp", "workload_n", "source_n", "log_time_halves_hwp")
_NAMES = ("platforms", "platform_classes", "workloads", "runnable_w")
_OF_FEATURES = ("values_nf", "workload_n", "app_n", "cpu_n", "noise_np")
_PREFIX = "features."


def pack(data: Dataset) -> Parcel:
    """Return a dataset as facts and arrays; what its table is called, and where it stands, is left out.

    >>> from crossperf.dataset import build
    >>> from crossperf.datasets import toy
    >>> data = build(toy.make_table(apps=3, inputs=2, seed=1))
    >>> pack(unpack(pack(data))).fingerprint == pack(data).fingerprint
    True
    """
    features = {_PREFIX + name: getattr(data.features, name) for name in _OF_FEATURES}
    arrays = {name: getattr(data, name) for name in _OF_CELLS} | features
    facts = {name: plain.to_json(getattr(data, name)) for name in _NAMES}
    return Parcel(
        {**facts, "columns": plain.to_json(data.features.columns)},
        {name: array for name, array in arrays.items() if array is not None},
    )


def unpack(parcel: Parcel) -> Dataset:
    """Return the dataset that `pack` took apart; of several asked for, the last is remembered."""
    return _unpacked(_Remembered(parcel.fingerprint, parcel))


@dataclass(frozen=True)
class _Remembered:
    """A parcel by its fingerprint alone."""

    fingerprint: str
    parcel: Parcel = field(compare=False)


@lru_cache(maxsize=1)
def _unpacked(remembered: _Remembered) -> Dataset:
    facts, arrays = remembered.parcel.facts, remembered.parcel.arrays
    features = {name: arrays[_PREFIX + name] for name in _OF_FEATURES if _PREFIX + name in arrays}
    return Dataset(
        platforms=tuple(facts["platforms"]),
        platform_classes=tuple(facts["platform_classes"]),
        workloads=tuple((app, own) for app, own in facts["workloads"]),
        runnable_w=tuple(facts["runnable_w"]),
        features=Features(columns=plain.from_json(Columns, facts["columns"]), **features),
        table=TableFacts(remembered.fingerprint),
        **{name: arrays[name] for name in _OF_CELLS},
    )


@dataclass(frozen=True)
class ModelSpec:
    """A model by name and settings: what makes it anew for each fit, here or elsewhere.

    Parameters
    ----------
    name
        One of `model.MODELS`, a name that an installed package offers, or ``FILE.py:NAME``.
    settings
        Where it differs from the default; JSON's own types.
    code
        A digest of the file of ``FILE.py:NAME``, or the version of the optional package behind a model: it must be
        the same wherever the model is made.

    >>> ModelSpec("ridge")().name
    'ridge'
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    code: str = ""

    @classmethod
    def of(cls, name: str, seed: int | None = None, **settings: Any) -> ModelSpec:
        """Return a model by name, seeded where it has a seed; an unknown one is reported, not only when it is made."""
        if name not in model.MODELS:
            plugins.load(name, "model", argument="models", known=model.MODELS)
            return cls(name, settings, _code(name))
        made = cls(name, settings)()
        seeded = {"seed": seed} if seed is not None and "seed" in made.get_params() else {}
        return cls(name, {**seeded, **settings}, _code(name))

    def __call__(self) -> Predictor:
        """Return the model, not fitted yet."""
        if self.code and (actual := _code(self.name)) != self.code:
            raise SettingsError(
                f"models: {self.name}: found {actual or 'nothing'} here, expected {self.code} as the sender has. "
                "Give every worker the same file or the same version of its package.",
                argument="models",
            )
        if plugins.is_file_spec(self.name):
            return maker_of(_plugin(self.name, self.code))()
        settings = {name: tuple(own) if isinstance(own, list) else own for name, own in self.settings.items()}
        return model.make(self.name, **settings)


def _code(name: str) -> str:
    """Return what tells one model of a name from another: a digest of its file, or the version of its package."""
    if plugins.is_file_spec(name):
        file = Path(name.rpartition(":")[0]).expanduser()
        return hashlib.sha256(file.read_bytes()).hexdigest()[:16] if file.is_file() else ""
    package = model.PACKAGES.get(name)
    return f"{package} {version_of(package)}" if package else ""


@lru_cache(maxsize=8)
def _plugin(name: str, digest: str) -> object:  # noqa: ARG001, another file of the same name is loaded again
    return plugins.load(name, "model", argument="models")
