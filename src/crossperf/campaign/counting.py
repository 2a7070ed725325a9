"""Counts one pass of every input: under valgrind or qemu one process each, under ncu many in one process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from crossperf.campaign.log import COUNTS, add, counted, in_words
from crossperf.campaign.spec import CountSet, Spec, Work
from crossperf.collect import qemu, valgrind
from crossperf.collect.family import end_family
from crossperf.collect.guard import Guard
from crossperf.collect.ncu import NcuBackend
from crossperf.collect.process import Runner, version_of
from crossperf.collect.qemu import QemuBackend
from crossperf.collect.valgrind import CacheShape, ValgrindBackend, by_vectors
from crossperf.errors import CollectError
from crossperf.importers import ncu
from crossperf.importers.measurement import Measurement

Say = Callable[[str], None]
_LIMIT_S = 600.0
#: What a pass has nothing of, since it is counted after the start, and with one thread whatever the platform.
_NOT_OF_A_PASS = ("qemu.startup_", "qemu.threads")
#: Inputs that one process under ncu counts; more would lose more when it is killed.
_NCU_BATCH = 40


def count(
    spec: Spec, counts: CountSet, folder: Path, jobs: int = 1, say: Say = lambda _: None, until: float | None = None
) -> None:
    """Count what is still to be counted, and add it to ``counts.jsonl``.

    Parameters
    ----------
    jobs
        Processes under valgrind or qemu at a time; counts do not depend on how busy the machine is.
    until
        The monotonic clock at which to stop; what is left is taken up by the next call.
    """
    if not os.access(counts.program, os.X_OK):
        raise CollectError(f"{counts.program}: found no program to count. Build it first: make -C testbed cpu, or gpu.")
    path = folder / COUNTS
    sets = [counts, *(other for other in spec.counts.values() if other != counts and _with(counts, other))]
    done = [{known.work for known in counted(folder) if known.counts == each.name} for each in sets]
    left = [work for work in spec.works if any(work not in known for known in done)]
    start = time.monotonic()
    answers = _ncu(counts, left, until) if counts.tool == "ncu" else _simulated(sets, left, jobs, until)
    for number, facts in enumerate(answers, start=1):
        for each, events in zip(sets, facts.pop("sets", [{}] * len(sets)), strict=True):
            add(path, {"counts": each.name, "tool": each.tool, **facts, **events})
        remaining_s = (time.monotonic() - start) / number * (len(left) - number)
        failed = f": {facts['error']}" if "error" in facts else ""
        work = Work(facts["workload"], facts["input"])
        say(f"{counts.name}: {number}/{len(left)} {work.line}{failed} ({in_words(remaining_s)} left)")


def _with(counts: CountSet, other: CountSet) -> bool:
    """Tell whether other counts come from the same execution: those of qemu, whatever the caches."""
    return counts.tool == other.tool == "qemu" and counts.program == other.program


#: Events of a pass, and of a whole process with one pass where the tool tells them apart.
Events = dict[str, Any]


class _Simulator(Protocol):
    """What executes a program to count it."""

    @property
    def version(self) -> str | None:
        """The version of the tool."""

    def why_not(self) -> str | None:
        """Return why nothing can be counted here, or ``None``."""

    def line(self, command: Sequence[str], folder: Path) -> tuple[list[str], dict[str, str]]:
        """Return what to execute so that the marked part is counted into a folder, and under which variables."""

    def measured(self, folder: Path) -> list[Events]:
        """Return what was counted into a folder, for each set of counts."""


def _events(measured: Measurement) -> Events:
    return {"events": dict(measured.events), "notes": list(measured.notes)}


class _Valgrind(ValgrindBackend):
    @property
    def version(self) -> str | None:
        return version_of(shutil.which(self.name) or self.name)

    def line(self, command: Sequence[str], folder: Path) -> tuple[list[str], dict[str, str]]:
        # Neither set-up nor the pass that warms the caches is collected: the program says where the region begins.
        return [*self.prefix(folder), "--instr-atstart=no", "--collect-atstart=no", *command], by_vectors()

    def measured(self, folder: Path) -> list[Events]:
        return [_events(valgrind.measured_in(folder))]


class _Qemu(QemuBackend):
    _faults: Mapping[str, float | None] = {}

    @property
    def version(self) -> str | None:
        return version_of(self._qemu or self.name, r"\d+\.[\d.]+")

    def line(self, command: Sequence[str], folder: Path) -> tuple[list[str], dict[str, str]]:  # type: ignore[override]
        return list(super().line(command)), self.environment(folder)

    def measured(self, folder: Path) -> list[Events]:
        # The program has its counts reported before and after its second pass: that is the image 1 of its process.
        reports = list(folder.iterdir())
        of_pass, once = folder / "pass", folder / "once"
        of_pass.mkdir()
        once.mkdir()
        if not any(report.suffix == ".1" for report in reports):
            raise CollectError("the program marks no pass: expected CALLGRIND_DUMP_STATS before and after its second")
        for report in reports:
            report.rename((of_pass if report.suffix == ".1" else once) / report.name)
        parts = ((qemu.measured_in(of_pass, caches), qemu.measured_in(once, caches)) for caches in self._all())
        return [
            {**_events(replace(own, events=_of_a_pass(own))), "once": {**whole.events, **self._faults}}
            for own, whole in parts
        ]

    def _all(self) -> tuple[Mapping[str, CacheShape], ...]:
        return (self.caches, *self.others)

    def prepare(self, program: Path) -> None:
        """Count the page faults of the program's start, which are the same for all inputs."""
        with tempfile.TemporaryDirectory(prefix="crossperf-") as name:
            faults = qemu.startup_faults([str(program), "--list"], Runner(_LIMIT_S), Path(name))
        self._faults = {"qemu.startup_page_faults": faults}


def _of_a_pass(own: Measurement) -> dict[str, float | None]:
    return {name: value for name, value in own.events.items() if not name.startswith(_NOT_OF_A_PASS)}


def _simulator(sets: Sequence[CountSet]) -> _Simulator:
    counts = sets[0]
    if counts.tool == "valgrind":
        return _Valgrind(counts.caches)
    simulator = _Qemu(counts.caches, others=[other.caches for other in sets[1:]])
    if simulator.why_not() is None:
        simulator.prepare(counts.program)
    return simulator


def _simulated(sets: Sequence[CountSet], left: Sequence[Work], jobs: int, until: float | None) -> Iterator[Events]:
    counts, simulator = sets[0], _simulator(sets)
    if why_not := simulator.why_not():
        raise CollectError(f"counts {counts.name}: {why_not}")
    guard = Guard()
    running = _Running(guard)

    def count_input(work: Work) -> Events | None:
        if running.stopped or (until is not None and time.monotonic() >= until):
            return None
        return _under(simulator, counts, work, running)

    pool = ThreadPoolExecutor(jobs)
    with guard:
        try:
            yield from filter(None, pool.map(count_input, left))
        finally:
            running.stop()
            pool.shutdown(cancel_futures=True)


class _Running:
    """The programs that run at the moment, so that an interrupt leaves none behind."""

    def __init__(self, guard: Guard | None = None) -> None:
        self._guard = guard or Guard()
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[str]] = set()
        self.stopped = False

    def run(self, command: Sequence[str], variables: Mapping[str, str] | None = None) -> tuple[int | None, str]:
        """Return a command's exit status and output; the status is ``None`` where it took too long."""
        env = None if variables is None else {**os.environ, **variables}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
        self._guard.watch(process.pid)
        with self._lock:
            self._processes.add(process)
            if self.stopped:
                end_family(process.pid, kindly=False)
        try:
            output, _ = process.communicate(timeout=_LIMIT_S)
        except subprocess.TimeoutExpired:
            end_family(process.pid, kindly=False)
            output, _ = process.communicate()
            return None, output
        finally:
            self._guard.leave(process.pid)
            with self._lock:
                self._processes.discard(process)
        return process.returncode, output

    def stop(self) -> None:
        """End what runs, and what would run next."""
        with self._lock:
            self.stopped = True
            for process in self._processes:
                end_family(process.pid, kindly=False)


def _under(simulator: _Simulator, counts: CountSet, work: Work, running: _Running) -> Events | None:
    about = {"workload": work.workload, "input": work.input}
    with tempfile.TemporaryDirectory(prefix="crossperf-") as name:
        folder = Path(name)
        command = [str(counts.program), *work.line.split(), "--count", "--threads", "1"]
        status, output = running.run(*simulator.line(command, folder))
        if running.stopped:
            return None
        if status is None:
            return about | {"error": f"took longer than {_LIMIT_S:g} s under {counts.tool}"}
        program = _last_line(output)
        if status != 0 or program is None or "error" in program:
            return about | {"error": (program or {}).get("error", f"exit status {status} under {counts.tool}")}
        return about | {"sets": simulator.measured(folder), "version": simulator.version, "program": program}


def _last_line(text: str) -> dict[str, Any] | None:
    """Return the facts that a program printed last, as an object of JSON."""
    try:
        facts = json.loads(text.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return None
    return facts if isinstance(facts, dict) else None


def _ncu(counts: CountSet, left: Sequence[Work], until: float | None) -> Iterator[dict[str, Any]]:
    backend = NcuBackend()
    if why_not := backend.why_not():
        raise CollectError(f"counts {counts.name}: {why_not}")
    for start in range(0, len(left), _NCU_BATCH):
        if until is not None and time.monotonic() >= until:
            return
        yield from _under_ncu(backend, counts, left[start : start + _NCU_BATCH])


def _under_ncu(backend: NcuBackend, counts: CountSet, works: Sequence[Work]) -> Iterator[dict[str, Any]]:
    """Yield the counts of a batch: ncu lists launches in order, and the program tells how many each input made."""
    with tempfile.TemporaryDirectory(prefix="crossperf-") as name:
        batch, table = Path(name, "batch.txt"), Path(name, "ncu.csv")
        batch.write_text("\n".join(work.line for work in works) + "\n", encoding="utf-8")
        command = [*backend.prefix(table), "--profile-from-start", "off", str(counts.program), "--batch", str(batch)]
        command += ["--count", "--count-launches", str(counts.launches)]
        with Guard() as guard:
            running = _Running(guard)
            try:
                _, output = running.run(command)
            finally:
                running.stop()
        answers = [facts for line in output.splitlines() if (facts := _last_line(line)) and "workload" in facts]
        launches = ncu.launches(table) if table.exists() and ncu.reads(table) else []
    at = 0
    for facts in answers:
        about = {"workload": facts["workload"], "input": facts["input"]}
        number = int(facts.get("launches_counted", 0))
        mine, at = launches[at : at + number], at + number
        if "error" in facts or len(mine) < number:
            yield about | {"error": facts.get("error", "ncu ended before this input")}
            continue
        sums = ncu.total(mine)
        scale = facts["launches"] / number if number else 1.0
        events = {name: None if value is None else value * scale for name, value in sums.events.items()}
        events["streams_with_kernels"] = sums.events.get("streams_with_kernels")
        scaled = f"{number} launches of a pass were counted and scaled by {scale:.4g}"
        notes = {"notes": [scaled]} if scale > 1.0 else {}
        yield about | {"events": events, "version": backend.version, "program": facts, **notes}
