"""Times inputs in rounds: each platform visits each input once in a round, in other processes and another order."""

from __future__ import annotations

import math
import socket
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from crossperf import platforms
from crossperf.campaign.log import TIMES, add, in_words
from crossperf.campaign.programs import answers, now, refuse_missing
from crossperf.campaign.rounds import Rounds, Turn, batches
from crossperf.campaign.spec import Mode, Spec, Work
from crossperf.collect.guard import Guard
from crossperf.errors import CollectError, several

#: Visits of a start at each end of a round.
_STARTS = 2
_ENDED = "the program ended or hung at this input"
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
        self._spec, self._plan, self._path, self._guard, self._say = spec, plan, path, guard, say
        self._until = math.inf if until is None else until
        self._start, self._done, self._left = time.monotonic(), 0, 0

    @property
    def _over(self) -> bool:
        return time.monotonic() >= self._until

    def go(self) -> None:
        """Go through the rounds, as long as there is time."""
        if self._over or not self._plan.n_left():
            return
        for name, number in self._plan.rounds():
            self._round(name, number)
            if self._over:
                self._say(f"the time is over with {several(self._plan.n_left(), 'visit')} to go; go on with --resume")
                return

    def _round(self, name: str, number: int) -> None:
        left, self._left = self._plan.left(name), self._plan.n_left()
        before = self._calibrate(name, left, "before")
        self._time_starts(name, left)
        for batch in batches(self._spec, number, left):
            self._take(name, batch)
        self._time_starts(name, left)
        after = self._calibrate(name, left, "after")
        if not self._over:
            n_visits = several(sum(map(len, left.values())), "visit")
            self._say(f"round {name}: {n_visits} on {several(len(left), 'platform')}{_moved(before, after)}")

    def _take(self, name: str, batch: Turn) -> None:
        """Have a batch timed; where the program ends too early, its input is to blame, and another takes the rest."""
        waiting = list(batch.works)
        while waiting and not self._over:
            with closing(answers(self._spec, batch.mode, tuple(waiting), self._guard, self._until)) as facts_of_each:
                for facts in facts_of_each:
                    work = waiting[0]
                    answered = f"{facts.get('workload')} {facts.get('input')}".strip()
                    if answered != work.line:
                        break
                    self._keep(name, batch.mode, waiting.pop(0), facts)
                    if not waiting or self._over:
                        return
            if not self._over:
                self._keep(name, batch.mode, waiting.pop(0), {"error": _ENDED, "started": now()})

    def _keep(self, name: str, mode: Mode, work: Work, facts: dict[str, Any]) -> None:
        about = {"workload": work.workload, "input": work.input, "round": name, "host": socket.gethostname()}
        add(self._path, {"platform": mode.name, **facts, **about})
        error = facts.get("error")
        self._plan.add(mode, name, work, error)
        self._done, self._left = self._done + 1, self._left - 1
        left_s = (time.monotonic() - self._start) / self._done * self._left
        failed = f": {error}" + (f" ({facts['command']})" if "command" in facts else "") if error else ""
        count = f"{self._done}/{self._done + self._left}"
        self._say(f"{mode.name}: {count} {work.line}{failed} ({in_words(left_s)} left)")

    def _calibrate(self, name: str, left: dict[Mode, list[Work]], when: str) -> dict[str, float]:
        """Time the calibrations on the platforms of a round, keep them, and return their medians."""
        medians: dict[str, float] = {}
        works = self._spec.calibration
        for mode in left if works and not self._over else ():
            with closing(answers(self._spec, mode, works, self._guard, self._until)) as facts_of_each:
                answered = list(facts_of_each)
            if self._over:
                break
            for work, facts in zip(works, answered + [{}] * len(works), strict=False):
                if not facts.get("seconds"):
                    problem = f"the calibration {work.line!r} failed ({facts.get('error', _ENDED)})"
                    raise CollectError(f"platform {mode.name}: {problem}. Fix the program first.")
                about = {"platform": mode.name, "round": name, "calibration": work.line, "when": when}
                add(self._path, about | {"host": socket.gethostname(), **_times(facts)})
                medians[f"{work.line} on {mode.name}"] = statistics.median(facts["seconds"])
        return medians

    def _time_starts(self, name: str, left: dict[Mode, list[Work]]) -> None:
        """Time processes of each program that only start and end."""
        for mode in [mode for mode in left if mode.program is not None and self._spec.start is not None]:
            works = [self._spec.start] * _STARTS if self._spec.start else []
            with closing(answers(self._spec, mode.alone(), works, self._guard, self._until)) as facts_of_each:
                for facts in facts_of_each:
                    if not facts.get("seconds"):
                        problem = f"the start {works[0].line!r} failed ({facts.get('error', _ENDED)})"
                        raise CollectError(f"platform {mode.name}: {problem}. Fix the program first.")
                    about = {"platform": mode.name, "round": name, "start": works[0].line, "host": socket.gethostname()}
                    add(self._path, about | {"system": facts["system"], **_times(facts)})


def _times(facts: dict[str, Any]) -> dict[str, Any]:
    return {"started": facts.get("started"), "seconds": facts["seconds"]}


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
