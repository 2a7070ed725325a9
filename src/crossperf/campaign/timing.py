"""Times inputs in rounds: each platform visits each input once in a round, in other processes and another order."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from crossperf import platforms
from crossperf.campaign.log import TIMES, add, in_words
from crossperf.campaign.programs import refuse_missing
from crossperf.campaign.rounds import Rounds, batches
from crossperf.campaign.spec import Mode, Spec, Work
from crossperf.campaign.visiting import Visitor
from crossperf.collect.guard import Guard
from crossperf.errors import several

Say = Callable[[str], None]


def visit(
    spec: Spec, modes: Sequence[Mode], folder: Path, say: Say = lambda _: None, until: float | None = None
) -> None:
    """Visit every input on platforms of this machine in as many rounds as the spec has visits.

    Rounds that were cut off are completed first. Every visit is added to ``times.jsonl`` as it ends.

    Parameters
    ----------
    until
        The monotonic clock at which to stop, in the middle of a round if need be; the next call goes on there.
    """
    for mode in modes:
        refuse_missing(spec, mode)
    for mode in modes:
        add(folder / TIMES, {"platform": mode.name, "facts": platforms.facts_of_this_machine().to_json()})
    with Guard() as guard:
        _Visiting(spec, Rounds(spec, modes, folder), folder / TIMES, guard, say, until).go()


class _Visiting:
    """One start of a campaign."""

    def __init__(self, spec: Spec, plan: Rounds, path: Path, guard: Guard, say: Say, until: float | None) -> None:
        self._spec, self._plan, self._say = spec, plan, say
        self._until = math.inf if until is None else until
        self._visitor = Visitor(spec, guard, lambda facts: add(path, facts), self._keep, until=self._until)
        self._start, self._done, self._left = time.monotonic(), 0, 0

    def go(self) -> None:
        """Go through the rounds, as long as there is time."""
        if self._visitor.over or not self._plan.n_left():
            return
        for name, number in self._plan.rounds():
            self._round(name, number)
            if self._visitor.over:
                self._say(f"the time is over with {several(self._plan.n_left(), 'visit')} to go; go on with --resume")
                return

    def _round(self, name: str, number: int) -> None:
        left, self._left = self._plan.left(name), self._plan.n_left()
        before = self._calibrate(name, left, "before")
        self._time_starts(name, left)
        for batch in batches(self._spec, number, left):
            self._visitor.take(name, batch, self._plan.uncounted(batch))
        self._time_starts(name, left)
        after = self._calibrate(name, left, "after")
        if not self._visitor.over:
            n_visits = several(sum(map(len, left.values())), "visit")
            self._say(f"round {name}: {n_visits} on {several(len(left), 'platform')}{_moved(before, after)}")

    def _calibrate(self, name: str, left: dict[Mode, list[Work]], when: str) -> dict[str, float]:
        medians: dict[str, float] = {}
        for mode in left:
            medians |= self._visitor.calibrate(name, mode, when)
        return medians

    def _time_starts(self, name: str, left: dict[Mode, list[Work]]) -> None:
        for mode in left:
            self._visitor.time_starts(name, mode)

    def _keep(self, mode: Mode, name: str, work: Work, facts: dict[str, Any]) -> None:
        error = facts.get("error")
        self._plan.add(mode, name, work, error, bool(facts.get("measurements") or facts.get("not_counted")))
        self._done, self._left = self._done + 1, self._left - 1
        left_s = (time.monotonic() - self._start) / self._done * self._left
        failed = f": {error}" + (f" ({facts['command']})" if "command" in facts else "") if error else ""
        count = f"{self._done}/{self._done + self._left}"
        self._say(f"{mode.name}: {count} {work.line}{failed} ({in_words(left_s)} left)")


def _moved(before: dict[str, float], after: dict[str, float]) -> str:
    """Return in words how far the calibrations moved over a round.

    >>> _moved({"triad on a": 1.0, "triad on b": 2.0}, {"triad on a": 1.25, "triad on b": 1.0})
    '; calibrations took 0.50 to 1.25 times as long at its end, triad on b changed most'
    """
    factors = {name: after[name] / before[name] for name in before if name in after}
    if not factors:
        return ""
    most = max(factors, key=lambda name: abs(math.log(factors[name])))
    low, high = min(factors.values()), max(factors.values())
    return f"; calibrations took {low:.2f} to {high:.2f} times as long at its end, {most} changed most"
