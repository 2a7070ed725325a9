#!/usr/bin/env python3
"""Counts whole processes of a campaign of applications or array programs under qemu, with one thread.

    python testbed/count.py testbed/apps/campaign.toml -o FOLDER --inputs DIR [--bundle DIR] [--minutes N] [--jobs N]
    python testbed/count.py testbed/arrays/campaign.toml -o FOLDER [--minutes N] [--jobs N]

One execution under qemu gives all count sets of the campaign, which differ in their caches alone; a second, native one
gives the page faults before main. Array programs are forks of one process that has loaded their libraries. An input
becomes a line for each set in FOLDER/counts.jsonl, which `crossperf campaign` joins to its times. What is there is not
counted again, so that a start goes on where another ended.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "apps"), str(HERE.parent / "src")]

import apps  # noqa: E402
import run  # noqa: E402

from crossperf.campaign import log, spec  # noqa: E402
from crossperf.collect import qemu  # noqa: E402
from crossperf.collect.process import version_of  # noqa: E402
from crossperf.errors import CollectError  # noqa: E402
from crossperf.importers.measurement import Measurement  # noqa: E402

#: A process that takes longer under qemu is ended.
LIMIT_S = 3600.0


class Executions(Protocol):
    """What executes an input under qemu and returns its events by each set of caches."""

    def count(self, work: spec.Work, emulator: Emulator) -> list[Measurement]:
        """Return what was counted, a measurement for each set."""


@dataclass(frozen=True)
class Emulator:
    """The emulator with the caches of all count sets, which one execution serves."""

    sets: Sequence[spec.CountSet]

    @cached_property
    def backend(self) -> qemu.QemuBackend:
        """The back end that counts commands of users too."""
        first, *others = (counts.caches for counts in self.sets)
        return qemu.QemuBackend(first, others=others)

    @cached_property
    def version(self) -> str | None:
        """The version of qemu."""
        return version_of(f"qemu-{os.uname().machine}", r"\d+\.[\d.]+")

    def under(self, process: run.Process, reports: Path) -> run.Process:
        """Return a process that is counted into a folder; it may use all processors."""
        line = self.backend.line((process.program, *process.words[1:]))
        variables = process.variables | self.backend.environment(reports)
        process = replace(process, variables=variables, cpus=run.all_cpus())
        # qemu stands in front of a statically linked program.
        return process if line[0] == process.program else replace(process, program=line[0], words=list(line))

    def measured(self, reports: Path, faults: float | None) -> list[Measurement]:
        """Return what was counted into a folder, for each set, with the page faults before main."""
        more = {"qemu.startup_page_faults": faults}
        each = [qemu.measured_in(reports, counts.caches) for counts in self.sets]
        return [replace(own, events={**own.events, **more}) for own in each]

    def startup_faults(self, process: run.Process, folder: Path) -> float | None:
        """Return the page faults before main of all processes of a native execution."""
        faults = folder / "faults"
        faults.mkdir()
        preload = self.backend.environment(folder)["LD_PRELOAD"]
        variables = {"LD_PRELOAD": preload, "CROSSPERF_STARTUP_OUT": str(faults)}
        run.timed(replace(process, variables=process.variables | variables))
        counts = [int(line) for file in faults.iterdir() for line in file.read_text().split()]
        return float(sum(counts)) if counts else None


@dataclass(frozen=True)
class Applications:
    """The applications of apps.toml, each a process of its own, and what is expected of their output."""

    place: run.Place
    known: Mapping[str, apps.App]
    digests: Mapping[str, str]

    def count(self, work: spec.Work, emulator: Emulator) -> list[Measurement]:
        """Return what was counted of one execution, after checking its output."""
        with tempfile.TemporaryDirectory(prefix="count-") as name:
            folder, reports, native = (Path(name, part) for part in ("emulated", "reports", "native"))
            for path in (folder, reports, native):
                path.mkdir()
            app = self.known[work.workload]
            case = app.case(work.input)
            process = run.process_of(app, case, 1, self.place, folder)
            outcome = run.timed(emulator.under(process, reports), LIMIT_S)
            digest, words = run.result_of(app, case, 1, self.place, folder)
            status = run.judge(app, outcome, digest, self.digests.get(run.expected_key(app, work.input, 1)))
            if status not in ("ok", "unchecked"):
                raise CollectError(f"{work.line}: {status} under qemu, ended with {outcome.code}: {words}")
            faults = emulator.startup_faults(run.process_of(app, case, 1, self.place, native), Path(name))
            return emulator.measured(reports, faults)


class ArrayPrograms:
    """The array programs, as forks of one process under qemu: what loads the libraries is counted once for all.

    The parts are added up. The end of a process touches much of what its start did; a fork that only ends tells of it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._lock = folder, threading.Lock()
        self._server: subprocess.Popen[str] | None = None
        self._start: list[Measurement] = []

    def count(self, work: spec.Work, emulator: Emulator) -> list[Measurement]:
        """Return the start of all programs and what an input executes after it, added up."""
        with self._lock, tempfile.TemporaryDirectory(prefix="count-") as name:
            server = self._server or self._serve(emulator)
            self._ask(server, work.line, Path(name))
            parts = emulator.measured(Path(name), None)
        return [added(start, part) for start, part in zip(self._start, parts, strict=True)]

    def _serve(self, emulator: Emulator) -> subprocess.Popen[str]:
        program = [sys.executable, str(HERE / "arrays" / "forks.py"), "--threads", "1"]
        variables = {"LC_ALL": "C", "PATH": "/usr/bin:/bin", "HOME": str(self._folder)}
        reports, native = self._folder / "start", self._folder / "native"
        for path in (reports, native):
            path.mkdir()
        empty = run.Process(sys.executable, [sys.executable, "-c", ""], variables, native, "", run.all_cpus())
        faults = emulator.startup_faults(empty, native)
        environment = variables | emulator.backend.environment(self._folder)
        self._server = server = subprocess.Popen(
            program, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        if server.wait(LIMIT_S) != 0:
            raise CollectError(f"forks.py ended with {server.returncode} under qemu, expected 0")
        for report in self._folder.glob(f"{server.pid}.*"):
            report.rename(reports / report.name)
        ending = self._folder / "ending"
        ending.mkdir()
        self._ask(server, "", ending)
        again = {"qemu.footprint_bytes": emulator.measured(ending, None)[0].events["qemu.footprint_bytes"]}
        self._start = [without(start, again) for start in emulator.measured(reports, faults)]
        return server

    def _ask(self, server: subprocess.Popen[str], line: str, reports: Path) -> None:
        if server.stdin is None or server.stdout is None:
            raise CollectError("forks.py has no pipes")
        server.stdin.write(line + "\n")
        server.stdin.flush()
        answer = server.stdout.readline()
        if not answer:
            raise CollectError(f"{line}: forks.py gave no answer")
        facts = json.loads(answer)
        for report in self._folder.glob(f"{facts['pid']}.*"):
            report.rename(reports / report.name)
        if facts["code"] != 0:
            raise CollectError(f"{line} ended with {facts['code']} under qemu, expected 0")

    def close(self) -> None:
        """Let the server end."""
        if self._server and self._server.stdin:
            self._server.stdin.close()


def without(start: Measurement, again: Mapping[str, float | None]) -> Measurement:
    """Return a part without what is counted again in the part after it."""
    return replace(start, events={name: _minus(value, again.get(name)) for name, value in start.events.items()})


def _minus(value: float | None, other: float | None) -> float | None:
    return None if value is None else value - (other or 0.0)


def added(start: Measurement, part: Measurement) -> Measurement:
    """Return the sum of two parts of one process with one thread."""
    events = {
        name: None if value is None else value + (part.events.get(name) or 0.0) for name, value in start.events.items()
    }
    events["qemu.threads"] = 1.0
    events["qemu.busiest_thread"] = events["qemu.instructions_of_threads"]
    note = "composed: loading the libraries was counted once, and added to what each input executes after it"
    return replace(part, events=events, notes=(*part.notes, note))


@dataclass(frozen=True)
class Counting:
    """Inputs become lines of the log, one for each count set."""

    emulator: Emulator
    executions: Executions

    def count(self, work: spec.Work) -> list[dict[str, Any]]:
        """Return a line for each set: the events, or the error that kept the process from ending."""
        about = {"tool": "qemu", "workload": work.workload, "input": work.input}
        begin = time.monotonic()
        try:
            facts = [
                {"events": dict(own.events), "notes": list(own.notes), "version": self.emulator.version}
                for own in self.executions.count(work, self.emulator)
            ]
        except (CollectError, OSError, RuntimeError, ValueError) as error:
            facts = [{"error": f"{type(error).__name__}: {error}"} for _ in self.emulator.sets]
        took = {"counted_in_s": round(time.monotonic() - begin, 1)}
        named = zip(self.emulator.sets, facts, strict=True)
        return [{"counts": own.name, **about, **of_set, **took} for own, of_set in named]


def left(campaign: spec.Spec, folder: Path) -> list[spec.Work]:
    """Return what is still to be counted, in the campaign's order, so that programs become complete one by one."""
    done = {known.work for known in log.counted(folder)}
    return [work for work in campaign.works if work not in done]


def counted(counting: Counting, works: Sequence[spec.Work], jobs: int, until: float) -> Iterator[list[dict[str, Any]]]:
    """Yield the lines of each input, until the clock shows `until`."""

    def count(work: spec.Work) -> list[dict[str, Any]]:
        return counting.count(work) if time.monotonic() < until else []

    with ThreadPoolExecutor(jobs) as pool:
        yield from filter(None, pool.map(count, works))


@contextlib.contextmanager
def executions(mode: spec.Mode, given: argparse.Namespace) -> Iterator[Executions]:
    """Yield what executes the inputs of a platform: applications, or array programs, by the folder of its program."""
    if mode.program is not None and mode.program.resolve().parent == apps.HERE:
        place = run.Place(given.inputs.resolve(), given.bundle.resolve() if given.bundle else None)
        digests = json.loads((apps.HERE / "digests.json").read_text(encoding="utf-8"))
        yield Applications(place, apps.read(), digests)
        return
    with (
        tempfile.TemporaryDirectory(prefix="count-") as name,
        contextlib.closing(ArrayPrograms(Path(name))) as programs,
    ):
        yield programs


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("campaign", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--inputs", type=Path, default=Path("inputs"), help="the input files of applications")
    parser.add_argument("--bundle", type=Path, help="the programs of applications; default: those of this machine")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no input after this time")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    campaign = spec.read(given.campaign)
    emulator = Emulator(list(campaign.counts.values()))
    if why_not := emulator.backend.why_not():
        parser.error(why_not)
    given.output.mkdir(parents=True, exist_ok=True)
    works, until = left(campaign, given.output), time.monotonic() + 60 * given.minutes
    with executions(next(iter(campaign.modes.values())), given) as by:
        for number, lines in enumerate(counted(Counting(emulator, by), works, given.jobs, until), start=1):
            for line in lines:
                log.add(given.output / log.COUNTS, line)
            shown = ("workload", "input", "counted_in_s", "error")
            about = {key: lines[0][key] for key in shown if key in lines[0]}
            print(f"{number}/{len(works)} {json.dumps(about)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
