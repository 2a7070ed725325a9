"""Functions that workers of the tests call: each notes in a file that it began, then answers or does worse."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crossperf.errors import DatasetError
from crossperf.workers import Parcel, PieceQuestion, Study

TABLE = Parcel({"factor": 2})


def double(table: Parcel, question: Mapping[str, Any]) -> Parcel:
    """Return twice the number; before, note the process, and do what the question says."""
    log = Path(question["log"])
    with log.open("a") as file:
        file.write(f"{question['number']} {os.getpid()}\n")
    mark = log.with_name(f"died-{question['number']}")
    if question.get("dies") == "always" or (question.get("dies") == "once" and not mark.exists()):
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if question.get("fails"):
        raise DatasetError("runs.csv: found nothing, expected something.", path="runs.csv")
    time.sleep(question.get("sleep_s", 0.0))
    return Parcel({"number": table.facts["factor"] * question["number"]})


def libraries(_table: Parcel, _question: Mapping[str, Any]) -> Parcel:
    """Return how many threads the libraries of this process take, and what its environment says of memory."""
    import sklearn.ensemble  # noqa: F401, brings OpenMP
    import torch
    from threadpoolctl import threadpool_info

    pools = {pool["user_api"]: pool["num_threads"] for pool in threadpool_info()}
    trimmed = "MALLOC_TRIM_THRESHOLD_" in os.environ
    return Parcel({"pools": pools, "torch": torch.get_num_threads(), "trimmed": trimmed, "pid": os.getpid()})


DOUBLE = Study(double, ("versions.py",))
LIBRARIES = Study(libraries, ("versions.py",))


def questions(log: Path, count: int, **more: Mapping[str, Any]) -> list[PieceQuestion]:
    """Return questions about the numbers from 0 on; `more` are further facts of some, by ``n`` and their number."""
    return [
        PieceQuestion(TABLE, {"number": n, "log": str(log), **more.get(f"n{n}", {})}, f"number {n}")
        for n in range(count)
    ]


def begun(log: Path) -> list[int]:
    """Return the numbers that were begun, in order."""
    return [int(line.split()[0]) for line in log.read_text().splitlines()] if log.exists() else []


def pids(log: Path) -> list[int]:
    """Return the processes that began them."""
    return [int(line.split()[1]) for line in log.read_text().splitlines()] if log.exists() else []
