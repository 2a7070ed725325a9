#!/usr/bin/env python3
"""Checks composed programs against the same programs run whole, one right after the other on the same processors.

    python testbed/check.py PLATFORM... -o check.jsonl [--minutes N]

Of each program of inputs/whole.toml: its start, its parts, the whole, and the start and parts again, all pinned to a
draw of as many processors as the platform has threads. So the two differ by how they were measured alone, neither by
the processor nor by the hour. Every line has the seconds of the whole program and of the composed one. A second start
goes on where the first ended.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from crossperf import campaign
from crossperf.campaign import log
from crossperf.campaign.composing import Composer
from crossperf.plain import from_json

HERE = Path(__file__).resolve().parent
NOTHING = ("nothing", "passes=1")
REPEATS = 5


class Check:
    """One program on one platform."""

    def __init__(self, mode: campaign.Mode, work: campaign.Work, random: Random) -> None:
        name, _, passes = work.input.rpartition(" passes=")
        self._program, self._threads = str(mode.program), mode.threads
        self._parts, self._passes = campaign.Work(work.workload, name), int(passes)
        everywhere = sorted(os.sched_getaffinity(0))
        self._processors = set(random.sample(everywhere, min(mode.threads, len(everywhere))))

    def facts(self) -> dict[str, Any]:
        """Return the seconds of the whole program, and of the composed one before and after it."""
        before = self._composed()
        taken, whole = self._run(*self._parts.line.split(), f"passes={self._passes}")
        after = self._composed()
        checksums = {whole["checksum"], before["checksum"], after["checksum"]}
        composed = [before["seconds"], after["seconds"]]
        return {"passes": self._passes, "whole": taken, "composed": composed, "checksums": len(checksums)}

    def _composed(self) -> dict[str, Any]:
        start_s, _ = self._run(*NOTHING)
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as batch:
            batch.write(self._parts.line + "\n")
            batch.flush()
            _, line = self._run("--batch", batch.name, "--repeats", str(REPEATS))
        visit = from_json(log.TimedInput, {**line, "platform": "here", "round": "now"})
        composer = Composer({self._parts: self._passes}, [log.TimedStart("here", "now", (start_s,))])
        (whole,) = composer.visits([visit])
        return {"seconds": statistics.median_low(whole.seconds), "checksum": line["checksum"]}

    def _run(self, *words: str) -> tuple[float, dict[str, Any]]:
        command = [self._program, *words, "--threads", str(self._threads)]
        start = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=self._pin) as process:  # noqa: PLW1509
            output = process.stdout.read() if process.stdout else b""
            process.wait()
            taken = time.perf_counter() - start
        return taken, json.loads(output)

    def _pin(self) -> None:
        os.sched_setaffinity(0, self._processors)


def left(
    modes: Sequence[campaign.Mode], works: Sequence[campaign.Work], done: Path, visits: int
) -> Iterator[tuple[campaign.Mode, campaign.Work]]:
    """Yield what was not checked yet: the platforms of each program in turn."""
    known = Counter((line["platform"], line["workload"], line["input"]) for line in log.lines(done))
    for number in range(visits):
        for work in works:
            yield from ((mode, work) for mode in modes if known[mode.name, work.workload, work.input] <= number)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("platforms", nargs="+")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--visits", type=int, default=1, help="checks of each program in all")
    parser.add_argument("--minutes", type=float, default=1e6)
    given = parser.parse_args()
    spec = campaign.read(HERE / "campaign.toml")
    modes = [spec.mode(name) for name in given.platforms]
    whole = tomllib.loads((HERE / "inputs" / "whole.toml").read_text(encoding="utf-8"))
    works = [campaign.Work(name, text) for name, facts in whole.items() for text in facts["inputs"]]
    random = Random()  # noqa: S311
    Random(0).shuffle(works)  # noqa: S311
    until = time.monotonic() + 60 * given.minutes
    for mode, work in left(modes, works, given.output, given.visits):
        if time.monotonic() > until:
            return 0
        about = {"platform": mode.name, "workload": work.workload, "input": work.input}
        log.add(given.output, about | Check(mode, work, random).facts())
    return 0


if __name__ == "__main__":
    sys.exit(main())
