"""What workers bring and cost: two processes beside one, Dask beside processes, and a worker that is killed.

    python benchmarks/workers.py [--rounds 3] [--folds 8] [--model extra-trees] [--apps 40] [--write]

A study of independent folds of one table, each engine in turn in every round, so that what else the machine does
meets all of them; the figures are medians over the rounds, and ratios are of the same round. Times are of the study
alone, with workers that have started and imported what they need; starting them is told apart. --write makes
benchmarks/workers.md.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from accuracy import HERE, opening
from crossperf import dataset
from crossperf.datasets import toy
from crossperf.evaluation.parcels import ModelSpec, pack
from crossperf.evaluation.pieces import STUDY, FoldQuestion
from crossperf.evaluation.run import question_of
from crossperf.workers import PieceQuestion, Workers, processes
from crossperf.workers.dask_cluster import dask

GOALS = {
    "--jobs 2 over --jobs 1": "at least 1.7",
    "Dask beside --jobs 2": "at most 1.10",
    "CPU of Dask beside --jobs 2": "-",
}


def main() -> None:
    arguments = parse()
    asked = list(questions(arguments))
    engines: dict[str, Callable[[], AbstractContextManager[Workers]]] = {
        "--jobs 1": lambda: processes(1),
        "--jobs 2": lambda: processes(2),
        "Dask, 2 workers": cluster_of_two,
    }
    loads: list[float] = []
    starts, times, cpus = ({name: list[float]() for name in engines} for _ in range(3))
    for number in range(arguments.rounds):
        for name, engine in engines.items():
            start_s, study_s, used_s = timed(engine, asked)
            starts[name].append(start_s)
            times[name].append(study_s)
            cpus[name].append(used_s)
            loads.append(os.getloadavg()[0])
            print(f"round {number + 1}: {name}: {study_s:.1f} s, {used_s:.1f} s of CPU", file=sys.stderr, flush=True)
    text = page(starts, times, cpus, killed(asked), loads, arguments)
    print(text)
    if arguments.write:
        (HERE / "workers.md").write_text(text, encoding="utf-8")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folds", type=int, default=8)
    parser.add_argument("--model", default="extra-trees")
    parser.add_argument("--apps", type=int, default=40, help="applications of the toy table: how long a fold takes")
    parser.add_argument("--write", action="store_true", help="make benchmarks/workers.md")
    return parser.parse_args()


def questions(arguments: argparse.Namespace) -> Iterator[PieceQuestion]:
    """Yield the folds of a table from a known law."""
    data = dataset.build(toy.make_table(apps=arguments.apps, inputs=6, repeats=2, seed=1))
    table, spec = pack(data), ModelSpec.of(arguments.model, 0)
    for fold, part in enumerate(dataset.folds(data, "workload", arguments.folds, 0)):
        yield question_of(table, part, FoldQuestion("workload", arguments.folds, 0, fold, "", spec), arguments.model)


@contextmanager
def cluster_of_two() -> Iterator[Workers]:
    """Yield a Dask cluster of two workers on this machine, as its user would start it."""
    import distributed

    how: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**how) as cluster, dask(cluster.scheduler_address) as workers:
        yield workers


def warm(workers: Workers, asked: list[PieceQuestion]) -> None:
    """Have every worker answer a piece, so that what it imports is there."""
    for _ in STUDY.answers(asked[: workers.capacity()], workers):
        pass


def timed(
    engine: Callable[[], AbstractContextManager[Workers]], asked: list[PieceQuestion]
) -> tuple[float, float, float]:
    """Return how long workers take to start, and to answer a study, and the processor time of the latter."""
    start = time.perf_counter()
    with engine() as workers:
        started = time.perf_counter()
        warm(workers, asked)
        begun, before_s = time.perf_counter(), cpu_s()
        answers = dict(STUDY.answers(asked, workers))
        ended, used_s = time.perf_counter(), cpu_s() - before_s
    assert len(answers) == len(asked)
    return started - start, ended - begun, used_s


def killed(asked: list[PieceQuestion]) -> tuple[float, float, float]:
    """Return the time of a study, of the same with a worker killed in the middle, and the mean time of a piece."""
    times = []
    for kills in (False, True):
        with processes(2) as workers:
            warm(workers, asked)
            begun = time.perf_counter()
            pace = statistics.mean(timings(asked, workers, begun if kills else None))
            times.append(time.perf_counter() - begun)
    return times[0], times[1], pace


def timings(asked: list[PieceQuestion], workers: Workers, kill_after: float | None) -> Iterator[float]:
    """Yield how long each fit took; kill one of the workers half-way."""
    for done, (_, answer) in enumerate(STUDY.answers(asked, workers), start=1):
        if kill_after is not None and done == len(asked) // 2:
            # A little later, when its next piece is under way.
            threading.Timer(0.3 * answer.facts["scores"]["fit_s"], os.kill, [worker_pid(), signal.SIGKILL]).start()
        yield answer.facts["scores"]["fit_s"]


def worker_pid() -> int:
    """Return one of the processes that loky started for us."""
    return next(pid for pid in descendants() if b"popen_loky" in Path(f"/proc/{pid}/cmdline").read_bytes())


def descendants() -> dict[int, float]:
    """Return the processes below this one, with the processor seconds that each has taken."""
    facts = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            words = path.read_text().rpartition(")")[2].split()
            facts[int(path.parent.name)] = int(words[1]), (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    ours = {os.getpid()}
    while more := {pid for pid, (parent, _) in facts.items() if parent in ours} - ours:
        ours |= more
    return {pid: facts[pid][1] for pid in ours - {os.getpid()}}


def cpu_s() -> float:
    """Return the processor seconds of this process and of all below it."""
    return time.process_time() + sum(descendants().values())


def page(
    starts: dict[str, list[float]],
    times: dict[str, list[float]],
    cpus: dict[str, list[float]],
    killing: tuple[float, float, float],
    loads: list[float],
    arguments: argparse.Namespace,
) -> str:
    one, two, on_dask = times.values()
    ratios = {
        "--jobs 2 over --jobs 1": [a / b for a, b in zip(one, two, strict=True)],
        "Dask beside --jobs 2": [a / b for a, b in zip(on_dask, two, strict=True)],
        "CPU of Dask beside --jobs 2": [a / b for a, b in zip(*(cpus[n] for n in list(cpus)[:0:-1]), strict=True)],
    }
    lines = [
        opening("What workers bring and cost"),
        f"{arguments.folds} folds of `{arguments.model}`, {arguments.rounds} rounds, {os.cpu_count()} cores; the load "
        f"of the machine over a minute was {min(loads):.1f} to {max(loads):.1f}, which two busy workers alone bring to "
        "2. Medians; in brackets the lowest and the highest.",
        "",
        "| engine | study s | of CPU s | start s |",
        "|---|---|---|---|",
        *(f"| {name} | {shown(times[name])} | {shown(cpus[name])} | {shown(starts[name])} |" for name in times),
        "",
        "| ratio, in one round | goal | measured |",
        "|---|---|---|",
        *(f"| {name} | {GOALS[name]} | {shown(values, 2)} |" for name, values in ratios.items()),
        "",
        f"A worker killed with -9 half-way: {killing[1]:.1f} s instead of {killing[0]:.1f} s, where a piece takes "
        f"{killing[2]:.1f} s; the other worker's piece is not begun again (`tests/workers/test_processes.py`).",
    ]
    return "\n".join(lines) + "\n"


def shown(values: list[float], digits: int = 1) -> str:
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


if __name__ == "__main__":
    main()
