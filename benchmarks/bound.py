"""How far policies are from the best that could be done, on small cases that a search can solve.

    python benchmarks/bound.py [--data DIR] [--cases 10] [--jobs 16] [--loads 1,2,4] [--write]

Two bounds for each case. The best schedule: CP-SAT (OR-Tools, a development dependency) chooses where and when each job
runs, knowing all that will come, under no rule but that nodes are not used twice. The best placement under EASY: where
each job goes is searched, from the placements of CP-SAT and of the policies on, one and two jobs at a time, and the
clusters start jobs as they do in every simulation here. That is what a policy could reach; it is found, not proven.
The jobs are drawn from the speed-ups of the dr_evt study (see scheduling.py) on five small clusters.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crossperf.schedule import engine, readers
from crossperf.schedule.jobs import Jobs
from crossperf.schedule.machines import Machines
from crossperf.schedule.rules import Rules
from crossperf.schedule.simulate import simulate
from crossperf.schedule.synthetic import draw, workloads_of
from crossperf.schedule.times import RelativeTimes

HERE = Path(__file__).parent
#: The five clusters of the study, a few nodes each.
CLUSTERS = Machines.of({"dane": 8, "mammoth": 3, "tioga": 2, "tuolumne": 4, "matrix": 2})
POLICIES = ("fastest-available", "turnaround", "considerate")
#: Seconds that CP-SAT may take for a case.
SEARCH_S = 10.0


class Case(NamedTuple):
    """Jobs, and the seconds that each takes on each cluster in its best mode there; infinite where it cannot run."""

    jobs: Jobs
    run_jc: np.ndarray
    truth: RelativeTimes
    seed: int


def main() -> None:
    arguments = parse()
    if not (arguments.data / "ground_truth.csv").is_file():
        sys.exit(f"{arguments.data}/ground_truth.csv is not there")
    truth = readers.read_times(arguments.data / "ground_truth.csv")
    lines = [header(arguments), *table(truth, arguments)]
    print("\n".join(lines))
    if arguments.write:
        (HERE / "bound.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "datasets" / "dr_evt")
    parser.add_argument("--cases", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=400, help="policies were tuned on other seeds")
    parser.add_argument("--jobs", type=int, default=16)
    parser.add_argument("--loads", default="1,2,4")
    parser.add_argument("--write", action="store_true", help="write benchmarks/bound.md")
    return parser.parse_args()


def header(arguments: argparse.Namespace) -> str:
    return (
        "# How far policies are from the best that could be done\n\n"
        f"`python benchmarks/bound.py`, {datetime.datetime.now(datetime.UTC).date()}, Python "
        f"{platform.python_version()}, OR-Tools {version('ortools')}.\n\n{about(arguments)}"
    )


def about(arguments: argparse.Namespace) -> str:
    """Return what the numbers of the table are."""
    sizes = ", ".join(f"{name} {nodes}" for name, nodes in zip(CLUSTERS.names, CLUSTERS.nodes, strict=True))
    return (
        f"{arguments.cases} cases of {arguments.jobs} jobs for each load (seeds from {arguments.first_seed} on), on "
        f"clusters of {sizes} nodes. Mean turnaround over that of the best placement under EASY that a search found: "
        "geometric mean over the cases, and the worst of them. The truth is known to all. `best schedule at all` is "
        f"the bound of CP-SAT (OR-Tools {version('ortools')}, {SEARCH_S:g} s), which starts jobs whenever it likes.\n"
    )


def a_case(truth: RelativeTimes, n_jobs: int, load: float, seed: int) -> Case:
    jobs = draw(n_jobs, CLUSTERS, truth, utilisation=load, seed=seed)
    workload_j = workloads_of(jobs, truth, seed)
    cluster_m = CLUSTERS.clusters_of(truth.modes)
    run_jc = np.full((n_jobs, len(CLUSTERS.names)), np.inf)
    for c, nodes in enumerate(CLUSTERS.nodes):
        best_j = np.nanmin(np.where(cluster_m == c, np.nan_to_num(truth.relative_wm, nan=np.inf), np.inf), axis=1)
        run_jc[:, c] = np.where(jobs.nodes <= nodes, jobs.run_s * best_j[workload_j], np.inf)
    return Case(jobs, run_jc, truth, seed)


def under_easy(case: Case, cluster_j: np.ndarray) -> float:
    """Return the mean turnaround if each job goes to this cluster, in the mode that is fastest there."""
    jobs, state = case.jobs, engine.empty(CLUSTERS.nodes, case.jobs.nodes, 32)
    run_j = case.run_jc[np.arange(len(jobs)), cluster_j]
    state.run_j[:] = state.expected_j[:] = run_j
    state.limit_j[:] = run_j * jobs.requested_s / jobs.run_s
    engine.replay(state, 0, jobs.submit_s, cluster_j, engine.EASY)
    engine.advance(state, np.inf, engine.EASY)
    return float((state.start_j + run_j - jobs.submit_s).mean())


def best_schedule(case: Case) -> tuple[float, np.ndarray, bool]:
    """Return the bound on the mean turnaround, the placement that came nearest, and whether that is the best one."""
    from ortools.sat.python import cp_model

    jobs, model, unit_s = case.jobs, cp_model.CpModel(), 10.0
    submit_j = np.floor((jobs.submit_s - jobs.submit_s.min()) / unit_s).astype(int)
    length_jc = np.floor(case.run_jc / unit_s, where=np.isfinite(case.run_jc), out=np.zeros_like(case.run_jc)).astype(
        int
    )
    horizon = int(submit_j.max() + length_jc.max(axis=1).sum() + 1)
    on_cluster: list[list[tuple[object, int]]] = [[] for _ in CLUSTERS.names]
    chosen, ends = {}, []
    for j in range(len(jobs)):
        start, end = model.new_int_var(int(submit_j[j]), horizon, ""), model.new_int_var(0, horizon, "")
        ends.append(end)
        here = []
        for c in np.flatnonzero(np.isfinite(case.run_jc[j])):
            taken = model.new_bool_var("")
            length = int(length_jc[j, c])
            on_cluster[c].append((model.new_optional_interval_var(start, length, end, taken, ""), int(jobs.nodes[j])))
            chosen[j, c] = taken
            here.append(taken)
        model.add_exactly_one(here)
    for c, intervals in enumerate(on_cluster):
        model.add_cumulative([i for i, _ in intervals], [n for _, n in intervals], CLUSTERS.nodes[c])
    model.minimize(sum(ends))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds, solver.parameters.num_workers = SEARCH_S, 1
    status = solver.solve(model)
    cluster_j = np.array(
        [
            next(c for c in range(len(CLUSTERS.names)) if (j, c) in chosen and solver.value(chosen[j, c]))
            for j in range(len(jobs))
        ]
    )
    bound_s = (solver.best_objective_bound - submit_j.sum()) / len(jobs) * unit_s
    return bound_s, cluster_j, status == cp_model.OPTIMAL


def best_placement(case: Case, starts: list[np.ndarray]) -> float:
    """Return the least mean turnaround under EASY that changes of one and of two jobs at a time lead to."""
    return min(_descended(case, start.copy()) for start in starts)


def _descended(case: Case, cluster_j: np.ndarray) -> float:
    options = [np.flatnonzero(np.isfinite(run_c)) for run_c in case.run_jc]
    best, better = under_easy(case, cluster_j), True
    while better:
        better = False
        for size in (1, 2):
            for group in itertools.combinations(range(len(case.jobs)), size):
                for places in itertools.product(*(options[j] for j in group)):
                    before = cluster_j[list(group)].copy()
                    cluster_j[list(group)] = places
                    value = under_easy(case, cluster_j)
                    if value < best * (1 - 1e-9):
                        best, better = value, True
                    else:
                        cluster_j[list(group)] = before
            if better:
                break
    return best


def table(truth: RelativeTimes, arguments: argparse.Namespace) -> list[str]:
    rows = [
        "| load | " + " | ".join(POLICIES) + " | considerate, shortest first | best schedule at all |",
        "|---|" + "---|" * 5,
    ]
    for load in map(float, arguments.loads.split(",")):
        ratios: dict[str, list[float]] = {}
        proven = 0
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.cases):
            case = a_case(truth, arguments.jobs, load, seed)
            bound_s, from_search, optimal = best_schedule(case)
            proven += optimal
            runs = [(name, "easy") for name in POLICIES] + [("considerate", "shortest")]
            outcomes = [
                simulate(case.jobs, CLUSTERS, truth, truth, name, rules=Rules(backfill=rule), seed=seed)
                for name, rule in runs
            ]
            best_s = best_placement(case, [from_search, *(outcome.cluster for outcome in outcomes[:3])])
            for (name, rule), outcome in zip(runs, outcomes, strict=True):
                ratios.setdefault(f"{name} {rule}", []).append(float(outcome.turnaround_s.mean()) / best_s)
            ratios.setdefault("bound", []).append(bound_s / best_s)
            print(f"load {load:g}, seed {seed}: done", file=sys.stderr, flush=True)
        cells = [f"{np.exp(np.mean(np.log(values))):.3f} (to {max(values):.2f})" for values in ratios.values()]
        rows.append(f"| {load:g} | {' | '.join(cells)}, proven for {proven} of {arguments.cases} |")
    return rows


if __name__ == "__main__":
    main()
