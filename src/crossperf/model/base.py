"""What every model shares: scikit-learn's grammar around a fitted model of plain arrays."""

# N cells, F features, P platforms

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data

from crossperf.arrays import Floats, Integers, Mask
from crossperf.dataset.cells import Split
from crossperf.dataset.features import RUN_TIME, Columns, Features
from crossperf.dataset.pairing import Dataset
from crossperf.errors import SettingsError
from crossperf.model.fitted.model import FittedModel, Part
from crossperf.model.fitted.scales import Limits
from crossperf.model.learn.selection import selected
from crossperf.model.learn.together import common_contrast

#: What a model may learn: times relative to the source platform, or the vector of the workload.
TARGETS = ("source", "workload")


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of training cells: what a model keeps whole wherever it holds cells out to check itself.

    ``noise_np`` is how far two measurements of a cell's targets lie apart, in logarithms; 0 where that is not known.
    """

    workload_n: Integers
    app_n: Integers
    cpu_n: Mask
    noise_np: Floats

    def __getitem__(self, rows_n: Integers) -> Groups:
        return Groups(self.workload_n[rows_n], self.app_n[rows_n], self.cpu_n[rows_n], self.noise_np[rows_n])


class Predictor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor from features to log relative times, one column a platform.

    ``X`` may hold NaN (not measured); ``y`` may hold NaN (this workload never ran there). Subclasses return what they
    learned from `_learn` as a `Part`; predictions never leave the range of the training targets, and of their
    differences between platforms, by more than a tenth of it, so that no model explodes outside what it has seen.
    """

    #: The name of the model on the command line and in files.
    name: ClassVar[str]
    #: Whether the model makes use of names: without them it is a weaker one.
    needs_names: ClassVar[bool] = False
    #: Whether `_learn` is given rates and shares beside the features.
    sees_derived: ClassVar[bool] = False
    #: What `_learn` is given: ``source``, log times relative to the source platform; or ``workload``, the same less
    #: their mean over platforms, which is the same from every source, as the paper's vector is.
    target: str = "source"

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        apps: ArrayLike | None = None,
        cpu: ArrayLike | None = None,
    ) -> Self:
        """Learn from cells; ``fit(data.X, data.y)`` gives the same model as `crossperf.train`.

        Parameters
        ----------
        X
            `Features` (``data.X``) or a data frame whose columns are named as theirs. A bare matrix works too, but
            says neither which column is the runtime nor where a row was measured.
        groups, apps
            The workload and the application of each cell, kept whole wherever the model holds cells out to check
            itself. ``None``: those that ``X`` brings, otherwise each cell is its own.
        cpu
            Which cells were measured on a platform of class ``cpu``. ``None``: as ``X`` says.
        """
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        features = self._checked(X, reset=True)
        target = check_array(y, dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan", input_name="y")
        check_consistent_length(features, target)
        target_np = target.reshape(len(target), -1)
        self._one_output_ = target.ndim == 1
        limits = Limits.of(target_np)
        known = _groups(features, groups, apps, cpu, target_np.shape[1])
        features = selected(features, target_np)
        seen = Features(features.values_nf, features.columns)
        of_workload = self._learns_workload(seen, target_np)
        own_np = common_contrast(target_np) if of_workload else target_np
        part = self._learn(seen.derived() if self.sees_derived else seen, own_np, known, limits)
        self.fitted_ = FittedModel(features.columns, part, limits, self.sees_derived, of_workload)
        return self

    def _learns_workload(self, features: Features, target_np: Floats) -> bool:
        """Return whether to learn the workload's vector: where asked for, of times relative to known sources."""
        if self.target not in TARGETS:
            raise self._unfit("target", " or ".join(map(repr, TARGETS)))
        source_n, platforms = features.source_n, target_np.shape[1]
        if self.target != "workload" or len(features.columns.sources) != platforms or (source_n < 0).any():
            return False
        return bool((np.take_along_axis(target_np, source_n[:, None], axis=1) == 0.0).all())

    def predict(self, X: Any) -> Floats:
        """Return the log relative times of each cell."""
        check_is_fitted(self, "fitted_")
        predicted_np = self.fitted_.predict(self._checked(X, reset=False))
        return predicted_np[:, 0] if self._one_output_ else predicted_np

    def _checked(self, X: Any, *, reset: bool) -> Features:
        """Return ``X`` as features, checked as scikit-learn checks it."""
        names = getattr(self, "feature_names_in_", None)
        # Columns that `Features` named are matched by name; those of a data frame are scikit-learn's to check.
        if not reset and (isinstance(X, Features) or (names is None and not self.fitted_.columns.are_unnamed)):
            features = Features.read(X).matched(self.fitted_.columns)
            check_array(features.values_nf, ensure_all_finite="allow-nan", input_name="X")
            return features
        values_nf = validate_data(
            self,
            X.values_nf if isinstance(X, Features) else X,
            dtype=np.float64,
            # A data frame's columns lie one after the other; in another layout, matrix products round otherwise.
            order="C",
            ensure_all_finite="allow-nan",
            reset=reset,
        )
        if isinstance(X, Features):
            return Features(values_nf, X.columns, X.workload_n, X.app_n, X.cpu_n, X.noise_np)
        names = getattr(self, "feature_names_in_", None)
        columns = Columns.unnamed(values_nf.shape[1]) if names is None else Columns.named([str(name) for name in names])
        if reset and self.needs_names and RUN_TIME not in columns.kinds:
            warnings.warn(
                f"{type(self).__name__}.fit: X has no column 'runtime_s', so rates and the source platform are not "
                "used and the model is weaker than it could be. Pass data.X, or a data frame with named columns.",
                UserWarning,
                stacklevel=3,
            )
        return Features(values_nf, columns)

    def learn(self, data: Dataset, split: Split = "workload") -> Self:
        """Learn from a dataset, keeping the groups of a split whole wherever cells are held out."""
        return self.fit(data.X, data.y, groups=data.groups_n(split))

    @property
    def summary_(self) -> dict[str, Any]:
        """Facts about the fit, by name; none before it."""
        return dict(getattr(self, "fit_summary_", {}))

    def refuse_unless_savable(self) -> None:
        """Raise where a model of this kind cannot be saved; asked before training as well, so that no fit is lost."""

    def _unfit(self, name: str, expected: str) -> SettingsError:
        message = f"{name}: found {getattr(self, name)!r} for the model {self.name!r}, expected {expected}."
        return SettingsError(message, argument=name, setting=name)

    @abstractmethod
    def _learn(self, features: Features, target_np: Floats, groups: Groups, limits: Limits) -> Part:
        """Return what checked features and targets teach."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.multi_output = True
        return tags


def _groups(features: Features, groups: Any, apps: Any, cpu: Any, platforms: int) -> Groups:
    """Return the groups of cells: as given, otherwise as the features bring them, otherwise each cell its own."""
    count = len(features)
    workload_n = _first(groups, features.workload_n, np.arange(count))
    app_n = _first(apps, features.app_n, workload_n)
    cpu_n = _first(cpu, features.cpu_n, np.zeros(count, bool))
    check_consistent_length(features, workload_n, app_n, cpu_n)
    noise_np = features.noise_np
    if noise_np is None or noise_np.shape[1] != platforms:
        noise_np = np.zeros((count, platforms))
    return Groups(_numbered(workload_n), _numbered(app_n), cpu_n.astype(bool), np.nan_to_num(noise_np))


def _first(*choices: Any) -> Any:
    return np.asarray(next(choice for choice in choices if choice is not None))


def _numbered(labels_n: Any) -> Integers:
    return np.asarray(np.unique(labels_n, return_inverse=True)[1], dtype=np.int64)
