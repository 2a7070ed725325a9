"""The parts of a report's page that are drawn: one view for each evaluation, with its figures in every variant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import Any

from markupsafe import Markup

from crossperf.evaluation.result import Evaluation
from crossperf.report.figures import FIGURES, Drawn, NothingToDraw, colours
from crossperf.report.inline import inline
from crossperf.report.sentences import SHORT

#: What a figure shows of the table alone, whatever was held out: drawn once for evaluations of one table.
OF_TABLE = ("distribution", "noise", "missing")
#: Models that a figure can be switched to; more would make the page heavy, and 'crossperf plot --model' draws them.
MOST_MODELS = 4
#: What stands for each neutral ink of a drawing, so that one drawing serves light and dark.
_INKS = {colours.INK: "var(--ink)", colours.FAINT: "var(--quiet)"}
_MOVED = ("line-", "dot-", "tick-", "once")  # how the parts of a drawing are called that the script moves


@dataclass(frozen=True, eq=False)
class Variant:
    """A figure as the page holds it: wide, and narrow for a telephone; or the reason why there is none.

    ``model`` is the model that it shows, where it shows one of several.
    """

    identity: str
    name: str
    model: str | None
    wide: Drawn | NothingToDraw
    narrow: Drawn | None = None

    @property
    def drawings(self) -> dict[str, Drawn]:
        """The drawings by the identity of their place on the page."""
        named = {self.identity: self.wide, f"{self.identity}-narrow": self.narrow}
        return {identity: own for identity, own in named.items() if isinstance(own, Drawn)}

    def svg(self, identity: str) -> Markup:
        """Return a drawing as part of the page."""
        svg = inline(self.drawings[identity].as_bytes("svg").decode("utf-8"), f"{identity}-", _INKS, _MOVED)
        named = f'aria-labelledby="{self.identity}-title" aria-describedby="{self.identity}-caption"'
        # matplotlib escapes what it writes, and so does `inline`.
        return Markup(svg.replace("<svg", f'<svg role="img" {named}', 1))  # noqa: S704


@dataclass(frozen=True, eq=False)
class View:
    """One evaluation on the page.

    ``key`` names it among the others; ``prefix`` goes before the identities of its parts, which the first view has
    without one. ``tables`` are the keys of all views of the same table, this one first where it is the one that shows
    the table's own figures; empty where another view does.
    """

    evaluation: Evaluation
    key: str
    prefix: str
    label: str
    tables: tuple[str, ...] = ()
    rpv: str | None = None

    @property
    def models(self) -> list[str]:
        """The models that figures can be switched to."""
        held = self.evaluation.held_out
        return list(held.predictions)[:MOST_MODELS] if held else []

    @cached_property
    def variants(self) -> dict[str, list[Variant]]:
        """Every figure of this view by name, in all variants."""
        shown = [name for name in FIGURES if self.tables or name not in OF_TABLE]
        return {name: list(self._variants(name)) for name in shown}

    def _variants(self, name: str) -> Iterator[Variant]:
        models: list[str | None] = list(self.models) if "model" in FIGURES[name].takes else []
        for number, model in enumerate(models or [None]):
            yield self._variant(f"{self.prefix}{name}{f'-{number}' if number else ''}", name, model)

    def _variant(self, identity: str, name: str, model: str | None) -> Variant:
        if name == "vector" and self.choice is not None:
            return Variant(identity, name, None, self.choice.drawn, self.choice.narrow)
        try:
            wide, narrow = (self.draw(name, model, bare=True, narrow=narrow) for narrow in (False, True))
        except NothingToDraw as reason:
            return Variant(identity, name, model, reason)
        return Variant(identity, name, model, wide, narrow)

    def draw(self, name: str, model: str | None = None, *, bare: bool, narrow: bool = False) -> Drawn:
        """Return a figure of this view, or raise `NothingToDraw`."""
        plot = FIGURES[name]
        asked = {"model": model, "rpv": self.rpv}
        chosen = {word: value for word, value in asked.items() if value is not None and word in plot.takes}
        return plot(self.evaluation, bare=bare, narrow=narrow, **chosen)

    @cached_property
    def choice(self) -> Any:
        """Figure 3 with a choice of applications; ``None`` where there is nothing to choose from."""
        held = self.evaluation.held_out
        if held is None or not len(held):
            return None
        from crossperf.report.figures.vector import chooser  # takes matplotlib, as drawing does

        return chooser(self.evaluation, self.rpv)

    @property
    def tooltips(self) -> dict[str, list[list[Any]]]:
        """The tooltips of every drawing, by its identity."""
        variants = (variant for several in self.variants.values() for variant in several)
        return {identity: _tooltips(own) for variant in variants for identity, own in variant.drawings.items()}

    @property
    def facts(self) -> dict[str, Any]:
        """What the script needs to know of this view."""
        return {"key": self.key, "prefix": self.prefix, "chooser": self.choice.facts if self.choice else None}


def views_of(evaluations: Sequence[Evaluation], rpv: str | None = None) -> list[View]:
    """Return the views of evaluations, in their order: keyed by split, and by number where splits recur."""
    keys, labels = _keys(evaluations), _labels(evaluations)
    tables: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for key, own in zip(keys, evaluations, strict=True):
        tables.setdefault(_table(own), []).append(key)
    views = []
    for number, (own, key, label) in enumerate(zip(evaluations, keys, labels, strict=True)):
        same = tables[_table(own)]
        shows = tuple(same) if same[0] == key else ()
        views.append(View(own, key, f"{key}-" if number else "", label, shows, rpv))
    return views


def _table(evaluation: Evaluation) -> tuple[str, tuple[str, ...]]:
    """Return what two evaluations of the same table share; one without a fingerprint shares it with none."""
    facts = evaluation.table
    return facts.fingerprint or str(id(evaluation)), facts.platforms


def _keys(evaluations: Sequence[Evaluation]) -> list[str]:
    often = Counter(own.split for own in evaluations)
    numbers: Counter[str] = Counter()
    keys = []
    for own in evaluations:
        numbers[own.split] += 1
        keys.append(own.split if often[own.split] == 1 else f"{own.split}-{numbers[own.split]}")
    return keys


def _labels(evaluations: Sequence[Evaluation]) -> list[str]:
    """Return what each evaluation held out in a few words, with what tells it from others of the same split."""
    labels = [SHORT.get(own.split, own.split) for own in evaluations]
    for tell in (_name_of_table, _name_of_models, _number_of_folds):
        if len(set(labels)) == len(labels):
            break
        twice = {label for label, count in Counter(labels).items() if count > 1}
        labels = [
            f"{label}, {tell(own)}" if label in twice else label for label, own in zip(labels, evaluations, strict=True)
        ]
    counts: Counter[str] = Counter()
    for place, label in enumerate(labels):
        counts[label] += 1
        labels[place] = label if counts[label] == 1 else f"{label} ({counts[label]})"
    return labels


def _name_of_table(evaluation: Evaluation) -> str:
    return PurePath(evaluation.table.path).name


def _name_of_models(evaluation: Evaluation) -> str:
    return " and ".join(list(evaluation.scores)[:2]) or "no model"


def _number_of_folds(evaluation: Evaluation) -> str:
    return f"{evaluation.folds_in_words}, seed {evaluation.seed}"


def files_of(views: Sequence[View]) -> Iterator[tuple[str, Drawn]]:
    """Yield the name and the drawing of each figure that lies beside the page; of several evaluations with its key."""
    for view in views:
        for name, variants in view.variants.items():
            if any(isinstance(variant.wide, Drawn) for variant in variants):
                key = f"{view.key}-" if len(views) > 1 and name not in OF_TABLE else ""
                yield f"{key}{name}", view.draw(name, bare=False)


def _tooltips(drawn: Drawn) -> list[list[Any]]:
    return [
        [round(own.x, 4), round(own.y, 4), own.text]
        + ([round(own.width, 4), round(own.height, 4)] if own.width else [])
        for own in drawn.tooltips
    ]


def all_tooltips(views: Sequence[View]) -> dict[str, Any]:
    """Return the tooltips of all views, and their texts apart: many drawings show the same runs."""
    texts: dict[str, int] = {}
    marks = {identity: own for view in views for identity, own in view.tooltips.items()}
    for mark in (mark for several in marks.values() for mark in several):
        mark[2] = texts.setdefault(mark[2], len(texts))
    return {"tooltips": marks, "texts": list(texts)}
