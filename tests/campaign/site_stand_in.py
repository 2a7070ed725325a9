"""A campaign of a script that notes what it is asked, sleeps and ends as told, on two partitions of a real Slurm."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crossperf.campaign import log

#: Notes its input, sleeps, and ends with a status.
SCRIPT = """#!/bin/sh
echo "$1 $PLATFORM" >> {asked}
sleep "$2"
exit "$3"
"""
SITE = """
poll_s = 0.2

[defaults]
cpus = 1
time = "5"
batch = {batch}
at_once = 2

[platforms.small]
partition = "cpu"
setup = ["export PLATFORM=small"]

[platforms.large]
partition = "big"
setup = ["export PLATFORM=large"]
"""


def prepare(
    folder: Path, inputs: Sequence[str], *, batch: int = 3, platforms: Sequence[str] = ("small", "large"), **more: Any
) -> tuple[Path, Path]:
    """Write a SPEC and a SITE; an input has a name, seconds and a status, such as ``a 0.1 0``."""
    script = folder / "script"
    script.write_text(SCRIPT.format(asked=folder / "asked"))
    script.chmod(0o755)
    settings = {"visits": 1, "repeats": 1, "limit_s": 60} | more
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    lines += ["[[programs]]", 'name = "script"', 'command = ["./script", "{input}"]', 'backend = "os"']
    lines += [f"inputs = {json.dumps(list(inputs))}", *(f"[platforms.{name}]" for name in platforms)]
    spec, site = folder / "spec.toml", folder / "site.toml"
    spec.write_text("\n".join(lines) + "\n")
    site.write_text(SITE.format(batch=batch))
    return spec, site


def command(spec: Path, site: Path, out: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "crossperf", "campaign", str(spec), "-o", str(out), "--site", str(site), *options]


def crossperf(*words: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "crossperf", *map(str, words)], text=True, capture_output=True, check=False, timeout=120
    )
    assert not check or done.returncode == 0, done.stderr
    return done


def table(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "runs.jsonl").read_text().splitlines()]


def statuses(out: Path) -> dict[tuple[str, str], str]:
    """Return the status of each input on each platform; one that is in the table twice raises."""
    runs = [((run["input"], run["platform"]), run["status"]) for run in table(out)]
    assert len(dict(runs)) == len(runs), "an input is in the table twice"
    return dict(runs)


def asked(folder: Path) -> Counter[tuple[str, str]]:
    """Return how often each input was measured on each platform."""
    path = folder / "asked"
    lines = path.read_text().splitlines() if path.exists() else []
    return Counter((name, platform) for name, platform in map(str.split, lines))


def n_visits(out: Path) -> int:
    return len(log.timed(out)) if (out / log.TIMES).exists() else 0


def names(inputs: Sequence[str], *platforms: str) -> list[tuple[str, str]]:
    return [(text.split()[0], platform) for text in inputs for platform in platforms or ("small", "large")]
