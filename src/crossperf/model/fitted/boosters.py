"""Fitted boosted trees: one native booster a platform, kept as the bytes that its library wrote."""

# N cells, P platforms

from __future__ import annotations

import importlib
import tempfile
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from crossperf.arrays import Floats
from crossperf.dataset.features import Features
from crossperf.errors import MissingDependencyError


@dataclass(frozen=True)
class Boosters:
    """What the libraries share: bytes that are parsed when the object is made, so that damage shows on loading."""

    kind: ClassVar[str]
    raw: tuple[NDArray[np.uint8], ...]

    def __post_init__(self) -> None:
        _ = self.native

    @classmethod
    def of(cls, boosters: Sequence[Any]) -> Self:
        """Return fitted boosters of the library."""
        return cls(tuple(np.frombuffer(cls._dump(booster), np.uint8) for booster in boosters))

    @cached_property
    def native(self) -> list[Any]:
        """The library's own boosters."""
        return [self._parse(raw.tobytes()) for raw in self.raw]

    def predict(self, features: Features) -> Floats:
        """Return log relative times."""
        return np.stack([self.answer(booster, features.values_nf) for booster in self.native], axis=1)

    @staticmethod
    @abstractmethod
    def answer(booster: Any, values_nf: Floats, rounds: int | None = None, n_jobs: int | None = None) -> Floats:
        """Return the prediction of one booster, after its first rounds or after all of them."""

    @staticmethod
    @abstractmethod
    def _dump(booster: Any) -> bytes:
        """Return a booster as the bytes of its library's own format."""

    @staticmethod
    @abstractmethod
    def _parse(raw: bytes) -> Any:
        """Return the booster of `_dump`; damage raises `ValueError`."""


class XGBoosters(Boosters):
    """XGBoost's boosters, as UBJSON."""

    kind: ClassVar[str] = "xgboost"

    @staticmethod
    def answer(booster: Any, values_nf: Floats, rounds: int | None = None, n_jobs: int | None = None) -> Floats:
        """Return the prediction of one booster."""
        matrix = package("xgboost").DMatrix(values_nf, nthread=n_jobs)
        return np.asarray(booster.predict(matrix, iteration_range=(0, rounds or 0)), np.float64)

    @staticmethod
    def _dump(booster: Any) -> bytes:
        return bytes(booster.save_raw("ubj"))

    @staticmethod
    def _parse(raw: bytes) -> Any:
        return package("xgboost").Booster(model_file=bytearray(raw))


class LightGBMs(Boosters):
    """LightGBM's boosters, as text."""

    kind: ClassVar[str] = "lightgbm"

    @staticmethod
    def answer(booster: Any, values_nf: Floats, rounds: int | None = None, n_jobs: int | None = None) -> Floats:
        """Return the prediction of one booster."""
        return np.asarray(booster.predict(values_nf, num_iteration=rounds, num_threads=n_jobs or 0), np.float64)

    @staticmethod
    def _dump(booster: Any) -> bytes:
        return bytes(booster.model_to_string(num_iteration=-1).encode())

    @staticmethod
    def _parse(raw: bytes) -> Any:
        lightgbm, text = package("lightgbm"), raw.decode()
        # LightGBM ends the process on a text that is cut short.
        if not text.rstrip().endswith("pandas_categorical:null"):
            raise ValueError("a LightGBM text is cut short")
        try:
            return lightgbm.Booster(model_str=text)
        except lightgbm.basic.LightGBMError as error:
            raise ValueError(str(error)) from error


class CatBoosters(Boosters):
    """CatBoost's boosters, in its binary format."""

    kind: ClassVar[str] = "catboost"

    @staticmethod
    def answer(booster: Any, values_nf: Floats, rounds: int | None = None, n_jobs: int | None = None) -> Floats:
        """Return the prediction of one booster."""
        return np.asarray(booster.predict(values_nf, ntree_end=rounds or 0, thread_count=n_jobs or -1), np.float64)

    @staticmethod
    def _dump(booster: Any) -> bytes:
        # The library writes its binary format to files alone.
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "booster.cbm"
            booster.save_model(str(path), format="cbm")
            return path.read_bytes()

    @staticmethod
    def _parse(raw: bytes) -> Any:
        catboost = package("catboost")
        try:
            return catboost.CatBoostRegressor().load_model(blob=raw, format="cbm")
        except catboost.CatBoostError as error:
            raise ValueError(str(error)) from error


#: The extra that brings each library, and the name it goes by.
_EXTRAS = {
    "xgboost": ("peers", "XGBoost"),
    "lightgbm": ("more-peers", "LightGBM"),
    "catboost": ("more-peers", "CatBoost"),
    "pytabkit": ("more-peers", "pytabkit"),
}


def package(name: str, model: str | None = None) -> Any:
    """Return an optional library, or raise with the command that installs it; most models are named as theirs."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        extra, title = _EXTRAS[name]
        raise MissingDependencyError(
            f"The model {model or name!r} needs {title}: pip install 'crossperf[{extra}]'"
        ) from error
