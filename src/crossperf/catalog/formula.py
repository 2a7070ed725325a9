"""How a tool's raw events become one counter: formulas as text, to be shown and to be applied.

A formula is written in the tool's own names, with a blank on both sides of every operator, since names of
events hold dashes and dots themselves: ``L1-dcache-load-misses / ( L1-dcache-loads - L1-dcache-load-misses )``.
``NAME?`` counts as 0 where a processor has no such event. ``//`` divides like ``/`` and takes 1 for a divisor of 0:
where nothing hit, one hit is assumed, and no miss of no branch is 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

#: Raw events under the tool's own names; ``None`` was asked for and not counted.
Events = Mapping[str, float | None]


class UndefinedError(Exception):
    """A formula has no value for these events; the text says why."""


@dataclass(frozen=True)
class Formula:
    """One way to get a counter from the events of one tool on one kind of processor.

    `given` is an event that only the processors have for which the formula holds: without it there is no value.
    A value above `at_most` is none, since no share of a whole is greater than the whole.

    >>> misses = Formula("branch_miss_ratio", "perf", "any CPU", "branch-misses / branches")
    >>> misses.value({"branch-misses": 5.0, "branches": 100.0})
    0.05
    """

    counter: str
    tool: str
    on: str
    text: str
    caveat: str = ""
    given: str = ""
    at_most: float | None = None

    @cached_property
    def _tokens(self) -> list[str]:
        return re.findall(r"[()]|[^\s()]+", self.text)

    @cached_property
    def events(self) -> tuple[str, ...]:
        """The events that the formula reads, each once; those of ``NAME?`` too."""
        names = [token.removesuffix("?") for token in self._tokens if _is_event(token)]
        return tuple(dict.fromkeys(names))

    @cached_property
    def optional(self) -> frozenset[str]:
        """The events that count as 0 where they are absent."""
        return frozenset(token.removesuffix("?") for token in self._tokens if _is_event(token) and token.endswith("?"))

    def to_accesses(self, counter: str) -> Formula:
        """Return the formula of misses to all accesses from this one of misses to hits.

        >>> Formula("l2_miss_ratio", "perf", "ARM", "refill // ( all - refill )").to_accesses("l2_miss_rate").text
        'refill // all'
        >>> Formula("l2_miss_ratio", "ncu", "NVIDIA", "miss // hit").to_accesses("l2_miss_rate").text
        'miss // ( miss + hit )'
        """
        misses, _, hits = self.text.partition(" // ")
        accesses = f"( {misses} + {hits} )"
        bare = misses.removeprefix("( ").removesuffix(" )")
        if hits.endswith(ending := f" - {bare.replace(' + ', ' - ')} )"):
            accesses = hits.removesuffix(ending).removeprefix("( ")
            accesses = f"( {accesses} )" if " " in accesses else accesses
        return replace(self, counter=counter, text=f"{misses} // {accesses}", at_most=1.0)

    def value(self, events: Events) -> float:
        """Return the counter, or raise `UndefinedError` with the reason."""
        needed = [name for name in self.events if name in events or name not in self.optional]
        needed += [self.given] if self.given else []
        lacking = [name for name in needed if events.get(name) is None]
        if lacking or not any(name in events for name in self.events):
            names = lacking or self.events
            raise UndefinedError(f"{', '.join(names)} {'was' if len(names) == 1 else 'were'} not counted")
        negative = [name for name in self.events if (events.get(name) or 0.0) < 0]
        if negative:
            raise UndefinedError(f"{negative[0]} is negative, as events that share a register can turn out")
        value = _Sum(self._tokens, events).value
        if not math.isfinite(value):
            raise UndefinedError(f"{self.text} is not finite")
        if value < 0:
            raise UndefinedError(f"{self.text} is negative")
        if self.at_most is not None and value > self.at_most:
            raise UndefinedError(f"{self.text} is {value:.4g}, which no share of a whole can be")
        return value


class _Sum:
    """Reads ``a * b + c`` from tokens, with the usual precedence, left to right."""

    def __init__(self, tokens: Iterable[str], events: Events) -> None:
        self._tokens = iter(tokens)
        self._events = events
        self._next = next(self._tokens)
        self.value = self._sum()

    def _take(self) -> str:
        token, self._next = self._next, next(self._tokens, "")
        return token

    def _sum(self) -> float:
        value = self._product()
        while self._next in ("+", "-"):
            sign = 1.0 if self._take() == "+" else -1.0
            value += sign * self._product()
        return value

    def _product(self) -> float:
        value = self._atom()
        while self._next in ("*", "/", "//"):
            operator, operand = self._take(), self._atom()
            if operator == "*":
                value *= operand
            elif operand == 0.0 and operator == "/":
                raise UndefinedError("it would divide by 0")
            else:
                value /= operand or 1.0
        return value

    def _atom(self) -> float:
        token = self._take()
        if token == "(":  # noqa: S105
            value = self._sum()
            if self._take() != ")":
                raise ValueError("a formula lacks a closing bracket")
            return value
        if _is_event(token):
            return float(self._events.get(token.removesuffix("?")) or 0.0)
        return float(token)


def _is_event(token: str) -> bool:
    return token not in ("", "(", ")", "+", "-", "*", "/", "//") and not re.fullmatch(r"[\d.]+(e[+-]?\d+)?", token)


@dataclass(frozen=True)
class Derived:
    """A counter as some tool's events give it: its value and formula, or why there is none."""

    value: float | None
    formula: Formula
    reason: str | None = None


def derive(events: Events, formulas: Iterable[Formula]) -> dict[str, Derived]:
    """Return every counter that the events bear on; the first formula of a counter that has a value wins.

    A counter is absent where no formula knows any of the events: nobody asked for it.

    >>> loads = Formula("mem_ratio", "perf", "Intel", "loads / instructions")
    >>> derive({"loads": 3.0, "instructions": 12.0}, [loads])["mem_ratio"].value
    0.25
    >>> derive({"loads": 3.0, "instructions": None}, [loads])["mem_ratio"].reason
    'instructions was not counted'
    """
    derived: dict[str, Derived] = {}
    for formula in formulas:
        known = derived.get(formula.counter)
        if known is not None and known.value is not None:
            continue
        if not any(name in events for name in formula.events):
            continue
        try:
            derived[formula.counter] = Derived(formula.value(events), formula)
        except UndefinedError as reason:
            derived.setdefault(formula.counter, Derived(None, formula, str(reason)))
    return derived


def first_events(tool: str, formulas: Iterable[Formula]) -> list[str]:
    """Return the events of a tool's first formula for each counter: what its back end asks for."""
    first: dict[str, tuple[str, ...]] = {}
    for formula in formulas:
        if formula.tool == tool:
            first.setdefault(formula.counter, (*formula.events, *filter(None, [formula.given])))
    return [event for events in first.values() for event in events]


def sufficient_events(offered: Iterable[str], formulas: Iterable[Formula]) -> set[str]:
    """Return the events of each counter's first formula that the offered events suffice for: no other has to be asked.

    >>> new, old = (Formula("l2_miss_ratio", "perf", "AMD Zen", text) for text in ("miss // hits", "miss // ( a + b )"))
    >>> sorted(sufficient_events(["a", "b", "hits", "miss"], [new, old]))
    ['hits', 'miss']
    """
    at_hand = set(offered)
    first: dict[str, tuple[str, ...]] = {}
    for formula in formulas:
        if at_hand.issuperset(set(formula.events) - formula.optional):
            first.setdefault(formula.counter, formula.events)
    return {event for events in first.values() for event in events if event in at_hand}
