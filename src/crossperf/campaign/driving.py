"""Drives a campaign through Slurm: submits what is missing, merges what comes, ends when every input has an end.

A driver may be killed at any moment: what it submits is in its ledger before, and what was measured is in the logs of
the elements. The next one asks Slurm about the former and merges the latter.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from crossperf.campaign.ledger import Ledger, SiteCampaign, SubmittedArray
from crossperf.campaign.log import COUNTS, TIMES, in_words
from crossperf.campaign.merging import Merger
from crossperf.campaign.planning import Key, SitePlan, keys_of
from crossperf.campaign.progress import Pace, SiteProgress, of_platforms
from crossperf.campaign.spec import Mode, Spec, Work
from crossperf.campaign.tasks import ArrayTasks, ElementTask, at_hand, cut_offs
from crossperf.cluster import Call, ClusterSite, ControllerError, JobArray, JobArrays, JobState, SubmissionError
from crossperf.cluster.commands import array_limit, refuse_unless_up
from crossperf.errors import several

Say = Callable[[str], None]
_FUNCTION = "crossperf.campaign.element:run"
#: States of jobs that somebody ended on purpose: they are not submitted again without being asked.
_ON_PURPOSE = ("CANCELLED", "DEADLINE", "REVOKED")
#: States in which an element that has begun nothing would fail again.
_OWN_FAULT = ("FAILED", "COMPLETED")
#: Looks at Slurm for which an element must have ended before its log counts as complete.
_LOOKS = 3
#: Seconds by which a node's clock may differ; shared folders show a file up to a minute late.
_CLOCK_S = 90.0


class CampaignDriver:
    """One start of a campaign on a site.

    Parameters
    ----------
    say
        Called with a line of text when something happens.
    show
        Called with the progress after each look.
    retry
        Take inputs that failed once more.
    submits
        Submit what is missing; otherwise only follow what was submitted.
    """

    def __init__(
        self,
        spec: Spec,
        site: ClusterSite,
        settings: SiteCampaign,
        output: Path,
        say: Say = lambda _: None,
        show: Callable[[SiteProgress], None] = lambda _: None,
        *,
        retry: bool = False,
        submits: bool = True,
    ) -> None:
        self._site, self._settings, self._output, self._say, self._show = site, settings, output, say, show
        self._modes: list[Mode] = [spec.mode(name) for name in settings.platforms]
        self._plan = SitePlan(spec, self._modes, settings.counts, site, output)
        self._ledger = Ledger(output)
        self._jobs = JobArrays(settings.folder / "submitit")
        self._merger = Merger(output, settings.folder)
        #: Platforms whose failed inputs are still to be taken once more.
        self._retry = set(settings.platforms) if retry else set()
        self._submits = submits
        self._tasks: dict[str, ArrayTasks] = {}
        self._states: dict[tuple[str, int], JobState] = {}
        self._looks: dict[tuple[str, int], int] = {}
        self._pace, self._unreachable, self._down_since, self._postponed = Pace(), "", 0.0, False
        #: Why Slurm does not take the arrays of a platform.
        self.refused: dict[str, str] = {}
        self._off_clocks: set[str] = set()
        #: When Slurm was asked last, by this machine's clock.
        self._looked: float | None = None
        #: Platforms with nothing left to do.
        self._complete: set[str] = set()

    def start(self) -> None:
        """Merge what is there, let go of submissions that were cut off, and submit what is missing."""
        self._look()
        self._submit_missing()
        self._tell()

    def follow(self) -> SiteProgress:
        """Look now and then until every input has an end; return how far the campaign is then."""
        while self._ledger.open or self._postponed:
            time.sleep(self._site.poll_s)
            self._look()
            self._submit_missing()
            self._tell()
        return self._tell(ended=True)

    def cancel(self) -> int:
        """Cancel all that was submitted and has not ended, and return how many elements that are."""
        arrays = [known.array for known in self._ledger.open if known.array]
        self._jobs.cancel(arrays)
        return sum(len(known.open) for known in self._ledger.open)

    def _adopt(self) -> None:
        """Take up arrays whose number was not noted, since their driver was killed; those that it left half-made go."""
        for known in [known for known in self._ledger.open if known.job is None]:
            number = self._jobs.find(known.name)
            array = JobArray(known.name, number, known.size) if number else None
            if array and self._jobs.is_whole(array):
                self._ledger.add(known.name, job=array.job)
                continue
            if array:
                self._jobs.cancel([array])
            for element in range(known.size):
                self._merger.merge(known.name, element)
            self._ledger.add(known.name, lost="the driver was ended while it submitted this array")

    def _look(self) -> None:
        """Ask Slurm about all elements at once, and merge what they wrote."""
        opened = [known for known in self._ledger.open if known.array]
        try:
            if self._unreachable:
                refuse_unless_up()
            self._states = self._jobs.states([known.array for known in opened if known.array])
        except ControllerError as error:
            self._note_unreachable(str(error))
            states: Mapping[tuple[str, int], JobState] = {}
        else:
            self._note_reachable()
            states = self._states
        ends: list[dict[str, Any]] = []
        for known in opened:
            for number in known.open:
                self._merge(known, number)
                state = states.get((known.name, number))
                if state is not None and (end := self._end_of(known, number, state)):
                    ends.append({"array": known.name, "element": number, **end})
        self._looked = time.time()
        if ends:
            self._ledger.add_all(ends)

    def _note_unreachable(self, reason: str) -> None:
        if not self._unreachable:
            self._down_since = time.monotonic()
            self._say(f"warning: Slurm does not answer ({reason.rstrip('.')}); jobs go on, and so does this")
        self._unreachable = reason

    def _note_reachable(self) -> None:
        if self._unreachable:
            self._say(f"Slurm answers again, after {in_words(time.monotonic() - self._down_since)}")
        self._unreachable = ""

    def _merge(self, known: SubmittedArray, number: int) -> None:
        state = self._states.get((known.name, number))
        array = known.array
        if array is None or (state is not None and state.waiting and not self._merger.log(known.name, number)):
            return
        printed = self._jobs.folder / f"{array.id(number)}_0_log.out"
        before = len(self._merger.log(known.name, number))
        self._merger.merge(known.name, number, printed)
        self._check_clocks(self._merger.log(known.name, number)[before:])

    def _check_clocks(self, new: Sequence[Mapping[str, Any]]) -> None:
        """Warn once of a node whose clock differs: what an element wrote since the last look it wrote since then."""
        for line in new:
            host, clock = str(line.get("host")), line.get("clock")
            if not isinstance(clock, int | float) or not math.isfinite(clock) or host in self._off_clocks:
                continue
            ahead_s, behind_s = clock - time.time(), (self._looked or clock) - clock
            if max(ahead_s, behind_s) > _CLOCK_S:
                self._off_clocks.add(host)
                words = f"{in_words(ahead_s)} ahead of" if ahead_s > 0 else f"{in_words(behind_s)} behind"
                why = "durations are right all the same, times of day in the table are the node's"
                self._say(f"warning: the clock of {host} is {words} this machine's; {why}")

    def _end_of(self, known: SubmittedArray, number: int, state: JobState) -> dict[str, Any] | None:
        """Return how an element ended; ``None`` while it may still go on, or write."""
        at = (known.name, number)
        if not state.ended:
            self._looks.pop(at, None)
            return None
        log, task = self._merger.log(*at), self._tasks_of(known).elements[number]
        left = self._left(known.platform, task)
        if any("ended" in line for line in log) and not left:
            return self._ended(at, "ended", "")
        self._looks[at] = self._looks.get(at, 0) + 1
        if self._looks[at] < _LOOKS:
            return None
        reason = self._reason(known, number, state)
        if not left:  # it was cut off after its last input
            return self._ended(at, "ended", reason)
        if state.word in _ON_PURPOSE:
            self._fail(known, task, left, f"its job was cancelled ({state})")
            return self._ended(at, "cancelled", reason)
        return self._dead(known, number, state, left, reason)

    def _ended(self, at: tuple[str, int], outcome: str, reason: str) -> dict[str, Any]:
        self._looks.pop(at, None)
        self._merger.forget(*at)
        return {"outcome": outcome, "reason": reason}

    def _dead(
        self, known: SubmittedArray, number: int, state: JobState, left: Sequence[Work], reason: str
    ) -> dict[str, Any]:
        """Return the end of an element that left inputs behind; those that are to blame, or have no chance, fail."""
        log, tasks = self._merger.log(known.name, number), self._tasks_of(known)
        task = tasks.elements[number]
        cut_off, hand = cut_offs(log, dead=True), at_hand(log)
        idle = not any(line.keys() & {"begun", "workload"} for line in log)
        # What has no input to blame is held against all that it left, so that it is not tried for ever.
        in_all = idle or bool(task.counts) or any("ended" in line for line in log)
        cut: dict[str, int] = {}
        for work in left:
            before = task.cut_off.get(work.line, 0)
            times = before + (1 if in_all else cut_off[work.line])
            if idle and state.word in _OWN_FAULT:
                self._fail(known, task, [work], f"its job failed before it began ({reason})")
            elif state.word == "OUT_OF_MEMORY" and work.line == hand:
                self._fail(known, task, [work], f"its job ran out of memory ({reason})")
            elif times >= tasks.tries:
                self._fail(known, task, [work], f"its job was cut off {times} times, the last time: {reason}")
            elif times > before:
                cut[work.line] = times
        self._say(f"{known.platform}: a job ended too early ({reason}) with {several(len(left), 'input')} left")
        return self._ended((known.name, number), "dead", reason) | {"cut_off": cut, "round": task.round}

    def _reason(self, known: SubmittedArray, number: int, state: JobState) -> str:
        words = self._jobs.last_words(known.array, number) if known.array else ""
        return f"{state}: {words}" if words else str(state)

    def _left(self, platform: str, task: ElementTask) -> list[Work]:
        keys = zip(keys_of(platform, task), task.works, strict=True)
        return [work for key, work in keys if key not in self._merger.known]

    def _fail(self, known: SubmittedArray, task: ElementTask, works: Sequence[Work], error: str) -> None:
        for work in works:
            about = {"workload": work.workload, "input": work.input, "error": error}
            if task.counts:
                self._merger.fail({"counts": task.counts, **about}, COUNTS)
            else:
                self._merger.fail({"platform": known.platform, "round": task.round, **about}, TIMES)

    def _tasks_of(self, known: SubmittedArray) -> ArrayTasks:
        if known.name not in self._tasks:
            self._tasks[known.name] = ArrayTasks.read(self._settings.folder, known.name)
        return self._tasks[known.name]

    def _claimed(self) -> dict[Key, bool]:
        """Return what open elements are at."""
        claimed: dict[Key, bool] = {}
        for known in self._ledger.open:
            for number in known.open:
                claimed |= keys_of(known.platform, self._tasks_of(known).elements[number])
        return claimed

    def _submit_missing(self) -> None:
        """Submit what nobody is at on platforms that have nothing open; what Slurm cannot take now is postponed."""
        if self._unreachable:
            return
        self._postponed = False
        try:
            self._adopt()
            if not self._submits:
                return
            busy = {known.platform for known in self._ledger.open} | self.refused.keys() | self._complete
            for name in [mode.name for mode in self._modes if mode.name not in busy]:
                again = name in self._retry
                self._submit(name, list(self._plan.tasks(name, self._claimed(), self._ledger.cut_off, retry=again)))
                self._retry.discard(name)
        except ControllerError as error:
            self._postponed = True
            self._note_unreachable(str(error))

    def _submit(self, platform: str, tasks: Sequence[ElementTask]) -> None:
        if not tasks:
            self._complete.add(platform)
            return
        refuse_unless_up()
        before = None
        try:
            for own in _chunks(tasks, array_limit()):
                before = self._submit_array(platform, own, before)
        except SubmissionError as error:
            refuse_unless_up()  # it may have gone meanwhile
            self._ledger.add(error.facts["name"], lost=str(error))
            self.refused[platform] = str(error)
            self._say(f"warning: {error}")

    def _submit_array(self, platform: str, tasks: Sequence[ElementTask], after: JobArray | None) -> JobArray:
        number = len(self._ledger.submissions)
        name = f"crossperf-{self._settings.id}-{number}-{re.sub(r'[^A-Za-z0-9.]+', '-', platform)[:40]}"
        folder = self._settings.folder
        own = self._tasks[name] = self._plan.array(platform, tasks)
        own.write(folder, name)
        self._ledger.add(name, platform=platform, size=len(tasks))
        calls = [Call(_FUNCTION, (str(folder), name, element)) for element in range(len(tasks))]
        array = self._jobs.submit(name, calls, self._site.allocation(platform), after=after)
        self._ledger.add(name, job=array.job)
        inputs = sum(len(task.works) for task in tasks)
        self._say(f"{platform}: submitted job {array.job}, {several(len(tasks), 'element')} of {inputs:,} inputs")
        return array

    def _tell(self, *, ended: bool = False) -> SiteProgress:
        """Write how far the campaign is."""
        running: dict[str, int] = {}
        waits: dict[str, str] = {}
        for known in self._ledger.open:
            states = [self._states.get((known.name, number)) for number in known.open]
            running[known.platform] = running.get(known.platform, 0) + sum(s is not None and s.running for s in states)
            reasons = [s.reason for s in states if s is not None and s.waiting and s.reason not in ("", "None")]
            waits |= {known.platform: reasons[0]} if reasons else {}
        totals = {mode.name: self._plan.total(mode.name) for mode in self._modes}
        progress = SiteProgress(
            of_platforms(totals, self._merger.known, running, waits, self._pace), time.time(), self._unreachable, ended
        )
        progress.write(self._output)
        self._show(progress)
        return progress


def _chunks(tasks: Sequence[ElementTask], size: int) -> Iterator[Sequence[ElementTask]]:
    for start in range(0, len(tasks), size):
        yield tasks[start : start + size]
