"""One element of an array, on its node: takes its inputs, and goes on where its log ends when it is started again."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from crossperf import __version__, platforms
from crossperf.campaign.counting import count
from crossperf.campaign.log import COUNTS, FORMAT, TIMES, add, counted, lines, timed
from crossperf.campaign.programs import refuse_missing
from crossperf.campaign.rounds import Turn
from crossperf.campaign.spec import Work
from crossperf.campaign.tasks import BY_LIMIT, BY_REQUEST, ArrayTasks, ElementTask, cut_offs, element_folder
from crossperf.campaign.visiting import Visitor
from crossperf.cluster.calls import warned
from crossperf.collect.guard import Guard
from crossperf.errors import CollectError, MissingDependencyError, SettingsError, several
from crossperf.text import safe

#: Lines that could not be written into the log are in the job's output, behind this.
MARK = "crossperf-log: "
#: Seconds after a failure in which Slurm's signal to end may still come.
_SETTLE_S = 0.5


def run(folder: str, array: str, number: int) -> None:
    """Measure the inputs of an element that are left; what a job executes."""
    tasks = ArrayTasks.read(Path(folder), array)
    _Element(tasks, tasks.elements[number], element_folder(Path(folder), array, number), f"{array}-{number}").run()


class _Element:
    def __init__(self, tasks: ArrayTasks, task: ElementTask, folder: Path, name: str) -> None:
        self._tasks, self._task, self._folder, self._name = tasks, task, folder, name
        self._path = folder / TIMES

    def run(self) -> None:
        self._make_folder()
        about = {"host": socket.gethostname(), "clock": time.time(), "version": __version__}
        about["job"] = os.environ.get("SLURM_JOB_ID", "")
        self._keep({"element": self._name, **about})
        try:
            self._count() if self._task.counts else self._visit()
        except (KeyboardInterrupt, SystemExit):  # the latter from submitit, once it has had the job queued again
            self._keep({"stopped": BY_LIMIT if warned() else BY_REQUEST})
            raise
        self._keep({"ended": self._name})

    def _make_folder(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self._say_instead({"element": self._name}, error)

    def _keep(self, facts: dict[str, Any]) -> None:
        _keep_or_say(lambda: add(self._path, facts), facts, self._say_instead)

    def _say_instead(self, facts: dict[str, Any], error: BaseException) -> None:
        print(MARK + json.dumps({"format": FORMAT, **facts}), flush=True)
        why = safe(f"{self._folder}: cannot be written ({error}); its lines are in the job's output")
        print(why, file=sys.stderr)

    def _left(self) -> list[Work]:
        """Return the inputs that are still to be visited, those that were cut off last; too often, and they failed."""
        visited = {visit.work for visit in timed(self._folder)}
        cut_off = cut_offs(lines(self._path), dead=False) + Counter(self._task.cut_off)
        left = [work for work in self._task.works if work not in visited]
        for work in [work for work in left if cut_off[work.line] >= self._tasks.tries]:
            limit = "longer than its job's time limit, or deadly to its node"
            self._fail([work], f"cut off {several(cut_off[work.line], 'time')}: {limit}")
            left.remove(work)
        return sorted(left, key=lambda work: cut_off[work.line])

    def _fail(self, works: list[Work], error: str) -> None:
        for work in works:
            about = {"platform": self._tasks.platform, "round": self._task.round, "host": socket.gethostname()}
            self._keep({**about, "workload": work.workload, "input": work.input, "error": error})

    def _visit(self) -> None:
        spec, mode, name = self._tasks.spec, self._tasks.mode, self._task.round
        left = self._left()
        if not left:
            return
        self._keep({"platform": mode.name, "facts": platforms.facts_of_this_machine().to_json()})
        to_count = {self._task.works[number] for number in self._task.to_count}
        try:
            if not spec.programs:
                refuse_missing(replace(spec, works=tuple(left)), mode)
            with Guard() as guard:
                visitor = Visitor(spec, guard, self._keep, begun=self._begin, settle_s=_SETTLE_S)
                visitor.calibrate(name, mode, "before")
                visitor.time_starts(name, mode)
                visitor.take(name, Turn(mode, left), to_count)
                visitor.time_starts(name, mode)
                visitor.calibrate(name, mode, "after")
        except (CollectError, SettingsError, MissingDependencyError) as error:
            self._fail(self._left(), f"{error} (on {socket.gethostname()})")

    def _begin(self, mode: Any, name: str, work: Work) -> None:
        self._keep({"begun": work.line})

    def _count(self) -> None:
        counts = self._tasks.spec.counts[self._task.counts]
        spec = replace(self._tasks.spec, works=self._task.works)
        jobs = len(os.sched_getaffinity(0))
        try:
            count(spec, counts, self._folder, jobs)
        except (CollectError, SettingsError, MissingDependencyError) as error:
            done = {known.work for known in counted(self._folder) if known.counts == counts.name}
            for work in self._task.works:
                if work not in done:
                    facts = {"counts": counts.name, "workload": work.workload, "input": work.input}
                    add(self._folder / COUNTS, facts | {"error": f"{error} (on {socket.gethostname()})"})


def _keep_or_say(
    keep: Callable[[], None], facts: dict[str, Any], say_instead: Callable[[dict[str, Any], BaseException], None]
) -> None:
    try:
        keep()
    except (OSError, CollectError) as error:
        say_instead(facts, error)
