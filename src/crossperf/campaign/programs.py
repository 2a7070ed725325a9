"""Has a program time inputs: one that takes many from a file and times itself, or a command for each repeat."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import math
import os
import selectors
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from crossperf import plain, platforms
from crossperf.campaign.spec import Mode, Spec, Work
from crossperf.collect.backends import backends
from crossperf.collect.family import end_family
from crossperf.collect.guard import Guard
from crossperf.collect.measuring import measure
from crossperf.collect.process import Execution, Runner, resolve
from crossperf.collect.profiled import Profile, of_system
from crossperf.collect.starters import workload
from crossperf.collect.stdin import Input
from crossperf.errors import CollectError
from crossperf.records import OK

Answers = Generator[dict[str, Any], None, None]
_BLOCK = 1 << 20
_NOTHING = "the command was not executed"
_facts = functools.cache(platforms.facts_of_this_machine)


def now() -> str:
    """Return the moment as it is written."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def refuse_missing(spec: Spec, mode: Mode) -> None:
    """Raise where a program of a platform is not there."""
    if mode.program is not None and not os.access(mode.program, os.X_OK):
        advice = "Build it first: make -C testbed cpu, or gpu."
        raise CollectError(f"{mode.program}: found no program to run for platform {mode.name}. {advice}")
    commands = (spec.line(mode, work)[0] for work in spec.works if mode.command or spec.programs)
    for program in dict.fromkeys(commands):
        resolve([program])


def answers(
    spec: Spec,
    mode: Mode,
    works: Sequence[Work],
    guard: Guard,
    until: float = math.inf,
    to_count: Collection[Work] = (),
) -> Answers:
    """Yield what is known of each input, in order; fewer where the program dies or hangs, or the time is over.

    Parameters
    ----------
    to_count
        The inputs of [[programs]] that are to be counted besides.
    """
    guard.stand_by()
    if spec.programs:
        return _profiled(spec, mode, works, guard, until, to_count)
    return (_executed if mode.command else _batch)(spec, mode, works, guard, until)


def _batch(spec: Spec, mode: Mode, works: Sequence[Work], guard: Guard, until: float) -> Answers:
    with tempfile.NamedTemporaryFile("w", suffix=".txt", prefix="crossperf-") as batch:
        batch.write("\n".join(work.line for work in works) + "\n")
        batch.flush()
        options = {"--batch": batch.name, "--threads": str(mode.threads), "--repeats": str(spec.repeats)}
        command = [*mode.launcher, str(mode.program), *(word for option in options.items() for word in option)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        try:
            guard.watch(process.pid)
            started = now()
            for line in _lines(process, spec.limit_s, until):
                try:
                    facts = json.loads(line)
                except ValueError:
                    return
                if not isinstance(facts, dict):
                    return
                yield {"started": started, **facts}
                started = now()
        finally:
            end_family(process.pid, kindly=False)
            process.wait()
            guard.leave(process.pid)


def _lines(process: subprocess.Popen[bytes], limit_s: float, until: float) -> Iterator[bytes]:
    """Yield lines as they come, until the process ends, is silent for too long, or the time is over."""
    if process.stdout is None:
        return
    text = b""
    with process.stdout, selectors.DefaultSelector() as selector:
        descriptor = process.stdout.fileno()
        selector.register(descriptor, selectors.EVENT_READ)
        while (left_s := min(limit_s, until - time.monotonic())) > 0 and selector.select(left_s):
            data = os.read(descriptor, 65536)
            if not data:
                return
            *lines, text = (text + data).split(b"\n")
            yield from lines


class _NoInput(Input):
    """An empty standard input."""

    @contextlib.contextmanager
    def open(self) -> Iterator[tuple[int, Callable[[], None]]]:
        with Path(os.devnull).open("rb") as nothing:
            yield nothing.fileno(), lambda: None


def _executed(spec: Spec, mode: Mode, works: Sequence[Work], guard: Guard, until: float) -> Answers:
    facts = _facts()
    runner = Runner(spec.limit_s, deadline=until, stdin=_NoInput(), guard=guard)
    command = _Command(mode, runner, guard)
    for work in works:
        started, executions, digests = now(), [], []
        for _ in range(spec.repeats):
            execution, digest = command.execute(work)
            if runner.interrupted:
                raise KeyboardInterrupt
            if time.monotonic() >= until:
                return  # cut off
            executions.append(execution)
            digests.append(digest)
            if execution.status != OK:
                break
        about = {"workload": work.workload, "input": work.input, "started": started}
        if executions[-1].status != OK:
            yield about | {"error": executions[-1].status, "command": shlex.join(mode.line(work))}
            continue
        measured = [of_system(execution, facts) for execution in executions]
        yield about | {
            "seconds": [execution.wall_s for execution in executions],
            "checksum": digests[0],
            "system": [dict(each.events) for each in measured],
            "version": measured[0].version,
        }


def _profiled(
    spec: Spec, mode: Mode, works: Sequence[Work], guard: Guard, until: float, to_count: Collection[Work]
) -> Answers:
    facts = _facts()
    tools = backends(facts)
    with Path(os.devnull).open("wb") as nowhere:
        for work in works:
            guard.stand_by()
            program, line, started = spec.programs[work.workload], spec.line(mode, work), now()
            runner = Runner(spec.limit_s, until, _NoInput(), stdout=nowhere.fileno(), guard=guard, words=True)
            runner.success = program.success
            about = {"workload": work.workload, "input": work.input, "started": started}
            start = Profile(tuple(line), work.workload, work.input, mode.name, mode.platform_class, facts=facts)
            how = program.backend if work in to_count else "os"
            try:
                resolve(line)
                result = measure(start, tools, how, spec.repeats, program.count_limit, runner)
            except CollectError as error:
                yield about | {"error": str(error), "command": shlex.join(line)}
                continue
            if result.interrupted or runner.interrupted:
                raise KeyboardInterrupt
            if time.monotonic() >= until:
                return  # cut off
            yield about | _of_profile(result)


def _of_profile(result: Profile) -> dict[str, Any]:
    failed = [_how(execution) for execution in result.executions if execution.status != OK]
    if failed or not result.executions:
        return {"error": failed[0] if failed else _NOTHING, "command": shlex.join(result.command)}
    measured = [of_system(execution, result.facts) for execution in result.executions]
    return {
        "seconds": [execution.runtime_s for execution in result.executions],
        "system": [dict(each.events) for each in measured],
        "version": measured[0].version,
        "ranks": workload(result.command, os.environ).ranks,
        "measurements": plain.to_json(result.measurements),
        "not_counted": dict(result.not_counted),
    }


def _how(execution: Execution) -> str:
    """Return how an execution failed, with the last line that it wrote about it."""
    lines = [line.strip() for line in execution.last_words.splitlines() if line.strip()]
    return f"{execution.status} ({lines[-1][:200]})" if lines else execution.status


@dataclass(frozen=True)
class _Command:
    """A platform's command, executed under a guard."""

    mode: Mode
    runner: Runner
    guard: Guard

    def execute(self, work: Work) -> tuple[Execution, str | None]:
        """Return how the command ended, and a digest of what it printed where that is to be checked."""
        self.guard.stand_by()
        if not self.mode.check:
            return self._execute(work), None
        with tempfile.TemporaryFile(prefix="crossperf-") as printed:
            self.runner.quiet_stdout = printed.fileno()
            return self._execute(work), _digest(printed)

    def _execute(self, work: Work) -> Execution:
        return self.runner.execute(self.mode.line(work), quiet=True)


def _digest(file: IO[bytes]) -> str:
    file.seek(0)
    digest = hashlib.sha256()
    while block := file.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()[:16]
