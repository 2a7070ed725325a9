"""The records that cross a process boundary: a run that was measured, a prediction that was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from crossperf import plain

OK = "ok"
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


@dataclass(frozen=True)
class Run:
    """One execution of one workload on one platform.

    A counter that was not measured is ``None``; a run that failed keeps its place with ``status`` telling
    why. `measured_in` names the visit: runs of one visit were made in a row and are one measurement. `metadata` holds
    whatever else was recorded; it is kept and never used as a feature.

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
        metadata = {name: value for name, value in facts.items() if name not in COLUMNS and name != "counters"}
        return cls(**known, counters=dict(facts.get("counters") or {}), metadata=metadata)


#: The columns of a runs table that crossperf knows, in the order in which it writes them.
COLUMNS: tuple[str, ...] = tuple(f.name for f in fields(Run) if f.name not in ("counters", "metadata"))


@dataclass(frozen=True)
class Familiarity:
    """How much a run looks like what a model has learned from.

    ``word`` is one of `LOOKS`; ``score`` is 1 at the edge of what is ordinary and grows with
    how odd the run is; `because` names the counters that make it so, the oddest first.
    """

    word: str
    score: float
    because: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prediction:
    """The relative times of one workload on every platform a model knows, seen from one run.

    ``relative_time[p]`` is time on p over time on the reference, so 2.0 is twice as slow. `seconds` is
    empty where the run brought no runtime to scale by. ``low[p]`` to ``high[p]`` is the range that holds the truth
    with probability `level`, ``chance_fastest[p]`` how likely p is the fastest, and ``chance_faster[p][q]`` how
    likely p beats q; all are empty, and `familiarity` is ``None``, where the model gives none.

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
    relative_time: Mapping[str, float]
    seconds: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    level: float | None = None
    low: Mapping[str, float] = field(default_factory=dict)
    high: Mapping[str, float] = field(default_factory=dict)
    chance_fastest: Mapping[str, float] = field(default_factory=dict)
    chance_faster: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    familiarity: Familiarity | None = None

    @property
    def fastest(self) -> str:
        """The platform with the smallest relative time."""
        return min(self.relative_time, key=lambda platform: self.relative_time[platform])

    def to_json(self) -> dict[str, Any]:
        """Return the prediction as JSON's own types."""
        return {**plain.to_json(self), "fastest": self.fastest}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Prediction:
        """Return the prediction that `to_json` wrote."""
        return plain.from_json(cls, facts)
