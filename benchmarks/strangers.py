"""Profiles and times the programs of strangers.toml, which are not in the testbed; a second start goes on."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "testbed" / "apps")]

import apps  # noqa: E402
import run as testbed_run  # noqa: E402

#: The platforms, with the threads that programs use there; the first is asked from.
PLATFORMS = {"epyc-1t": 1, "epyc-2t": 2}
SOURCE, OTHER = PLATFORMS
#: A program that takes longer under qemu is ended.
LIMIT_S = 3600
#: `crossperf` of this very tree; no variable of ours reaches the program.
COMMAND = "import sys; sys.path.insert(0, {path!r}); from crossperf.cli import main; main()"


class Place(testbed_run.Place):
    """Where the files of the strangers are."""

    def values(self, case: apps.Case, threads: int) -> dict[str, str]:
        """Return the values of all placeholders; the programs' texts are beside this file."""
        return super().values(case, threads) | {"programs": str(HERE / "strangers")}


@dataclass(frozen=True)
class Study:
    """A folder with inputs, profiles and times of the programs that are here."""

    folder: Path

    @property
    def place(self) -> Place:
        """Where inputs are made."""
        return Place(self.folder / "inputs", None)

    @property
    def times(self) -> Path:
        """The log of timed runs."""
        return self.folder / "times.jsonl"

    def profile(self, name: str) -> Path:
        """Return the file with the runs of a program."""
        return self.folder / "profiles" / f"{name}.jsonl"

    @cached_property
    def timed(self) -> list[dict[str, object]]:
        """What was timed so far."""
        testbed_run.complete(self.times)
        return [json.loads(line) for line in self.times.read_text().splitlines()] if self.times.exists() else []


def installed(only: str | None = None, say: Callable[[str], None] = lambda _: None) -> dict[str, apps.App]:
    """Return the programs that are here, and say which are not."""
    known = apps.read(HERE / "strangers.toml")
    chosen = {name: known[name] for name in only.split(",")} if only else known
    lacking = {name: [path for path in needs(app) if shutil.which(path) is None] for name, app in chosen.items()}
    for name, paths in lacking.items():
        if paths:
            packages = " ".join(chosen[name].packages)
            say(f"{name} is left out: {', '.join(paths)} is not installed (Debian: apt-get install {packages})")
    return {name: app for name, app in chosen.items() if not lacking[name]}


def needs(app: apps.App) -> list[str]:
    return [*app.programs, *app.prepare[:1]]


def prepare(study: Study, programs: dict[str, apps.App]) -> None:
    """Make the inputs of programs."""
    for app in programs.values():
        testbed_run.prepare(app, app.cases[0], study.place)


def profile(study: Study, programs: dict[str, apps.App]) -> Iterator[str]:
    """Profile what has no profile yet; yield a line about each."""
    study.profile("").parent.mkdir(parents=True, exist_ok=True)
    for name, app in programs.items():
        if not study.profile(name).exists():
            begin = time.monotonic()
            problem = profiled(app, study)
            yield f"{name}: {problem or 'profiled'} ({time.monotonic() - begin:.0f} s)"


def profiled(app: apps.App, study: Study) -> str | None:
    """Profile a program as a user would, keep its runs and the talk about them, or return what went wrong."""
    with tempfile.TemporaryDirectory(prefix="stranger-") as name:
        folder = Path(name)
        process = testbed_run.process_of(app, app.cases[0], PLATFORMS[SOURCE], study.place, folder)
        runs, registry = folder / "crossperf-runs.jsonl", folder / "crossperf-platforms.json"
        options = ["--platform", SOURCE, "--platform-class", "cpu", "--threads", "1", "--backend", "qemu"]
        options += ["--app", app.name, "--input", "stranger", "-o", str(runs), "--file", str(registry)]
        command = [sys.executable, "-c", COMMAND.format(path=str(HERE.parent / "src")), "profile", *options, "--"]
        words = [*command, process.program, *process.words[1:]]
        outcome = testbed_run.timed(replace(process, program=sys.executable, words=words), LIMIT_S)
        talk = (folder / "stderr").read_text(errors="replace")
        study.profile(app.name).with_suffix(".txt").write_text(talk)
        if outcome.code != 0:
            return f"failed with {outcome.code}: {talk[-300:]}"
        counters = json.loads(runs.read_text().splitlines()[0])["counters"]
        if counters.get("instructions") is None:
            return f"was not counted: {talk[-300:]}"
        shutil.copy(runs, study.profile(app.name))
        return None


def rounds(study: Study, programs: dict[str, apps.App], count: int) -> Iterator[str]:
    """Time programs until there are `count` rounds; yield a line about each run."""
    done = {(line["round"], line["workload"], line["platform"]) for line in study.timed if counts(line)}
    with study.times.open("a", encoding="utf-8") as file:
        for key in (key for number in range(count) for key in order(number, programs) if key not in done):
            number, name, where = key
            app = programs[name]
            threads = PLATFORMS[where] if app.parallel else 1
            before = busy_s()
            line = testbed_run.measure(app, app.cases[0], threads, study.place, {})
            others_s = busy_s() - before - line["user_s"] - line["system_s"]
            line |= {"round": number, "platform": where, "others_s": round(others_s, 2)}
            file.write(json.dumps(line) + "\n")
            file.flush()
            how = "ok" if counts(line) else f"does not count: {line['status']}, others took {others_s:.2f} s"
            yield f"round {number} {name} {where}: {line['seconds']} s, {how}"


def busy_s() -> float:
    """Return the seconds that all processors have worked since they started; the kernel counts in hundredths."""
    user, nice, system, _, _, irq, softirq, steal, *_ = map(int, Path("/proc/stat").read_text().split()[1:11])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def counts(line: dict[str, object]) -> bool:
    """Tell whether a run succeeded, and no other program kept the processors busy meanwhile."""
    free_s = 0.05 + 0.1 * float(str(line["seconds"]))
    return line["status"] == "unchecked" and float(str(line.get("others_s", 0.0))) < free_s


def order(number: int, programs: dict[str, apps.App]) -> list[tuple[int, str, str]]:
    """Return what a round times, in its order."""
    keys = [(number, name, where) for name in programs for where in PLATFORMS]
    random.Random(number).shuffle(keys)  # noqa: S311
    return keys


@dataclass(frozen=True)
class Timed:
    """The times of one program by platform and round."""

    by_platform: dict[str, dict[int, float]]

    @classmethod
    def of(cls, lines: Sequence[dict[str, object]]) -> Timed:
        """Return the times of the runs that count, in rounds that have both platforms."""
        times: dict[str, dict[int, float]] = {where: {} for where in PLATFORMS}
        for line in lines:
            if counts(line):
                times[str(line["platform"])][int(str(line["round"]))] = float(str(line["seconds"]))
        both = set.intersection(*(set(own) for own in times.values()))
        return cls({where: {number: own[number] for number in sorted(both)} for where, own in times.items()})

    def __len__(self) -> int:
        return len(self.by_platform[SOURCE])

    def seconds(self, where: str, part: slice = slice(None)) -> float:
        """Return the median over rounds."""
        return median(list(self.by_platform[where].values())[part])

    def ratio(self, part: slice = slice(None)) -> float:
        """Return time with two threads over time with one, from some of the rounds."""
        return self.seconds(OTHER, part) / self.seconds(SOURCE, part)

    @property
    def halves(self) -> float:
        """The factor between the ratios of every other round and of the rest; 1 is agreement."""
        return factor([self.ratio(slice(0, None, 2))], [self.ratio(slice(1, None, 2))])


def factor(predicted: Sequence[float], truth: Sequence[float]) -> float:
    """Return the typical factor between two lists of ratios; 1 is agreement."""
    pairs = list(zip(predicted, truth, strict=True))
    return math.exp(sum(abs(math.log(left / right)) for left, right in pairs) / len(pairs)) if pairs else math.nan
