"""Tables larger than memory: bytes, peak memory and CPU time of checking, describing and pairing, by size of the table.

    python benchmarks/large.py                              # 1, 4 and 20 million runs; 9 GB of disk in TMPDIR
    python benchmarks/large.py --runs 1000000,4000000 --keep DIR
    python benchmarks/large.py --runs 20000000 --train      # the default model by the rule for long tables
    python benchmarks/large.py --accuracy                   # learning from a part beside learning from all

Runs are drawn from the law of `crossperf.datasets.toy`: 8 platforms, 5 repeats, 500 inputs of each application, 20
counters. The runs of a cell lie far apart in the file. Each step is a process of its own; memory is its highest
resident set, as the kernel tells it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from crossperf.datasets import toy

PLATFORMS, REPEATS, INPUTS, SPARE = 8, 5, 500, 3
STEPS = ("check", "info", "build")
#: What training on a long table may take, in bytes.
MEMORY = 8e9
#: Cells of the table on which learning from a part stands beside learning from all, and the parts.
ALL_CELLS, PARTS = 12_000, (1_200, 2_400, 4_800, 9_600)


def make(path: Path, runs: int, seed: int = 0) -> None:
    """Write a table of about as many runs as one file of Parquet, a platform and a repeat at a time."""
    rng = np.random.default_rng(seed)
    apps = max(2, runs // (PLATFORMS * REPEATS * INPUTS))
    programs = toy.draw_programs(apps, INPUTS, rng)
    platforms = toy.make_platforms(PLATFORMS, rng)
    names = pl.DataFrame({"app": np.repeat([f"app-{a:05d}" for a in range(apps)], INPUTS)})
    names = names.with_columns(input=pl.Series(np.tile([f"n{i}" for i in range(INPUTS)], apps)))
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        for repeat in range(REPEATS):
            for place, platform in enumerate(platforms):
                frame = names.with_columns(
                    *toy.draw_counters(programs, platform, 1, 0.006, rng),
                    *(pl.Series(f"counter.spare_{i}", rng.lognormal(20, 2, len(programs))) for i in range(SPARE)),
                    platform=pl.lit(platform.name),
                    platform_class=pl.lit(platform.platform_class),
                    repeat=pl.lit(repeat),
                    runtime_s=pl.Series(toy.law(programs, platform) * np.exp(0.03 * rng.normal(size=len(programs)))),
                )
                frame.write_parquet(Path(folder) / f"{repeat}-{place}.parquet")
        pl.scan_parquet(f"{folder}/*.parquet").sink_parquet(path)


def step(name: str, path: Path) -> dict[str, object]:
    """Do one step in this process."""
    from crossperf import dataset, runs

    if name == "check":
        return {"problems": len(runs.check(path))}
    if name == "info":
        return {"cells": runs.info(runs.read(path)).cells}
    data = dataset.build(path)
    if name == "build":
        return {"cells": len(data), "fingerprint": data.table.fingerprint}
    from crossperf.model import needs, train

    part = needs.drawn(data, "crossperf", most_bytes=MEMORY - needs.held_bytes(), seed=0)
    facts = {"cells": len(data), "workloads": len(data.workloads), "learned from": len(part), "of": len(part.workloads)}
    del data
    started = time.process_time()
    train(part, seed=0)
    return facts | {"apps": len(part.apps), "fit CPU s": round(time.process_time() - started)}


def measured(name: str, path: Path) -> dict[str, object]:
    """Return what one step takes in a process of its own."""
    command = [sys.executable, __file__, "--step", name, str(path)]
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{name} failed on {path}")
    return {
        "runs": pl.scan_parquet(path).select(pl.len()).collect().item(),
        "GB of file": round(path.stat().st_size / 1e9, 2),
        "step": name,
        "peak GB": round(usage.ru_maxrss * 1024 / 1e9, 2),
        "CPU s": round(usage.ru_utime + usage.ru_stime, 1),
        "wall s": round(time.monotonic() - started, 1),
        **json.loads(text),
    }


def accuracy() -> None:
    """Print the error of the default model on workloads held out, by the cells that it learned from."""
    from crossperf import dataset
    from crossperf.evaluation import metrics
    from crossperf.model import train

    table = toy.make_table(apps=100, inputs=ALL_CELLS // 100 // PLATFORMS, platforms=PLATFORMS, repeats=2, seed=3)
    data = dataset.build(table)
    for split in ("workload", "app"):
        fold = dataset.folds(data, split, n_folds=5, seed=0)[0]  # type: ignore[arg-type]
        asked, known = data.take(fold.test_n), data.take(fold.train_n).compact()
        for cells in PARTS:
            part = dataset.sample(known, cells, seed=0)
            started = time.process_time()
            fitted = train(part, seed=0).fitted
            cpu_s = time.process_time() - started
            factor = metrics.typical_factor(np.exp(asked.y), np.exp(fitted.predict(asked.features)))
            print(f"| {split} | {len(part):,} of {len(known):,} | {factor:.3f} | {cpu_s:.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", default="1000000,4000000,20000000")
    parser.add_argument("--steps", default=",".join(STEPS))
    parser.add_argument("--train", action="store_true", help="train the default model too")
    parser.add_argument("--accuracy", action="store_true")
    parser.add_argument("--keep", type=Path, help="a folder for the tables, which are kept")
    parser.add_argument("--step", nargs=2, metavar=("STEP", "TABLE"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.step:
        print(json.dumps(step(chosen.step[0], Path(chosen.step[1]))))
        return
    if chosen.accuracy:
        accuracy()
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        for runs in map(int, chosen.runs.split(",")):
            path = folder / f"{runs}.parquet"
            if not path.exists():
                make(path, runs)
            for name in [*filter(None, chosen.steps.split(",")), *(["train"] if chosen.train else [])]:
                print(json.dumps(measured(name, path)), flush=True)


if __name__ == "__main__":
    main()
