"""Runs of known workloads, recognised by their counters and by their time.

What varies within a workload varies together: a slow disk moves ten counters at once. `WorkloadProfiles` measures the
distance to a workload feature by feature; here it is that of linear discriminant analysis with all correlations, the
workloads being the classes (Fisher 1936; Rao 1948). The run's time counts as one feature more: how far it is from what
the workload takes on that platform, in spreads between two measurements. That a run may be the very measurement that is
known, whose time then is the same to the last digit, is not made use of. The relative times of the workload that is
nearest are a prediction, and for a run of a known workload hardly any other is as sharp.
"""

# N runs, F measured features (standard), W known workloads, P platforms,
# V views: sets of features that runs and workloads have in common, K features of one of them

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from crossperf.arrays import Floats, Integers, Mask
from crossperf.model.fitted.network import Singles
from crossperf.model.fitted.workloads import FARTHEST, WorkloadProfiles

#: Distances computed at a time.
_AT_ONCE = 500_000
#: Workloads share a run by how much farther than the nearest they are, in squared spreads: copies of one count alike.
_ALIKE = 0.1
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

    def look(self, measured_nf: Floats, completed: Runs) -> tuple[Floats, Floats]:
        """Return what `recognise` says of runs, and how far each is from known workloads, by either distance.

        What a run lacks may be completed from a known one, which would make it look like that one: then the distance
        over what was measured is the greater.
        """
        recognised_np, apart_n = self.recognise(completed)
        return recognised_np, np.maximum(self.profiles.distance(measured_nf, completed.source_n), apart_n)

    def recognise(self, runs: Runs) -> tuple[Floats, Floats]:
        """Return the contrast of the workload that each is most likely a run of, and how far it is from it.

        Runs and workloads are compared in the largest view that both have, and feature by feature where a run has
        none. Workloads that are as near as the nearest share the run.
        """
        contrast_np, distance_n = np.zeros((len(runs), self.contrast_wp.shape[1])), np.zeros(len(runs))
        step = max(1, _AT_ONCE // len(self.contrast_wp))
        for start in range(0, len(runs), step):
            rows = slice(start, start + step)
            contrast_np[rows], distance_n[rows] = self._recognised(runs[rows])
        return contrast_np, distance_n

    def _recognised(self, runs: Runs) -> tuple[Floats, Floats]:
        own_nf = self.profiles.own(runs.standard_nf, runs.source_n)
        lacking_nv = np.isnan(own_nf).astype(np.float32) @ self.seen_vf.T.astype(np.float32)
        square_nw, common_nw = self._apart(own_nf, lacking_nv == 0)
        late_nw, timed_nw = self._late(runs)
        counts_nw = common_nw + timed_nw
        mean_nw = (square_nw + np.square(late_nw / self.spread_p[runs.source_n][:, None])) / counts_nw
        near = np.arange(len(runs)), mean_nw.argmin(axis=1)
        least_n1 = mean_nw[near][:, None]
        is_known_n1 = np.isfinite(least_n1)
        beyond_nw = (mean_nw - np.where(is_known_n1, least_n1, 0.0)) * counts_nw[near][:, None]
        share_nw = np.where(is_known_n1, np.exp(-beyond_nw / _ALIKE), 1.0)
        share_nw /= share_nw.sum(axis=1, keepdims=True)
        return share_nw @ self.contrast_wp.astype(np.float64), np.minimum(np.sqrt(mean_nw[near]), FARTHEST)

    def _late(self, runs: Runs) -> tuple[Floats, Mask]:
        """Return the log time of runs over what each workload takes on their platforms, and where that is known."""
        expected_wp = self.log_time_w[:, None] + self.contrast_wp
        late_nw = runs.log_time_n[:, None] - expected_wp.T[runs.source_n]
        known_nw = ~np.isnan(late_nw) & self.timed_w & (runs.source_n >= 0)[:, None]
        return np.where(known_nw, late_nw, 0.0), known_nw

    def _apart(self, own_nf: Floats, has_nv: Mask) -> tuple[Floats, Floats]:
        """Return squared distances to all workloads, and over how many features; infinite without a view in common."""
        square_nw = np.full((len(own_nf), len(self.contrast_wp)), np.inf)
        common_nw, open_n = np.ones_like(square_nw), np.ones(len(own_nf), bool)
        for view, has_n in zip(self._views, has_nv.T, strict=True):
            rows_n = np.flatnonzero(has_n & open_n)
            if not len(rows_n):
                continue
            block = np.ix_(rows_n, view.rows_w)
            own_nk = own_nf[np.ix_(rows_n, view.features)] @ view.whitening_kk
            apart_nw = np.square(own_nk).sum(axis=1)[:, None] - 2.0 * own_nk @ view.mean_wk.T + view.square_w
            fresh_nw = np.isinf(square_nw[block])
            square_nw[block] = np.where(fresh_nw, np.maximum(apart_nw, 0.0), square_nw[block])
            common_nw[block] = np.where(fresh_nw, len(view.features), common_nw[block])
            open_n[rows_n] = np.isinf(square_nw[rows_n]).any(axis=1)
        plain_n = np.flatnonzero(np.isinf(square_nw).all(axis=1))
        square_nw[plain_n], common_nw[plain_n] = self.profiles.apart(own_nf[plain_n])
        return square_nw, common_nw

    @cached_property
    def _views(self) -> list[_View]:
        within_ff = np.clip((self.within_ff + self.within_ff.T) / 2.0, -1.0, 1.0).astype(np.float64)
        np.fill_diagonal(within_ff, 1.0)
        return [_View.of(seen_f, within_ff, self.profiles) for seen_f in self.seen_vf]


@dataclass(frozen=True)
class _View:
    """A set of features, and the workloads that have them, turned so that each direction varies by 1 within them."""

    features: Integers
    rows_w: Integers
    whitening_kk: Floats
    mean_wk: Floats
    square_w: Floats

    @classmethod
    def of(cls, seen_f: Mask, within_ff: Floats, profiles: WorkloadProfiles) -> _View:
        features, rows_w = np.flatnonzero(seen_f), np.flatnonzero(profiles.seen_wf[:, seen_f].all(axis=1))
        variance_k, axes_kk = np.linalg.eigh(within_ff[np.ix_(features, features)])
        whitening_kk = axes_kk / np.sqrt(np.maximum(variance_k, _LEAST_VARIANCE))
        mean_wk = (profiles.mean_wf[np.ix_(rows_w, features)] / profiles.spread_f[features]) @ whitening_kk
        return cls(features, rows_w, whitening_kk, mean_wk, np.square(mean_wk).sum(axis=1))
