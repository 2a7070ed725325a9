"""Executes a command natively and under tools, in turn, within a limit of time."""

from __future__ import annotations

import contextlib
import math
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from crossperf import catalog
from crossperf.collect import regions
from crossperf.collect.backends import AUTO, QUICK, Backend, chosen
from crossperf.collect.costs import crowding, estimate_s, in_words
from crossperf.collect.process import Runner
from crossperf.collect.profiled import Profile
from crossperf.errors import CollectError, MissingDependencyError, SettingsError
from crossperf.importers.measurement import Measurement
from crossperf.records import OK

#: Tools that execute the instructions of a command one by one.
_EMULATORS = ("qemu", "valgrind")
#: Seconds for all executions under tools together, unless the caller gives others.
COUNT_LIMIT_S = 600.0
#: Estimates are right within this factor; a tool that would take longer still is not tried.
_UNSURE = 3.0
_MOST_REPEATS = 100_000
#: From this many seconds on an estimate is worth a sentence.
_WORTH_SAYING_S = 5.0
#: Says on the way what is being done.
Say = Callable[[str], None]
#: Shows how far a silent execution is; ``None`` when it ended.
Progress = Callable[[str | None], None]
#: Takes the profile as far as it is, and the number of the first run that has changed since the last call.
OnChange = Callable[[Profile, int], None]


def measure(
    start: Profile,
    tools: Sequence[Backend],
    backend: str = AUTO,
    repeats: int = 3,
    count_limit: float = COUNT_LIMIT_S,
    runner: Runner | None = None,
    say: Say = lambda _: None,
    progress: Progress = lambda _: None,
    on_change: OnChange = lambda _, __: None,
) -> Profile:
    """Return an empty profile filled with what the tools of a choice measure of its command.

    Parameters
    ----------
    start
        What the runs are recorded under.
    runner
        Executes the command; its time limit is that of native executions.
    on_change
        Called after each native execution, and after each tool that has counted.
    repeats, backend, count_limit, say, progress
        See `crossperf.profile`.
    """
    runner = runner or Runner()
    if not 1 <= repeats <= _MOST_REPEATS:
        expected = f"at least 1 and at most {_MOST_REPEATS:,}"
        raise SettingsError(f"repeats: found {repeats}, expected {expected}.", argument="repeats")
    for name, seconds in (("timeout", runner.time_limit_s), ("count_limit", count_limit)):
        if seconds is not None and not seconds > 0:
            raise SettingsError(f"{name}: found {seconds:g}, expected seconds above 0.", argument=name)
    session = _Session(start, runner, repeats, count_limit, say, progress, on_change)
    # Tools that were asked for by name must work, and are never left out.
    session.run(chosen(tools, backend), asked_for=backend not in (AUTO, QUICK))
    return session.result


class _Session:
    """One profiling on its way: what was measured so far is in `result` whatever happens next."""

    def __init__(
        self,
        start: Profile,
        runner: Runner,
        repeats: int,
        count_limit: float,
        say: Say,
        progress: Progress,
        on_change: OnChange,
    ) -> None:
        self.result = start
        self._runner = runner
        self._repeats = repeats
        self._limit_s = count_limit
        self._left_s = count_limit
        self._say = say
        self._progress = progress
        self._on_change = on_change

    def run(self, picked: Sequence[Backend], *, asked_for: bool) -> None:
        """Execute natively and under tools in turn: what changes on the machine meanwhile shows between repeats."""
        waiting = [backend.name for backend in picked]
        with self._keeping_on_interrupt(waiting):
            if not self._execute(1):
                return
            working = [each for each in picked if asked_for or self._works(each)]
            visit = math.ceil(self._repeats / (len(working) + 1))
            if not self._execute(visit - 1):
                return
            for number, backend in enumerate(working):
                if not asked_for and (reason := self._superfluous(backend)):
                    self._leave_out(backend, reason)
                    continue
                if number and not self._execute(visit):
                    return
                waiting[:] = [each.name for each in working[number:]]
                self._count(backend, asked_for=asked_for)
                if self._runner.interrupted:
                    raise KeyboardInterrupt
            waiting.clear()
            self._execute(self._repeats)

    @contextlib.contextmanager
    def _keeping_on_interrupt(self, waiting: list[str]) -> Iterator[None]:
        """Keep what was measured where Ctrl-C comes, and name the tools that had not counted yet."""
        try:
            yield
        except KeyboardInterrupt:
            known = {*self.result.not_counted, *(each.tool for each in self.result.measurements)}
            reasons = {name: "interrupted" for name in waiting if name not in known}
            cut_off_with = 128 + (self._runner.interrupted_by or signal.SIGINT)
            not_counted = {**self.result.not_counted, **reasons}
            self.result = replace(self.result, not_counted=not_counted, cut_off_with=cut_off_with)
        finally:
            self._progress(None)

    def _execute(self, times: int) -> bool:
        """Execute natively some more times, all repeats together at most; return whether to go on."""
        for _ in range(min(times, self._repeats - len(self.result.executions))):
            done = len(self.result.executions)
            typical_s = max((each.wall_s for each in self.result.executions), default=0.0)
            with self._showing(f"repeat {done + 1} of {self._repeats}", typical_s):
                execution = regions.execute(self._runner, self.result.command, quiet=done > 0)
            if self._runner.interrupted:
                raise KeyboardInterrupt  # the time of an execution that was cut off tells nothing about the command
            self.result = replace(self.result, executions=(*self.result.executions, execution))
            self._on_change(self.result, done)
            if execution.status != OK:
                return False
            if done == 0:
                self._runner.region = execution.marked
                self._runner.env = regions.library() if execution.marked else {}
        return True

    @contextlib.contextmanager
    def _showing(self, label: str, estimated_s: float) -> Iterator[None]:
        about = f" of about {in_words(estimated_s)}" if estimated_s else ""
        self._runner.on_look = lambda elapsed_s: self._progress(f"{label}: {in_words(elapsed_s)}{about}")
        try:
            yield
        finally:
            self._runner.on_look = None
            self._progress(None)

    def _works(self, backend: Backend) -> bool:
        if why_not := backend.why_not():
            self._leave_out(backend, why_not)
        return not why_not

    def _leave_out(self, backend: Backend, reason: str) -> None:
        self.result = replace(self.result, not_counted={**self.result.not_counted, backend.name: reason})

    def _count(self, backend: Backend, *, asked_for: bool) -> None:
        """Execute the command under a tool, unless that takes far longer than what is left of the limit."""
        native_s = sorted(done.wall_s for done in self.result.executions)[len(self.result.executions) // 2]
        estimated_s = estimate_s(backend.name, self.result.executions, crowding())
        if self._left_s <= 0 or (not asked_for and estimated_s > _UNSURE * self._left_s):
            limit = f"counting is limited to {in_words(self._limit_s)}"
            advice = "a higher limit, or a smaller input, helps"
            self._leave_out(backend, f"would take about {in_words(estimated_s)}, and {limit}; {advice}")
            return
        self._announce(backend.name, estimated_s, native_s)
        start = time.monotonic()
        # A tool sees the same standard input, under a limit of its own.
        runner = self._runner
        runner.time_limit_s, native_limit_s = None, runner.time_limit_s
        runner.deadline = start + self._left_s
        try:
            with self._showing(backend.name, estimated_s):
                measurement = backend.count(self.result.command, runner)
                self._add(regions.counted_in(runner.region, measurement), native_s)
        except (CollectError, MissingDependencyError) as error:
            ended = time.monotonic() >= runner.deadline
            over = f"not finished within the {in_words(self._limit_s)} that counting is limited to"
            self._leave_out(backend, "interrupted" if runner.interrupted else over if ended else str(error))
        finally:
            self._left_s -= time.monotonic() - start
            runner.time_limit_s, runner.deadline = native_limit_s, math.inf

    def _announce(self, tool: str, estimated_s: float, native_s: float) -> None:
        text = f"counting with {tool}"
        if estimated_s >= _WORTH_SAYING_S:
            times = estimated_s / native_s if native_s else 1.0
            longer = f", {times:.0f} times as long" if times >= 2 else ""
            text += f" takes about {in_words(estimated_s)}{longer}; Ctrl-C keeps the runtimes"
        self._say(text)

    def _add(self, measurement: Measurement, native_s: float) -> None:
        slowdown = measurement.runtime_s / native_s if measurement.runtime_s and native_s else None
        more = (*self.result.measurements, replace(measurement, slowdown=slowdown))
        self.result = replace(self.result, measurements=more)
        self._on_change(self.result, 0)

    def _superfluous(self, backend: Backend) -> str | None:
        """Return why a tool would add nothing to what is known already, or ``None``."""
        counters = {formula.counter for formula in catalog.FORMULAS if formula.tool == backend.name}
        if backend.name in _EMULATORS and "warp_blocks" in self.result.counted.values:
            return f"left out: the work is on the GPU, and {backend.name} cannot run its driver"
        if counters and counters <= self.result.counted.values.keys():
            return "left out: other tools counted all that it could"
        return None
