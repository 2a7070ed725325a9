"""Scores a new platform that few workloads ran on: each platform in turn counts as new.

The workloads that are scored are never among the training ones. A base model learns from the other platforms alone; a
head adds the new one from k training workloads, drawn at random or chosen by `suggest`. Beside it stand the same
model retrained from scratch on the same k, and with all training workloads measured there.
"""

# N cells, W workloads, K workloads measured on the new platform, P known platforms

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crossperf.adaptation import head
from crossperf.adaptation.result import Transfer, TransferScore
from crossperf.arrays import Floats, Integers
from crossperf.dataset.pairing import Dataset, Fold, folds
from crossperf.errors import DatasetError, SettingsError, some_of
from crossperf.evaluation import metrics
from crossperf.evaluation.run import Maker, Models, makers_of
from crossperf.workers import Progress

#: log typical factors: of the new platform's column, and of the whole relative performance vector.
Score = tuple[float, float]


def transfer(
    data: Dataset,
    models: Models = ("extra-trees",),
    *,
    shots: Sequence[float] = (3, 5, 10, 20),
    n_folds: int = 5,
    seed: int = 0,
    scored_folds: int | None = None,
    draws: int = 5,
    scratch_draws: int = 1,
    left_out: Sequence[str] | None = None,
    peers: Collection[str] = (),
    progress: Progress | None = None,
) -> Transfer:
    """Return the scores of models on platforms that were left out, from few workloads measured there.

    Parameters
    ----------
    shots
        How many training workloads are measured on the new platform; below 1, a share of them.
    draws
        How many times the workloads are drawn; each draw refits the head alone.
    scratch_draws
        On how many of these draws each model is retrained from scratch, which costs a fit each.
    left_out
        Which platforms count as new in turn; all when ``None``.
    peers
        Those of the models that are retrained from scratch alone, to compare with.

    Returns
    -------
    Transfer
        Typical factors by model, shots, way and platform, with ``mean()``, ``to_frame()`` and ``write()``.

    >>> from crossperf.dataset import build
    >>> from crossperf.datasets import toy
    >>> data = build(toy.make_table(apps=4, inputs=3, seed=1))
    >>> transfer(data, ["ridge"], shots=[3], n_folds=3, scored_folds=1, draws=1, left_out=["gpu-b"]).models
    ('ridge',)
    """
    _check(data, shots, draws, scored_folds, n_folds)
    makers = makers_of(models, seed)
    platforms = list(left_out or data.platforms)
    parts = [(name, _NewPlatform.of(data, name, n_folds, seed, scored_folds)) for name in platforms]
    labels = {_label(count): count for count in shots}
    by_way: dict[tuple[str, str, str, str], list[Score]] = {}
    fits = {name: min(scratch_draws, draws) * len(labels) + (0 if name in peers else 2) for name in makers}
    total, done = sum(len(part.folds) for _, part in parts) * sum(fits.values()), 0
    for platform, part in parts:
        for fold in part.folds:
            for name, maker in makers.items():
                if progress:
                    progress(f"{name} without {platform}", done, total)
                task = _Task(part, fold, maker, seed, draws, scratch_draws)
                for (label, way), logs in (task.anew if name in peers else task.run)(labels).items():
                    by_way.setdefault((name, label, way, platform), []).extend(logs)
                done += fits[name]
    counts = {label: float(np.mean([part.count(count) for _, part in parts])) for label, count in labels.items()}
    scores = tuple(TransferScore(*which, *np.exp(np.mean(logs, axis=0)).tolist()) for which, logs in by_way.items())
    n_scored = len(parts[0][1].folds)
    noise = _noise(data, platforms)
    result = Transfer(data.table, n_folds, n_scored, seed, draws, counts, tuple(platforms), noise, scores)
    return replace(result, caveats=_caveats(result, min(scratch_draws, draws)))


def _check(data: Dataset, shots: Sequence[float], draws: int, scored_folds: int | None, n_folds: int) -> None:
    if len(data.platforms) < 3:
        raise DatasetError(
            f"{data.table.path}: found {len(data.platforms)} platforms, expected three or more to leave one out. "
            "Measure the workloads on another platform."
        )
    if not shots or any(count <= 0 or (count >= 1 and (count < 2 or count % 1)) for count in shots):
        raise SettingsError(
            f"shots: found {some_of(map(_label, shots)) or 'none'}, expected numbers of workloads of 2 or more, or "
            "shares such as 5%.",
            argument="shots",
        )
    if draws < 1:
        raise SettingsError(f"draws: found {draws}, expected 1 or more.", argument="draws")
    if scored_folds is not None and not 1 <= scored_folds <= n_folds:
        message = f"scored_folds: found {scored_folds}, expected 1 to {n_folds}."
        raise SettingsError(message, argument="scored_folds")


def _label(count: float) -> str:
    return f"{count:.3g}" if count >= 1 else f"{100 * count:.3g}%"


@dataclass(frozen=True)
class _NewPlatform:
    """A platform that counts as new, the data without it, what the workloads took on it, and the folds to score."""

    whole: Dataset
    platform: int
    data: Dataset
    log_time_w: Floats
    folds: list[Fold]

    @classmethod
    def of(cls, whole: Dataset, platform: str, n_folds: int, seed: int, scored_folds: int | None) -> _NewPlatform:
        number = whole.platforms.index(platform)
        rest = whole.without(platform)
        parts = folds(rest, "workload", n_folds, seed)[:scored_folds]
        return cls(whole, number, rest, whole.log_time_wp[:, number], parts)

    def cells(self, rows_n: Integers) -> Dataset:
        """Return these cells of the data without the platform as the whole data has them."""
        return self.whole.take(np.flatnonzero(self.whole.source_n != self.platform)[rows_n])

    def measured(self, fold: Fold) -> Integers:
        trained_w = np.unique(self.data.workload_n[fold.train_n])
        return trained_w[~np.isnan(self.log_time_w[trained_w])]

    def count(self, shots: float, fold: Fold | None = None) -> int:
        """Return how many workloads are measured; a share is one of the training workloads."""
        if shots >= 1:
            return int(shots)
        return max(2, round(shots * len(self.measured(fold or self.folds[0]))))


@dataclass(frozen=True)
class _Task:
    """One model, one platform left out, one fold."""

    part: _NewPlatform
    fold: Fold
    maker: Maker
    seed: int
    draws: int
    scratch_draws: int

    def run(self, labels: Mapping[str, float]) -> dict[tuple[str, str], list[Score]]:
        test, train = (self.part.data.take(rows_n) for rows_n in (self.fold.test_n, self.fold.train_n))
        base = self.maker().learn(train).fitted_
        base_np, asked = base.predict(test.features), test.features.matched(base.columns)
        trained_w = np.unique(train.workload_n)
        known = head.KnownWorkloads.of(train.compact(), train.features.matched(base.columns))
        measured = np.searchsorted(trained_w, self.part.measured(self.fold))
        full = self._retrained(self.part.measured(self.fold))
        scores = self.anew(labels)
        for label, drawn in self._drawn(labels).items():
            prior_g = head.log_prior_g(known, len(drawn[0]), self.seed)
            weights_g, nothing = head.softmax(prior_g), np.empty(0, np.int64)
            chosen = head.suggest(
                known, len(drawn[0]), nothing, candidates=measured, setting_weights_g=weights_g, seed=self.seed
            )
            suggested_w = trained_w[[suggested.workload for suggested in chosen]]
            for way, draws in (("adapted", drawn), ("suggested", [suggested_w])):
                for chosen_w in draws:
                    shots, log_time_k = np.searchsorted(trained_w, chosen_w), self.part.log_time_w[chosen_w]
                    fitted = head.fit_head(known, shots, log_time_k, self.seed, prior_g=prior_g)
                    column_n = fitted.predict(asked, base_np)
                    scores.setdefault((label, way), []).append(self._score(np.column_stack([base_np, column_n])))
            scores[label, "full"] = [full]
        return scores

    def anew(self, labels: Mapping[str, float]) -> dict[tuple[str, str], list[Score]]:
        """Return the scores by shots of the model retrained from scratch."""
        return {
            (label, "scratch"): [self._retrained(chosen_w) for chosen_w in drawn[: self.scratch_draws]]
            for label, drawn in self._drawn(labels).items()
        }

    def _drawn(self, labels: Mapping[str, float]) -> dict[str, list[Integers]]:
        """Return the workloads measured on the new platform, by shots and draw; the same for every model."""
        measured_w = self.part.measured(self.fold)
        counts = {label: self.part.count(shots, self.fold) for label, shots in labels.items()}
        drawn = {}
        for label, count in counts.items():
            rng = np.random.default_rng([self.seed, count])
            if count <= len(measured_w):
                drawn[label] = [rng.choice(measured_w, count, replace=False) for _ in range(self.draws)]
        return drawn

    def _retrained(self, measured_w: Integers) -> Score:
        """Return the score of the model trained on all platforms, with these workloads measured on the new one."""
        new, log_time_wp = self.part.platform, self.part.whole.log_time_wp.copy()
        log_time_wp[np.delete(np.arange(len(log_time_wp)), measured_w), new] = np.nan
        fitted = self.maker().learn(replace(self.part.cells(self.fold.train_n), log_time_wp=log_time_wp))
        predicted_np = fitted.predict(self.part.cells(self.fold.test_n).features)
        return self._score(np.column_stack([np.delete(predicted_np, new, axis=1), predicted_np[:, new]]))

    def _score(self, predicted_np: Floats) -> Score:
        """Return log typical factors relative to the source: of the new platform's column, of all other platforms."""
        test = self.part.data.take(self.fold.test_n)
        target_n = self.part.log_time_w[test.workload_n] - test.log_time_wp[test.workload_n, test.source_n]
        truth_np = np.column_stack([test.log_relative_time_np, target_n])
        known_n = ~np.isnan(truth_np[:, -1])
        own_n = np.take_along_axis(predicted_np, test.source_n[:, None], axis=1)[:, 0]
        column = float(np.abs(predicted_np[:, -1] - own_n - truth_np[:, -1])[known_n].mean())
        truth_np, relative_np = metrics.to_source(truth_np[known_n], predicted_np[known_n], test.source_n[known_n])
        return column, float(np.nanmean(np.abs(relative_np - truth_np)))


def _noise(data: Dataset, platforms: Sequence[str]) -> float | None:
    """Return the typical factor of one half of the repeats against the other, relative to a source, over platforms."""
    difference_wp = data.log_time_halves_hwp[0] - data.log_time_halves_hwp[1]
    numbers = [data.platforms.index(platform) for platform in platforms]
    errors = [np.abs(difference_wp[:, [new]] - np.delete(difference_wp, new, axis=1)) for new in numbers]
    means = [float(np.nanmean(error_wp)) for error_wp in errors if not np.isnan(error_wp).all()]
    return float(np.exp(np.mean(means))) if means else None


def _caveats(result: Transfer, scratch_draws: int) -> tuple[str, ...]:
    caveats = []
    if result.scored_folds < result.folds:
        caveats.append(f"Only {result.scored_folds} of {result.folds} folds were scored: another gives other numbers.")
    if scratch_draws < result.draws:
        caveats.append(
            f"Models were retrained from scratch on the first {scratch_draws} of {result.draws} draws of workloads."
        )
    scored = {score.shots for score in result.scores}
    missing = [label for label in result.shots if label not in scored]
    if missing:
        caveats.append(f"Too few training workloads for {some_of(missing)} shots; left out.")
    if result.noise is None:
        caveats.append("No workload has repeats, so the noise is not known. Measure each run twice or more.")
    return tuple(caveats)
