"""Familiarity on real programs: 24 that are not in the testbed, what a model makes of them, and how far off it is.

    python benchmarks/familiarity.py profile FOLDER [--seconds N] [--only a,b]
    python benchmarks/familiarity.py time FOLDER [--seconds N] [--rounds N]
    python benchmarks/familiarity.py ask FOLDER [--model MODEL] [--write]

The programs are those of strangers.toml; one that is not installed is named with its Debian package, and left out.
`profile` runs each under `crossperf profile --backend qemu` with one thread. `time` runs each as epyc-1t and epyc-2t
(one and two processors, a serial program on one), in rounds of random order, each run a process of its own; it wants a
machine that does nothing else, and a run beside which others worked is made again by the next start. Both begin nothing
after --seconds, and a second start goes on in the same folder. `ask` compares a model's answer for epyc-2t relative to
epyc-1t with what was timed, and with --write makes benchmarks/familiarity.md of it.
"""

from __future__ import annotations

import argparse
import datetime
import math
import platform
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from strangers import HERE, OTHER, PLATFORMS, SOURCE, Study, Timed, factor, installed, prepare, profile, rounds

LEVEL = 0.8
HEADS = ("program", "threads", "s", "looks", "predicted", "80 % range", "timed", "halves", "inside")


def main() -> None:
    given = parse()
    study = Study(given.folder.resolve())
    if given.step == "prepare":
        prepare(study, installed(given.only))
    elif given.step == "ask":
        page = "\n".join(page_of(study, given.model))
        print(page)
        if given.write:
            (HERE / "familiarity.md").write_text(page, encoding="utf-8")
    else:
        measure(study, given)


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


def measure(study: Study, given: argparse.Namespace) -> None:
    """Profile or time what is left to do, until the time is over."""
    programs = installed(given.only, say=lambda text: print(text, file=sys.stderr))
    # Making inputs takes memory, which this process must not have when others are measured below it.
    names = ["--only", ",".join(programs)]
    subprocess.run([sys.executable, __file__, "prepare", str(study.folder), *names], check=True)
    until = time.monotonic() + given.seconds
    steps = {"profile": lambda: profile(study, programs), "time": lambda: rounds(study, programs, given.rounds)}
    for line in steps[given.step]():
        print(line, flush=True)
        if time.monotonic() > until:
            return


@dataclass(frozen=True)
class Row:
    """One program: the model's answer for it, and what was timed."""

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
        own = self.timed
        return [
            self.name,
            "1, 2" if self.parallel else "1",
            f"{own.seconds(SOURCE):.2f}",
            self.looks + (f": {', '.join(self.reasons)}" if self.reasons else ""),
            f"{self.predicted:.2f}",
            f"{self.low:.2f} to {self.high:.2f}",
            f"{own.ratio():.2f}",
            f"{own.halves:.3f}",
            "yes" if self.inside else "no",
        ]


def page_of(study: Study, folder: Path | None) -> Iterator[str]:
    """Yield the lines of the page."""
    from crossperf.model import store

    model = store.load(folder)
    left_out: list[str] = []
    rows = list(answered(study, model, left_out))
    counts = sorted(len(row.timed) for row in rows)
    table = f" (fingerprint `{model.training.fingerprint}`)" if model.training else ""
    yield from (
        "# Familiarity on real programs",
        "",
        f"`python {shlex.join(sys.argv)}`, {datetime.date.today()}; Python {platform.python_version()}.",
        "",
        f"{len(rows)} programs that are not in the testbed (`benchmarks/strangers.toml`), profiled by `crossperf "
        f"profile --backend qemu` with one thread, and timed with one thread ({SOURCE}) and with two ({OTHER}; a "
        f"serial program stays on one processor): {counts[0]} to {counts[-1]} rounds of random order, each run a "
        f"process of its own. The model, trained on {len(model.workloads):,} workloads{table}, is asked for time on "
        f'{OTHER} over time on {SOURCE}, with `can=("cpu",)`.',
        "",
        "*threads*: how many the program can be asked to use; *s*: seconds with one; *looks*: its familiarity, with "
        f"the oddest counters, and whether they lie above or below all training runs on {SOURCE}; *{LEVEL * 100:.0f} % "
        "range*: should hold the truth for four programs of five; *timed*: the median of rounds with two threads over "
        "that with one; *halves*: the factor between this ratio in every other round and in the rest.",
        "",
        "A run with one thread seldom shows that a program could use two, unless it has parallel regions of OpenMP: "
        "what a model knows of that, it knows from programs like it.",
        "",
        *(f"{text}\n" for text in left_out),
        *summary(rows, usual_ratio(model)),
        "",
        f"| {' | '.join(HEADS)} |",
        "|---" * len(HEADS) + "|",
        *(f"| {' | '.join(row.cells)} |" for row in rows),
        "",
    )


def answered(study: Study, model: object, left_out: list[str]) -> Iterator[Row]:
    """Yield a row for each program with a profile and times, and add why others have none."""
    from crossperf.runs import read_runs

    unmeasured = []
    for name, app in installed(say=left_out.append).items():
        timed = Timed.of([line for line in study.timed if line["workload"] == name])
        if not study.profile(name).exists() or len(timed) < 2:
            unmeasured.append(name)
            continue
        # The time is that of the rounds: the machine may have been busy when it was profiled.
        runs = [replace(run, runtime_s=timed.seconds(SOURCE)) for run in read_runs(study.profile(name)).runs()]
        (own,) = model.predict(runs, level=LEVEL, can=("cpu",)).predictions
        figures = (own.relative_time[OTHER], own.low.get(OTHER, math.nan), own.high.get(OTHER, math.nan))
        values = {**runs[0].counters, "runtime_s": runs[0].runtime_s}
        because = own.familiarity.because if own.familiarity else ()
        reasons = tuple(f"`{counter}`{beyond(model, counter, values.get(counter))}" for counter in because)
        yield Row(name, app.parallel, timed, own.familiarity.word if own.familiarity else "-", reasons, *figures)
    if unmeasured:
        left_out.append(f"Left out, since not profiled, or timed in fewer than two rounds: {', '.join(unmeasured)}.")


def beyond(model: object, counter: str, value: float | None) -> str:
    """Return whether a value lies above or below all of the training runs on the same platform, in a word."""
    here_n = model.cells.source_n == model.platforms.index(SOURCE)
    known_n = model.features.column(counter)[here_n]
    if value is None or np.isnan(known_n).all():
        return " (not counted)"
    return " above" if value > np.nanmax(known_n) else " below" if value < np.nanmin(known_n) else ""


def usual_ratio(model: object) -> float:
    """Return the median ratio of the training table: the answer of somebody who knows nothing of the program."""
    source, other = (model.platforms.index(where) for where in PLATFORMS)
    return float(np.exp(np.nanmedian(model.cells.log_time_wp[:, other] - model.cells.log_time_wp[:, source])))


def summary(rows: Sequence[Row], constant: float) -> Iterator[str]:
    """Yield how many are familiar, and how far off answers are."""
    words = Counter(row.looks for row in rows)
    yield f"**{', '.join(f'{words[word]} {word}' for word in ('familiar', 'unusual', 'unknown'))}**, of {len(rows)}."
    yield ""
    yield f"| typical factor over | programs | model | always {constant:.2f} | noise (halves) | inside the range |"
    yield "|---" * 6 + "|"
    kinds = {
        "all": list(rows),
        "familiar": [row for row in rows if row.looks == "familiar"],
        "asked to use two threads": [row for row in rows if row.parallel],
        "serial": [row for row in rows if not row.parallel],
    }
    for kind, own in kinds.items():
        truth = [row.timed.ratio() for row in own]
        figures = [
            factor([row.predicted for row in own], truth),
            factor([constant] * len(own), truth),
            factor([row.timed.halves for row in own], [1.0] * len(own)),
        ]
        shown = ["-" if math.isnan(value) else f"{value:.3f}" for value in figures]
        yield f"| {kind} | {len(own)} | {' | '.join(shown)} | {sum(row.inside for row in own)} |"


if __name__ == "__main__":
    main()
