"""Seconds and memory of every model, as ratios to the random forest measured in the same run.

    python benchmarks/speed.py [--data DIR] [--models a,b] [--cells 1000,10000,100000] [--runs 1000000] [--write]

Fit and predict on the testbed, on scout_single (named and left out where it is absent) and on toy tables of growing
size; prediction in a batch and one cell at a time; building the dataset of a long Parquet table. Each figure is
taken in a process of its own, so that peak memory is its own. --write keeps them in benchmarks/speed.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from crossperf import dataset, model
from crossperf.datasets import testbed, toy
from crossperf.model import TrainedModel, store

HERE = Path(__file__).parent
INPUTS = 10
PLATFORMS = 4


def main() -> None:
    arguments = parse()
    if arguments.task:
        print(json.dumps(TASKS[arguments.task](*json.loads(arguments.facts))))
        return
    sections = [header()]
    names = arguments.models.split(",")
    with tempfile.TemporaryDirectory() as folder:
        for title, path in tables(arguments, Path(folder)):
            sections.append(fit_section(title, path, names))
            print(sections[-1], flush=True)
        if arguments.runs:
            sections.append(build_section(Path(folder) / "long.parquet", arguments.runs))
            print(sections[-1], flush=True)
    if arguments.write:
        (HERE / "speed.md").write_text("\n".join(sections), encoding="utf-8")
        print(f"wrote {HERE / 'speed.md'}", file=sys.stderr)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "datasets")
    default = ",".join(name for name in model.MODELS if name not in model.PACKAGES)
    parser.add_argument("--models", default=default)
    parser.add_argument("--cells", default="1000,10000,100000")
    parser.add_argument("--runs", type=int, default=1_000_000, help="of the long table; 0 leaves it out")
    parser.add_argument("--write", action="store_true", help="keep the tables beside this script")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--facts", help=argparse.SUPPRESS)
    return parser.parse_args()


def tables(arguments: argparse.Namespace, folder: Path) -> list[tuple[str, Path]]:
    testbed.load().write(folder / "testbed.parquet")
    found = [("testbed", folder / "testbed.parquet")]
    scout = arguments.data / "scout_single" / "runs.parquet"
    if scout.is_file():
        found.append(("scout_single", scout))
    else:
        print(f"left out: {scout} is not there", file=sys.stderr)
    for cells in map(int, arguments.cells.split(",") if arguments.cells else ()):
        path = folder / f"toy-{cells}.parquet"
        apps = max(2, cells // (INPUTS * PLATFORMS))
        toy.make_table(apps, INPUTS, PLATFORMS, repeats=1).write(path)
        found.append((f"toy, {apps * INPUTS * PLATFORMS:,} cells", path))
    return found


def alone(task: str, *facts: Any) -> dict[str, float]:
    """Run one task in a process of its own and return what it measured, with its peak memory."""
    command = [sys.executable, "-W", "ignore", __file__, "--task", task, "--facts", json.dumps(facts)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measure_fit(path: str, name: str) -> dict[str, float]:
    data = dataset.build(path)
    start = time.perf_counter()
    fitted = model.make(name).learn(data)
    fit_s = time.perf_counter() - start
    rows = data.X[np.resize(np.arange(len(data)), max(20_000, len(data)))]
    fitted.predict(rows[:2048])
    start = time.perf_counter()
    fitted.predict(rows[:20_000])
    batch_s = time.perf_counter() - start
    singles = []
    for i in range(200):
        start = time.perf_counter()
        fitted.predict(rows[i : i + 1])
        singles.append(time.perf_counter() - start)
    with tempfile.TemporaryDirectory() as folder:
        store.save(TrainedModel.of(fitted, data), Path(folder) / "model")
        start = time.perf_counter()
        store.load(Path(folder) / "model")
        load_s = time.perf_counter() - start
    return {
        "fit_s": fit_s,
        "load_s": load_s,
        "cells_per_s": 20_000 / batch_s,
        "one_ms": 1e3 * sorted(singles)[100],
        "one_p99_ms": 1e3 * sorted(singles)[197],
        "peak_gb": peak_gb(),
    }


def measure_build(path: str) -> dict[str, float]:
    start = time.perf_counter()
    data = dataset.build(path)
    return {"build_s": time.perf_counter() - start, "cells": len(data), "peak_gb": peak_gb()}


def write_long(path: str, runs: int) -> dict[str, float]:
    apps = runs // (INPUTS * PLATFORMS * 5)
    toy.make_table(apps, INPUTS, PLATFORMS, repeats=5).write(path)
    return {"bytes": Path(path).stat().st_size}


TASKS = {"fit": measure_fit, "build": measure_build, "long": write_long}


def peak_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def fit_section(title: str, path: Path, names: list[str]) -> str:
    order = sorted(names, key=lambda name: name != "random-forest")
    measured = {}
    for name in order:
        print(f"{title}: {name}", file=sys.stderr, flush=True)
        measured[name] = alone("fit", str(path), name)
    base = measured.get("random-forest")
    lines = [
        f"## {title}",
        "",
        "| model | fit s | fit / random-forest | cells/s, batch of 20,000 | one cell, ms (99th perc.) | load s "
        "| peak GB |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in names:
        m = measured[name]
        ratio = f"{m['fit_s'] / base['fit_s']:.2f}" if base else "-"
        one = f"{m['one_ms']:.2f} ({m['one_p99_ms']:.2f})"
        lines.append(
            f"| {name} | {m['fit_s']:.1f} | {ratio} | {m['cells_per_s']:,.0f} | {one} "
            f"| {m['load_s']:.2f} | {m['peak_gb']:.2f} |"
        )
    return "\n".join(lines) + "\n"


def build_section(path: Path, runs: int) -> str:
    print(f"a table of {runs:,} runs", file=sys.stderr, flush=True)
    size = alone("long", str(path), runs)["bytes"]
    m = alone("build", str(path))
    return (
        f"## Building the dataset of a Parquet table of {runs:,} runs, 17 counters ({size / 1e6:,.0f} MB)\n\n"
        f"{m['build_s']:.1f} s for {m['cells']:,.0f} cells, peak memory {m['peak_gb']:.2f} GB.\n"
    )


def header() -> str:
    return "\n".join(
        [
            "# Speed",
            "",
            f"`python {shlex.join(sys.argv)}`, {datetime.date.today()}; Python {platform.python_version()}, "
            f"{os.cpu_count()} cores ({platform.machine()}).",
            "",
            "Ratios are within one run of one table; seconds depend on the machine and on what else it does.",
            "",
        ]
    )


if __name__ == "__main__":
    main()
