"""Proves intervals on a second model that has not seen some cells: how wide they are beside what they had to hold.

What is held out inside a fit is answered by fewer trees and by single networks, which err more than the whole model
does, and nearness is not always judged right. A model made in the same way without some applications, and without some
workloads of the others, shows both at once. (How far the next measurement of a known workload differs follows from its
visits, and needs no proof.)
"""

# N cells, P platforms, R ways of holding out from near to far, H cells held out, B errors, Q levels

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crossperf.arrays import Floats, Integers, Mask
from crossperf.dataset.cells import relative_to
from crossperf.dataset.features import Features
from crossperf.model.fitted.blend import Blend, difficulty
from crossperf.model.fitted.confidence import Intervals

#: The share of the applications that is held out, and of the workloads of the others.
_SHARE = 1 / 6
#: These ways of holding out, among all from near to far.
_WORKLOADS, _APPLICATIONS = 1, 2
#: From fewer cells than these no second model is made; from more than these it need not be.
_FEWEST_CELLS, _MOST_CELLS = 120, 50_000
#: What was seen of the scale counts by half where this many groups were held out.
_SOME_GROUPS = 6
#: Levels at which intervals are compared with what they had to hold.
_LEVELS = np.array([0.65, 0.8, 0.9])
#: Cells of each way that are asked about, how often scales are found anew, and the least and greatest scale.
_MOST_ASKED, _ROUNDS, _BOUNDS = 400, 6, (0.5, 2.0)
#: Cells whose errors are drawn at a time; no end of an interval is nearer to its middle.
_AT_ONCE, _NARROWEST = 128, 1e-9


@dataclass(frozen=True, eq=False)
class HeldOutParts:
    """Which cells are held out with their workload and with their application, and what cells belong to.

    ``seen_n`` are those that the second model learns from: the others, of a long table whole workloads drawn from them.
    """

    held_rn: Mask
    group_rn: Integers
    seen_n: Mask

    @classmethod
    def drawn(cls, workload_n: Integers, app_n: Integers, rng: np.random.Generator) -> HeldOutParts:
        """Return parts of cells: those of some applications, and of some workloads of the other applications."""
        group_rn = np.stack([np.arange(len(app_n)), workload_n, app_n])
        held_rn, left_n = np.zeros(group_rn.shape, bool), np.ones(len(app_n), bool)
        for r in (_APPLICATIONS, _WORKLOADS):
            names = rng.permutation(np.unique(group_rn[r, left_n]))
            taken = names[: round(_SHARE * len(names))]
            held_rn[r] = left_n & np.isin(group_rn[r], taken)
            left_n &= ~held_rn[r]
        names, count = np.unique(workload_n[left_n], return_counts=True)
        order = rng.permutation(len(names))
        seen = names[order][np.cumsum(count[order]) <= max(_MOST_CELLS, count.max(initial=0))]
        return cls(held_rn, group_rn, left_n & np.isin(workload_n, seen))

    def groups_r(self) -> Integers:
        """Return how many groups are held out in each way."""
        return np.array(
            [len(np.unique(own_n[held_n])) for own_n, held_n in zip(self.group_rn, self.held_rn, strict=True)]
        )


def scales(
    fit: Callable[[Mask], Blend],
    features: Features,
    truth_np: Floats,
    parts: HeldOutParts,
    rng: np.random.Generator,
) -> Floats:
    """Return the scale of the errors of each way of holding out, with which intervals hold as often as they say.

    ``fit`` learns from some of the cells. Where few groups were held out, the scale is drawn towards 1.
    """
    ways = len(parts.held_rn)
    if parts.seen_n.sum() < _FEWEST_CELLS or np.isnan(truth_np[parts.seen_n]).all(axis=0).any():
        return np.ones(ways)
    rows = [rng.permutation(np.flatnonzero(held_n))[:_MOST_ASKED] for held_n in parts.held_rn]
    rows_h, way_h = np.concatenate(rows), np.repeat(np.arange(ways), [len(own) for own in rows])
    if not len(rows_h):
        return np.ones(ways)
    held_out = _HeldOutCells.of(fit(parts.seen_n), features[rows_h], truth_np[rows_h])
    scale_r, groups_r = np.ones(ways), parts.groups_r()
    # A run's errors are a mixture by how near it looks, so that the scale of each way depends on those of the others.
    for _ in range(_ROUNDS):
        needed_hpq = held_out.needed(scale_r)
        scale_r = np.clip(scale_r * [_wider(needed_hpq[way_h == r]) for r in range(ways)], *_BOUNDS)
    return np.asarray(scale_r ** (groups_r / (groups_r + _SOME_GROUPS)))


@dataclass(frozen=True, eq=False)
class _HeldOutCells:
    """Cells that a model has not seen: its answers and intervals, and the truth, as times relative to the source."""

    intervals: Intervals
    signs_hd: Floats
    share_hr: Floats
    predicted_hp: Floats
    truth_hp: Floats
    source_h: Integers

    @classmethod
    def of(cls, model: Blend, features: Features, truth_hp: Floats) -> _HeldOutCells:
        """Return what a model answers; where no source is named, times are relative to the first platform."""
        answer, source_h = model.ask(features), np.maximum(features.source_n, 0)
        predicted_hp, relative_hp = (relative_to(times_hp, source_h) for times_hp in (answer.predicted_np, truth_hp))
        relative_hp[np.arange(len(features)), source_h] = np.nan
        signs_hd = difficulty(features, answer.signs_nz)
        return cls(model.intervals, signs_hd, answer.share_nr, predicted_hp, relative_hp, source_h)

    def needed(self, scale_r: Floats) -> Floats:
        """Return how many times as wide each interval of each level would just hold the truth, H x P x Q."""
        intervals, shares = self.intervals.scaled(scale_r), np.concatenate([(1 - _LEVELS) / 2, (1 + _LEVELS) / 2])
        needed_hpq = np.empty((*self.truth_hp.shape, len(_LEVELS)))
        for start in range(0, len(self.signs_hd), _AT_ONCE):
            rows = slice(start, start + _AT_ONCE)
            error_hbp = intervals.errors(self.signs_hd[rows], self.share_hr[rows])
            error_hbp = error_hbp - np.take_along_axis(error_hbp, self.source_h[rows, None, None], axis=2)
            low_qhp, high_qhp = np.split(np.quantile(error_hbp, shares, axis=1), 2)
            off_hp = self.truth_hp[rows] - self.predicted_hp[rows]
            end_qhp = np.where(off_hp > 0, high_qhp, -low_qhp)
            needed_hpq[rows] = np.moveaxis(np.abs(off_hp) / np.maximum(end_qhp, _NARROWEST), 0, -1)
        return needed_hpq


def _wider(needed_hpq: Floats) -> float:
    """Return the factor by which intervals hold as large a share of the truth as their level says."""
    known_hp = ~np.isnan(needed_hpq[..., 0])
    if not known_hp.any():
        return 1.0
    needed_eq = needed_hpq[known_hp]
    factor_q = [np.quantile(needed_e, level) for level, needed_e in zip(_LEVELS, needed_eq.T, strict=True)]
    return float(np.exp(np.log(np.clip(factor_q, *_BOUNDS)).mean()))
