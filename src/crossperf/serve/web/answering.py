"""The answer to a question as a page shows it: a headline, rows of platforms on one axis, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from markupsafe import Markup

from crossperf.errors import PredictError, some_of
from crossperf.platforms import Platform
from crossperf.records import NO_VERSION_KNOWN, UNKNOWN, UNUSUAL, Prediction, Run
from crossperf.report.asked import STAND_IN_FACTOR, Asked, three_digits
from crossperf.report.figures.colours import Look, looks_of
from crossperf.serve.service import Service
from crossperf.serve.web import svg
from crossperf.serve.web.asking import Question

#: Below this chance of being the fastest, another platform is worth a measurement.
_SURE = 0.9
#: A chance from which the second platform counts as a rival.
_RIVAL = 0.05
_BADGES = {
    "familiar": "Like runs that the model has learned from: believe the times and their ranges.",
    "unusual": "Unlike most runs that the model has learned from: believe the ranges, not the single numbers.",
    "unknown": "Like nothing that the model has learned from: what it says here is a guess.",
}


class StrangerError(PredictError):
    """A run was measured on a platform that the model does not know; a person can say which one is like it."""


@dataclass(frozen=True)
class Row:
    """A platform in an answer: its texts, and its bar."""

    name: str
    about: str
    look: Look
    here: bool
    relative: str
    between: str
    seconds: str
    chance: str
    cost: str
    bar: Markup


@dataclass(frozen=True)
class Step:
    """Something to measure next: what, why, and the command that does it."""

    what: str
    why: str
    command: str = ""


@dataclass(frozen=True)
class AnswerView:
    """What the page of one answer shows."""

    question: Question
    asked: Asked
    platforms: Mapping[str, Platform]
    #: All platforms of the model in its order, which sets their colours.
    names: Sequence[str]
    notes: tuple[str, ...] = ()

    @property
    def prediction(self) -> Prediction:
        """The prediction that is shown."""
        return self.asked.prediction

    @property
    def unknown(self) -> bool:
        """Whether the model cannot tell."""
        return not self.asked.can_tell

    @cached_property
    def looks(self) -> dict[str, Look]:
        """The colour and the shape of each platform."""
        return looks_of(self.names)

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        own, order = self.prediction, self.asked.order
        if self.unknown:
            return "Can’t tell: it is unlike everything that the model has learned from"
        if len(order) == 1:
            return f"Stay on {own.source}: nothing else that was asked about can run it"
        first = order[0]
        if first == own.source:
            return f"Stay on {own.source}: nothing that the model knows is faster"
        times = 1.0 / own.relative_time[first]
        _, high = self.asked.range_of(first)
        if high >= 1.0:
            return f"Nothing is clearly faster than here; {first} comes first, about {times:.2g}×"
        return f"Take {first}: about {times:.2g}× faster than here"

    @property
    def badge(self) -> tuple[str, str]:
        """How familiar the run looks: the word, and what it means."""
        looks = self.prediction.familiarity
        if looks is None:
            return "not rated", "This model does not tell how familiar a run looks."
        because = f" Above all in {some_of(looks.because, 3)}." if looks.because else ""
        return looks.word, _BADGES[looks.word] + because

    @property
    def sure(self) -> str:
        """How likely the headline's platform is the fastest, in words."""
        first = self.asked.order[0]
        chance = self.prediction.chance_fastest.get(first)
        return "" if chance is None or self.unknown or self.asked.differs else f"{_chance(chance)} sure"

    @cached_property
    def axis(self) -> svg.LogAxis:
        """The axis of all bars: relative times."""
        return svg.LogAxis.over(bound for name in self.asked.order for bound in self.asked.range_of(name))

    @property
    def rows(self) -> Iterator[Row]:
        """The platforms that can run it, the fastest first."""
        own, asked, costs = self.prediction, self.asked, self.asked.costs
        for name in asked.order:
            middle, (low, high) = own.relative_time[name], asked.range_of(name)
            here = name == own.source and not asked.differs
            low, high = (middle, middle) if here else (low, high)
            look, runtime_s = self.looks[name], asked.runtime_s
            yield Row(
                name=name,
                about=described(self.platforms.get(name)),
                look=look,
                here=name == own.source,
                relative=f"{middle:,.2f}×" if middle < 100 else f"{middle:,.0f}×",
                between="measured" if here else f"{_short(low)} to {_short(high)}×" if low < high else "",
                seconds=duration(runtime_s * middle) if runtime_s is not None else "",
                chance=_chance(own.chance_fastest[name]) if name in own.chance_fastest and not asked.differs else "",
                cost=three_digits(costs[name]) if name in costs else "",
                bar=svg.interval(self.axis, middle, low, high, look.colour, hatched=self.unknown),
            )

    @property
    def not_offered(self) -> Iterator[tuple[str, str]]:
        """Platforms that are not offered, and why not."""
        cannot = self.prediction.cannot
        for why in dict.fromkeys(cannot.values()):
            advice = "; if there is one, say so under GPU version" if why == NO_VERSION_KNOWN else ""
            yield some_of([name for name in cannot if cannot[name] == why], 8), f"{why}{advice}"

    @property
    def caveats(self) -> Iterator[str]:
        """What to keep in mind."""
        if self.asked.differs:
            yield (
                f"The model does not know where this run was measured and takes it for {self.prediction.source}: believe "
                f"the order more than the times. Ranges are wider by a factor of {STAND_IN_FACTOR:g} to either side, a "
                "guess."
            )
        yield from self.notes

    @property
    def next(self) -> list[Step]:
        """What to measure next, what helps most first."""
        return [*self._counters(), *self._where(), *self._inputs()]

    def _counters(self) -> Iterator[Step]:
        if lacking := self.asked.lacking:
            count = len(lacking)
            yield Step(
                f"Count {'one more counter' if count == 1 else f'{count} more counters'}: {some_of(lacking, 4)}.",
                "The model has learned from runs that have them; without them it is less sure.",
                "crossperf profile -- ./your-program",
            )

    def _where(self) -> Iterator[Step]:
        own = self.prediction
        chances = {name: own.chance_fastest.get(name, 0.0) for name in self.asked.order}
        rivals = sorted((name for name in chances if name != own.source), key=lambda name: -chances[name])
        if self.unknown and rivals:
            yield Step(
                f"Run it on {rivals[0]}.",
                "One measured time there tells more than every guess from here.",
                f"crossperf profile --platform {rivals[0]} -o runs.jsonl -- ./your-program",
            )
        elif len(rivals) > 1 and max(chances.values()) < _SURE and chances[rivals[1]] > _RIVAL:
            first, second = rivals[:2]
            yield Step(
                f"Run it once on {first} and once on {second}.",
                f"They are close: {_chance(chances[first])} against {_chance(chances[second])} to be the fastest.",
                f"crossperf profile --platform {first} -o runs.jsonl -- ./your-program",
            )

    def _inputs(self) -> Iterator[Step]:
        looks = self.prediction.familiarity
        if looks is not None and looks.word in (UNUSUAL, UNKNOWN):
            yield Step(
                "Measure it with two or three inputs on two platforms, and train a model with these runs.",
                "Inputs of an application that is known are predicted best.",
                "crossperf train runs.jsonl -o model",
            )


def answered(service: Service, question: Question) -> AnswerView:
    """Return the answer to a question: for what can run the program and was asked about."""
    trained = service.model(question.model or None).model
    run, differs = _placed(question, trained.sources)
    kinds = dict(zip(trained.platforms, trained.cells.platform_classes, strict=True))
    known = service.platforms
    answer = service.predict([run], model=question.model or None, can=question.can(list(kinds.values())))
    (prediction,) = answer.predictions
    wanted = [name for name in trained.platforms if question.wants(known.get(name, Platform(name)))]
    offered = [name for name in prediction.offered if name in wanted or name == prediction.source]
    cannot = {name: why for name, why in prediction.cannot.items() if name in wanted}
    # Asked again, so that chances are among the platforms that were asked about, and ranges of the level.
    (prediction,) = service.predict([run], model=question.model or None, can=offered, level=question.level).predictions
    counted = set(run.counters)
    lacking = [name for name in trained.counters if name in trained.offered[run.platform] and name not in counted]
    asked = Asked(
        prediction.only([*offered, *cannot], cannot),
        run.runtime_s,
        machine=described(known.get(run.platform)),
        threads=run.threads,
        differs=differs,
        prices=service.prices,
        classes=kinds,
        lacking=tuple(lacking),
        level=question.level,
    )
    notes = tuple(note for note in answer.notes if "lacks" not in note)  # said under what to measure next
    return AnswerView(question, asked, known, trained.platforms, notes)


def _placed(question: Question, sources: Sequence[str]) -> tuple[Run, tuple[str, ...]]:
    """Return the run on a platform of the model, and how that differs from where it was measured."""
    run, here = question.run, question.here
    if run.platform in sources and here in ("", run.platform):
        return run, ()
    if here not in sources:
        raise StrangerError(
            f"The run was measured on {run.platform[:80]!r}, which the model does not know. Choose the platform that is "
            "most like it.",
            platforms=tuple(sources),
        )
    return replace(run, platform=here), (f"measured on {run.platform}",)


def described(platform: Platform | None) -> str:
    """Return a platform in a few words: its processor or GPU, and the threads that it is used with."""
    if platform is None:
        return ""
    facts = platform.facts
    if platform.platform_class == "gpu" and facts.gpus:
        return facts.gpus[0].model or "a GPU"
    threads: Any = facts.more.get("threads")
    model = (facts.cpu_model or "").replace("(R)", "").replace("(TM)", "").removesuffix(" Processor")
    used = f"{threads} thread{'s' * (threads != 1)}" if isinstance(threads, int) else ""
    return ", ".join(part for part in (model, used) if part)


def duration(seconds: float) -> str:
    """Return seconds in the unit in which three digits say most.

    >>> duration(0.00123), duration(12.34), duration(7_400)
    ('1.23 ms', '12.3 s', '2.06 h')
    """
    for unit, name in ((3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms")):
        if seconds >= unit and (name != "min" or seconds >= 600):
            return f"{three_digits(seconds / unit)} {name}"
    return f"{three_digits(seconds * 1e6)} µs"


def _short(value: float) -> str:
    return f"{value:,.2f}" if value < 100 else f"{value:,.0f}"


def _chance(value: float) -> str:
    """Return a chance in per cent; never sure.

    >>> _chance(0.999), _chance(0.001), _chance(0.42)
    ('> 99 %', '< 1 %', '42 %')
    """
    return "> 99 %" if value > 0.99 else "< 1 %" if value < 0.01 else f"{value:.0%}".replace("%", " %")
