"""The answer to a question as a page shows it: a headline, rows of platforms on one axis, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from markupsafe import Markup

from crossperf.errors import PredictError, some_of
from crossperf.platforms import Platform
from crossperf.prediction.measuring import NextMeasurements
from crossperf.records import NO_VERSION_KNOWN, UNKNOWN, UNUSUAL, Prediction, Run
from crossperf.report.asked import STAND_IN_FACTOR, Asked, three_digits
from crossperf.report.figures.colours import Look, looks_of
from crossperf.serve.service import Service
from crossperf.serve.web import svg
from crossperf.serve.web.asking import PageQuestion
from crossperf.serve.web.words import chance, described, duration, short

#: The share of a run's time that a measurement should save to be worth a line.
_WORTH = 0.03
#: The numbers of runs whose price is shown.
_SCALES = (1, 1_000, 1_000_000)
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

    question: PageQuestion
    asked: Asked
    platforms: Mapping[str, Platform]
    #: All platforms of the model in its order, which sets their colours.
    names: Sequence[str]
    #: The run as the model was asked about it.
    run: Run
    wanted: NextMeasurements
    #: Whether the workload is in the table that the model learned from.
    learned: bool
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
            return f"Nothing is clearly faster than here; {first} comes first, about {short(times)}× as fast"
        return f"Take {first}: about {times:.2g}× as fast as here"

    @property
    def badge(self) -> tuple[str, str]:
        """How familiar the run looks: the word, and what it means."""
        looks = self.prediction.familiarity
        if looks is None:
            return "not rated", "This model does not tell how familiar a run looks."
        because = f" Above all in {some_of(looks.because, 3)}." if looks.because else ""
        return looks.word, _BADGES[looks.word] + because

    @property
    def took(self) -> str:
        """How long the run took, in words."""
        return duration(self.asked.runtime_s) if self.asked.runtime_s is not None else ""

    @property
    def has_chances(self) -> bool:
        """Whether chances are known: they are of this machine itself, not of one that another stands for."""
        return bool(self.prediction.chance_fastest) and not self.asked.differs

    @property
    def sure(self) -> str:
        """How likely the headline's platform is the fastest, in words."""
        first = self.asked.order[0]
        likely = self.prediction.chance_fastest.get(first)
        clear = first == self.prediction.source or self.asked.range_of(first)[1] < 1.0
        return (
            f"{chance(likely)} sure" if likely is not None and clear and self.has_chances and not self.unknown else ""
        )

    @cached_property
    def priced_runs(self) -> int:
        """How many runs prices are of: the least of 1, 1,000 and a million that makes them hundredths or more."""
        least = min(self.asked.costs.values(), default=1.0)
        return next(scale for scale in _SCALES if scale == _SCALES[-1] or least * scale > 0.01)

    @property
    def price_head(self) -> str:
        """What the column of prices is of."""
        return "price a run" if self.priced_runs == 1 else f"price of {self.priced_runs:,} runs"

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
                between="measured" if here else f"{short(low)} to {short(high)}" if low < high else "",
                seconds=duration(runtime_s * middle) if runtime_s is not None else "",
                chance=chance(own.chance_fastest[name]) if name in own.chance_fastest and not asked.differs else "",
                cost=three_digits(costs[name] * self.priced_runs) if name in costs else "",
                bar=svg.interval(self.axis, middle, low, high, look, hatched=self.unknown and not here),
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
        if self.learned:
            yield "The model has learned from this very workload: a program that is new to it is less certain."
        if self.asked.differs:
            yield (
                f"The model does not know where this run was measured and takes it for {self.prediction.source}: "
                f"believe the order more than the times. Ranges are wider by a factor of "
                f"{STAND_IN_FACTOR:g} to either side, a guess."
            )
        yield from self.notes

    @property
    def next(self) -> list[Step]:
        """What to measure next, what helps most first."""
        return [*self._counters(), *self._where(), *self._inputs()]

    def _counters(self) -> Iterator[Step]:
        if lacking := self.wanted.counters:
            count = len(lacking)
            yield Step(
                f"Count {'one more counter' if count == 1 else f'{count} more counters'}: {some_of(lacking, 4)}.",
                "The model has learned from runs that have them; without them it is less sure.",
                "crossperf profile -- ./your-program",
            )

    def _where(self) -> Iterator[Step]:
        for own in self.wanted.platforms[:2]:
            command = f"crossperf profile --platform {shlex.quote(own.platform)} -o runs.jsonl -- ./your-program"
            if self.unknown:
                yield Step(f"Run it on {own.platform}.", "One measured time tells more than every guess.", command)
                return
            if own.saves is not None and own.saves >= _WORTH:
                likely = self.prediction.chance_fastest.get(own.platform, 0.0)
                why = f"It is the fastest with a chance of {chance(likely)}; to know its time"
                yield Step(f"Run it on {own.platform}.", f"{why} should save {own.saves:.0%} of the run.", command)

    def _inputs(self) -> Iterator[Step]:
        looks = self.prediction.familiarity
        if looks is not None and looks.word in (UNUSUAL, UNKNOWN):
            yield Step(
                "Measure it with two or three inputs on two platforms, and train a model with these runs.",
                "Inputs of an application that is known are predicted best.",
                "crossperf train runs.jsonl -o model",
            )


def answered(service: Service, question: PageQuestion) -> AnswerView:
    """Return the answer to a question: for what can run the program and was asked about."""
    trained = service.model(question.model or None).model
    run, differs = placed(question, trained.sources)
    kinds = dict(zip(trained.platforms, trained.cells.platform_classes, strict=True))
    known = service.platforms
    answer = service.predict([run], model=question.model or None, can=question.can(list(kinds.values())))
    (prediction,) = answer.predictions
    wanted = [name for name in trained.platforms if question.wants(known.get(name, Platform(name)))]
    offered = [name for name in prediction.offered if name in wanted or name == prediction.source]
    cannot = {name: why for name, why in prediction.cannot.items() if name in wanted}
    # Asked again, so that chances are among the platforms that were asked about, and ranges of the level.
    (prediction,) = service.predict([run], model=question.model or None, can=offered, level=question.level).predictions
    (wanted_next,) = service.next_measurements([run], model=question.model or None, can=offered)
    asked = Asked(
        prediction.only([*offered, *cannot], cannot),
        run.runtime_s,
        machine=described(known.get(run.platform)),
        threads=run.threads,
        differs=differs,
        prices=service.prices,
        classes=kinds,
        lacking=wanted_next.counters,
        level=question.level,
    )
    learned = (run.app, run.input) in trained.workloads
    notes = tuple(note for note in answer.notes if "lacks" not in note)  # it stands under what to measure next
    return AnswerView(question, asked, known, trained.platforms, run, wanted_next, learned, notes)


def placed(question: PageQuestion, sources: Sequence[str]) -> tuple[Run, tuple[str, ...]]:
    """Return the run on a platform of the model, and how that differs from where it was measured."""
    run, here = question.run, question.here
    if run.platform in sources and here in ("", run.platform):
        return run, ()
    if here not in sources:
        raise StrangerError(
            f"The run was measured on {run.platform[:80]!r}, which the model does not know. Choose the platform "
            "that is most like it.",
            platforms=tuple(sources),
        )
    return replace(run, platform=here), (f"measured on {run.platform}",)
