"""Any object with ``fit`` and ``predict`` as a model that takes part in an evaluation."""

# N cells, F features, P platforms

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.impute import SimpleImputer
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils import get_tags

from crossperf.arrays import Floats, Integers
from crossperf.dataset.features import Features
from crossperf.errors import CrossperfError, SettingsError
from crossperf.model.base import Groups, Predictor
from crossperf.model.fitted.model import Part
from crossperf.model.fitted.scales import Limits
from crossperf.model.learn.together import together


@runtime_checkable
class Regressor(Protocol):
    """What a model of one's own has to offer: scikit-learn's grammar, multi-output or not."""

    def fit(self, X: Any, y: Any) -> Any:
        """Learn from rows."""

    def predict(self, X: Any) -> Any:
        """Return a prediction for each row."""


@dataclass(frozen=True)
class _Foreign:
    """Fitted objects of one's own, for some columns each, with the imputer before them where they take no NaN."""

    kind: ClassVar[str] = "wrapped"
    parts: list[tuple[Integers, Any]]
    imputer: Any | None

    def predict(self, features: Features) -> Floats:
        values_nf = features.values_nf if self.imputer is None else self.imputer.transform(features.values_nf)
        predicted_np = np.empty((len(features), sum(len(columns) for columns, _ in self.parts)))
        for columns, regressor in self.parts:
            predicted_np[:, columns] = _numbers(regressor, values_nf, len(columns))
        return predicted_np


def _numbers(regressor: Any, values_nf: Floats, count: int) -> Floats:
    """Return what somebody's own object predicts; what is no number for each row and platform raises."""
    predicted = regressor.predict(values_nf)
    try:
        answer = np.asarray(predicted)
        if answer.dtype.kind in "biuf" and answer.size == len(values_nf) * count:
            return np.asarray(answer, np.float64).reshape(len(values_nf), count)
        what = f"{answer.dtype} of shape {answer.shape}"
    except ValueError:
        what = f"a ragged {type(predicted).__name__}"
    raise SettingsError(
        f"models: found {what} as what {type(regressor).__name__}.predict returns, expected {len(values_nf):,} x "
        f"{count} real numbers, a row for each run and a column for each platform.",
        argument="models",
    )


@dataclass(eq=False, repr=False)
class Wrapped(Predictor):
    """A regressor of one's own, made to take part: a copy is fitted, the object given stays as it is.

    It is given the features as measured (``data.X`` as a matrix) and the log relative times (``data.y``). Where it
    takes no NaN, a feature that was not measured is the median of the training rows. Platforms that ran the same
    workloads are learned together, by a copy each; where it has one output alone, a copy learns each platform.

    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> model = Wrapped(KNeighborsRegressor(n_neighbors=1)).fit([[0.0], [np.nan], [9.0]], [[0.0, 1.0]] * 3)
    >>> model.predict([[9.0]]).tolist()
    [[0.0, 1.0]]
    """

    name: ClassVar[str] = "wrapped"
    regressor: Any = None

    def _learn(self, features: Features, target_np: Floats, groups: Groups, limits: Limits) -> Part:
        own, imputer, values_nf = self.regressor, None, features.values_nf
        takes_nan, many_outputs = _abilities(own)
        if not takes_nan and np.isnan(values_nf).any():
            imputer = SimpleImputer(strategy="median", keep_empty_features=True).fit(values_nf)
            values_nf = imputer.transform(values_nf)
        parts = []
        for part in together(target_np):
            regressor = clone(own) if isinstance(own, BaseEstimator) else copy.deepcopy(own)
            if len(part.columns) > 1 and not many_outputs:
                regressor = MultiOutputRegressor(regressor)
            regressor.fit(values_nf[part.rows_n], part.of(target_np))
            parts.append((part.columns, regressor))
        return _Foreign(parts, imputer)

    def refuse_unless_savable(self) -> None:
        """Refuse: an object of somebody's own could be saved as a pickle alone."""
        raise CrossperfError(
            f"The model {type(self.regressor).__name__!r} is not one of crossperf's and cannot be saved: that takes a "
            "pickle, which crossperf neither writes nor reads. Compare it with 'crossperf evaluate'.",
            model=type(self.regressor).__name__,
        )


def as_predictor(model: Any) -> Predictor:
    """Return a model ready to learn: an unfitted copy of one of crossperf's, or a wrapper around any other."""
    return clone(model) if isinstance(model, Predictor) else Wrapped(model)


def _abilities(regressor: Any) -> tuple[bool, bool]:
    """Return whether a regressor takes NaN, and whether it has several outputs; objects without tags only the latter.

    A pipeline takes NaN where all of its steps do: its own tag speaks of the first step alone.
    """
    steps = [step for _, step in getattr(regressor, "steps", []) if step not in (None, "passthrough")]
    try:
        takes_nan = all(get_tags(step).input_tags.allow_nan for step in steps or [regressor])
        many_outputs = get_tags(steps[-1] if steps else regressor).target_tags.multi_output
    except Exception:
        return False, True
    return takes_nan, many_outputs


def maker_of(model: Any) -> Callable[[], Predictor]:
    """Return what makes a fresh, unfitted model each time it is called.

    It makes them from an object with ``fit`` and ``predict``, a class, or a function without arguments.
    """
    if isinstance(model, Regressor) and not isinstance(model, type):
        return lambda: as_predictor(model)
    if not callable(model):
        raise SettingsError(
            f"models: found {type(model).__name__} {model!r}, expected a name, an object with fit and predict, or a "
            "function that returns one.",
            argument="models",
        )
    return lambda: fresh if isinstance(fresh := model(), Predictor) else Wrapped(fresh)
