"""The records that cross a process boundary: a run that was measured, a prediction that was made."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any

from crossperf import plain
from crossperf.documents import MEGABYTE, Document, at

OK = "ok"
#: The column of a runs table, or the key of a line, that holds the number of its format; none is format 1.
RUNS_FORMAT, FORMAT = "runs_format", 1
#: How much a run looks like what a model has learned from, from like it to unlike it.
FAMILIAR, UNUSUAL, UNKNOWN = LOOKS = ("familiar", "unusual", "unknown")
#: How odd a run may be to look ordinary (1 by definition), and beyond what it looks like nothing known.
ORDINARY, UNKNOWN_BEYOND = 1.0, 2.0


def looks(score: float) -> str:
    """Return the word for how odd a run is.

    >>> looks(0.3), looks(1.5), looks(4.0)
    ('familiar', 'unusual', 'unknown')
    """
    return FAMILIAR if score <= ORDINARY else UNUSUAL if score <= UNKNOWN_BEYOND else UNKNOWN


#: Why a platform is not offered: the workload has no version for it, or it is not stated that it has one.
CANNOT_RUN, NO_VERSION_KNOWN = "cannot run", "no version known"


def versions(runnable: str | None) -> tuple[str, ...] | None:
    """Return the platform classes and platforms that a ``runnable`` names; ``None`` where it names nothing.

    >>> versions("cpu h200"), versions("  "), versions(None)
    (('cpu', 'h200'), None, None)
    """
    return tuple(runnable.split()) or None if runnable else None


def can_run(runnable: Collection[str] | None, platform: str, platform_class: str | None) -> bool:
    """Tell whether there is a version of a workload for a platform; there is where nothing is stated.

    >>> can_run(("cpu",), "h200", "gpu"), can_run(("cpu", "h200"), "h200", "gpu"), can_run(None, "h200", "gpu")
    (False, True, True)
    """
    return runnable is None or platform in runnable or platform_class in runnable


@dataclass(frozen=True)
class Run:
    """One execution of one workload on one platform.

    A counter that was not measured is ``None``; a run that failed keeps its place with ``status`` telling
    why. `measured_in` names the visit: runs of one visit were made in a row and are one measurement. `runnable`
    names the platform classes or platforms for which there is a version of the workload, separated by spaces (such as
    ``cpu gpu``); ``None``: not stated. `metadata` holds whatever else was
    recorded; it is kept and never used as a feature.

    >>> run = Run("lulesh", "30", "epyc-2", 12.5, counters={"instructions": 3e9}, metadata={"job": 7})
    >>> Run.from_json(run.to_json()) == run
    True
    """

    app: str
    input: str
    platform: str
    runtime_s: float | None = None
    platform_class: str | None = None
    repeat: int | None = None
    status: str = OK
    run_id: str | None = None
    ranks: int | None = None
    threads: int | None = None
    source_tool: str | None = None
    host: str | None = None
    started: str | None = None
    measured_in: str | None = None
    runnable: str | None = None
    counters: Mapping[str, float | None] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the run as JSON's own types; columns that hold nothing are left out."""
        facts = {name: getattr(self, name) for name in COLUMNS}
        nested = {"counters": dict(self.counters)}
        return {name: value for name, value in facts.items() if value is not None} | nested | dict(self.metadata)

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Run:
        """Return the run that `to_json` wrote; unknown keys become metadata."""
        known = {name: facts[name] for name in COLUMNS if name in facts}
        named = (*COLUMNS, "counters", RUNS_FORMAT)
        metadata = {name: value for name, value in facts.items() if name not in named}
        return cls(**known, counters=dict(facts.get("counters") or {}), metadata=metadata)


#: The columns of a runs table that crossperf knows, in the order in which it writes them.
COLUMNS: tuple[str, ...] = tuple(f.name for f in fields(Run) if f.name not in ("counters", "metadata"))


#: Times over times, and chances, as a file may hold them.
_Positive = Annotated[float, plain.Between(above=0.0)]
_Share = Annotated[float, plain.Between(0.0, 1.0)]


@dataclass(frozen=True)
class Familiarity:
    """How much a run looks like what a model has learned from.

    ``word`` is one of `LOOKS`; ``score`` is 1 at the edge of what is ordinary and grows with
    how odd the run is; `because` names the counters that make it so, the oddest first.
    """

    word: Annotated[str, plain.OneOf(LOOKS)]
    score: float
    because: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prediction:
    """The relative times of one workload on every platform a model knows, seen from one run.

    ``relative_time[p]`` is time on p over time on the reference, so 2.0 is twice as slow. `seconds` is
    empty where the run brought no runtime to scale by. ``low[p]`` to ``high[p]`` is the range that holds the truth
    with probability `level`, ``chance_fastest[p]`` how likely p is the fastest, and ``chance_faster[p][q]`` how
    likely p beats q; all are empty, and `familiarity` is ``None``, where the model gives none. A platform in `cannot`
    is not offered, for the reason there (`CANNOT_RUN` or `NO_VERSION_KNOWN`): its times are NaN, and it is never the
    fastest.

    >>> prediction = Prediction("lulesh", "30", "epyc-2", "source", {"epyc-2": 1.0, "h200": 0.2})
    >>> prediction.fastest
    'h200'
    >>> Prediction.from_json(prediction.to_json()) == prediction
    True
    """

    app: str
    input: str
    source: str
    relative_to: str
    relative_time: Mapping[str, _Positive]
    seconds: Mapping[str, _Positive] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    level: _Share | None = None
    low: Mapping[str, _Positive] = field(default_factory=dict)
    high: Mapping[str, _Positive] = field(default_factory=dict)
    chance_fastest: Mapping[str, _Share] = field(default_factory=dict)
    chance_faster: Mapping[str, Mapping[str, _Share]] = field(default_factory=dict)
    familiarity: Familiarity | None = None
    cannot: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_unknown(self) -> bool:
        """Whether the run looks like nothing that the model has learned from: nothing should be changed by it."""
        return self.familiarity is not None and self.familiarity.word == UNKNOWN

    @property
    def offered(self) -> tuple[str, ...]:
        """The platforms on which the workload can run, as far as is known."""
        return tuple(name for name in self.relative_time if name not in self.cannot)

    @property
    def fastest(self) -> str:
        """The platform with the smallest relative time, of those on which the workload can run."""
        return min(self.offered, key=lambda platform: self.relative_time[platform])

    def only(self, platforms: Collection[str], cannot: Mapping[str, str]) -> Prediction:
        """Return the prediction for some platforms alone, with the reasons why some of these are not offered."""

        def kept(values: Mapping[str, Any]) -> dict[str, Any]:
            return {name: value for name, value in values.items() if name in platforms}

        return replace(
            self,
            relative_time=kept(self.relative_time),
            seconds=kept(self.seconds),
            low=kept(self.low),
            high=kept(self.high),
            chance_fastest=kept(self.chance_fastest),
            chance_faster={name: kept(row) for name, row in kept(self.chance_faster).items()},
            cannot=dict(cannot),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the prediction as JSON's own types."""
        return {**plain.to_json(self), "fastest": self.fastest}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Prediction:
        """Return the prediction that `to_json` wrote; what does not fit raises `plain.MisfitError` with its place.

        A number is missing only for a platform in `cannot`, and one platform at least is offered.
        """
        prediction = plain.from_json(cls, _with_nan(facts))
        for name in ("relative_time", "seconds", "low", "high", "chance_fastest"):
            for platform, number in getattr(prediction, name).items():
                if math.isnan(number) and platform not in prediction.cannot:
                    raise plain.MisfitError("no number", "one, or a reason under 'cannot'", (name, platform))
        if not prediction.offered:
            raise plain.MisfitError("no platform that is offered", "one at least", ("relative_time",))
        return prediction


PREDICTIONS = Document("what 'crossperf predict --json' writes", "Predict again.", 1, most_bytes=1024 * MEGABYTE)


def read_predictions(path: str | os.PathLike[str]) -> list[Prediction]:
    """Return the predictions of a file that ``crossperf predict --json`` wrote."""
    facts = PREDICTIONS.read(path)
    try:
        entries = at(facts, "predictions", list[Any])
        return [_entry(number, entry) for number, entry in enumerate(entries)]
    except plain.MisfitError as misfit:
        raise PREDICTIONS.misfit(misfit, path) from misfit


def _entry(number: int, facts: Any) -> Prediction:
    try:
        return Prediction.from_json(facts)
    except plain.MisfitError as misfit:
        raise misfit.below(number).below("predictions") from None


def _with_nan(facts: Any) -> Any:
    """Return the facts of a prediction with NaN where JSON, which has none, holds null for a platform."""
    if not isinstance(facts, Mapping) or not facts.get("cannot"):
        return facts
    return {name: _numbers(value) for name, value in facts.items()}


def _numbers(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {name: math.nan if part is None else _numbers(part) for name, part in value.items()}
