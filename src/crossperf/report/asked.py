"""The answer to one program's question, where it would run how fast, in a few plain lines."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crossperf.errors import some_of
from crossperf.records import NO_VERSION_KNOWN, UNKNOWN, UNUSUAL, Prediction

_WIDTH = 80
#: Where another platform stands for this machine, ranges are wider by this factor to either side. It is a guess: how
#: far two machines of one kind are apart is not known before something ran on both.
STAND_IN_FACTOR = 1.5
#: The number of runs whose cost is shown: the least that makes it hundredths or more.
_SCALES = (1, 1_000, 1_000_000)


@dataclass(frozen=True)
class Asked:
    """What was asked and answered.

    Parameters
    ----------
    prediction
        Times relative to the platform that stands for this machine.
    runtime_s
        The seconds measured here; ``None`` where the run has none.
    machine
        This machine in words.
    threads
        The threads that the program uses here; ``None`` where that is not known.
    differs
        How this machine differs from the platform that stands for it, in words; empty where it is that platform.
    prices
        What an hour on a platform costs, where that is known.
    classes
        The class of each platform.
    lacking
        Counters that the model knows and that were not counted.
    """

    prediction: Prediction
    runtime_s: float | None
    machine: str
    threads: int | None = None
    differs: tuple[str, ...] = ()
    prices: Mapping[str, float] = field(default_factory=dict)
    classes: Mapping[str, str] = field(default_factory=dict)
    lacking: tuple[str, ...] = ()
    level: float = 0.8

    @property
    def can_tell(self) -> bool:
        """Whether the program is like something that the model has learned from."""
        looks = self.prediction.familiarity
        return looks is None or looks.word != UNKNOWN

    @property
    def order(self) -> tuple[str, ...]:
        """The platforms that can run it, the fastest first."""
        return tuple(sorted(self.prediction.offered, key=self.prediction.relative_time.__getitem__))

    def range_of(self, platform: str) -> tuple[float, float]:
        """Return the range of a relative time, wider where another platform stands for this machine."""
        wider = STAND_IN_FACTOR if self.differs else 1.0
        own = self.prediction
        middle = own.relative_time[platform]
        return own.low.get(platform, middle) / wider, own.high.get(platform, middle) * wider

    @property
    def costs(self) -> dict[str, float]:
        """What one run would cost on each platform that has a price."""
        if self.runtime_s is None:
            return {}
        hours = {name: self.runtime_s * self.prediction.relative_time[name] / 3600.0 for name in self.order}
        return {name: hours[name] * self.prices[name] for name in self.order if name in self.prices}

    def to_json(self) -> dict[str, Any]:
        """Return the same facts as JSON's own types; ranges are as printed."""
        ranges = {name: self.range_of(name) for name in self.order}
        return {
            "can_tell": self.can_tell,
            "here": {
                "platform": self.prediction.source,
                "same_machine": not self.differs,
                "differs": list(self.differs),
                "machine": self.machine,
                "threads": self.threads,
                "runtime_s": self.runtime_s,
            },
            "order": list(self.order),
            "range": {name: list(own) for name, own in ranges.items()},
            "cost": self.costs,
            "lacking": list(self.lacking),
            "prediction": self.prediction.to_json(),
        }


def lines(asked: Asked) -> list[str]:
    """Return the answer in lines of at most 80 characters, the table's aside where names are long."""
    sentences = [_head(asked), _here(asked)]
    if asked.can_tell:
        sentences += ["", *_table(asked), "", *_conclusion(asked)]
    else:
        sentences += _cannot_tell(asked)
    return [line for text in sentences for line in _wrapped(text)]


def _wrapped(text: str) -> list[str]:
    return [text] if len(text) <= _WIDTH or text.startswith(" ") else textwrap.wrap(text, _WIDTH)


def _head(asked: Asked) -> str:
    own = asked.prediction
    took = "" if asked.runtime_s is None else f": {_time(asked, asked.runtime_s)} {_unit(asked)[1]} here"
    threads = f" on {asked.threads} thread{'s' * (asked.threads > 1)}" if asked.threads else ""
    return f"{own.app} {own.input}".strip() + took + threads


def _here(asked: Asked) -> str:
    if not asked.differs:
        return f"here is {asked.prediction.source} ({asked.machine})"
    return f"here is nearest to {asked.prediction.source}: {asked.machine}, {some_of(asked.differs, 2)}"


def _table(asked: Asked) -> list[str]:
    costs = asked.costs
    scale = next(scale for scale in _SCALES if scale == _SCALES[-1] or min(costs.values(), default=1.0) * scale > 0.01)
    cost_of = f"cost of {scale:,}" if scale > 1 else "cost"
    rows = [["platform", *_heads(asked), *([cost_of] if costs else [])]]
    for name in asked.order:
        cost = [three_digits(costs[name] * scale) if name in costs else "-"] if costs else []
        rows.append([name, *_cells(asked, name), *cost])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    texts = ["  ".join(_padded(row, widths)).rstrip() for row in rows]
    return [f"  {line}" for line in (*texts, *_not_offered(asked))]


def _not_offered(asked: Asked) -> Iterator[str]:
    """Yield a line for each reason why platforms are not offered."""
    cannot = asked.prediction.cannot
    for why in dict.fromkeys(cannot.values()):
        names = [name for name in cannot if cannot[name] == why]
        classes = dict.fromkeys(asked.classes.get(name, name) for name in names)
        advice = f" (if there is one: --can {','.join(classes)})" if why == NO_VERSION_KNOWN else ""
        yield f"{some_of(names, 4)}: {why}{advice}"


def _heads(asked: Asked) -> list[str]:
    level, unit = f"{asked.level:.0%} range", _unit(asked)[1]
    if asked.runtime_s is None:
        return ["relative", level, *_chances(asked, "fastest?")]
    return (
        [f"{unit}, {level}", "relative"] if asked.differs else [unit, level, "relative", *_chances(asked, "fastest?")]
    )


def _cells(asked: Asked, name: str) -> list[str]:
    """Return the cells of a row between its name and its cost: single times only where this machine is known."""
    own, (low, high) = asked.prediction, asked.range_of(name)
    relative = own.relative_time[name]
    chance = _chances(asked, _chance(own.chance_fastest.get(name, 0.0)))
    if asked.runtime_s is None:
        return [f"{relative:,.2f}x", f"{low:,.2f}x to {high:,.2f}x" if low < high else "", *chance]
    between = " to ".join(_time(asked, bound * asked.runtime_s) for bound in (low, high))
    if asked.differs:
        return [between, f"about {relative:,.2g}x"]
    measured = "measured" if name == own.source else between
    return [_time(asked, relative * asked.runtime_s), measured, f"{relative:,.2f}x", *chance]


def _chance(value: float) -> str:
    """Return a chance in per cent; never all."""
    return f"{min(value, 0.99):.0%}"


def _chances(asked: Asked, text: str) -> list[str]:
    """Return a cell where there are chances: they are of this machine itself, not of one that another stands for."""
    return [text] if asked.prediction.chance_fastest and not asked.differs else []


def _padded(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]


def _conclusion(asked: Asked) -> Iterator[str]:
    own, first = asked.prediction, asked.order[0]
    looks, about = own.familiarity, "about " * bool(asked.differs)
    chance = own.chance_fastest.get(first)
    sure = "" if chance is None or asked.differs else f"; {_chance(chance)} sure"
    if len(asked.order) == 1:
        yield "Of the platforms asked for, the model knows no other that can run it."
    elif first == own.source:
        yield f"Nothing that the model knows and that can run it is faster than here{sure}."
    else:
        factor = f"{about}{1.0 / own.relative_time[first]:.2g} times as fast as here{sure}"
        _, high = asked.range_of(first)
        # Its range reaches the time that was measured.
        alike = f"Nothing is clearly faster than here: {first} comes first, {factor}."
        yield alike if high >= 1.0 else f"Fastest is {first}, {factor}."
    if asked.differs:
        yield (
            f"The model does not know this machine and takes it for {own.source}: believe the order more than the "
            f"times, whose ranges are wider by a factor of {STAND_IN_FACTOR:g} to either side, a guess."
        )
    if costs := asked.costs:
        yield f"Cheapest is {min(costs, key=costs.__getitem__)}, of those with a price."
    if looks is not None and looks.word == UNUSUAL:
        yield f"It looks unusual to the model ({', '.join(looks.because)}): believe the ranges, not the numbers."
    yield from _uncounted(asked)


def _cannot_tell(asked: Asked) -> Iterator[str]:
    looks = asked.prediction.familiarity
    because = f", above all in {', '.join(looks.because)}" if looks and looks.because else ""
    yield ""
    yield f"Cannot tell: it is unlike everything that the model has learned from{because}."
    yield from _uncounted(asked)
    others = [name for name in asked.order if name != asked.prediction.source]
    where = f", on {others[0]} first," if others else ""
    yield (
        f"Measure it where it matters{where} with 'crossperf profile', and train a model with such runs among others; "
        "--json FILE holds what this one would guess."
    )


def _uncounted(asked: Asked) -> Iterator[str]:
    if asked.lacking:
        yield (
            f"{len(asked.lacking)} counters that the model knows were not counted ({some_of(asked.lacking, 3)}); with "
            "them it would be surer ('crossperf profile --list' tells what can count here)."
        )


def _unit(asked: Asked) -> tuple[float, str]:
    """Return how many of a unit are a second, and the unit: milliseconds where a run is short."""
    return (1e3, "ms") if asked.runtime_s is not None and asked.runtime_s < 0.1 else (1.0, "s")


def _time(asked: Asked, seconds: float) -> str:
    return three_digits(seconds * _unit(asked)[0])


def three_digits(value: float) -> str:
    """Return a positive number with three digits or more, never with an exponent.

    >>> [three_digits(value) for value in (0.00123456, 1.5, 12345.6)]
    ['0.00123', '1.50', '12,346']
    """
    digits = 2 - math.floor(math.log10(value)) if value > 0 else 0
    return f"{value:,.{max(0, digits)}f}"
