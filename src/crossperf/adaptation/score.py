"""Scores a new platform that few workloads ran on: each platform in turn counts as new.

The workloads that are scored are never among the training ones. A base model learns from the other platforms alone; a
head adds the new one from k training workloads, drawn at random or chosen by `suggest`. Beside it stand the same
model retrained from scratch on the same k, and with all training workloads measured there.
"""

# N cells, W workloads, K workloads measured on the new platform, P known platforms

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossperf import display, plain
from crossperf.dataset.build import Dataset, Fold, folds
from crossperf.dataset.facts import TableFacts
from crossperf.display import Row, TableView
from crossperf.errors import CrossperfError, DatasetError, SettingsError, some_of
from crossperf.evaluation import metrics
from crossperf.evaluation.run import Maker, Progress, makers_of
from crossperf.files import write_json
from crossperf.model import head

FORMAT = 2
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
#: The ways to come by a new platform's column: the head on workloads drawn or suggested, or the model learned anew.
WAYS = ("adapted", "suggested", "scratch", "full")
#: log typical factors: of the new platform's column, and of the whole relative performance vector.
Score = tuple[float, float]


@dataclass(frozen=True)
class TransferScore:
    """The typical factors of one model on one new platform, learned one way from some workloads measured there.

    ``column`` is of the new platform alone, ``vector`` of all platforms other than the source.
    """

    model: str
    shots: str
    way: str
    platform: str
    column: float
    vector: float


@dataclass(frozen=True, repr=False)
class Transfer:
    """How well each model knows a new platform, by how many workloads were measured there."""

    table: TableFacts
    folds: int
    scored_folds: int
    seed: int
    draws: int
    #: How many workloads were measured on the new platform, in the words they were asked for, such as ``5%``.
    shots: Mapping[str, float]
    left_out: tuple[str, ...]
    #: Typical factor of one half of the repeats against the other, on the new platform's column.
    noise: float | None
    scores: tuple[TransferScore, ...]
    caveats: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """The models, in the order in which they were scored."""
        return tuple(dict.fromkeys(score.model for score in self.scores))

    @property
    def about(self) -> str:
        """What was evaluated, in a sentence: folds, seed, draws and table."""
        return (
            f"split platform, {len(self.left_out)} left out in turn, {self.scored_folds} of {self.folds} folds, seed "
            f"{self.seed}, {self.draws} draws: {self.table.workloads:,} workloads of {self.table.apps:,} apps "
            f"({self.table.path}, fingerprint {self.table.fingerprint})"
        )

    def of(self, model: str, shots: str, way: str) -> dict[str, TransferScore]:
        """Return the scores of a model by platform; empty where they were not asked for."""
        wanted = (model, shots, way)
        return {own.platform: own for own in self.scores if (own.model, own.shots, own.way) == wanted}

    def mean(self, model: str, shots: str, way: str, figure: str = "column") -> float | None:
        """Return a typical factor as a geometric mean over the platforms; ``None`` where it was not asked for."""
        factors = [getattr(own, figure) for own in self.of(model, shots, way).values()]
        return float(np.exp(np.mean(np.log(factors)))) if factors else None

    def view(self) -> TableView:
        """Return the mean typical factors, a row for each model and number of shots."""
        rows: list[Row] = []
        for model, (label, count) in itertools.product(self.models, self.shots.items()):
            means = [self.mean(model, label, way, figure) for figure in ("column", "vector") for way in WAYS]
            if any(value is not None for value in means):
                rows.append((model, label, f"{count:.0f}", *map(display.number, means)))
        names = ("shots", "workloads", *WAYS, *(f"{way} RPV" for way in WAYS))
        columns = (*display.words("model"), *display.numbers(*names))
        return TableView("typical factor on a new platform", columns, tuple(rows))

    def to_frame(self) -> Any:
        """Return a data frame with a row for each score: pandas if installed, else Polars."""
        names = TransferScore.__dataclass_fields__
        return display.to_frame({name: [getattr(own, name) for own in self.scores] for name in names})

    def __repr__(self) -> str:
        return f"{self.about}\n{display.to_text(self.view())}"

    def _repr_html_(self) -> str:
        return display.to_html(self.view())

    def to_json(self) -> dict[str, Any]:
        """Return the scores as JSON's own types."""
        return {"format": FORMAT, "split": "platform", **plain.to_json(self)}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any], where: str = "the scores") -> Transfer:
        """Return the scores that `to_json` wrote, or those of format 1."""
        number = facts.get("format")
        if facts.get("split") != "platform" or number not in (1, FORMAT):
            raise CrossperfError(
                f"{where}: found format {number!r}, expected scores of new platforms of format {FORMAT} or 1. "
                "A newer crossperf may read it; otherwise evaluate again with this one.",
                found=number,
            )
        return plain.from_json(cls, _as_format_2(facts) if number == 1 else facts)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the result as JSON; the file appears whole or not at all."""
        write_json(path, self.to_json())


def _as_format_2(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return format 1, whose scores are nested by model, shots, way and platform, as format 2."""
    scores = [
        {"model": model, "shots": shots, "way": way, "platform": platform, **factors}
        for model, by_shots in facts["scores"].items()
        for shots, by_way in by_shots.items()
        for way, by_platform in by_way.items()
        for platform, factors in by_platform.items()
    ]
    caveat = "Scores of format 1 count the source platform in the whole vector: do not compare them with newer ones."
    return {**facts, "scores": scores, "caveats": [caveat, *facts["doubts"]]}


def transfer(
    data: Dataset,
    models: Sequence[str] | Mapping[str, Maker] = ("extra-trees",),
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
    """
    _check(data, shots, draws, scored_folds, n_folds)
    makers = makers_of(models, seed)
    platforms = list(left_out or data.platforms)
    parts = [(name, _Part.of(data, name, n_folds, seed, scored_folds)) for name in platforms]
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
            "Measure the workloads on another platform.",
        )
    if not shots or any(count <= 0 or (count >= 1 and (count < 2 or count % 1)) for count in shots):
        raise SettingsError(
            f"--shots: found {some_of(map(_label, shots)) or 'none'}, expected numbers of workloads of 2 or more, or "
            "shares such as 5%."
        )
    if draws < 1:
        raise SettingsError(f"draws: found {draws}, expected 1 or more.")
    if scored_folds is not None and not 1 <= scored_folds <= n_folds:
        raise SettingsError(f"scored_folds: found {scored_folds}, expected 1 to {n_folds}.")


def _label(count: float) -> str:
    return f"{count:.3g}" if count >= 1 else f"{100 * count:.3g}%"


@dataclass(frozen=True)
class _Part:
    """A platform that counts as new, the data without it, what the workloads took on it, and the folds to score."""

    whole: Dataset
    platform: int
    data: Dataset
    log_time_w: Floats
    folds: list[Fold]

    @classmethod
    def of(cls, whole: Dataset, platform: str, n_folds: int, seed: int, scored_folds: int | None) -> _Part:
        number = whole.platforms.index(platform)
        rest = whole.without(platform)
        parts = folds(rest, "workload", n_folds, seed)[:scored_folds]
        return cls(whole, number, rest, whole.log_time_wp[:, number], parts)

    @property
    def target_n(self) -> Floats:
        """log(time on the new platform / time on the source) of each cell."""
        own_n = self.data.log_time_wp[self.data.workload_n, self.data.source_n]
        return np.asarray(self.log_time_w[self.data.workload_n] - own_n)

    def cells(self, rows_n: Integers) -> Dataset:
        """Return these cells of the data without the platform as the whole data has them."""
        return self.whole.take(np.flatnonzero(self.whole.source_n != self.platform)[rows_n])

    def measured(self, fold: Fold) -> Integers:
        """Return the training workloads that ran on the new platform."""
        there_w = np.unique(self.data.workload_n[fold.train_n])
        return there_w[~np.isnan(self.log_time_w[there_w])]

    def count(self, shots: float, fold: Fold | None = None) -> int:
        """Return how many workloads are measured; a share is one of the training workloads."""
        if shots >= 1:
            return int(shots)
        return max(2, round(shots * len(self.measured(fold or self.folds[0]))))


@dataclass(frozen=True)
class _Task:
    """One model, one platform left out, one fold."""

    part: _Part
    fold: Fold
    maker: Maker
    seed: int
    draws: int
    scratch_draws: int

    def run(self, labels: Mapping[str, float]) -> dict[tuple[str, str], list[Score]]:
        """Return the scores by shots and way."""
        test, train = self._test, self.part.data.take(self.fold.train_n)
        base_np = self.maker().learn(train).predict(test.features_nf)
        there_w, workload_n = np.unique(train.workload_n, return_inverse=True)
        known = head.Known.of(train.log_time_wp[there_w], train.features_nf, train.source_n, workload_n)
        measured_w = self.part.measured(self.fold)
        full = self._retrained(measured_w)
        found = self.anew(labels)
        for label, drawn in self._drawn(labels).items():
            prior_g = head.log_prior_g(known, len(drawn[0]), self.seed)
            suggested_w = there_w[self._suggested(known, np.searchsorted(there_w, measured_w), len(drawn[0]), prior_g)]
            for way, each in (("adapted", drawn), ("suggested", [suggested_w])):
                for chosen_w in each:
                    shots, log_time_k = np.searchsorted(there_w, chosen_w), self.part.log_time_w[chosen_w]
                    fitted = head.Head.fit(known, shots, log_time_k, self.seed, prior_g=prior_g)
                    column_n = fitted.predict(test.features_nf, base_np)
                    found.setdefault((label, way), []).append(self._score(np.column_stack([base_np, column_n])))
            found[label, "full"] = [full]
        return found

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
        found = {}
        for label, count in counts.items():
            rng = np.random.default_rng([self.seed, count])
            if count <= len(measured_w):
                found[label] = [rng.choice(measured_w, count, replace=False) for _ in range(self.draws)]
        return found

    def _suggested(self, known: head.Known, can: Integers, count: int, prior_g: Floats) -> Integers:
        weights_g = head.softmax(prior_g)
        nothing = np.empty(0, np.int64)
        chosen = head.suggest(known, count, nothing, candidates=can, setting_weights_g=weights_g, seed=self.seed)
        return np.array([choice.workload for choice in chosen])

    @property
    def _test(self) -> Dataset:
        return self.part.data.take(self.fold.test_n)

    def _retrained(self, measured_w: Integers) -> Score:
        """Return the score of the model trained on all platforms, with these workloads measured on the new one."""
        new, log_time_wp = self.part.platform, self.part.whole.log_time_wp.copy()
        log_time_wp[np.delete(np.arange(len(log_time_wp)), measured_w), new] = np.nan
        fitted = self.maker().learn(replace(self.part.cells(self.fold.train_n), log_time_wp=log_time_wp))
        predicted_np = fitted.predict(self.part.cells(self.fold.test_n).features_nf)
        return self._score(np.column_stack([np.delete(predicted_np, new, axis=1), predicted_np[:, new]]))

    def _score(self, predicted_np: Floats) -> Score:
        """Return log typical factors relative to the source: of the new platform's column, of all other platforms."""
        test = self._test
        truth_np = np.column_stack([test.log_relative_time_np, self.part.target_n[self.fold.test_n]])
        there_n = ~np.isnan(truth_np[:, -1])
        own_n = np.take_along_axis(predicted_np, test.source_n[:, None], axis=1)[:, 0]
        column = float(np.abs(predicted_np[:, -1] - own_n - truth_np[:, -1])[there_n].mean())
        truth_np, relative_np = metrics.to_source(truth_np[there_n], predicted_np[there_n], test.source_n[there_n])
        return column, float(np.nanmean(np.abs(relative_np - truth_np)))


def _noise(data: Dataset, platforms: Sequence[str]) -> float | None:
    """Return the typical factor of one half of the repeats against the other, relative to a source, over platforms."""
    difference_wp = data.log_time_halves_hwp[0] - data.log_time_halves_hwp[1]
    means = []
    for platform in platforms:
        new = data.platforms.index(platform)
        error_wp = np.abs(difference_wp[:, [new]] - np.delete(difference_wp, new, axis=1))
        if not np.isnan(error_wp).all():
            means.append(float(np.nanmean(error_wp)))
    return float(np.exp(np.mean(means))) if means else None


def _caveats(result: Transfer, scratch_draws: int) -> tuple[str, ...]:
    """Return what makes the scores mean less than they seem to."""
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
