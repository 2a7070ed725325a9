"""A driver that a test starts, kills and starts again: ``python -m tests.workers.driver KEPT LOG COUNT SLEEP_S``."""

from __future__ import annotations

import sys
from pathlib import Path

from crossperf.workers import Kept, processes
from tests.workers.work import DOUBLE, questions


def main(folder: str, log: str, count: str, sleep_s: str) -> None:
    slow = {f"n{n}": {"sleep_s": float(sleep_s)} for n in range(int(count))}
    with Kept(folder) as kept, processes(2) as workers:
        answers = dict(DOUBLE.answers(questions(Path(log), int(count), **slow), workers, kept))
    print(sorted(answer.facts["number"] for answer in answers.values()))


if __name__ == "__main__":
    main(*sys.argv[1:])
