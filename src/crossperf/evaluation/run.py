"""Scores any model under any split, beside its peers and the noise of the data."""

# N cells, W workloads, P platforms

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crossperf import model
from crossperf.dataset.build import Dataset, Fold, Split, folds
from crossperf.errors import CrossperfError, DatasetError, SettingsError, some_of
from crossperf.evaluation import metrics
from crossperf.evaluation.heldout import HeldOut, Said
from crossperf.evaluation.latent import LatentMap
from crossperf.files import write_json
from crossperf.model.base import Predictor
from crossperf.model.store import versions
from crossperf.records import LOOKS

if TYPE_CHECKING:
    from crossperf.report.figures import Plots

FORMAT = 2
Floats = NDArray[np.float64]
Scores = dict[str, float | None]
#: Called before each fit with the model's name, the number of fits done and the number of all fits.
Progress = Callable[[str, int, int], None]
#: A model by name: made anew, with the same settings, for every fold.
Maker = Callable[[], Predictor]

#: Below this many applications, folds by application say little.
_FEW_APPS = 10
_DOMINANT_ORDER = 0.5


@dataclass(frozen=True)
class Evaluation:
    """What each model scored, what it said of every cell held out, and what to know before believing it."""

    table: dict[str, Any]
    split: str
    folds: int
    seed: int
    noise_ceiling: Scores
    constant: dict[str, Any]
    models: dict[str, dict[str, Any]]
    doubts: list[str] = field(default_factory=list)
    scored_folds: int | None = None
    versions: dict[str, str] = field(default_factory=dict)
    #: ``None`` where an evaluation was written without its cells.
    held_out: HeldOut | None = field(default=None, compare=False, repr=False)
    #: The latent space of the first model that has one, as fitted in the first fold.
    latent: LatentMap | None = field(default=None, compare=False, repr=False)

    def to_json(self, *, cells: bool = True) -> dict[str, Any]:
        """Return the evaluation as JSON's own types, with or without what was said of each cell."""
        facts = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in _LONG}
        long = {name: part.to_json() for name in _LONG if (part := getattr(self, name)) is not None and cells}
        return {"format": FORMAT, **facts, **long}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any], where: str = "the evaluation") -> Evaluation:
        """Return the evaluation that `to_json` wrote."""
        found = facts.get("format") if isinstance(facts, Mapping) else None
        if found is None:
            raise CrossperfError(f"{where}: found no evaluation, expected what 'crossperf evaluate --json' writes.")
        if found != FORMAT:
            raise CrossperfError(
                f"{where}: an evaluation of format {found!r} was found, expected {FORMAT}. "
                "Evaluate again with this crossperf.",
                found=found,
                expected=FORMAT,
            )
        try:
            short = {name: facts[name] for name in cls.__dataclass_fields__ if name in facts and name not in _LONG}
            long = {name: kind.from_json(facts[name]) for name, kind in _LONG.items() if facts.get(name) is not None}
            return cls(**short, **long)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise CrossperfError(
                f"{where}: the evaluation does not read ({type(error).__name__}: {error}), expected what 'crossperf "
                "evaluate --json' wrote. Evaluate again."
            ) from error

    @property
    def plot(self) -> Plots:
        """The figures of this evaluation, by name: ``evaluation.plot.order()`` is a matplotlib figure."""
        from crossperf.report.figures import Plots

        return Plots(self)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the evaluation as JSON; the file appears whole or not at all."""
        write_json(path, self.to_json(), on_one_line=tuple(_LONG))


#: The parts of an evaluation that grow with the table.
_LONG: dict[str, Any] = {"held_out": HeldOut, "latent": LatentMap}


def read(path: str | os.PathLike[str]) -> Evaluation:
    """Return the evaluation of a file that `Evaluation.write` wrote."""
    source = Path(path)
    try:
        facts = json.loads(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise CrossperfError(
            f"{source}: cannot be read ({error.strerror}), expected an evaluation. "
            "'crossperf evaluate --json' makes one."
        ) from error
    except ValueError as error:
        raise CrossperfError(f"{source}: is not JSON ({error}), expected an evaluation. Evaluate again.") from error
    return Evaluation.from_json(facts, str(source))


def evaluate(
    data: Dataset,
    models: Sequence[str] | Mapping[str, Maker] = ("crossperf", "random-forest"),
    *,
    split: Split = "workload",
    n_folds: int = 5,
    seed: int = 0,
    scored_folds: int | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Return the scores of models that all saw the same folds and the same features.

    Parameters
    ----------
    models
        Names of models with their default settings, or makers by whatever name the table should show.
    scored_folds
        Fit and score the first so many folds only: 1 of 5 is a single 80-20 split. ``None`` scores all.
    """
    if scored_folds is not None and not 1 <= scored_folds <= n_folds:
        raise SettingsError(f"scored_folds: found {scored_folds}, expected 1 to {n_folds}.")
    makers = makers_of(models, seed)
    parts = folds(data, split, n_folds, seed)[:scored_folds]
    for number, part in enumerate(parts, start=1):
        _refuse_unseen_platforms(data, part, number, split)
    common = metrics.most_common_order(data.log_time_wp)
    order = common[0] if common else None
    results: dict[str, list[Scores]] = {name: [] for name in makers}
    said: dict[str, list[Said]] = {name: [] for name in makers}
    latent: LatentMap | None = None
    done = 0
    for part in parts:
        for name, maker in makers.items():
            if progress:
                progress(name, done, len(parts) * len(makers))
            predictor = maker()
            scores, told = score_fold(predictor, data, part, split, order)
            results[name].append(scores)
            said[name].append(told)
            if latent is None and hasattr(predictor, "latent"):
                latent = LatentMap.of(name, predictor.latent, data, part.test_n, seed)
            done += 1
    evaluation = Evaluation(
        table=data.table,
        split=split,
        folds=n_folds,
        seed=seed,
        noise_ceiling=noise_ceiling(data, order),
        constant=constant_answers(data),
        models={name: {**average(scores), "folds": scores} for name, scores in results.items()},
        scored_folds=len(parts),
        versions=versions(),
        held_out=HeldOut.of(data, [part.test_n for part in parts], said),
        latent=latent,
    )
    return replace(evaluation, doubts=doubts(evaluation, data))


def makers_of(models: Sequence[str] | Mapping[str, Maker], seed: int) -> dict[str, Maker]:
    """Return makers by name: those given, or of models with their default settings under a seed."""
    return {name: _default(name, seed) for name in models} if not isinstance(models, Mapping) else dict(models)


def _default(name: str, seed: int) -> Maker:
    def maker() -> Predictor:
        made = model.make(name)
        return made.set_params(seed=seed) if "seed" in made.get_params() else made

    maker()  # an unknown name, or a package that is missing, is told before the first fit
    return maker


def ablation(seed: int = 0) -> dict[str, Maker]:
    """Return makers of `vae-dnn` whole, with each of its stages switched off or changed, and without the VAE."""
    off: dict[str, dict[str, Any]] = {
        "vae-dnn": {},
        "without calibrated sigma": {"calibrated": False},
        "without CPU first": {"cpu_steps": 0},
        "without KL schedule": {"kl_schedule": "constant"},
        "with cyclical KL": {"kl_schedule": "cyclical"},
        "without feedback": {"feedback_steps": 0, "vae_steps": 770, "dnn_steps": 900},
        "without masking": {"mask_share": 0.0},
        "with early stopping": {"validation_share": 0.15},
    }

    def maker(settings: dict[str, Any]) -> Maker:
        return lambda: model.make("vae-dnn", seed=seed, **settings)

    makers = {name: maker(settings) for name, settings in off.items()}
    return {**makers, "without VAE (dnn)": _default("dnn", seed)}


def score_fold(
    predictor: Predictor, data: Dataset, part: Fold, split: Split, order: metrics.Order | None
) -> tuple[Scores, Said]:
    """Fit on the training part of a fold; return the scores on the part held out, and what was said of it."""
    start = time.perf_counter()
    predictor.learn(data.take(part.train_n), split)
    fitted = time.perf_counter()
    predicted_np = predictor.predict(data.features_nf[part.test_n])
    predicted = time.perf_counter()
    test = data.take(part.test_n)
    said = Said.by(predictor, test.features_nf, test.log_relative_time_np, test.source_n, predicted_np)
    scores = metrics.score(test.log_relative_time_np, predicted_np, order)
    timed = {**scores, "fit_s": fitted - start, "predict_s": predicted - fitted}
    return ({**timed, **trust(said, test)} if said.sure else timed), said


def trust(said: Said, data: Dataset) -> Scores:
    """Return how often a model's ranges hold, how wide they are, and how far off it is by how familiar a run looks.

    ``coverage`` counts log(time on p / time on the source) of every other platform; ``range_factor`` is the typical
    factor from the middle of a range to its ends; ``factor_familiar`` and the like are typical factors of the runs
    that the word was given to, and ``share_familiar`` and the like how many those are.
    """
    if said.low_np is None or said.high_np is None:
        return {}
    truth_np = data.log_relative_time_np
    known_np = ~np.isnan(truth_np) & (np.arange(truth_np.shape[1]) != data.source_n[:, None])
    inside_np = (said.low_np <= truth_np) & (truth_np <= said.high_np)
    figures: Scores = {
        "coverage": float(inside_np[known_np].mean()),
        "range_factor": float(np.exp((said.high_np - said.low_np)[known_np].mean() / 2)),
    }
    truth_np, predicted_np = metrics.to_fastest(truth_np, said.predicted_np)
    words_n = np.array(said.words)
    for word in LOOKS:
        rows_n = np.flatnonzero(words_n == word)
        figures[f"share_{word}"] = len(rows_n) / len(words_n)
        figures[f"factor_{word}"] = (
            metrics.typical_factor(truth_np[rows_n], predicted_np[rows_n]) if len(rows_n) else None
        )
    return figures


def average(scores: Sequence[Scores]) -> Scores:
    """Return the mean of each figure over the folds that have it, or ``None`` where none has."""
    means: Scores = {}
    for name in scores[0]:
        values = [fold[name] for fold in scores]
        there = [value for value in values if value is not None]
        means[name] = float(np.mean(there)) if there else None
    return means


def noise_ceiling(data: Dataset, order: metrics.Order | None = None) -> Scores:
    """Return the metrics that one half of the repeats reaches in predicting the other half.

    No model can be told to do better: beyond this the truth itself is not known. Each half holds half the
    repeats, so the ceiling is a little lower than that of the medians which the models are scored on.
    All are ``None`` where no workload has repeats on two platforms.
    """
    truth_wp, other_wp = data.log_time_halves_hwp
    both_wp = ~np.isnan(truth_wp) & ~np.isnan(other_wp)
    enough_w = both_wp.sum(axis=1) >= 2
    if not enough_w.any():
        return dict.fromkeys(metrics.METRICS)
    truth_wp = np.where(both_wp, truth_wp, np.nan)[enough_w]
    return metrics.score(truth_wp, other_wp[enough_w], order)


def constant_answers(data: Dataset) -> dict[str, Any]:
    """Return how often always giving the same answer is right: the same order, the same fastest platform."""
    common = metrics.most_common_order(data.log_time_wp)
    fastest_w = np.nanargmin(data.log_time_wp, axis=1)
    number, count = np.unique(fastest_w, return_counts=True)
    return {
        "order": [data.platforms[i] for i in common[0]] if common else [],
        "order_share": common[1] if common else None,
        "fastest": data.platforms[number[count.argmax()]],
        "fastest_share": float(count.max() / count.sum()),
    }


def doubts(evaluation: Evaluation, data: Dataset) -> list[str]:
    """Return what makes the scores say less than they seem to, each with what to do about it."""
    found = []
    if evaluation.split == "row":
        found.append(
            "The split 'row' puts cells of one workload on both sides and flatters every model; "
            "'workload' and 'app' tell what happens with inputs and applications never seen."
        )
    if len(data.apps) < _FEW_APPS:
        found.append(
            f"Few applications ({len(data.apps)}): what holds for these need not hold for others. Measure more."
        )
    share = evaluation.constant["order_share"]
    if share is not None and share > _DOMINANT_ORDER:
        order = " < ".join(evaluation.constant["order"])
        found.append(
            f"One order dominates: {share:.0%} of the workloads have {order}, so always answering that order is "
            f"right as often. Read 'same_order' beside it."
        )
    incomplete = int((~data.complete_w).sum())
    if incomplete:
        found.append(f"{incomplete:,} of {len(data.workloads):,} workloads lack a platform; scored on those they have.")
    if data.table["failed_runs"]:
        found.append(f"{data.table['failed_runs']:,} failed runs were left out.")
    if data.table["warnings"]:
        found.append(f"The table has {data.table['warnings']:,} warnings; 'crossperf runs check' lists them.")
    if evaluation.scored_folds is not None and evaluation.scored_folds < evaluation.folds:
        found.append(
            f"Only {evaluation.scored_folds} of {evaluation.folds} folds were scored: another draw gives other numbers."
        )
    ceiling = evaluation.noise_ceiling["typical_factor"]
    if ceiling is None and evaluation.models:
        found.append("No workload has repeats, so the noise of the data is not known. Measure each run twice or more.")
    elif ceiling is not None:
        at_ceiling = [
            name for name, scores in evaluation.models.items() if (scores["typical_factor"] or np.inf) <= ceiling
        ]
        if at_ceiling:
            found.append(
                f"{some_of(at_ceiling)} reached the noise ceiling (typical factor {ceiling:.3f}): differences "
                "below it are noise. More repeats would tell more."
            )
    return found


def _refuse_unseen_platforms(data: Dataset, part: Fold, number: int, split: Split) -> None:
    """Raise where a fold leaves a platform out of training: nothing could be learned, or scored, about it."""
    measured_p = np.asarray(~np.isnan(data.log_relative_time_np[part.train_n]).all(axis=0))
    unseen = [name for name, measured in zip(data.platforms, measured_p, strict=True) if not measured]
    if unseen:
        raise DatasetError(
            f"{data.table['path']}: platform {some_of(unseen)} is seen in no training row of fold {number} of the "
            f"split '{split}', expected each platform in every training part. Measure more workloads there, or "
            "leave it out with --platforms.",
            platforms=unseen,
        )
