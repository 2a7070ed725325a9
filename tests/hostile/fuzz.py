"""Tries unsound files on every reader for as long as it is given: ``python -m tests.hostile.fuzz --seconds 3600``.

Prints how many files each reader was given, how many of them it took, and the slowest; a file that ends in anything
but a value or one of our sentences is kept in the folder ``fuzz-failures``, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crossperf.errors import CrossperfError
from tests.hostile.mutations import mutated
from tests.hostile.targets import TARGETS, Target

#: Seconds after which a reader counts as hung.
_HUNG = 30
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
    raise TimeoutError(f"no answer within {_HUNG} s")


def _run(target: Target, seconds: float, seed: int) -> int:
    """Try one reader for some seconds, and return how many files it failed on."""
    tried = taken = failed = 0
    slowest, rng = 0.0, random.Random(seed)  # noqa: S311
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as place:
        while not tried or time.monotonic() < end:
            state = rng.getstate()
            started = time.monotonic()
            signal.alarm(_HUNG)
            try:
                taken += attempt(target, rng, Path(place))
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                failed += 1
                traceback.print_exc()
                rng.setstate(state)
                _KEPT.mkdir(exist_ok=True)
                (_KEPT / f"{target.name}-{seed}-{tried}").write_bytes(mutated(target.sound(), rng))
            finally:
                signal.alarm(0)
            tried += 1
            slowest = max(slowest, time.monotonic() - started)
    print(
        f"{target.name:14} {tried:9,} files, {taken:8,} taken, {failed:4,} failed, slowest {slowest:.2f} s", flush=True
    )
    return failed


def main(arguments: Sequence[str] | None = None) -> int:
    """Try every reader; the seconds are for all of them together."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}")
    before = signal.signal(signal.SIGALRM, _hung)
    try:
        return int(sum(_run(target, options.seconds / len(TARGETS), options.seed) for target in TARGETS) > 0)
    finally:
        signal.signal(signal.SIGALRM, before)


if __name__ == "__main__":
    sys.exit(main())
