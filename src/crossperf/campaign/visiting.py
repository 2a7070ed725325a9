"""Visits: has a platform's program take inputs one after another, and keeps what came of each as it ends."""

from __future__ import annotations

import math
import socket
import statistics
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from typing import Any

from crossperf.campaign.programs import answers, now
from crossperf.campaign.rounds import Turn
from crossperf.campaign.spec import Mode, Spec, Work
from crossperf.collect.guard import Guard
from crossperf.errors import CollectError

#: Visits of a start at each end of a round.
_STARTS = 2
_TROUBLE = "trouble"
_ENDED = "the program ended or hung at this input"
Facts = dict[str, Any]


class Visitor:
    """Has inputs timed on platforms of this machine.

    Parameters
    ----------
    keep
        Takes each line for the log.
    visited
        Called after each visit: platform, round, input, what is known of it.
    begun
        Called before each visit.
    until
        The monotonic clock at which to stop.
    settle_s
        Seconds to wait before a failure is kept: whoever ends the program may be about to end this process too, and
        the input is not to blame then.
    """

    def __init__(
        self,
        spec: Spec,
        guard: Guard,
        keep: Callable[[Facts], None],
        visited: Callable[[Mode, str, Work, Facts], None] = lambda *_: None,
        begun: Callable[[Mode, str, Work], None] = lambda *_: None,
        until: float = math.inf,
        settle_s: float = 0.0,
    ) -> None:
        self._spec, self._guard, self._keep, self._until, self._settle_s = spec, guard, keep, until, settle_s
        self._visited, self._begun = visited, begun

    @property
    def over(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self._until

    def take(self, name: str, batch: Turn, to_count: Collection[Work] = ()) -> None:
        """Have a batch timed; where the program ends too early, its input is to blame, and another takes the rest."""
        waiting = list(batch.works)
        while waiting and not self.over:
            works, blamed = tuple(waiting), False
            with closing(answers(self._spec, batch.mode, works, self._guard, self._until, to_count)) as facts_of_each:
                self._begun(batch.mode, name, waiting[0])
                for facts in _until_trouble(facts_of_each, waiting):
                    blamed = facts.pop(_TROUBLE, False)
                    self._add(name, batch.mode, waiting.pop(0), facts)
                    if not waiting or self.over:
                        return
                    if blamed:
                        break
                    self._begun(batch.mode, name, waiting[0])
            if not self.over and not blamed:
                self._add(name, batch.mode, waiting.pop(0), {"error": _ENDED, "started": now()})

    def _add(self, name: str, mode: Mode, work: Work, facts: Facts) -> None:
        if "error" in facts:
            time.sleep(self._settle_s)
        about = {"workload": work.workload, "input": work.input, "round": name, "host": socket.gethostname()}
        self._keep({"platform": mode.name, **facts, **about})
        self._visited(mode, name, work, facts)

    def calibrate(self, name: str, mode: Mode, when: str) -> dict[str, float]:
        """Time the calibrations on a platform of a round, keep them, and return their medians."""
        medians: dict[str, float] = {}
        works = self._spec.calibration
        if not works or self.over:
            return medians
        with closing(answers(self._spec, mode, works, self._guard, self._until)) as facts_of_each:
            answered = list(facts_of_each)
        if self.over:
            return medians
        for work, facts in zip(works, answered + [{}] * len(works), strict=False):
            self._refuse_failed("calibration", mode, work, facts)
            about = {"platform": mode.name, "round": name, "calibration": work.line, "when": when}
            self._keep(about | {"host": socket.gethostname(), **_times(facts)})
            medians[f"{work.line} on {mode.name}"] = statistics.median(facts["seconds"])
        return medians

    def time_starts(self, name: str, mode: Mode) -> None:
        """Time processes of a platform's program that only start and end."""
        if mode.program is None or self._spec.start is None:
            return
        works = [self._spec.start] * _STARTS
        with closing(answers(self._spec, mode.alone(), works, self._guard, self._until)) as facts_of_each:
            for facts in facts_of_each:
                self._refuse_failed("start", mode, works[0], facts)
                about = {"platform": mode.name, "round": name, "start": works[0].line, "host": socket.gethostname()}
                self._keep(about | {"system": facts["system"], **_times(facts)})

    def _refuse_failed(self, kind: str, mode: Mode, work: Work, facts: Facts) -> None:
        if not facts.get("seconds"):
            time.sleep(self._settle_s)
            problem = f"the {kind} {work.line!r} failed ({facts.get('error', _ENDED)})"
            raise CollectError(f"platform {mode.name}: {problem}. Fix the program first.")


def _until_trouble(facts_of_each: Iterator[Facts], waiting: list[Work]) -> Iterator[Facts]:
    """Yield answers to the inputs that wait, until one answers another; what this machine refuses is an answer too."""
    try:
        for facts in facts_of_each:
            if f"{facts.get('workload')} {facts.get('input')}".strip() != waiting[0].line:
                return
            yield facts
    except OSError as error:  # a full disk, no more processes
        where = f"{error.filename}: " if error.filename else ""
        problem = f"{where}{error.strerror or error} on {socket.gethostname()}"
        yield {"error": problem, "started": now(), _TROUBLE: True}


def _times(facts: Facts) -> Facts:
    return {"started": facts.get("started"), "seconds": facts["seconds"]}
