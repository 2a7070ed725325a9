"""Repeats and tools that count: in which order, for how long, and what is handed over meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from crossperf.collect import summary
from crossperf.collect.process import Execution, Runner
from crossperf.collect.profile import Profile, measure, profile
from crossperf.importers.measurement import Measurement
from crossperf.records import Run
from tests.collect.profiling import TRUE, Fake


class Counting(Fake):
    """A back end that notes when it counted, beside the native executions of a command that does the same."""

    def __init__(self, name: str, log: Path, counters: dict[str, float]) -> None:
        super().__init__(Measurement(name, counters=counters))
        self.name = name
        self._log = log

    def count(self, command: Any, runner: Runner) -> Measurement:
        with self._log.open("a") as log:
            log.write(f"{self.name}\n")
        return super().count(["true"], runner)


def test_repeats_are_spread_between_the_tools_that_count(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = ("sh", "-c", f"echo native >> {log}")
    tools = [Counting("first", log, {"instructions": 1.0}), Counting("second", log, {"int_ratio": 0.5})]
    for repeats, order in (
        (1, "native first second"),
        (3, "native first native second native"),
        (5, "native native first native native second native"),
    ):
        log.unlink(missing_ok=True)
        result = measure(replace(TRUE, command=command), tools, repeats=repeats)
        assert log.read_text().split() == order.split()
        assert len({run.started for run in result.runs}) == repeats
        assert [run.started for run in result.runs] == sorted(str(run.started) for run in result.runs)


def test_counting_ends_at_its_limit_and_what_was_counted_is_kept() -> None:
    class Slow(Fake):
        name = "slow"

        def count(self, command: Any, runner: Runner) -> Measurement:
            runner.count(["sleep", "30"], "slow")
            raise AssertionError

    class After(Fake):
        name = "after"

    first = Counting("first", Path(os.devnull), {"instructions": 7.0})
    started = time.monotonic()
    result = measure(TRUE, [first, Slow(Measurement("slow")), After(Measurement("after"))], count_limit=1.0)
    assert time.monotonic() - started < 10
    assert result.runs[0].counters["instructions"] == 7.0
    assert result.not_counted["slow"] == "not finished within the 1 s that counting is limited to"
    assert "counting is limited to 1 s" in result.not_counted["after"]
    assert len(result.runs) == 3


def test_a_tool_that_would_take_far_longer_than_the_limit_is_tried_only_where_it_is_asked_for() -> None:
    class OneSecond(Runner):
        """Whatever the machine, a command takes a second of its processor: a minute under valgrind."""

        def execute(self, *arguments: Any, **options: Any) -> Execution:
            return replace(super().execute(*arguments, **options), wall_s=1.0, user_s=1.0, system_s=0.0)

    heard: list[str] = []
    valgrind = Fake(Measurement("valgrind", {"Ir": 5.0}))
    auto = measure(TRUE, [valgrind], repeats=1, count_limit=0.2, runner=OneSecond(), say=heard.append)
    assert auto.not_counted["valgrind"].startswith("would take about ")
    assert heard == []
    asked = measure(TRUE, [valgrind], "valgrind", repeats=1, count_limit=5.0, runner=OneSecond(), say=heard.append)
    assert [each.tool for each in asked.measurements] == ["valgrind"]
    assert len(heard) == 1
    assert "times as long; Ctrl-C keeps the runtimes" in heard[0]


def executed(*wall_s: float) -> Profile:
    execution = Runner().execute(["true"])
    return replace(TRUE, executions=tuple(replace(execution, wall_s=seconds) for seconds in wall_s))


def test_each_run_is_handed_over_as_it_ends_under_the_id_that_it_keeps(tmp_path: Path) -> None:
    kept: list[Sequence[Run]] = []
    names = {"platform": "here", "registry": tmp_path / "platforms.json"}
    result = profile(["true"], repeats=3, backend="os", keep=kept.append, **names)
    assert [[run.run_id for run in runs] for runs in kept] == [[run.run_id] for run in result.runs]
    assert len({run.run_id for run in result.runs}) == 3
    assert {run.platform for runs in kept for run in runs} == {"here"}


def test_what_a_tool_has_counted_is_handed_over_for_all_runs_before_it() -> None:
    seen: list[tuple[int, int, int]] = []

    def note(result: Profile, first: int) -> None:
        seen.append((len(result.executions), len(result.measurements), first))

    counts = Fake(Measurement("valgrind", {"Ir": 5.0}))
    measure(TRUE, [counts], "valgrind", repeats=2, on_change=note)
    assert seen == [(1, 0, 0), (1, 1, 0), (2, 1, 1)]


def test_repeats_that_differ_by_more_than_a_tenth_are_called_unstable() -> None:
    def warnings(*wall_s: float) -> list[str]:
        return [line for line in summary.lines(executed(*wall_s)) if line.startswith("unstable: ")]

    # Standard deviations over means: 1/10 = 0.1 exactly, then 1.2/10.
    assert warnings(9.0, 10.0, 11.0) == []
    assert "standard deviation is 12% of the mean" in warnings(8.8, 10.0, 11.2)[0]
    assert "the machine is busy" in warnings(8.8, 10.0, 11.2)[0]
    assert "the command is short" in warnings(0.01, 0.02, 0.03)[0]
    assert warnings(5.0) == []


def test_one_reason_takes_one_line_and_gpus_are_mentioned_once() -> None:
    reasons = {
        "valgrind": "the command failed under valgrind: killed by SIGILL (valgrind: cannot go on)",
        "papi": "no hardware counters here, as on most virtual machines (Event does not exist)",
        "ncu": "no NVIDIA GPU here",
        "cupti": "no NVIDIA GPU here",
        "rocprof": "no AMD GPU here",
        "perf": "perf is not installed",
        "strace": "strace is not installed",
    }
    lines = summary.lines(replace(executed(1.0), not_counted=reasons))
    missing = lines[next(at for at, line in enumerate(lines) if line.startswith("missing: ")) :]
    assert [sum(reason in line for line in missing) for reason in ("SIGILL", "perf is not installed", "GPU")] == [
        1,
        1,
        1,
    ]
    assert len(missing) <= 9
    assert not any("use the back end" in line for line in missing)
