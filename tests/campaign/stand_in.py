"""A program that answers as the testbed's do, a campaign of it, and looks at what they did."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crossperf import campaign
from crossperf.campaign import log

SPEC = """
inputs = ["inputs.toml"]
visits = 1
repeats = 3
calibration = ["quick n=1"]

[counts.here]
tool = "valgrind"
program = "program"
caches = "I1=32768,8,64 D1=32768,8,64 LL=1048576,16,64"
note = "by hand"

[platforms.one]
program = "program"
threads = 1
counts = "here"

[platforms.two]
program = "program"
threads = 2
"""

#: A program that answers as the testbed's do, and misbehaves on demand.
PROGRAM = """#!{python}
import json, os, sys, time
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
threads, repeats = int(options["--threads"]), int(options["--repeats"])
for line in open(options["--batch"]):
    name, *words = line.split()
    facts = {{"workload": name, "input": " ".join(words), "device": "cpu", "threads": threads}}
    with open({log!r}, "a") as out:
        print(json.dumps([" ".join([name, *words]), threads, os.getpid()]), file=out)
    if name == "crash":
        os.abort()
    if name == "refuse":
        print(json.dumps(facts | {{"error": "no such size"}}), flush=True)
        continue
    if name == "slow":
        time.sleep(0.3)
    if name == "other":
        facts["input"] = "n=0"
    seconds = [0.01 * (1 + repeat / 100) / threads for repeat in range(repeats)]
    print(json.dumps(facts | {{"passes": 2, "seconds": seconds, "bytes_to_device": 0, "bytes_to_host": 0, "launches": 1,
                              "files_opened": 1, "page_faults": 4, "bytes_read": 10, "bytes_written": 20,
                              "checksum": 1.5}}), flush=True)
"""


def prepare(folder: Path, inputs: str) -> Path:
    (folder / "inputs.toml").write_text(inputs)
    program = folder / "program"
    program.write_text(PROGRAM.format(python=sys.executable, log=str(folder / "asked")))
    program.chmod(0o755)
    spec = folder / "spec.toml"
    spec.write_text(SPEC)
    return spec


def timed(folder: Path, name: str) -> list[dict[str, object]]:
    return [facts for facts in log.lines(folder / log.TIMES) if facts.get("workload") == name]


def visit(spec: campaign.Spec, folder: Path, *names: str, **options: Any) -> None:
    """Visit the inputs on platforms, by default on all."""
    campaign.visit(spec, [spec.mode(name) for name in names or spec.modes], folder, **options)


def asked(folder: Path) -> list[tuple[str, int, int]]:
    """Return what the program was asked for: the input, the threads, and the process that answered."""
    return [(text, threads, pid) for text, threads, pid in map(json.loads, (folder / "asked").read_text().splitlines())]


def children_of(pid: int) -> list[int]:
    """Return what all threads of a process started, and what those started."""
    try:
        texts = [Path(task, "children").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:  # it has ended meanwhile
        return []
    found = [int(word) for text in texts for word in text.split()]
    return [*found, *(below for child in found for below in children_of(child))]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def start(spec_file: Path, out: Path, *options: str, **how: Any) -> subprocess.Popen[str]:
    """Start a campaign as a user does."""
    command = [sys.executable, "-m", "crossperf", "campaign", str(spec_file), "-o", str(out), *options]
    return subprocess.Popen(command, text=True, **{"stderr": subprocess.PIPE, "stdout": subprocess.PIPE} | how)


def wait_for(condition: Callable[[], object]) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)
