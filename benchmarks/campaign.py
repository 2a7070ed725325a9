"""What a campaign through Slurm costs its driver, and what becomes of its inputs while drivers are killed.

Brings a real Slurm up on loopback, submits arrays that wait and asks for their states, plans and merges a large
campaign without Slurm, and then measures inputs on two partitions while the driver is killed with -9 again and again,
the controller restarted and elements queued again. Needs Slurm and munge (Debian: slurm-wlm slurm-wlm-basic-plugins
munge).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.campaign.site_stand_in import asked, command, n_visits, prepare, statuses
from tests.cluster.nodes import QUICK
from tests.schedule.slurm.cluster import Cluster

from crossperf import campaign
from crossperf.campaign import log
from crossperf.campaign.merging import Merger
from crossperf.campaign.planning import SitePlan
from crossperf.cluster import Allocation, Call, JobArrays, read

ELEMENTS = (20, 1_000)
INPUTS, VISITS = 20_000, 5
KILLS = 9


@contextmanager
def taken(seconds: list[float], clock: str = "wall") -> Iterator[None]:
    now = time.monotonic if clock == "wall" else time.process_time
    start = now()
    yield
    seconds.append(now() - start)


def arrays(folder: Path) -> Iterator[str]:
    """Submit two arrays that wait for an hour, ask for their states, cancel them."""
    for size in ELEMENTS:
        jobs = JobArrays(folder / f"jobs-{size}")
        later = Allocation("cpu", options={"begin": "now+1hour"}, time="5")
        calls = [Call("math:hypot", (3, number)) for number in range(size)]
        submitting: list[float] = []
        with taken(submitting):
            submitted = [jobs.submit(f"bench-{size}-{number}", calls, later) for number in range(2)]
        asking: list[float] = []
        for _ in range(5):
            with taken(asking):
                states = jobs.states(submitted)
        assert len(states) == 2 * size
        jobs.cancel(submitted)
        yield f"| 2 x {size:,} | {submitting[0]:.2f} | {sorted(asking)[2]:.3f} |"


def on_paper(folder: Path) -> Iterator[str]:
    """Plan and merge a campaign that no cluster measures."""
    spec_file, site_file = prepare(folder, [f"i{number} 0 0" for number in range(INPUTS)], batch=30, visits=VISITS)
    spec, site = campaign.read(spec_file), read(site_file)
    plan = SitePlan(spec, list(spec.modes.values()), (), site, folder)
    seconds: list[float] = []
    with taken(seconds, "cpu"):
        tasks = {name: list(plan.tasks(name, {}, {}, retry=False)) for name in spec.modes}
    visits = [(name, task.round, work) for name, own in tasks.items() for task in own for work in task.works]
    lines = [
        {"format": 1, "platform": name, "round": of, "workload": work.workload, "input": work.input, "seconds": [0.1]}
        for name, of, work in visits
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    own = folder / "elements" / "array-0"
    own.mkdir(parents=True)
    (own / log.TIMES).write_text(text, encoding="utf-8")
    merger = Merger(folder, folder)
    with taken(seconds, "cpu"):
        merged = merger.merge("array", 0)
    with taken(seconds, "cpu"):
        Merger(folder, folder)
    assert merged == len(visits)
    n = len(visits)
    yield f"| plan {n:,} visits in {sum(map(len, tasks.values())):,} elements | {seconds[0]:.1f} |"
    yield f"| merge the logs of {n:,} visits | {seconds[1]:.1f} |"
    yield f"| start again after {n:,} visits | {seconds[2]:.1f} |"


def killed(slurm: Cluster, folder: Path, seed: int) -> Iterator[str]:
    """Kill the driver again and again, restart the controller, queue elements again; then let it end."""
    rng, out = random.Random(seed), folder / "out"  # noqa: S311
    inputs = [f"i{n} {rng.uniform(0.1, 0.6):.2f} {0 if n % 11 else 5}" for n in range(24)]
    spec, site = prepare(folder, inputs, batch=4)
    kills = requeued = 0
    while kills < KILLS and n_visits(out) < 44:
        driver = subprocess.Popen(command(spec, site, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.3, 2.5))
        driver.kill()
        driver.wait()
        kills += 1
        if kills == 4:
            slurm.stop_controller()
            time.sleep(2)
            slurm.start_controller()
        elif kills in (5, 7) and (running := slurm.run("squeue", "-hrtR", "-o%i").stdout.split()):
            requeued += slurm.run("scontrol", "requeue", running[0]).returncode == 0
    subprocess.run(command(spec, site, out), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ends = statuses(out)  # raises where an input is in the table twice
    good, again = Counter(ends.values())["ok"], asked(folder).total() - 48
    yield f"| {seed} | {kills} | {requeued} | {len(ends)} of 48 | {good} of 42 | {again} |"


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="campaigns whose drivers are killed")
    seeds = parser.parse_args().seeds
    with Cluster(more=QUICK, requeue_s=5) as slurm, tempfile.TemporaryDirectory() as name:
        os.environ["SLURM_CONF"] = slurm.environment["SLURM_CONF"]
        folder = Path(name)
        version = slurm.output("sinfo", "--version").strip()
        print("# Cost of a campaign through Slurm\n")
        print(f"`python benchmarks/campaign.py`, {version} on loopback, {os.cpu_count()} cores, ", end="")
        print(f"load {os.getloadavg()[0]:.1f} at the start.\n")
        print("| arrays x elements | submit both, s | one query for all states, median, s |\n|---|---|---|")
        print(*arrays(folder), sep="\n", flush=True)
        print("\n| of the driver | processor time, s |\n|---|---|")
        (folder / "paper").mkdir()
        print(*on_paper(folder / "paper"), sep="\n", flush=True)
        print("\n48 inputs on two partitions, 6 of them failing; *again* are inputs that were measured more than once,")
        print("which is expected at most once for each element that was queued again.\n")
        print(
            "| seed | drivers killed | queued again | in the table, once each | ok | again |\n|---|---|---|---|---|---|"
        )
        for seed in range(seeds):
            own = folder / f"seed-{seed}"
            own.mkdir()
            print(*killed(slurm, own, seed), sep="\n", flush=True)


if __name__ == "__main__":
    main()
