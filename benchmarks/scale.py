"""Rates from which docs/scale.md is worked out: storing, pairing, learning and answering, by the number of platforms.

    python benchmarks/scale.py [--platforms 8,50,500] [--cells 4000]
    python benchmarks/scale.py --jobs 10000,100000,1000000    # a centre of 500 clusters of 20 nodes, simulated

Each row is a process of its own; runs are drawn from the law of `crossperf.datasets.toy`, 3 repeats. CPU seconds are of
all threads. Bytes are of files with 17 counters.
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

from crossperf import dataset, runs
from crossperf.datasets import toy

INPUTS = 2
#: The centre that is simulated: clusters, each a platform, and the nodes of each.
CLUSTERS, NODES = 500, 20
ASKED = 1_000


def measure(platforms: int, cells: int) -> dict[str, object]:
    """Return what a table of some platforms takes in this process."""
    from crossperf.model import train

    table = toy.make_table(max(2, cells // platforms // INPUTS), INPUTS, platforms, 3, seed=2)
    facts: dict[str, object] = {"platforms": platforms, "runs": len(table)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.parquet"
        for kind in ("parquet", "jsonl"):
            table.write(path.with_suffix(f".{kind}"))
            facts[f"bytes a run, {kind}"] = round(path.with_suffix(f".{kind}").stat().st_size / len(table))
        facts["append, ms of CPU for 100 runs"] = _append_ms(table, Path(folder))
        data, build_s = _timed(lambda: dataset.build(path))
        facts |= {"cells": len(data), "build, us of CPU a run": round(1e6 * build_s / len(table))}
        model, train_s = _timed(lambda: train(data, seed=0))
        facts |= {"train, CPU s": round(train_s, 1), "train, ms of CPU a cell": round(1e3 * train_s / len(data), 1)}
        model.save(Path(folder) / "model")
        size = sum(file.stat().st_size for file in (Path(folder) / "model").iterdir())
        facts["model, MB"] = round(size / 1e6, 1)
    asked = [run for run in table.runs() if run.repeat == 0][:ASKED]
    model.predict(asked[0])  # what is made once
    answer, answer_s = _timed(lambda: model.predict(asked))
    facts["answers, ms of CPU a run in batches"] = round(1e3 * answer_s / len(answer), 2)
    _, single_s = _timed(lambda: [model.predict(asked[i]) for i in range(20)])
    return facts | {"one answer, ms of CPU": round(1e3 * single_s / 20, 1)}


def centre(jobs: int, policy: str = "considerate") -> dict[str, object]:
    """Return what it takes to simulate jobs on 10,000 nodes of 500 platforms, and what came of them."""
    from crossperf.schedule import synthetic
    from crossperf.schedule.machines import Machines
    from crossperf.schedule.predictors import app_average
    from crossperf.schedule.rules import Rules
    from crossperf.schedule.simulate import simulate
    from crossperf.schedule.times import RelativeTimes

    rng = np.random.default_rng(1)
    programs, platforms = toy.draw_programs(50, 2, rng), toy.make_platforms(CLUSTERS, rng)
    seconds_wm = np.stack([toy.law(programs, own) for own in platforms], axis=1)
    names = [own.name for own in platforms]
    workloads = [(f"app{w // 2}", f"n{w % 2}") for w in range(len(programs))]
    truth = RelativeTimes.of(workloads, names, seconds_wm / seconds_wm[:, [0]])
    machines, rules = Machines.of(dict.fromkeys(names, NODES)), Rules(wall_limit_s=synthetic.LONGEST_S)
    simulate(synthetic.draw(200, machines, truth), machines, truth, truth, policy, rules=rules)  # compiles
    work = synthetic.draw(jobs, machines, truth, utilisation=0.9, seed=1)
    outcome, cpu_s = _timed(lambda: simulate(work, machines, truth, app_average(truth), policy, rules=rules, seed=1))
    days = float(outcome.makespan_s) / 86_400
    return {
        "jobs": jobs,
        "days simulated": round(days, 2),
        "CPU s": round(cpu_s, 1),
        "us a job": round(1e6 * cpu_s / jobs),
    }


def _append_ms(table: runs.RunsTable, folder: Path) -> float:
    some = table.runs()[:100]
    _, taken_s = _timed(lambda: [runs.append(folder / "log.jsonl", some) for _ in range(20)])
    return round(1e3 * taken_s / 20, 2)


def _timed(work):  # type: ignore[no-untyped-def]
    started = time.process_time()
    return work(), time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platforms", default="8,50,500")
    parser.add_argument("--cells", type=int, default=4_000)
    parser.add_argument("--jobs", help="simulate a centre instead, with so many jobs")
    parser.add_argument("--row", type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.jobs:
        for jobs in map(int, chosen.jobs.split(",")):
            print(json.dumps(centre(jobs)), flush=True)
        return
    if chosen.row:
        print(json.dumps(measure(chosen.row, chosen.cells)))
        return
    for platforms in chosen.platforms.split(","):
        command = [sys.executable, __file__, "--row", platforms, "--cells", str(chosen.cells)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        text = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        facts = json.loads(text) if not status else {"platforms": platforms, "failed": status}
        print(json.dumps(facts | {"peak GB": round(usage.ru_maxrss * 1024 / 1e9, 2)}), flush=True)


if __name__ == "__main__":
    main()
