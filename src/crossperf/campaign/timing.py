"""Times every input on one platform: many in one process, each line kept as it comes, noisy ones measured again."""

from __future__ import annotations

import json
import math
import os
import selectors
import socket
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from crossperf import platforms
from crossperf.campaign.log import TIMES, add, in_words, timed
from crossperf.campaign.spec import Mode, Spec, Work
from crossperf.errors import CollectError

#: An input that is silent for longer has hung.
_SILENCE_S = 120.0
#: How often a noisy input is timed in all; the calmest attempt counts.
_ATTEMPTS = 3
#: How many inputs are timed between two calibrations.
_CALIBRATE_EVERY = 200
#: A calibration that differs by more than this from the one before is worth a word.
_DRIFT = 0.1
Say = Callable[[str], None]


def time_mode(spec: Spec, mode: Mode, folder: Path, say: Say = lambda _: None, until: float | None = None) -> None:
    """Time what is still to be timed on a platform, and add it to ``times.jsonl``.

    Parameters
    ----------
    until
        The monotonic clock at which to stop; what is left is taken up by the next call.
    """
    if not os.access(mode.program, os.X_OK):
        advice = "Build it first: make -C testbed cpu, or gpu."
        raise CollectError(f"{mode.program}: found no program to run for platform {mode.name}. {advice}")
    path = folder / TIMES
    add(path, {"platform": mode.name, "facts": platforms.facts_of_this_machine().to_json()})
    before_s = _calibrate(spec, mode, path, "before")
    for attempt in range(1, _ATTEMPTS + 1):
        left = _left(spec, mode, folder, attempt)
        if attempt > 1 and left:
            say(f"{mode.name}: {len(left)} inputs vary by more than {spec.spread:.0%}; timing them again")
        _time(spec, mode, left, path, attempt, say, until)
    drift = _calibrate(spec, mode, path, "after") / before_s - 1.0
    if abs(drift) > _DRIFT:
        say(f"{mode.name}: the calibration changed by {drift:+.0%} meanwhile: the machine was not the same throughout")


def _left(spec: Spec, mode: Mode, folder: Path, attempt: int) -> list[Work]:
    """Return the inputs that need this attempt: none so far, or all so far too noisy."""
    tried: Counter[Work] = Counter()
    calmest: dict[Work, float] = {}
    for known in timed(folder):
        if known.platform == mode.name:
            tried[known.work] += 1
            # A failed input is not worth another attempt: it fails again.
            calm = 0.0 if known.error else known.spread
            calmest[known.work] = min(calmest.get(known.work, calm), calm)
    return [work for work in spec.works if tried[work] < attempt and calmest.get(work, math.inf) > spec.spread]


def _time(
    spec: Spec, mode: Mode, left: Sequence[Work], path: Path, attempt: int, say: Say, until: float | None
) -> None:
    start, done = time.monotonic(), 0
    waiting = list(left)
    while waiting and (until is None or time.monotonic() < until):
        finished: list[Work] = []
        with closing(_batch(mode, waiting, spec.repeats)) as answers:
            for facts in answers:
                work = Work(str(facts.get("workload")), str(facts.get("input")))
                finished.append(work)
                add(path, {"platform": mode.name, "attempt": attempt, **_here(), **facts})
                done += 1
                remaining_s = (time.monotonic() - start) / done * (len(left) - done)
                say(f"{mode.name}: {done}/{len(left)} {work.line} ({in_words(remaining_s)} left)")
                if done % _CALIBRATE_EVERY == 0 or (until is not None and time.monotonic() >= until):
                    break
        waiting = waiting[len(finished) :]
        if finished and done % _CALIBRATE_EVERY == 0:
            _calibrate(spec, mode, path, "between")
        elif waiting and (until is None or time.monotonic() < until):
            # The program ended before its batch did: the input that it was at is to blame.
            blamed = waiting.pop(0)
            done += 1
            error = "the program ended or hung at this input"
            facts = {"workload": blamed.workload, "input": blamed.input, "error": error}
            add(path, {"platform": mode.name, "attempt": attempt, **_here(), **facts})
            say(f"{mode.name}: {blamed.line}: {error}")


def _here() -> dict[str, Any]:
    return {"host": socket.gethostname(), "started": datetime.now(UTC).isoformat(timespec="seconds")}


def _calibrate(spec: Spec, mode: Mode, path: Path, when: str) -> float:
    """Time the calibration, keep it, and return its median."""
    with closing(_batch(mode, [spec.calibration], spec.repeats)) as answers:
        answer = next(answers, {"error": "it printed nothing"})
    if "seconds" not in answer:
        problem = f"the calibration {spec.calibration.line!r} failed ({answer.get('error')})"
        raise CollectError(f"{mode.program}: {problem}. Fix the program first.")
    add(path, {"platform": mode.name, "calibration": when, "seconds": answer["seconds"], **_here()})
    return float(statistics.median(answer["seconds"]))


def _batch(mode: Mode, works: Sequence[Work], repeats: int) -> Generator[dict[str, Any], None, None]:
    """Yield the program's answer to each work, in order; fewer where it dies or hangs."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", prefix="crossperf-") as batch:
        batch.write("\n".join(work.line for work in works) + "\n")
        batch.flush()
        command = [str(mode.program), "--batch", batch.name, "--threads", str(mode.threads), "--repeats", str(repeats)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        try:
            for line in _lines(process):
                try:
                    facts = json.loads(line)
                except ValueError:
                    return
                yield facts
        finally:
            process.kill()
            process.wait()


def _lines(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """Yield lines as they come, until the process ends or is silent for too long."""
    if process.stdout is None:
        return
    descriptor = process.stdout.fileno()
    text = b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while selector.select(_SILENCE_S):
            data = os.read(descriptor, 65536)
            if not data:
                return
            *whole, text = (text + data).split(b"\n")
            yield from whole
