#!/usr/bin/env python3
"""Times array programs for a campaign: a batch of inputs, each a fork of one process that has loaded numpy and torch.

    testbed/arrays/batch.py --batch FILE --threads N [--repeats N]
    testbed/arrays/batch_cuda.py --batch FILE [--repeats N]

Loading the libraries takes seconds and is the same for all inputs, so each batch does it once. The time of an input is
that of its start, from that of this process to the end of its imports, and of its fork, to the end: as long as a
process of its own takes. So are its page faults and bytes read and written.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import resource
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import harness
import numpy  # noqa: F401
import torch  # noqa: F401


@dataclass(frozen=True)
class Usage:
    """What a process took: seconds, and what the system counted."""

    seconds: float
    page_faults: float
    bytes_read: float
    bytes_written: float

    @classmethod
    def of_this_process(cls, seconds: float) -> Usage:
        """Return what this process took so far."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
        counts = {name: int(value) for name, value in (line.split(": ") for line in lines)}
        return cls(seconds, used.ru_minflt + used.ru_majflt, counts["rchar"], counts["wchar"])


def in_a_fork(line: str, device: str, threads: int) -> dict[str, Any]:
    """Return what a program prints of an input, with what its fork took."""
    ends = os.pipe()
    begin = time.perf_counter()
    child = os.fork()
    if not child:
        os.close(ends[0])
        execute(line, device, threads, ends[1])
    os.close(ends[1])
    with os.fdopen(ends[0], encoding="utf-8") as answer:
        facts = answer.read()
    _, status, _ = os.wait4(child, 0)
    seconds = time.perf_counter() - begin
    if os.waitstatus_to_exitcode(status) != 0 or not facts:
        return {"error": f"exit status {os.waitstatus_to_exitcode(status)}"}
    return {**json.loads(facts), "seconds": seconds}


def execute(line: str, device: str, threads: int, answer: int) -> None:
    """Run a program from its imports to its end, and never return."""
    name, *words = line.split()
    sys.argv = [f"{name}.py", "--device", device, "--threads", str(threads), *words]
    program = importlib.import_module(name)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        harness.run(program.set_up, program.work)
    facts = json.loads(printed.getvalue()) | asdict(Usage.of_this_process(0.0))
    os.write(answer, json.dumps(facts).encode())
    sys.exit(0)


def main(device: str) -> int:
    """Answer every line of a batch."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=1)
    given = parser.parse_args()
    start = Usage.of_this_process(harness.seconds_since_start())
    for line in given.batch.read_text(encoding="utf-8").splitlines():
        name, _, text = line.partition(" ")
        forks = [in_a_fork(line, device, given.threads) for _ in range(given.repeats)]
        about = {"workload": name, "input": text, "threads": given.threads}
        if failed := [fork for fork in forks if "error" in fork]:
            print(json.dumps(about | failed[0]), flush=True)
            continue
        counts = {key: asdict(start)[key] + forks[0][key] for key in ("page_faults", "bytes_read", "bytes_written")}
        times = {"seconds": [start.seconds + fork["seconds"] for fork in forks], "passes": 1}
        print(json.dumps(about | times | counts | {"checksum": forks[0]["checksum"]}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main("cpu"))
