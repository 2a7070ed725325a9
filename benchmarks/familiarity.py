"""Familiarity on real programs: 24 that are not in the testbed, what a model makes of them, and how far off it is.

    python benchmarks/familiarity.py profile FOLDER [--seconds N] [--only a,b]
    python benchmarks/familiarity.py time FOLDER [--seconds N] [--rounds N]
    python benchmarks/familiarity.py ask FOLDER [--model MODEL] [--write]

The programs are those of strangers.toml; one that is not installed is named with its Debian package, and left out.
`profile` runs each under `crossperf profile --backend qemu` with one thread. `time` runs each as epyc-1t and epyc-2t (one
and two processors, a serial program on one), in rounds of random order, each run a process of its own. Both begin
nothing after --seconds, and a second start goes on in the same folder. `ask` compares a model's answer for epyc-2t
relative to epyc-1t with what was timed, and with --write makes benchmarks/familiarity.md of it. `time` wants a machine
that does nothing else.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import platform
import random
import shlex
import shutil
import subprocess
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
LIMIT_S = 570
LEVEL = 0.8
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


def main() -> int:
    given = parse()
    study = Study(given.folder.resolve())
    if given.step == "prepare":
        return prepare(study, installed(given.only))
    if given.step == "ask":
        page = "\n".join(told(study, given.model))
        print(page)
        if given.write:
            (HERE / "familiarity.md").write_text(page, encoding="utf-8")
        return 0
    programs = installed(given.only, say=lambda text: print(text, file=sys.stderr))
    # Making inputs takes memory, which this process must not have when others are measured below it.
    names = ["--only", ",".join(programs)]
    subprocess.run([sys.executable, __file__, "prepare", str(study.folder), *names], check=True)
    until = time.monotonic() + given.seconds
    step = profile if given.step == "profile" else partial_rounds(given.rounds)
    for line in step(study, programs, until):
        print(line, flush=True)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("prepare", "profile", "time", "ask"))
    parser.add_argument("folder", type=Path, help="where inputs, profiles and times are kept")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin nothing after this time")
    parser.add_argument("--rounds", type=int, default=8, help="rounds in all, those of earlier starts included")
    parser.add_argument("--only", help="these programs: a,b")
    parser.add_argument("--model", type=Path, help="a model folder; the default is the model that ships")
    parser.add_argument("--write", action="store_true", help="write familiarity.md beside this file")
    return parser.parse_args()


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


def prepare(study: Study, programs: dict[str, apps.App]) -> int:
    """Make the inputs of programs."""
    for app in programs.values():
        testbed_run.prepare(app, app.cases[0], study.place)
    return 0


def profile(study: Study, programs: dict[str, apps.App], until: float) -> Iterator[str]:
    """Profile what has no profile yet; yield a line about each."""
    study.profile("").parent.mkdir(parents=True, exist_ok=True)
    for name, app in programs.items():
        if study.profile(name).exists():
            continue
        if time.monotonic() > until:
            return
        begin = time.monotonic()
        problem = profiled(app, study)
        yield f"{name}: {problem or 'profiled'} ({time.monotonic() - begin:.0f} s)"


def profiled(app: apps.App, study: Study) -> str | None:
    """Profile a program as a user would, keep its runs and what was said about them, or return what went wrong."""
    with tempfile.TemporaryDirectory(prefix="stranger-") as name:
        folder = Path(name)
        process = testbed_run.process_of(app, app.cases[0], PLATFORMS[SOURCE], study.place, folder)
        runs, registry = folder / "crossperf-runs.jsonl", folder / "crossperf-platforms.json"
        options = ["--platform", SOURCE, "--platform-class", "cpu", "--threads", "1", "--backend", "qemu"]
        options += ["--app", app.name, "--input", "stranger", "-o", str(runs), "--file", str(registry)]
        command = [sys.executable, "-c", COMMAND.format(path=str(HERE.parent / "src")), "profile", *options, "--"]
        words = [*command, process.program, *process.words[1:]]
        outcome = testbed_run.timed(replace(process, program=sys.executable, words=words), LIMIT_S)
        said = (folder / "stderr").read_text(errors="replace")
        study.profile(app.name).with_suffix(".txt").write_text(said)
        if outcome.code != 0:
            return f"failed with {outcome.code}: {said[-300:]}"
        counters = json.loads(runs.read_text().splitlines()[0])["counters"]
        if counters.get("instructions") is None:
            return f"was not counted: {said[-300:]}"
        shutil.copy(runs, study.profile(app.name))
        return None


def partial_rounds(count: int) -> Callable[[Study, dict[str, apps.App], float], Iterator[str]]:
    """Return a step that times programs until there are so many rounds."""

    def step(study: Study, programs: dict[str, apps.App], until: float) -> Iterator[str]:
        done = {(line["round"], line["workload"], line["platform"]) for line in study.timed}
        with study.times.open("a", encoding="utf-8") as file:
            for key in (key for number in range(count) for key in order(number, programs) if key not in done):
                if time.monotonic() > until:
                    return
                number, name, where = key
                app = programs[name]
                threads = PLATFORMS[where] if app.parallel else 1
                line = testbed_run.measure(app, app.cases[0], threads, study.place, {})
                file.write(json.dumps(line | {"round": number, "platform": where}) + "\n")
                file.flush()
                yield f"round {number} {name} {where}: {line['seconds']} s, {line['status']}"

    return step


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
        """Return the times of the runs that succeeded, in rounds that have both platforms."""
        times: dict[str, dict[int, float]] = {where: {} for where in PLATFORMS}
        for line in lines:
            if line["status"] == "unchecked":
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
    return math.exp(sum(abs(math.log(one / other)) for one, other in pairs) / len(pairs)) if pairs else math.nan


@dataclass(frozen=True)
class Row:
    """One program: what the model says of it, and what was timed."""

    name: str
    parallel: bool
    timed: Timed
    looks: str
    reasons: tuple[str, ...]
    predicted: float
    low: float
    high: float

    @property
    def inside(self) -> bool:
        """Whether the range holds what was timed."""
        return self.low <= self.timed.ratio() <= self.high

    @property
    def cells(self) -> list[str]:
        """Its line of the table."""
        looks = self.looks + (f" ({', '.join(f'`{name}`' for name in self.reasons)})" if self.reasons else "")
        spread = f"{self.low:.2f} to {self.high:.2f}"
        own = self.timed
        return [
            self.name,
            "1, 2" if self.parallel else "1",
            f"{own.seconds(SOURCE):.2f}",
            looks,
            f"{self.predicted:.2f}",
            spread,
            f"{own.ratio():.2f}",
            f"{own.halves:.3f}",
            "yes" if self.inside else "no",
        ]


HEADS = ("program", "threads", "s", "looks", "predicted", "80 % range", "timed", "halves", "inside")


def told(study: Study, folder: Path | None) -> Iterator[str]:
    """Yield the lines of the page."""
    from crossperf.model import store

    model = store.load(folder)
    rows, left_out = answered(study, model)
    constant = usual_ratio(model)
    rounds = sorted(len(row.timed) for row in rows)
    yield "# Familiarity on real programs"
    yield ""
    yield f"`python {shlex.join(sys.argv)}`, {datetime.date.today()}; Python {platform.python_version()}."
    yield ""
    yield (
        f"{len(rows)} programs that are not in the testbed ([strangers.toml](strangers.toml)), profiled by `crossperf "
        f"profile --backend qemu` with one thread, and timed with one thread ({SOURCE}) and with two ({OTHER}; a serial "
        f"program stays on one processor), {rounds[0]} to {rounds[-1]} rounds of random order, each run a process of its "
        f"own. The model was trained on {len(model.workloads):,} workloads"
        + (f" (fingerprint `{model.training.fingerprint}`)" if model.training else "")
        + f" and is asked for time on {OTHER} over time on {SOURCE}, with `can=(\"cpu\",)`."
    )
    yield ""
    yield (
        "*threads*: what the program can use; *s*: seconds with one thread; *looks*: the model's familiarity, with the "
        f"counters that are strangest; *80 % range*: should hold the truth so often; *timed*: median of rounds; *halves*: "
        "factor between the ratios of every other round and of the rest."
    )
    yield ""
    yield from (f"{text}\n" for text in left_out)
    yield from summary(rows, constant)
    yield ""
    yield f"| {' | '.join(HEADS)} |"
    yield "|---" * len(HEADS) + "|"
    yield from (f"| {' | '.join(row.cells)} |" for row in rows)
    yield ""


def answered(study: Study, model: object) -> tuple[list[Row], list[str]]:
    """Return a row for each program with a profile and times, and why others have none."""
    from crossperf.runs import read_runs

    rows, left_out = [], []
    for name, app in installed(say=left_out.append).items():
        timed = Timed.of([line for line in study.timed if line["workload"] == name])
        if not study.profile(name).exists() or len(timed) < 2:
            left_out.append(f"{name} is left out: it was not profiled, or timed in fewer than two rounds.")
            continue
        # The time is that of the rounds: the machine may have been busy when it was profiled.
        runs = [replace(one, runtime_s=timed.seconds(SOURCE)) for one in read_runs(study.profile(name)).runs()]
        (own,) = model.predict(runs, level=LEVEL, can=("cpu",)).predictions
        looks = (own.familiarity.word, own.familiarity.reasons) if own.familiarity else ("-", ())
        figures = (own.relative_time[OTHER], own.low.get(OTHER, math.nan), own.high.get(OTHER, math.nan))
        rows.append(Row(name, app.parallel, timed, *looks, *figures))
    return rows, left_out


def usual_ratio(model: object) -> float:
    """Return the median ratio of the training table: the answer of somebody who knows nothing of the program."""
    import numpy as np

    source, other = (model.platforms.index(where) for where in PLATFORMS)
    return float(np.exp(np.nanmedian(model.cells.log_time_wp[:, other] - model.cells.log_time_wp[:, source])))


def summary(rows: Sequence[Row], constant: float) -> Iterator[str]:
    """Yield how many are familiar, and how far off answers are."""
    words = dict.fromkeys((row.looks for row in rows), 0)
    for row in rows:
        words[row.looks] += 1
    yield f"**{', '.join(f'{count} {word}' for word, count in sorted(words.items()))}**, of {len(rows)}."
    yield ""
    yield f"| typical factor over | programs | model | always {constant:.2f} | noise (halves) | inside the range |"
    yield "|---" * 6 + "|"
    kinds: dict[str, list[Row]] = {
        "all": list(rows),
        "familiar": [row for row in rows if row.looks == "familiar"],
        "two threads": [row for row in rows if row.parallel],
        "serial": [row for row in rows if not row.parallel],
    }
    for kind, own in kinds.items():
        truth = [row.timed.ratio() for row in own]
        figures = [
            factor([row.predicted for row in own], truth),
            factor([constant] * len(own), truth),
            factor([row.timed.halves for row in own], [1.0] * len(own)),
        ]
        shown = [f"{value:.3f}" if value == value else "-" for value in figures]  # noqa: PLR0124
        yield f"| {kind} | {len(own)} | {' | '.join(shown)} | {sum(row.inside for row in own)} |"


if __name__ == "__main__":
    sys.exit(main())
