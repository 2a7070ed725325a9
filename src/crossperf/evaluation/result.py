"""The result of an evaluation: scores, held-out predictions, and what to know before believing them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from crossperf import display, plain
from crossperf.arrays import refuse_outside
from crossperf.dataset.cells import SPLITS, TableFacts
from crossperf.dataset.pairing import Dataset
from crossperf.documents import Document
from crossperf.errors import several, some_of
from crossperf.evaluation import format2
from crossperf.evaluation.heldout import HeldOut
from crossperf.evaluation.latent import LatentMap
from crossperf.evaluation.metrics import ConstantAnswer
from crossperf.evaluation.scores import Scoreboard
from crossperf.files import write_json

if TYPE_CHECKING:
    from crossperf.report.figures import Plots

FORMAT = 3
_FEW_APPS = 10  # below this many applications, folds by application mean little
_DOMINANT_ORDER = 0.5
_DOCUMENT = Document("what 'crossperf evaluate --json' writes", "Evaluate again.", FORMAT, oldest=2)
_LONG = ("held_out", "latent")  # the parts of an evaluation that grow with the table


@dataclass(frozen=True, repr=False)
class Evaluation:
    """What each model scored, what it predicted for every held-out cell, and the caveats.

    >>> from crossperf.datasets import toy
    >>> from crossperf import dataset
    >>> from crossperf.evaluation import evaluate
    >>> result = evaluate(dataset.build(toy.make_runs(apps=3, inputs=2)), ["median"], n_folds=2)
    >>> result.scores.to_frame()["model"].to_list()
    ['median', 'noise ceiling']
    """

    table: TableFacts
    split: str
    folds: int
    seed: int
    scores: Scoreboard
    constant: ConstantAnswer
    caveats: tuple[str, ...] = ()
    scored_folds: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    #: ``None`` where an evaluation was written without its cells.
    held_out: HeldOut | None = field(default=None, compare=False)
    #: The latent space of the first model that has one, as fitted in the first fold.
    latent: LatentMap | None = field(default=None, compare=False)

    @property
    def about(self) -> str:
        """What was evaluated, in a sentence: split, folds, seed and table."""
        facts, apps = self.table, "app" if self.table.apps == 1 else "apps"
        how = f"split {self.split}, {self.folds_in_words}, seed {self.seed}" if self.is_split else "a trained model"
        return (
            f"{how}: {facts.workloads:,} workloads of {facts.apps:,} {apps} on {len(facts.platforms)} platforms "
            f"({facts.path}, {facts.runs:,} runs, fingerprint {facts.fingerprint})"
        )

    @property
    def is_split(self) -> bool:
        """Whether models were fitted fold by fold; otherwise a trained model was scored."""
        return self.split in SPLITS

    @property
    def folds_in_words(self) -> str:
        """How many folds were scored, of how many."""
        scored = self.scored_folds or self.folds
        return f"{self.folds} folds" if scored == self.folds else f"{scored} of {self.folds} folds"

    @property
    def plot(self) -> Plots:
        """The figures of this evaluation, by name: ``evaluation.plot.order()`` is a matplotlib figure."""
        from crossperf.report.figures import Plots

        return Plots(self)

    def to_frame(self) -> Any:
        """Return the scores as a data frame: pandas if installed, else Polars."""
        return self.scores.to_frame()

    def to_json(self, *, cells: bool = True) -> dict[str, Any]:
        """Return the evaluation as JSON's own types, with or without the predictions of each cell."""
        facts = {name: plain.to_json(getattr(self, name)) for name in self.__dataclass_fields__ if name not in _LONG}
        long = {name: part.to_json() for name in _LONG if (part := getattr(self, name)) is not None and cells}
        return {"format": FORMAT, **facts, **long}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any], where: str = "the evaluation") -> Evaluation:
        """Return the evaluation that `to_json` wrote, or that of format 2."""
        written = _DOCUMENT.check(facts, where)
        try:
            read = plain.from_json(cls, format2.as_format_3(written) if written["format"] == 2 else written)
            read._refuse_misfits()
            return read  # noqa: TRY300
        except ValueError as error:
            raise _DOCUMENT.misfit(error, where) from error

    def _refuse_misfits(self) -> None:
        """Raise `ValueError` unless the parts name the same platforms: what a file holds need not."""
        platforms = self.held_out.platforms if self.held_out else self.table.platforms
        constant = self.constant
        named = {*constant.order, *constant.otherwise, *([constant.fastest] if constant.fastest else [])}
        if strange := sorted(named - {*platforms}):
            raise ValueError(f"the constant answer names {plain.shown(strange[0])}, which is no platform here")
        if self.latent and self.held_out:
            refuse_outside("latent.fastest", self.latent.fastest_w, len(platforms))
            refuse_outside("latent.source", self.latent.source_n, len(platforms))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the evaluation as JSON; the file appears whole or not at all."""
        write_json(path, self.to_json(), on_one_line=_LONG)

    def __repr__(self) -> str:
        more = [several(len(self.caveats), "caveat")] if self.caveats else []
        return "\n".join([self.about, repr(self.scores), *more])

    def _repr_html_(self) -> str:
        caveats = "".join(f"<li>{escape(sentence)}</li>" for sentence in self.caveats)
        return f"<p>{escape(self.about)}</p>{display.to_html(self.scores.view())}<ul>{caveats}</ul>"


def read_evaluation(path: str | os.PathLike[str]) -> Evaluation:
    """Return the evaluation of a file that `Evaluation.write` wrote, of format 3 or 2.

    Parameters
    ----------
    path
        A file of ``Evaluation.write`` or of 'crossperf evaluate --json'.

    Returns
    -------
    Evaluation
        As it was written; one of format 2 carries a caveat, since its scores count the source platform.

    >>> import tempfile, pathlib
    >>> from crossperf import datasets
    >>> from crossperf.evaluation import evaluate
    >>> result = evaluate(datasets.toy.make_table(apps=3, inputs=2), ["median"], n_folds=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "evaluation.json"
    ...     result.write(file)
    ...     read_evaluation(file) == result
    True
    """
    return Evaluation.from_json(_DOCUMENT.parsed(path), str(path))


def caveats(evaluation: Evaluation, data: Dataset) -> tuple[str, ...]:
    """Return what to know before believing an evaluation, in sentences."""
    return (*_about_data(evaluation, data), *_about_scores(evaluation))


def _about_data(evaluation: Evaluation, data: Dataset) -> Iterator[str]:
    facts, constant = data.table, evaluation.constant
    if evaluation.split == "row":
        yield (
            "The split 'row' puts cells of one workload on both sides and flatters every model; "
            "'workload' and 'app' tell what happens with inputs and applications never seen."
        )
    if len(data.apps) < _FEW_APPS:
        yield f"Few applications ({len(data.apps)}): what holds for these need not hold for others. Measure more."
    if constant.order_share is not None and constant.order_share > _DOMINANT_ORDER:
        yield (
            f"One order dominates: {constant.order_share:.0%} of the workloads have {' < '.join(constant.order)}, so "
            "always answering that order is right as often. Read 'same_order' beside it."
        )
    incomplete = int((~data.complete_w).sum())
    if incomplete:
        yield f"{incomplete:,} of {len(data.workloads):,} workloads lack a platform; scored on those they have."
    limited = int((~data.runnable_wp).any(axis=1).sum())
    if limited:
        yield f"{limited:,} of {len(data.workloads):,} workloads cannot run everywhere; scored on platforms that can."
    if facts.failed_runs:
        yield f"{several(facts.failed_runs, 'failed run')} {'was' if facts.failed_runs == 1 else 'were'} left out."
    if facts.warnings:
        yield f"The table has {facts.warnings:,} warnings; 'crossperf runs check' lists them."


def _about_scores(evaluation: Evaluation) -> Iterator[str]:
    scored, scores = evaluation.scored_folds, evaluation.scores
    if scored is not None and scored < evaluation.folds:
        yield f"Only {scored} of {evaluation.folds} folds were scored: another draw gives other numbers."
    ceiling = scores.noise_ceiling.typical_factor
    if ceiling is None and len(scores):
        yield "No workload has repeats, so the noise of the data is not known. Measure each run twice or more."
    at_ceiling = [name for name, own in scores.items() if (own.typical_factor or math.inf) <= (ceiling or 0.0)]
    if at_ceiling:
        yield (
            f"{some_of(at_ceiling)} reached the noise ceiling (typical factor {ceiling:.3f}): differences "
            "below it are noise. More repeats would tell more."
        )
