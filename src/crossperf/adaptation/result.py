"""How well models know a platform that few workloads ran on: the scores, as a table, a frame and a file."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from crossperf import display, plain
from crossperf.dataset.cells import TableFacts
from crossperf.display import RowView, TableView
from crossperf.documents import Document, at
from crossperf.files import write_json
from crossperf.runs.frames import to_frame

FORMAT = 2
_DOCUMENT = Document("scores of new platforms", "Evaluate again with --split platform.", FORMAT, oldest=1)
#: How format 1 nests its scores: by model, shots, way and platform.
_ByPlatform = Mapping[str, Mapping[str, Mapping[str, Mapping[str, Mapping[str, Any]]]]]
#: The ways to come by a new platform's column: the head on workloads drawn or suggested, or the model learned anew.
WAYS = ("adapted", "suggested", "scratch", "full")


_Factor = Annotated[float, plain.Between(above=0.0)]


@dataclass(frozen=True)
class TransferScore:
    """The typical factors of one model on one new platform, learned one way from some workloads measured there.

    ``column`` is of the new platform alone, ``vector`` of all platforms other than the source.
    """

    model: str
    shots: str
    way: str
    platform: str
    column: _Factor
    vector: _Factor


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
        rows: list[RowView] = []
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
        return to_frame({name: [getattr(own, name) for own in self.scores] for name in names})

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
        written = _DOCUMENT.check(facts, where)
        try:
            if written.get("split") != "platform":
                raise plain.MisfitError(plain.shown(written.get("split")), "'platform'", ("split",))
            return plain.from_json(cls, _as_format_2(written) if written["format"] == 1 else written)
        except ValueError as error:
            raise _DOCUMENT.misfit(error, where) from error

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the result as JSON; the file appears whole or not at all."""
        write_json(path, self.to_json())


def _as_format_2(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return format 1, whose scores are nested by model, shots, way and platform, as format 2."""
    scores = [
        {"model": model, "shots": shots, "way": way, "platform": platform, **factors}
        for model, by_shots in at(facts, "scores", _ByPlatform).items()
        for shots, by_way in by_shots.items()
        for way, by_platform in by_way.items()
        for platform, factors in by_platform.items()
    ]
    caveat = "Scores of format 1 count the source platform in the whole vector: do not compare them with newer ones."
    return {**facts, "scores": scores, "caveats": [caveat, *at(facts, "doubts", list[str])]}
