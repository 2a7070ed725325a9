#!/usr/bin/env python3
"""Counts whole processes of a campaign of applications or array programs under qemu, with one thread.

    python testbed/count.py testbed/apps/campaign.toml -o FOLDER --inputs DIR [--bundle DIR] [--minutes N] [--jobs N]
    python testbed/count.py testbed/arrays/campaign.toml -o FOLDER [--minutes N] [--jobs N]

One execution under qemu gives all count sets of the campaign, which differ in their caches alone; a second, native one
gives the page faults before main. Each input becomes a line for each set in FOLDER/counts.jsonl, which `crossperf
campaign` joins to its times. What is there is not counted again, so that a start goes on where another ended.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
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

#: A process that takes longer under qemu is ended.
LIMIT_S = 900.0


class Programs(Protocol):
    """What knows the processes of a campaign's inputs."""

    def process(self, work: spec.Work, folder: Path) -> run.Process:
        """Return the process of an input, which works in a folder."""

    def problem(self, work: spec.Work, outcome: run.Outcome, folder: Path) -> str | None:
        """Return what is wrong about a process that has ended, or None."""


@dataclass(frozen=True)
class Applications:
    """The applications of apps.toml, and what is expected of their output."""

    place: run.Place
    known: Mapping[str, apps.App]
    digests: Mapping[str, str]

    def process(self, work: spec.Work, folder: Path) -> run.Process:
        app = self.known[work.workload]
        return run.process_of(app, app.case(work.input), 1, self.place, folder)

    def problem(self, work: spec.Work, outcome: run.Outcome, folder: Path) -> str | None:
        app = self.known[work.workload]
        digest, words = run.result_of(app, app.case(work.input), 1, self.place, folder)
        status = run.judge(app, outcome, digest, self.digests.get(run.expected_key(app, work.input, 1)))
        return None if status in ("ok", "unchecked") else f"{status}, ended with {outcome.code}: {words}"


@dataclass(frozen=True)
class ArrayPrograms:
    """The array programs, by the command of a platform, under this Python."""

    mode: spec.Mode

    def process(self, work: spec.Work, folder: Path) -> run.Process:
        _, script, *words = self.mode.line(work)
        line = [sys.executable, str(Path(script).resolve()), *words]
        variables = {"LC_ALL": "C", "PATH": "/usr/bin:/bin", "HOME": str(folder)}
        return run.Process(sys.executable, line, variables, folder, "", run.all_cpus())

    def problem(self, work: spec.Work, outcome: run.Outcome, folder: Path) -> str | None:
        words = (folder / "stderr").read_text(errors="replace")[-300:]
        return None if outcome.code == 0 else f"{work.line} ended with {outcome.code}: {words}"


@dataclass(frozen=True)
class Counting:
    """The count sets of a campaign, all from one execution."""

    sets: Sequence[spec.CountSet]
    programs: Programs

    @cached_property
    def backend(self) -> qemu.QemuBackend:
        """The emulator with the caches of all sets."""
        first, *others = (counts.caches for counts in self.sets)
        return qemu.QemuBackend(first, others=others)

    @cached_property
    def version(self) -> str | None:
        """The version of qemu."""
        return version_of(f"qemu-{os.uname().machine}", r"\d+\.[\d.]+")

    def count(self, work: spec.Work) -> list[dict[str, Any]]:
        """Return a line for each set: the events, or the error that kept the process from ending."""
        about = {"tool": "qemu", "workload": work.workload, "input": work.input}
        begin = time.monotonic()
        try:
            facts = self._facts(work)
        except (CollectError, OSError, RuntimeError, ValueError) as error:
            facts = [{"error": f"{type(error).__name__}: {error}"} for _ in self.sets]
        took = {"counted_in_s": round(time.monotonic() - begin, 1)}
        return [{"counts": own.name, **about, **of_set, **took} for own, of_set in zip(self.sets, facts, strict=True)]

    def _facts(self, work: spec.Work) -> list[dict[str, Any]]:
        with tempfile.TemporaryDirectory(prefix="count-") as name:
            reports, startup = Path(name, "reports"), Path(name, "startup")
            reports.mkdir()
            startup.mkdir()
            variables = self.backend.environment(reports)
            self._execute(work, Path(name, "emulated"), variables, emulated=True)
            native = {"LD_PRELOAD": variables["LD_PRELOAD"], "CROSSPERF_STARTUP_OUT": str(startup)}
            self._execute(work, Path(name, "native"), native, emulated=False)
            faults = [int(line) for file in startup.iterdir() for line in file.read_text().split()]
            measured = [qemu.measured_in(reports, own.caches) for own in self.sets]
        more = {"qemu.startup_page_faults": float(sum(faults)) if faults else None}
        return [
            {"events": {**each.events, **more}, "notes": list(each.notes), "version": self.version}
            for each in measured
        ]

    def _execute(self, work: spec.Work, folder: Path, variables: dict[str, str], *, emulated: bool) -> None:
        folder.mkdir()
        process = self.programs.process(work, folder)
        process = replace(process, variables=process.variables | variables, cpus=run.all_cpus())
        command = (process.program, *process.words[1:])
        line = self.backend.line(command)
        if emulated and line != command:  # qemu in front of a statically linked program
            process = replace(process, program=line[0], words=list(line))
        outcome = run.timed(process, LIMIT_S)
        if problem := self.programs.problem(work, outcome, folder):
            raise CollectError(problem)


def left(campaign: spec.Spec, folder: Path) -> list[spec.Work]:
    """Return what is still to be counted, in the campaign's order, so that programs become complete one by one."""
    done = {known.work for known in log.counted(folder)}
    return [work for work in campaign.works if work not in done]


def counted(
    counting: Counting, works: Sequence[spec.Work], jobs: int, until: float
) -> Iterator[list[dict[str, Any]]]:
    """Yield the lines of each input, until the clock shows `until`."""

    def count(work: spec.Work) -> list[dict[str, Any]]:
        return counting.count(work) if time.monotonic() < until else []

    with ThreadPoolExecutor(jobs) as pool:
        yield from filter(None, pool.map(count, works))


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
    mode = next(iter(campaign.modes.values()))
    place = run.Place(given.inputs.resolve(), given.bundle.resolve() if given.bundle else None)
    digests = json.loads((apps.HERE / "digests.json").read_text(encoding="utf-8"))
    programs = ArrayPrograms(mode) if mode.command else Applications(place, apps.read(), digests)
    counting = Counting(list(campaign.counts.values()), programs)
    if why_not := counting.backend.why_not():
        parser.error(why_not)
    given.output.mkdir(parents=True, exist_ok=True)
    works = left(campaign, given.output)
    answers = counted(counting, works, given.jobs, time.monotonic() + 60 * given.minutes)
    for number, lines in enumerate(answers, start=1):
        for line in lines:
            log.add(given.output / log.COUNTS, line)
        about = {key: lines[0].get(key) for key in ("workload", "input", "counted_in_s", "error") if lines[0].get(key)}
        print(f"{number}/{len(works)} {json.dumps(about)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
