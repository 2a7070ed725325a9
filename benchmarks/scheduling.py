"""What predictions are worth to a scheduler: policies x predictors over seeds, and the share of the gain they deliver.

    python benchmarks/scheduling.py [--parts dr_evt,testbed,options,bound] [--jobs 25000,100000] [--seeds 10] [--write]

Part `dr_evt` follows the protocol of the authors' multi-cluster study on their own machines and speed-ups, which belong
to them and are not part of the project: they are read from ../shared/datasets/dr_evt, or from --data DIR, and the part
is left out, by name, where they are absent. Part `testbed` places jobs that are workloads of the testbed on three
made-up clusters of its machines, by predictions of models that had never seen the workload, or its application
(--evaluations: what `crossperf evaluate --json` wrote of the testbed under `workload` and `app`; without them they are
made first). Part `options` (scheduling_options.py) compares backfilling, outages, feedback and deadlines on the
authors' machines, and part `bound` (bound.py) tells how far policies are from the best placement on small cases.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import shlex
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np

import bound
from crossperf import dataset
from crossperf.datasets import testbed
from crossperf.evaluation import Evaluation, evaluate, read
from crossperf.schedule import predictors, readers
from crossperf.schedule.compare import METRIC, PolicyScores, TurnaroundDifference, compare, differences
from crossperf.schedule.machines import Machines
from crossperf.schedule.rules import Rules
from crossperf.schedule.synthetic import LONGEST_S, draw
from crossperf.schedule.times import RelativeTimes, aligned
from scheduling_options import options

HERE = Path(__file__).parent
POLICIES = (
    "random",
    "round-robin",
    "pinned",
    "fastest",
    "fastest-available",
    "wait-time",
    "turnaround",
    "considerate",
)
#: Policies whose choices follow the predictions, for which a share of the gain means something.
INFORMED = ("fastest-available", "turnaround", "considerate")
#: Three made-up clusters of the testbed's machines; their modes share the nodes.
CLUSTERS = Machines.of({"epyc": 256, "xeon": 64, "h200": 16})
#: The platform that the jobs of the testbed were profiled on.
SOURCE = "epyc-1t"
MODELS = ("crossperf", "random-forest", "median")
SPLITS = ("workload", "app")


class Study(NamedTuple):
    """What a process needs to simulate one seed."""

    n_jobs: int
    machines: Machines
    truth: RelativeTimes
    predictors: tuple[RelativeTimes, ...]
    policies: tuple[str, ...]
    utilisation: float


def main() -> None:
    arguments = parse()
    sections = []
    for part in arguments.parts.split(","):
        sections += {"dr_evt": dr_evt, "testbed": of_testbed, "options": options, "bound": bounded}[part](arguments)
    print("\n".join(sections))
    if arguments.write:
        (HERE / "scheduling.md").write_text("\n".join([header(), *sections]) + "\n", encoding="utf-8")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="dr_evt,testbed,options,bound")
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "datasets" / "dr_evt")
    parser.add_argument("--evaluations", help="evaluations of the testbed: workload.json,app.json")
    parser.add_argument("--jobs", default="25000,100000", help="jobs of the part dr_evt; the testbed takes the first")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=300, help="policies were tuned on other seeds")
    parser.add_argument("--utilisation", type=float, default=0.9, help="load of the part dr_evt")
    parser.add_argument("--loads", default="0.9,4", help="loads of the part testbed, as if each job ran anywhere")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="write benchmarks/scheduling.md")
    return parser.parse_args()


def header() -> str:
    return (
        "# What predictions are worth to a scheduler\n\n"
        f"`python benchmarks/scheduling.py {shlex.join(sys.argv[1:])}`, "
        f"{datetime.datetime.now(datetime.UTC).date()}, Python {platform.python_version()}.\n"
    )


# The authors' machines and speed-ups


def dr_evt(arguments: argparse.Namespace) -> list[str]:
    if not (arguments.data / "ground_truth.csv").is_file():
        print(f"left out: {arguments.data}/ground_truth.csv is not there", file=sys.stderr)
        return []
    truth = readers.read_times(arguments.data / "ground_truth.csv")
    tables = [predictors.ideal(truth), predictors.app_average(truth), predictors.machine_average(truth)]
    tables.append(replace(readers.read_times(arguments.data / "prediction.rajaperf.csv"), name="rajaperf"))
    truth, *tables = aligned(truth, *tables)
    machines = readers.read_machines(arguments.data / "machines.csv")
    sections = ["## (a) The authors' machines: five clusters, 637 workloads of 6 applications\n"]
    for n_jobs in map(int, arguments.jobs.split(",")):
        study = Study(n_jobs, machines, truth, tuple(tables), POLICIES, arguments.utilisation)
        cells = simulated(study, arguments)
        sections += [f"### {n_jobs:,} jobs\n", table(cells), ""]
        for nothing in ("machine-average", "rajaperf"):
            sections += [*shares(cells, nothing, ["app-average"]), ""]
        sections += [*verdicts(cells), ""]
    return sections


def bounded(arguments: argparse.Namespace) -> list[str]:
    if not (arguments.data / "ground_truth.csv").is_file():
        return []
    truth = readers.read_times(arguments.data / "ground_truth.csv")
    case = argparse.Namespace(cases=arguments.seeds, jobs=16, loads="1,2,4", first_seed=400)
    return ["## (e) How far from the best: small cases\n", bound.about(case), *bound.table(truth, case), ""]


# The testbed, with predictions made without the workload or its application


def of_testbed(arguments: argparse.Namespace) -> list[str]:
    evaluations = evaluated(arguments)
    truth = readers.from_runs(testbed.load(), reference=SOURCE)
    averages = [predictors.ideal(truth), predictors.app_average(truth), predictors.machine_average(truth)]
    models = [
        held_out_times(evaluations[split], name, split)
        for split in SPLITS
        for name in MODELS
        if name in evaluations[split].scores
    ]
    truth, *tables = aligned(truth, *averages, *models)
    n_jobs = int(arguments.jobs.split(",")[0])
    names = ", ".join(f"{name} {nodes}" for name, nodes in zip(CLUSTERS.names, CLUSTERS.nodes, strict=True))
    sections = [
        f"## (b) The testbed: {len(truth.workloads)} workloads on made-up clusters ({names} nodes), {n_jobs:,} jobs\n",
        f"Each job was profiled on {SOURCE}. `crossperf, workload` predicts workloads that it was not trained on, "
        "`crossperf, app` whole applications (5 folds, seed 0). `app-average` and `machine-average` know the truth "
        "that they average.\n",
    ]
    for load in map(float, arguments.loads.split(",")):
        cells = simulated(Study(n_jobs, CLUSTERS, truth, tuple(tables), INFORMED, load), arguments)
        sections += [f"### Load {load:g}\n", table(cells), ""]
        sections += [*shares(cells, "machine-average", [*(model.name for model in models), "app-average"]), ""]
        sections += [*verdicts(cells), ""]
    return sections


def evaluated(arguments: argparse.Namespace) -> dict[str, Evaluation]:
    if arguments.evaluations:
        return {evaluation.split: evaluation for evaluation in map(read, arguments.evaluations.split(","))}
    data = dataset.build(testbed.load())

    def progress(name: str, done: int, total: int) -> None:
        print(f"evaluating the testbed: {done}/{total} {name}", file=sys.stderr, flush=True)

    return {split: evaluate(data, MODELS, split=split, progress=progress) for split in SPLITS}  # type: ignore[arg-type]


def held_out_times(evaluation: Evaluation, model: str, split: str) -> RelativeTimes:
    """Return a model's held-out predictions from the source as a table of times."""
    held_out = evaluation.held_out
    assert held_out is not None
    source = held_out.platforms.index(SOURCE)
    rows = np.flatnonzero(held_out.source_n == source)
    answer = held_out.predictions[model]

    workloads = [held_out.workloads[w] for w in held_out.workload_n[rows]]
    middle_wm = np.exp(answer.predicted_np[rows] - answer.predicted_np[rows][:, [source]])
    low_wm, high_wm = (None if end is None else np.exp(end[rows]) for end in (answer.low_np, answer.high_np))
    return RelativeTimes.of(workloads, held_out.platforms, middle_wm, low_wm, high_wm, name=f"{model}, {split}")


# Simulations, seed by seed


def simulated(study: Study, arguments: argparse.Namespace) -> list[PolicyScores]:
    """Return every policy with every predictor over the seeds, which are shared out among processes."""
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    with ProcessPoolExecutor(arguments.processes, mp_context=get_context("spawn")) as pool:
        parts: list[tuple[PolicyScores, ...]] = []
        for done, part in enumerate(pool.map(partial(one_seed, study), seeds), start=1):
            parts.append(part)
            print(f"{study.n_jobs:,} jobs: {done} of {len(seeds)} seeds are done", file=sys.stderr, flush=True)
    return [
        PolicyScores(
            cell.policy, cell.predictor, {m: np.concatenate([p[i].metrics[m] for p in parts]) for m in cell.metrics}
        )
        for i, cell in enumerate(parts[0])
    ]


def one_seed(study: Study, seed: int) -> tuple[PolicyScores, ...]:
    def jobs_of(seed: int):  # type: ignore[no-untyped-def]
        return draw(study.n_jobs, study.machines, study.truth, utilisation=study.utilisation, seed=seed)

    rules = Rules(wall_limit_s=LONGEST_S)
    result = compare(jobs_of, study.machines, study.truth, study.predictors, study.policies, [seed], rules=rules)
    return result.scores


# What is shown

#: What the two tables without knowledge of the job hold.
_NOTHING = {
    "machine-average": "the mean over all workloads on each machine",
    "rajaperf": "the authors' own, one number a machine from the RAJA Performance Suite",
}


def table(cells: Sequence[PolicyScores]) -> str:
    rows = [
        "| policy | predictor | turnaround, min | wait, min | bounded slowdown | run, min | makespan, h |",
        "|---|---|---|---|---|---|---|",
    ]
    for cell in cells:
        figures = [
            _number(cell, METRIC, 60.0),
            _number(cell, "mean_wait_s", 60.0),
            _number(cell, "mean_bounded_slowdown"),
            _number(cell, "mean_run_s", 60.0),
            _number(cell, "makespan_s", 3600.0),
        ]
        rows.append(f"| {cell.policy} | {cell.predictor} | {' | '.join(figures)} |")
    return "\n".join(rows)


def _number(cell: PolicyScores, metric: str, unit: float = 1.0) -> str:
    mean, half = cell.interval(metric)
    return f"{mean / unit:,.1f}" + ("" if half is None else f" ± {half / unit:,.1f}")


def shares(cells: Sequence[PolicyScores], nothing: str, names: Sequence[str]) -> list[str]:
    """Return which share of the gain from knowing nothing of the job to the truth each predictor delivers."""
    rows = [
        f"Share of the gain in mean turnaround between `{nothing}` ({_NOTHING[nothing]}: nothing is known of the job) "
        "and the truth, mean over the seeds and its 95 % interval:\n",
        f"| predictor | {' | '.join(INFORMED)} |",
        "|---|" + "---|" * len(INFORMED),
    ]
    by_name = {(cell.policy, cell.predictor): cell.metrics[METRIC] for cell in cells}
    for name in names:
        row = []
        for policy in INFORMED:
            worst_s, best_s, own_s = (by_name[policy, predictor] for predictor in (nothing, "ideal", name))
            share = PolicyScores(policy, name, {"share": (worst_s - own_s) / (worst_s - best_s)})
            mean, half = share.interval("share")
            row.append(f"{mean:.0%}" + ("" if half is None else f" ± {half:.0%}"))
        rows.append(f"| {name} | {' | '.join(row)} |")
    return rows


def verdicts(cells: Sequence[PolicyScores]) -> Iterator[str]:
    """Yield which differences between the policies, with the same predictor, are real, against the best of them."""
    pairs = differences(cells)
    for predictor in dict.fromkeys(cell.predictor for cell in cells):
        own = [cell for cell in cells if cell.predictor == predictor]
        best = min(own, key=lambda cell: cell.interval(METRIC)[0])
        rivals = [d for d in pairs if best in (d.first, d.second) and d.first.predictor == d.second.predictor]
        if rivals:
            yield f"- `{predictor}`: `{best.policy}` is best; " + "; ".join(_against(best, d) for d in rivals) + "."


def _against(best: PolicyScores, difference: TurnaroundDifference) -> str:
    other = difference.second if difference.first is best else difference.first
    factor = difference.factor if difference.first is best else 1.0 / difference.factor
    return f"{1 - factor:.1%} less than `{other.policy}`" + ("" if difference.real else " (may be chance)")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")

    main()
