"""How fast schedules are simulated: seconds by number of jobs, their growth, and the ratio of speeds to AccaSim.

    python benchmarks/scheduling_speed.py [--data DIR] [--jobs 10000,100000,1000000] [--policies a,b] [--write]

The first table simulates drawn jobs over the five dr_evt machines, where they are at hand, each run in a process of its
own on one core, compiling left out and named apart. The second runs the same trace on one cluster through AccaSim
1.1.3 (left out and named where it is not installed) and through `crossperf`, both from the file to the last end.
--write keeps them in benchmarks/scheduling_speed.md.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import os
import platform
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RUNNER = HERE / "accasim_runner.py"
#: The cluster that AccaSim and crossperf run the same trace on.
NODES = 256
REPEATS = 3
LOADS = {"a queue of a few jobs": 0.8, "a queue of hundreds": 1.1}


def main() -> None:
    arguments = parse()
    if arguments.task:
        print(json.dumps(TASKS[arguments.task](*json.loads(arguments.facts))))
        return
    sections = [header()]
    if (arguments.data / "ground_truth.csv").is_file():
        sections.append(growth_section(arguments))
        print(sections[-1], flush=True)
    else:
        print(f"left out: {arguments.data} is not there", file=sys.stderr)
    if importlib.util.find_spec("accasim"):
        sections.append(ratio_section(arguments.trace))
        print(sections[-1], flush=True)
    else:
        print("left out: AccaSim is not installed (pip install accasim==1.1.3)", file=sys.stderr)
    if arguments.write:
        (HERE / "scheduling_speed.md").write_text("\n".join(sections), encoding="utf-8")
        print(f"wrote {HERE / 'scheduling_speed.md'}", file=sys.stderr)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "datasets" / "dr_evt")
    parser.add_argument("--jobs", default="10000,100000,1000000")
    parser.add_argument("--policies", default="considerate")
    parser.add_argument("--utilisation", default="0.9,1.5", help="loads; above about 1.3 queues grow")
    parser.add_argument("--trace", type=int, default=5_000, help="jobs of the trace that AccaSim runs too")
    parser.add_argument("--write", action="store_true", help="keep the tables beside this script")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--facts", help=argparse.SUPPRESS)
    return parser.parse_args()


def alone(task: str, *facts: Any) -> dict[str, float]:
    """Run one task in a process of its own on one core and return what it measured."""
    command = [sys.executable, "-W", "ignore", __file__, "--task", task, "--facts", json.dumps(facts)]
    one_core = dict(os.environ, OMP_NUM_THREADS="1", POLARS_MAX_THREADS="1", NUMBA_NUM_THREADS="1")
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=one_core)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measure(data: str, jobs: int, policy: str, utilisation: float) -> dict[str, float]:
    from crossperf.schedule import readers, synthetic
    from crossperf.schedule.predictors import app_average
    from crossperf.schedule.rules import Rules
    from crossperf.schedule.simulate import simulate

    truth = readers.read_times(Path(data) / "ground_truth.csv")
    machines, predicted = readers.read_machines(Path(data) / "machines.csv"), app_average(truth)
    rules = Rules(wall_limit_s=synthetic.LONGEST_S)
    begin = time.perf_counter()
    simulate(synthetic.draw(200, machines, truth), machines, truth, predicted, policy, rules=rules)
    ready_s = time.perf_counter() - begin
    begin, begin_cpu = time.perf_counter(), time.process_time()
    work = synthetic.draw(jobs, machines, truth, utilisation=utilisation, seed=1)
    outcome = simulate(work, machines, truth, predicted, policy, rules=rules, seed=1)
    seconds, cpu_s = time.perf_counter() - begin, time.process_time() - begin_cpu
    waiting = outcome.wait_s[outcome.placed].sum() / outcome.makespan_s
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return {"seconds": seconds, "cpu_s": cpu_s, "ready_s": ready_s, "queued": waiting, "peak_gb": peak_gb}


def growth_section(arguments: argparse.Namespace) -> str:
    counts = [int(count) for count in arguments.jobs.split(",")]
    lines = [
        "## Drawn jobs over the five dr_evt machines, one core",
        "",
        "| load | policy | jobs | s | CPU s | µs a job | growth | jobs queued, mean | peak GB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    ready = 0.0
    for utilisation in map(float, arguments.utilisation.split(",")):
        for policy in arguments.policies.split(","):
            before: tuple[int, float] | None = None
            for count in counts:
                facts = alone("measure", str(arguments.data), count, policy, utilisation)
                cpu_s, ready = facts["cpu_s"], max(ready, facts["ready_s"])
                growth = "" if before is None else f"{cpu_s / before[1]:.1f}x for {count / before[0]:g}x the jobs"
                lines.append(
                    f"| {utilisation:g} | {policy} | {count:,} | {facts['seconds']:.1f} | {cpu_s:.1f} | "
                    f"{1e6 * cpu_s / count:.0f} | {growth} | {facts['queued']:,.0f} | {facts['peak_gb']:.2f} |"
                )
                print(lines[-1], file=sys.stderr, flush=True)
                before = (count, cpu_s)
    return "\n".join(
        [*lines, "", f"Drawing the jobs is included; loading the compiled functions took up to {ready:.1f} s.", ""]
    )


def ours(trace: str, rule: str) -> dict[str, float]:
    """Simulate a trace on one cluster, from the file to the last end."""
    import numpy as np

    from crossperf.schedule.machines import Machines
    from crossperf.schedule.rules import Rules
    from crossperf.schedule.simulate import simulate
    from crossperf.schedule.times import RelativeTimes
    from crossperf.schedule.traces.swf import read_swf

    machines, same = Machines.of({"m": NODES}), RelativeTimes.of([("a", "")], ["m"], np.ones((1, 1)))
    rules = Rules(backfill="none" if rule == "fcfs" else "easy")
    cpu_s = []
    for _ in range(1 + REPEATS):
        begin = time.process_time()
        simulate(read_swf(trace), machines, same, same, "fastest", rules=rules)
        cpu_s.append(time.process_time() - begin)
    return {"cpu_s": statistics.median(cpu_s[1:])}  # the first loads the compiled functions


def theirs(trace: Path, rule: str) -> float:
    """Return the CPU seconds of AccaSim on the same."""
    command = [sys.executable, "-W", "ignore", str(RUNNER), str(trace), str(NODES), rule]
    runs = [
        subprocess.run(command, check=True, capture_output=True, text=True, cwd=trace.parent) for _ in range(REPEATS)
    ]
    return statistics.median(json.loads(done.stdout.splitlines()[-1])["cpu_s"] for done in runs)


def ratio_section(jobs: int) -> str:
    lines = [
        f"## {jobs:,} jobs on one cluster of {NODES} nodes, beside AccaSim {version('accasim')}",
        "",
        "| trace | rule | AccaSim, CPU s | crossperf, CPU s | ratio |",
        "|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for name, load in LOADS.items():
            trace = Path(folder) / f"{load}.swf"
            write_trace(trace, jobs, load)
            for rule in ("fcfs", "easy"):
                theirs_s, ours_s = theirs(trace, rule), alone("ours", str(trace), rule)["cpu_s"]
                lines.append(f"| {name} | {rule} | {theirs_s:.2f} | {ours_s:.4f} | {theirs_s / ours_s:.0f}x |")
    note = (
        f"Medians of {REPEATS} runs. Both read the file; imports and the loading of compiled functions are not counted."
    )
    return "\n".join([*lines, "", note, ""])


def write_trace(path: Path, jobs: int, load: float) -> None:
    import numpy as np

    from crossperf.schedule.machines import Machines
    from crossperf.schedule.synthetic import draw
    from crossperf.schedule.times import RelativeTimes
    from crossperf.schedule.traces.swf import write_swf

    same = RelativeTimes.of([("a", "")], ["m"], np.ones((1, 1)))
    write_swf(path, draw(jobs, Machines.of({"m": NODES}), same, utilisation=load))


def header() -> str:
    return "\n".join(
        [
            "# Speed of the scheduling simulator",
            "",
            f"`python {shlex.join(sys.argv)}`, {datetime.datetime.now(datetime.UTC):%Y-%m-%d}, "
            f"Python {platform.python_version()}, numba {version('numba')}, numpy {version('numpy')}, "
            f"{os.cpu_count()} cores ({platform.machine()}).",
            "",
            "Seconds depend on the machine and on what else it does; ratios and growth are within one run.",
            "",
        ]
    )


TASKS = {"measure": measure, "ours": ours}

if __name__ == "__main__":
    main()
