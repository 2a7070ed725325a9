"""What every model shares: scikit-learn's grammar, missing values, limits, and its state as plain arrays."""

# N cells, F features, P platforms

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data

from crossperf.dataset.build import Dataset, Split

Floats = NDArray[np.float64]
State = dict[str, NDArray[Any]]

#: How far beyond the training targets a prediction may go, as a share of their range.
MARGIN = 0.1


class Predictor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor from features to log relative times, one column a platform.

    ``X`` may hold NaN (not measured); ``y`` may hold NaN (this workload never ran there). Subclasses fill
    in `_fit`, `_predict`, `_get_state` and `_set_state`; predictions never leave the range of the training
    targets, and of their differences between platforms, by more than a tenth of it, so that no model explodes
    outside what it has seen.
    """

    #: The name of the model on the command line and in files.
    name: ClassVar[str]
    #: The file that holds the state: a state dict of tensors, or named arrays.
    state_file: ClassVar[str] = "arrays.npz"

    @property
    def n_added(self) -> int:
        """How many of the last platforms were added after training: no run measured there can be asked about."""
        return 0

    def fit(self, X: ArrayLike, y: ArrayLike, *, groups: ArrayLike | None = None, cpu: ArrayLike | None = None) -> Self:
        """Learn from cells.

        Parameters
        ----------
        groups
            The group of each cell (its workload, or its application); groups are kept whole wherever the
            model holds cells back to check itself. ``None``: each cell is its own group.
        cpu
            Which cells were measured on a platform of class ``cpu``. ``None``: not known.
        """
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        features_nf = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        target = check_array(y, dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan", input_name="y")
        check_consistent_length(features_nf, target)
        target_np = target.reshape(len(target), -1)
        self.n_outputs_ = target_np.shape[1]
        self._one_output_ = target.ndim == 1
        count = len(features_nf)
        groups_n = np.arange(count) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
        cpu_n = np.zeros(count, bool) if cpu is None else np.asarray(cpu, bool)
        check_consistent_length(features_nf, groups_n, cpu_n)
        self.limits_2p_ = _limits(target_np)
        self.contrast_limits_2p_ = _limits(_contrast(fill_targets(target_np)))
        self._fit(features_nf, target_np, groups_n, cpu_n)
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Return the log relative times of each cell."""
        check_is_fitted(self, "limits_2p_")
        features_nf = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        predicted_np = self._within_limits(self._predict(features_nf))
        return predicted_np[:, 0] if self._one_output_ else predicted_np

    def _within_limits(self, predicted_np: Floats) -> Floats:
        """Return predictions drawn into the training range, first between platforms, then for each."""
        level_n1 = predicted_np.mean(axis=1, keepdims=True)
        contrast_np = np.clip(_contrast(predicted_np), *self.contrast_limits_2p_)
        return np.asarray(np.clip(level_n1 + contrast_np, *self.limits_2p_))

    def learn(self, data: Dataset, split: Split = "workload") -> Self:
        """Learn from a dataset, keeping the groups of a split whole."""
        return self.fit(data.features_nf, data.log_relative_time_np, groups=data.groups_n(split), cpu=data.cpu_n)

    @property
    def summary_(self) -> dict[str, Any]:
        """What the fit has to tell about itself."""
        return {}

    def refuse_unless_savable(self) -> None:
        """Raise where a model of this kind cannot be saved; asked before training as well, so that no fit is lost."""

    def get_state(self) -> State:
        """Return everything learned as named arrays."""
        check_is_fitted(self, "limits_2p_")
        shape = np.array([self.n_features_in_, self.n_outputs_, int(self._one_output_)])
        limits = {"base.limits_2p": self.limits_2p_, "base.contrast_limits_2p": self.contrast_limits_2p_}
        return {"base.shape": shape, **limits, **self._get_state()}

    def set_state(self, state: State) -> Self:
        """Take up what `get_state` returned; predictions are the same as before."""
        n_features, n_outputs, one_output = (int(value) for value in state["base.shape"])
        self.n_features_in_, self.n_outputs_, self._one_output_ = n_features, n_outputs, bool(one_output)
        self.limits_2p_ = np.asarray(state["base.limits_2p"], np.float64)
        self.contrast_limits_2p_ = np.asarray(state["base.contrast_limits_2p"], np.float64)
        self._set_state({name: value for name, value in state.items() if not name.startswith("base.")})
        return self

    @abstractmethod
    def _fit(
        self, features_nf: Floats, target_np: Floats, groups_n: NDArray[np.int64], cpu_n: NDArray[np.bool_]
    ) -> None:
        """Learn from checked arrays."""

    @abstractmethod
    def _predict(self, features_nf: Floats) -> Floats:
        """Return predictions for checked arrays."""

    @abstractmethod
    def _get_state(self) -> State:
        """Return what `_fit` learned."""

    @abstractmethod
    def _set_state(self, state: State) -> None:
        """Take up what `_get_state` returned."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.multi_output = True
        return tags


def _limits(target_np: Floats) -> Floats:
    """Return the least and greatest value that may be predicted for each platform."""
    seen_p = ~np.isnan(target_np).all(axis=0)
    if not seen_p.all():
        raise ValueError(f"y has no value in column {int(np.flatnonzero(~seen_p)[0])}; expected one in every column")
    low_p, high_p = np.nanmin(target_np, axis=0), np.nanmax(target_np, axis=0)
    return np.stack([low_p - MARGIN * (high_p - low_p), high_p + MARGIN * (high_p - low_p)])


def _contrast(target_np: Floats) -> Floats:
    """Return how each platform differs from the mean of its row: what any reference platform leaves as it is."""
    return np.asarray(target_np - target_np.mean(axis=1, keepdims=True))


def fill_targets(target_np: Floats) -> Floats:
    """Return the targets with gaps filled by row effect plus platform effect, for models that need all.

    The effects are the least-squares fit of ``row + platform`` to what is there, by alternation.

    >>> fill_targets(np.array([[0.0, 1.0], [2.0, np.nan], [5.0, 6.0]]))[1]
    array([2., 3.])
    """
    gap_np = np.isnan(target_np)
    if not gap_np.any():
        return target_np
    platform_p = np.zeros(target_np.shape[1])
    row_n1 = np.zeros((len(target_np), 1))
    for _ in range(100):
        row_n1 = np.nan_to_num(_nanmean(target_np - platform_p, axis=1))[:, None]
        before_p, platform_p = platform_p, _nanmean(target_np - row_n1, axis=0)
        if np.abs(platform_p - before_p).max() < 1e-9:
            break
    return np.where(gap_np, row_n1 + platform_p, target_np)


def _nanmean(values: Floats, axis: int) -> Floats:
    count = (~np.isnan(values)).sum(axis=axis)
    return np.asarray(np.nansum(values, axis=axis) / np.maximum(count, 1))
