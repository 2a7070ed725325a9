"""Runs of known workloads, recognised by their counters and by their time.

What varies within a workload varies together: a slow disk moves ten counters at once. `WorkloadProfiles` measures the
distance to a workload feature by feature; here it is that of linear discriminant analysis with all correlations, the
workloads being the classes (Fisher 1936; Rao 1948). The run's time counts as one feature more: how far it is from what
the workload takes on that platform, in spreads between two measurements. That a run may be the very measurement that is
known, whose time then is the same to the last digit, is not made use of. The relative times of the workload that is
nearest are a prediction, and for a run of a known workload hardly any other is as sharp.
"""

# N runs, F measured features (standard), W known workloads, P platforms,
# V views: sets of features that runs and workloads have in common, K features of one of them, M pairs

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from crossperf.arrays import Floats, Integers, Mask
from crossperf.model.fitted.confidence import distinct
from crossperf.model.fitted.network import Singles
from crossperf.model.fitted.workloads import FARTHEST, WorkloadProfiles

#: Distances computed at a time.
_AT_ONCE = 500_000
#: Workloads share a run by how much farther than the nearest they are, in squared spreads; copies of one share it
#: equally. At the second distance, and beyond this number of them, they have no part in it.
_SHARING, _BEYOND, _MOST_SHARING = 0.1, 2.0, 64
#: In spreads: at this distance from the nearest workload a run is near none.
_NOWHERE_NEAR = 100.0
#: What a squared distance in single precision may be off by, of the squared size of a run.
_ROUNDING = 1e-5
#: Orders of views that are kept.
_MOST_ORDERS = 64
#: What is added to distances, in spreads, before one is divided by another.
_HARDLY_APART = 1e-2
#: No combination of features varies less within workloads than by this share of what a feature does, squared.
_LEAST_VARIANCE = 1e-2


@dataclass(frozen=True)
class Runs:
    """Runs to be recognised: their standard features, the number of the platform they ran on, and their log time.

    ``source_n`` is -1, and ``log_time_n`` is NaN, where it is not known.
    """

    standard_nf: Floats
    source_n: Integers
    log_time_n: Floats

    def __getitem__(self, rows: Any) -> Runs:
        return Runs(self.standard_nf[rows], self.source_n[rows], self.log_time_n[rows])

    def __len__(self) -> int:
        return len(self.source_n)


class Recognised(NamedTuple):
    """What runs are recognised as: the contrast of the nearest workload, how far it is, and its lead.

    The lead is the logarithm of how many times as far the second nearest workload is.
    """

    contrast_np: Floats
    away_n: Floats
    lead_n: Floats


@dataclass(frozen=True)
class Recognition:
    """Known workloads, their contrasts, and the correlations of what varies within them.

    ``seen_vf`` holds the views, those with the most features first; ``log_time_w`` the mean log time over platforms of
    those workloads that are ``timed_w``, from which the contrast tells that on each; and ``spread_p`` how far apart
    the log times of two measurements lie on each platform.
    """

    profiles: WorkloadProfiles
    within_ff: Singles
    seen_vf: Mask
    contrast_wp: Singles
    log_time_w: Singles
    timed_w: Mask
    spread_p: Floats

    def refuse_misfits(self, sources: int) -> None:
        """Raise `ValueError` unless the parts fit together, and to the sources of runs: what a file holds need not."""
        rows, workloads, features = len(self.profiles.platform_sf), *self.profiles.mean_wf.shape
        if rows != sources + 1:
            raise ValueError(f"profiles.platform_sf has {rows} rows, expected {sources + 1} for {sources} sources")
        if (workloads, features) != (len(self.contrast_wp), len(self.within_ff)):
            raise ValueError(
                f"profiles are of {workloads} workloads and {features} features, the rest of {len(self.contrast_wp)} "
                f"and {len(self.within_ff)}"
            )
        if self.seen_vf.shape[1] != features or not workloads:
            raise ValueError("its views do not fit its workloads")
        if (self.spread_p < np.finfo(np.float32).tiny).any():
            raise ValueError(f"spread_p holds {self.spread_p.min()}, expected numbers above 0 in single precision")

    def look(self, measured_nf: Floats, completed: Runs) -> Recognised:
        """Return what `recognise` says of runs: how far each is from known workloads is the greater of two distances.

        What a run lacks may be completed from a known one, which would make it look like that one: then the distance
        over what was measured is the greater.
        """
        recognised = self.recognise(completed)
        away_n = self.profiles.distance(measured_nf, completed.source_n)
        return recognised._replace(away_n=np.maximum(away_n, recognised.away_n))

    def recognise(self, runs: Runs) -> Recognised:
        """Return which workload each is most likely a run of.

        Runs and workloads are compared in the largest view that both have, and feature by feature where a run has
        none. Workloads that are as near as the nearest share the run; all do where none is anywhere near.
        """
        recognised = Recognised(np.zeros((len(runs), self.contrast_wp.shape[1])), *np.zeros((2, len(runs))))
        own_nf = self.profiles.own(runs.standard_nf, runs.source_n)
        has_nv = np.isnan(own_nf).astype(np.float32) @ self.seen_vf.T.astype(np.float32) == 0
        first_u, number_n = distinct(has_nv)
        step = max(1, _AT_ONCE // len(self.contrast_wp))
        for number, first in enumerate(first_u):
            order, rows_n = self._order(has_nv[first]), np.flatnonzero(number_n == number)
            for start in range(0, len(rows_n), step):
                rows = rows_n[start : start + step]
                for part, own in zip(recognised, self._recognised(own_nf[rows], runs[rows], order), strict=True):
                    part[rows] = own
        return recognised

    def _recognised(self, own_nf: Floats, runs: Runs, order: _Order) -> Recognised:
        """Find workloads that may be the nearest by products in single precision, and compare these alone exactly."""
        turned = [own_nf[:, view.features] @ view.whitening_kk for view in order.views]
        square_nw, common_nw = order.rough(turned) if turned else self.profiles.apart(own_nf)
        late_nw, timed_nw = self._late(runs, order.workloads)
        counts_nw = common_nw + timed_nw.astype(np.float32)
        mean_nw = (square_nw + np.square(late_nw)) / counts_nw
        least_n = mean_nw.min(axis=1).astype(np.float64)
        size_n = sum((np.square(own).sum(axis=1) for own in turned or [np.nan_to_num(own_nf)]), np.zeros(len(runs)))
        room_n = (_BEYOND + _ROUNDING * size_n) / counts_nw.min(axis=1)
        most_n = np.where(least_n <= _NOWHERE_NEAR**2, least_n + room_n, -1.0)
        row_m, place_m = np.nonzero(_nearest(mean_nw, most_n))
        # From here on, pairs of a run and a workload that it may be one of, run by run.
        near_n, start_n, own_m = np.unique(row_m, return_index=True, return_inverse=True)
        contrast_np = np.tile(self.contrast_wp.mean(axis=0, dtype=np.float64), (len(runs), 1))
        if len(near_n):
            workload_m, counts_m = order.workloads[place_m], counts_nw[row_m, place_m]
            exact = order.exact(turned, row_m, place_m) if turned else self.profiles.exact(own_nf[row_m], workload_m)
            mean_m = (exact + np.square(late_nw[row_m, place_m])) / counts_m
            least_n[near_n] = np.minimum.reduceat(mean_m, start_n)
            is_least_m = mean_m == least_n[row_m]
            nearest_counts = np.maximum.reduceat(np.where(is_least_m, counts_m, 0.0), start_n)
            share_m = np.exp(-(mean_m - least_n[row_m]) * nearest_counts[own_m] / _SHARING)
            share_m /= np.bincount(own_m, share_m)[own_m]
            contrast_np[near_n] = np.add.reduceat(share_m[:, None] * self.contrast_wp[workload_m], start_n)
        mean_nw[np.arange(len(runs)), mean_nw.argmin(axis=1)] = np.inf
        second_n = mean_nw.min(axis=1).astype(np.float64)
        away_n, next_n = (np.minimum(np.sqrt(square_n), FARTHEST) for square_n in (least_n, second_n))
        return Recognised(contrast_np, away_n, np.log((next_n + _HARDLY_APART) / (away_n + _HARDLY_APART)))

    def _late(self, runs: Runs, workloads: Integers) -> tuple[Singles, Mask]:
        """Return runs' log times over what workloads take on their platforms, in spreads, and where that is known."""
        source_n, is_known_n = runs.source_n, ~np.isnan(runs.log_time_n) & (runs.source_n >= 0)
        expected_pw = (self.log_time_w[:, None] + self.contrast_wp)[workloads].T
        late_nw = runs.log_time_n.astype(np.float32)[:, None] - expected_pw[source_n]
        late_nw /= self.spread_p.astype(np.float32)[source_n][:, None]
        known_nw = self.timed_w[workloads] & is_known_n[:, None]
        return np.where(known_nw, late_nw, np.float32(0.0)), known_nw

    def _order(self, has_v: Mask) -> _Order:
        """Return how runs that have the features of these views are compared with each workload; some are kept."""
        key = has_v.tobytes()
        order = self._orders.get(key)
        if order is None:
            order = _Order.of(self._views, has_v, len(self.contrast_wp))
            if len(self._orders) >= _MOST_ORDERS:
                self._orders.clear()
            self._orders[key] = order
        return order

    @cached_property
    def _orders(self) -> dict[bytes, _Order]:
        return {}

    @cached_property
    def _views(self) -> list[_WorkloadView]:
        within_ff = np.clip((self.within_ff + self.within_ff.T) / 2.0, -1.0, 1.0).astype(np.float64)
        np.fill_diagonal(within_ff, 1.0)
        return [_WorkloadView.of(seen_f, within_ff, self.profiles) for seen_f in self.seen_vf]


def _nearest(mean_nw: Floats | Singles, most_n: Floats) -> Mask:
    """Return which workloads are no farther from each run than a bound; of very many, the nearest."""
    near_nw = np.asarray(mean_nw <= most_n[:, None])
    for row in np.flatnonzero(near_nw.sum(axis=1) > _MOST_SHARING):
        near_nw[row] = False
        near_nw[row, np.argpartition(mean_nw[row], _MOST_SHARING)[:_MOST_SHARING]] = True
    return near_nw


@dataclass(frozen=True)
class _WorkloadView:
    """A set of features, and workloads that have them, turned so that each direction varies by 1 within them."""

    features: Integers
    workloads: Integers
    whitening_kk: Floats
    mean_wk: Floats

    @classmethod
    def of(cls, seen_f: Mask, within_ff: Floats, profiles: WorkloadProfiles) -> _WorkloadView:
        features, workloads = np.flatnonzero(seen_f), np.flatnonzero(profiles.seen_wf[:, seen_f].all(axis=1))
        variance_k, axes_kk = np.linalg.eigh(within_ff[np.ix_(features, features)])
        whitening_kk = axes_kk / np.sqrt(np.maximum(variance_k, _LEAST_VARIANCE))
        mean_wk = (profiles.mean_wf[np.ix_(workloads, features)] / profiles.spread_f[features]) @ whitening_kk
        return cls(features, workloads, whitening_kk, mean_wk)

    @cached_property
    def rough(self) -> tuple[Singles, Singles]:
        """The means and their squares in single precision."""
        return self.mean_wk.astype(np.float32), np.square(self.mean_wk).sum(axis=1).astype(np.float32)


@dataclass(frozen=True)
class _Order:
    """In which view each workload is compared with runs that have the same features; view by view.

    Without any view, all workloads as they are.
    """

    views: tuple[_WorkloadView, ...]
    workloads: Integers

    @classmethod
    def of(cls, views: Sequence[_WorkloadView], has_v: Mask, count: int) -> _Order:
        """Take each workload in the first of the views that runs have."""
        is_open_w, taken = np.ones(count, bool), []
        for view in (view for view, has in zip(views, has_v, strict=True) if has):
            fresh = is_open_w[view.workloads]
            if fresh.any():
                taken.append(replace(view, workloads=view.workloads[fresh], mean_wk=view.mean_wk[fresh]))
                is_open_w[view.workloads] = False
        return cls(tuple(taken), np.concatenate([view.workloads for view in taken]) if taken else np.arange(count))

    def rough(self, turned: Sequence[Floats]) -> tuple[Singles, Singles]:
        """Return squared distances of runs, turned as each view has it, to workloads, and over how many features."""
        square, common = [], []
        for own_nk, view in zip(turned, self.views, strict=True):
            mean_wk, square_w = view.rough
            own = own_nk.astype(np.float32)
            apart_nw = own @ mean_wk.T
            apart_nw *= -2.0
            apart_nw += square_w
            apart_nw += np.square(own).sum(axis=1, keepdims=True)
            square.append(np.maximum(apart_nw, 0.0, out=apart_nw))
            common.append(np.full((1, len(square_w)), len(view.features), np.float32))
        return np.hstack(square), np.hstack(common)

    def exact(self, turned: Sequence[Floats], row_m: Integers, place_m: Integers) -> Floats:
        """Return the squared distances of pairs of a run and the place of a workload."""
        square_m, end = np.zeros(len(row_m)), 0
        for own_nk, view in zip(turned, self.views, strict=True):
            start, end = end, end + len(view.workloads)
            own = np.flatnonzero((place_m >= start) & (place_m < end))
            apart = own_nk[row_m[own]] - view.mean_wk[place_m[own] - start]
            square_m[own] = np.square(apart).sum(axis=1)
        return square_m
