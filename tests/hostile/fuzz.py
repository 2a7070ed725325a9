"""Tries unsound files on every reader for as long as it is given: ``python -m tests.hostile.fuzz --seconds 3600``.

Prints how many files each reader was given, how many of them it took, and the slowest; a file that ends in anything
but a value or one of our sentences is kept in the folder ``fuzz-failures``, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from crossperf.errors import CrossperfError
from tests.hostile.mutations import mutated
from tests.hostile.targets import BY_NAME, Target

#: Seconds of a processor, and by the clock, after which a reader counts as hung; a busy machine may let it wait.
_HUNG, _HUNG_BY_THE_CLOCK = 30, 300
#: Bytes of memory that a reader may take, beyond what this process has taken when it begins.
_MEMORY = 4 << 30
_KEPT = Path("fuzz-failures")


def attempt(target: Target, rng: random.Random, folder: Path) -> bool:
    """Give a reader a file that was made unsound; tell whether it took it."""
    return read(target, mutated(target.sound(), rng), folder)


def read(target: Target, data: bytes, folder: Path) -> bool:
    """Give a reader a file of some bytes; tell whether it took it. A refusal is one line that can be printed."""
    path = folder / target.file
    path.write_bytes(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            target.read(path)
    except CrossperfError as error:
        assert "\n" not in str(error)
        assert len(str(error).encode()) <= 8_000
        return False
    return True


def _hung(*_: Any) -> None:
    raise TimeoutError(f"no answer within {_HUNG} s of a processor, or {_HUNG_BY_THE_CLOCK} s")


@contextlib.contextmanager
def _bounded() -> Iterator[None]:
    """Let a reader that takes too much memory meet a `MemoryError`, before the machine ends some process."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


class Tally(NamedTuple):
    """How many files were tried, taken, and failed on, and for how many of the last no answer came in time."""

    tried: int = 0
    taken: int = 0
    failed: int = 0
    hung: int = 0


def _run(target: Target, seconds: float, seed: int) -> Tally:
    """Try one reader for some seconds."""
    tried = taken = failed = hung = 0
    slowest, rng = 0.0, random.Random(seed)  # noqa: S311
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as limits:
        assert read(target, target.sound(), Path(place)), f"{target.name}: the sound file is refused"
        limits.enter_context(_bounded())
        end = time.monotonic() + seconds
        while not tried or time.monotonic() < end:
            state = rng.getstate()
            started = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, _HUNG)
            signal.alarm(_HUNG_BY_THE_CLOCK)
            try:
                taken += attempt(target, rng, Path(place))
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                failed += 1
                hung += isinstance(error, TimeoutError)
                traceback.print_exc()
                rng.setstate(state)
                _KEPT.mkdir(exist_ok=True)
                (_KEPT / f"{target.name}-{seed}-{tried}").write_bytes(mutated(target.sound(), rng))
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
                signal.alarm(0)
            tried += 1
            slowest = max(slowest, time.process_time() - started)
    print(
        f"{target.name:22} {tried:9,} files, {taken:8,} taken, {failed:4,} failed, slowest {slowest:.2f} s", flush=True
    )
    return Tally(tried, taken, failed, hung)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try every reader; the seconds are for all of them together."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", default="", metavar="NAMES", help="these readers alone: swf,philly")
    options = parser.parse_args(arguments)
    only = options.only.split(",") if options.only else list(BY_NAME)
    targets = [BY_NAME[name] for name in only]
    print(f"seed {options.seed}")
    before = {number: signal.signal(number, _hung) for number in (signal.SIGALRM, signal.SIGPROF)}
    try:
        tallies = [_run(target, options.seconds / len(targets), options.seed) for target in targets]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    total = Tally(*map(sum, zip(*tallies, strict=True)))
    own, children = time.process_time(), resource.getrusage(resource.RUSAGE_CHILDREN)
    minutes = (own + children.ru_utime + children.ru_stime) / 60
    counts = f"{total.tried:,} files, {total.taken:,} taken, {total.failed:,} failed, {total.hung:,} of them hung"
    print(f"{len(targets)} readers: {counts}, {minutes:.0f} min of CPU time")
    return int(total.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
