"""Boosted trees, one ensemble a platform, with settings chosen on whole groups of the training cells."""

# N cells, F features, P platforms, G groups held out

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from crossperf.arrays import Floats, Integers
from crossperf.dataset.features import Features
from crossperf.model.base import Groups, Predictor
from crossperf.model.fitted.boosters import Boosters
from crossperf.model.fitted.model import Part
from crossperf.model.fitted.scales import Limits

Settings = dict[str, float]

#: Groups are dealt into this number of parts, and each trial holds out another one: a quarter of the groups.
PARTS = 4
#: The shares of a candidate's rounds after which it is scored.
SHARES = (0.25, 0.5, 0.75, 1.0)
#: With fewer groups than this, what is held out says too little to choose by.
FEWEST_GROUPS = 8
#: How far ahead a candidate has to be: over a dozen are tried, so one standard error is soon passed by luck.
STANDARD_ERRORS = 2.0
#: Choosing looks at this many cells at most (whole groups), so that it costs about as much as the fit itself.
MOST_CELLS = 4000


class Rows(NamedTuple):
    """Cells whose target is known, for one platform."""

    features_nf: Floats
    target_n: Floats


@dataclass(frozen=True)
class Candidate:
    """Settings to try; ``rounds`` is the most rounds, as a multiple of ``n_estimators``."""

    settings: Settings
    rounds: float = 1.0


@dataclass(frozen=True)
class Trial:
    """What one candidate is tried on: cells to learn from, and whole groups held out, for a pair of platforms."""

    platforms: tuple[int, ...]
    learned: tuple[Rows, ...]
    held_features_nf: Floats
    #: The logarithm of the time on the first of the pair over that on the second.
    held_difference_n: Floats
    held_group_n: Integers


class Tried(NamedTuple):
    """Settings, a number of rounds, and what each group held out adds to their mean squared error."""

    settings: Settings
    rounds: int
    error_g: Floats


class Boosted(Predictor):
    """What the libraries of boosted trees share; a workload that never ran on a platform is left out there.

    With ``tune``, settings and rounds are chosen before the fit, on training cells alone: a quarter of the
    groups is held out, each candidate learns two platforms from the others, and what counts is the squared
    error of the log time on one platform over that on the other. Candidates take the place of the settings
    given only where they are ahead by more than two standard errors of the difference over groups. Then all
    cells are learned from. ``n_estimators`` bounds the rounds (a flat, cheap tree may take twice as many).
    """

    sees_derived: ClassVar[bool] = True
    #: How boosters of this library are kept and asked.
    library: ClassVar[type[Boosters]]
    #: The settings that a candidate may change.
    tunable: ClassVar[tuple[str, ...]]
    #: What is tried beside the settings given.
    candidates: ClassVar[tuple[Candidate, ...]]

    n_estimators: int
    n_jobs: int | None
    seed: int
    tune: bool

    def _learn(self, features: Features, target_np: Floats, groups: Groups, limits: Limits) -> Part:
        features_nf = features.values_nf
        settings, rounds = {name: getattr(self, name) for name in self.tunable}, self.n_estimators
        self.fit_summary_: dict[str, Any] = {"tuned": False}
        trials = list(trials_of(features_nf, target_np, groups.workload_n, self.seed)) if self.tune else []
        if trials:
            settings, rounds = self._choose(settings, trials)
        self.fit_summary_ |= {"settings": settings, "rounds": rounds}
        rows_of_platforms = (_known(features_nf, target_n) for target_n in target_np.T)
        return self.library.of([self._train(settings, rounds, rows) for rows in rows_of_platforms])

    def _choose(self, given: Settings, trials: list[Trial]) -> tuple[Settings, int]:
        tried = list(self._try(Candidate(given), trials))
        as_given = tried[-1]
        for candidate in self.candidates:
            tried += self._try(Candidate(given | candidate.settings, candidate.rounds), trials)
        ahead = [trial for trial in tried if _is_ahead(trial.error_g, as_given.error_g)]
        best = min([as_given, *ahead], key=_rmse)
        self.fit_summary_ = {
            "tuned": True,
            "platforms": [trial.platforms for trial in trials],
            "groups_held_out": [len(np.unique(trial.held_group_n)) for trial in trials],
            "tried": [{**trial.settings, "rounds": trial.rounds, "rmse": _rmse(trial)} for trial in tried],
        }
        return best.settings, best.rounds

    def _try(self, candidate: Candidate, trials: list[Trial]) -> Iterator[Tried]:
        """Yield the error of a candidate after a part of its rounds, and at last after all of them."""
        most = max(1, round(candidate.rounds * self.n_estimators))
        boosters = [[self._train(candidate.settings, most, rows) for rows in trial.learned] for trial in trials]
        for rounds in sorted({max(1, round(share * most)) for share in SHARES}):
            errors = [self._error(trial, pair, rounds) for trial, pair in zip(trials, boosters, strict=True)]
            yield Tried(candidate.settings, rounds, np.concatenate(errors))

    def _error(self, trial: Trial, boosters: list[Any], rounds: int) -> Floats:
        first_n, *second_n = (self.library.answer(own, trial.held_features_nf, rounds, self.n_jobs) for own in boosters)
        error_n = np.square(first_n - sum(second_n) - trial.held_difference_n)
        groups, number_n = np.unique(trial.held_group_n, return_inverse=True)
        return np.asarray(np.bincount(number_n, error_n) * len(groups) / len(error_n))

    @abstractmethod
    def _train(self, settings: Settings, rounds: int, rows: Rows) -> Any:
        """Return a booster of a number of rounds."""


def deal(groups_n: Integers, parts: int, seed: int) -> Integers:
    """Return the part of each cell: groups stay whole, and are dealt by the seed.

    >>> deal(np.array([7, 7, 8, 8, 9, 9]), parts=3, seed=0)
    array([1, 1, 2, 2, 0, 0])
    """
    groups, number_n = np.unique(groups_n, return_inverse=True)
    place_of_group = np.argsort(np.random.default_rng(seed).permutation(len(groups)))
    return np.asarray(place_of_group[number_n] % parts)


def trials_of(features_nf: Floats, target_np: Floats, groups_n: Integers, seed: int) -> Iterator[Trial]:
    """Yield what to choose settings on; nothing where there are too few groups.

    One pair of platforms drawn by the seed for every six, two pairs at most; each holds out another part of
    the groups, and of those the cells that ran on both. A single platform stands alone.
    """
    cells_n = _some_groups(groups_n, seed)
    features_nf, target_np, groups_n = features_nf[cells_n], target_np[cells_n], groups_n[cells_n]
    if len(np.unique(groups_n)) < FEWEST_GROUPS:
        return
    part_n = deal(groups_n, PARTS, seed)
    platforms = [int(platform) for platform in np.random.default_rng(seed).permutation(target_np.shape[1])]
    for part in range(min(2, max(1, len(platforms) // 6))):
        pair = tuple(platforms[2 * part : 2 * part + 2])
        held_n = (part_n == part) & ~np.isnan(target_np[:, pair]).any(axis=1)
        learned = tuple(_known(features_nf[part_n != part], target_np[part_n != part, platform]) for platform in pair)
        if held_n.any() and all(len(rows.target_n) for rows in learned):
            difference_n = target_np[held_n, pair[0]] - (target_np[held_n, pair[1]] if len(pair) > 1 else 0.0)
            yield Trial(pair, learned, features_nf[held_n], difference_n, groups_n[held_n])


def _known(features_nf: Floats, target_n: Floats) -> Rows:
    known_n = ~np.isnan(target_n)
    return Rows(features_nf[known_n], target_n[known_n])


def _some_groups(groups_n: Integers, seed: int) -> Integers:
    """Return the cells of as many whole groups, drawn by the seed, as hold `MOST_CELLS`; one at least."""
    groups, number_n, count = np.unique(groups_n, return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(groups))
    taken = order[: max(1, int(np.searchsorted(np.cumsum(count[order]), MOST_CELLS, side="right")))]
    return np.flatnonzero(np.isin(number_n, taken))


def _rmse(tried: Tried) -> float:
    return float(np.sqrt(tried.error_g.mean()))


def _is_ahead(error_g: Floats, given_g: Floats) -> bool:
    """Return whether errors are less by more than two standard errors of the difference over groups."""
    less_g = given_g - error_g
    return len(less_g) > 1 and bool(less_g.mean() > STANDARD_ERRORS * less_g.std(ddof=1) / np.sqrt(len(less_g)))
